/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users from files: the ACL file, and `user` lines of the configuration. Main thread only. */
#ifndef ACL_FILE_H
#define ACL_FILE_H

#include "acl/acl_priv.h"
#include "base/error.h"
#include "config/config.h"

/* Replaces all users by those of the ACL file, or none if it has an error: then `errors` receives
 * the texts of all of them. Without a line for the default user it has the password of
 * `requirepass`, or none. */
status aclFileLoad(str *errors) MUST_USE;
/* Parses the contents of an ACL file without applying them. `path` is for the error texts. */
status aclFileCheck(const char *path, slice content, str *errors) MUST_USE;
/* Writes all users to the ACL file, atomically. */
status aclFileSave(reason *why) MUST_USE;

/* Validates a line of the configuration as far as possible before all commands are known. */
status aclUserLineCheck(const slice *words, int count, reason *why) MUST_USE;
/* Sets the users of the configuration's lines. `requirepass` applies to the default user without a
 * line. */
status aclUserLinesApply(reason *why) MUST_USE;
/* CONFIG REWRITE: one line per user, unless they are in an ACL file. */
void aclUserLinesRewrite(configLines *lines);

#endif
