/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users and roles from files: the ACL file, and `user` and `role` lines of the configuration. Main
 * thread only. */
#ifndef ACL_FILE_H
#define ACL_FILE_H

#include "acl/acl_priv.h"
#include "base/error.h"
#include "config/config.h"

/* Replaces all users and roles by those of the ACL file, or none if it has an error: then `errors`
 * receives the texts of all of them. Without a line for the default user it has the password of
 * `requirepass`, or none. */
status aclFileLoad(str *errors) MUST_USE;
/* Parses the contents of an ACL file without applying them. `path` is for the error texts. */
status aclFileCheck(const char *path, slice content, str *errors) MUST_USE;
/* Writes all roles and users to the ACL file, atomically. */
status aclFileSave(reason *why) MUST_USE;

/* Validates a line of the configuration as far as possible before all commands and roles are
 * known. */
status aclUserLineCheck(const slice *words, int count, reason *why) MUST_USE;
status aclRoleLineCheck(const slice *words, int count, reason *why) MUST_USE;
/* Sets the roles and users of the configuration's lines. `requirepass` applies to the default user
 * without a line. */
status aclLinesApply(reason *why) MUST_USE;
/* CONFIG REWRITE: one line per user or role, unless they are in an ACL file. */
void aclUserLinesRewrite(configLines *lines);
void aclRoleLinesRewrite(configLines *lines);

/* Splits at every single blank; memFree() the result. */
slice *aclSplitAtBlanks(slice line, int *count);

#endif
