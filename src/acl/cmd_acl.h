/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies and arguments that commands of users and of roles have in common. Main thread only. */
#ifndef ACL_CMD_ACL_H
#define ACL_CMD_ACL_H

#include "acl/rules.h"
#include "engine/ctx.h"

/* Applies the arguments from the fourth one on to a draft; on failure the error was replied. The
 * error names the subcommand. */
bool aclApplyArguments(ctx *c, aclDraft *d, const char *subcommand);
/* Replies "commands", "keys", "channels", "databases", "selectors" and their values: 5 pairs. */
void aclReplyRights(ctx *c, const aclRules *rules);
/* Logs the warnings of listed rules. */
void aclWarnRules(const aclRules *rules);

#endif
