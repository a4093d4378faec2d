/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of users and passwords. Each field is named after its directive; only the
 * configuration registry writes them. */
#ifndef ACL_ACL_PRIV_H
#define ACL_ACL_PRIV_H

#include <stdint.h>

#include "base/str.h"
#include "config/config.h"

enum aclPubsubDefault { PUBSUB_RESETCHANNELS, PUBSUB_ALLCHANNELS };

/* A "user NAME rule ..." or "role NAME rule ..." line of the configuration file. */
typedef struct aclLine {
    str *words; /* name, then rules */
    int count;
    configSource source;
    bool is_included; /* an included file has a line of this name, too */
} aclLine;

typedef struct aclLines {
    aclLine *list;
    int count;
} aclLines;

typedef struct aclConfig {
    str requirepass;
    char *aclfile;
    int64_t acllog_max_len;
    int acl_pubsub_default; /* enum aclPubsubDefault */
    aclLines user_lines, role_lines;
    bool users_are_loaded;
} aclConfig;

extern aclConfig aclConf;
extern const configOption aclOptions[];

/* CONFIG SET requirepass: the default user has this password only, or needs none. */
status aclApplyRequirepass(reason *why);

#endif
