/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users and roles as texts, for folders that keep or send them and know no rules, as for
 * cluster-shared-acl. A text has the rules as ACL LIST shows them, without the name. `acl`
 * implements it. Main thread only. */
#ifndef ENGINE_USER_TEXTS_H
#define ENGINE_USER_TEXTS_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

typedef void userTextsVisitProc(void *arg, bool is_role, slice name);

typedef struct userTextsKeeper {
    void (*each)(userTextsVisitProc *visit, void *arg);
    bool (*print)(bool is_role, slice name, str *out, bool *is_on);
    status (*set)(bool is_role, slice name, slice rules, reason *why);
    bool (*remove)(bool is_role, slice name);
    bool (*takes)(bool is_role, slice before, slice after);
} userTextsKeeper;
void userTextsSetKeeper(const userTextsKeeper *keeper);

/* Calls `visit` for all roles, then all users, but not for a default user that is as in a server
 * without configuration. */
void userTextsEach(userTextsVisitProc *visit, void *arg);
/* Appends the rules; *is_on: the user may log in, or it is a role. False if there is none of that
 * name. */
bool userTextsPrint(bool is_role, slice name, str *out, bool *is_on);
/* Adds a user or role, or replaces its rules. Rules for commands that this server does not have are
 * left out, and logged. With any other error a user that exists may do nothing and log in no more,
 * as its old rules may allow more than the new ones: `why` says what was wrong. */
status userTextsSet(bool is_role, slice name, slice rules, reason *why) MUST_USE;
/* Removes a user, or a role. False: the role is held by users, so it now gives no rights instead;
 * or it is the default user, which may do nothing and log in no more. */
bool userTextsRemove(bool is_role, slice name);
/* True unless everything that the rules `before` allow is allowed by `after`, as far as that can be
 * told from the rules. A login, a password and a greater limit count as well. */
bool userTextsTake(bool is_role, slice before, slice after);

/* Called with the name of each user and role that is added, changed or removed; NULL: none. */
typedef void userTextsListener(bool is_role, slice name);
void userTextsListen(userTextsListener *proc);
/* For `acl`. */
void userTextsChanged(bool is_role, slice name);

#endif
