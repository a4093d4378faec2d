/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rights as modules ask about them, and users of their own, which no command lists. Main thread
 * only. */
#ifndef ACL_PRIVATE_USER_H
#define ACL_PRIVATE_USER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "engine/command.h"
#include "engine/user.h"

/* A user that is off and has no rights. The name need not be unique. */
user *aclPrivateUserNew(slice name);
/* Closes its sessions; it is freed when the last one has ended. */
void aclPrivateUserFree(user *u);

/* Applies one rule, as a word of ACL SETUSER. NULL, or the error (constant): nothing has changed
 * then. Of any user. */
const char *aclUserApply(user *u, slice rule);
/* Applies rules separated by blanks, all or none; the error is appended to `error`. */
status aclUserApplyLine(user *u, slice line, str *error) MUST_USE;
/* Appends its rules. */
void aclUserDescribe(const user *u, str *out);

/* The first rule of a listed user or a role that names a command of which `is_wanted` is true, or
 * one of its subcommands: "+get", "-config|set". Empty: there is none. Borrowed until a user or
 * role is changed. */
slice aclRuleNaming(bool (*is_wanted)(const command *cmd, const void *arg), const void *arg);

/* Makes an internal session that of the user, NULL: of none. Its own commands are not limited by
 * the rights of the user, but those of scripts that they run. */
void aclSessionRunsAs(session *s, user *u);

/* What refuses a request. */
typedef enum aclRefusal {
    ACL_REFUSES_NOTHING,
    ACL_REFUSES_DATABASE,
    ACL_REFUSES_COMMAND,
    ACL_REFUSES_KEY,
    ACL_REFUSES_CHANNEL,
    ACL_REFUSES_LOGIN,
} aclRefusal;
/* `cmd` is that of argv (commandResolve()), whose arity fits. db_id -1: whichever, so that a user
 * of some databases alone may run nothing that has to do with them. `*arg_index` receives the
 * argument that is refused; 0: it is none. */
aclRefusal aclUserRefusal(const user *u, const command *cmd, const slice *argv, int argc, int db_id,
                          int *arg_index);
/* True if some selector allows this access to the key, in whichever database. With `all_of_prefix`
 * to all keys that begin so. */
bool aclUserMayUseKey(const user *u, slice key, bool reads, bool writes, bool all_of_prefix);
/* True if it may use the channel, or subscribe to the pattern as it is written. */
bool aclUserMayUseChannel(const user *u, slice channel, bool is_pattern);

/* Adds an entry to ACL LOG, with the context `module`. `s` is the client, NULL if there is none. */
void aclLogByModule(const session *s, aclRefusal what, slice object, slice user_name);

#endif
