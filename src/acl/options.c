/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of users and passwords. `user` lines are stored as words; they are applied when all
 * commands are known. Main thread only. */
#include <limits.h>

#include "acl/acl_priv.h"
#include "acl/file.h"
#include "base/base.h"

aclConfig aclConf;

static const configWord pubsub_words[] = {
    {"allchannels", PUBSUB_ALLCHANNELS}, {"resetchannels", PUBSUB_RESETCHANNELS}, {NULL, 0}};

static status takeUser(const slice *words, int count, reason *why) {
    if (aclUserLineCheck(words, count, why) != OK) return ERR_SYNTAX;
    for (int i = 0; i < aclConf.user_line_count; i++) {
        if (!sliceEqual(strSlice(&aclConf.user_lines[i].words[0]), words[0])) continue;
        return reasonSet(
            why, ERR_EXISTS,
            "Error in user declaration '%.*s': Duplicate user found. A user can only be defined once "
            "in config files",
            (int)sizeMin(words[0].len, 64), words[0].ptr);
    }
    aclConf.user_lines =
        memRealloc(aclConf.user_lines, sizeof(aclUserLine) * (size_t)(aclConf.user_line_count + 1));
    aclUserLine *line = &aclConf.user_lines[aclConf.user_line_count++];
    line->words = memNewArray(str, (size_t)count);
    line->count = count;
    for (int i = 0; i < count; i++) line->words[i] = strNew(words[i]);
    return OK;
}

static const configFileOnly user_lines = {
    .words_min = 1, .words_max = INT_MAX, .take = takeUser, .rewrite = aclUserLinesRewrite};

const configOption aclOptions[] = {
    CONFIG_STRING("requirepass", aclConf.requirepass, "", .flags = CONFIG_SENSITIVE,
                  .apply = aclApplyRequirepass),
    CONFIG_STRING("aclfile", aclConf.aclfile, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("acllog-max-len", aclConf.acllog_max_len, 128, 0, INT64_MAX),
    CONFIG_ENUM("acl-pubsub-default", aclConf.acl_pubsub_default, pubsub_words,
                PUBSUB_RESETCHANNELS),
    CONFIG_FILE_ONLY("user", &user_lines),
    CONFIG_END,
};
