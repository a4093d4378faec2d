/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Roles: named rules without password, which users hold (role=name). The rules of a user contain
 * the selectors of its roles, so checks know nothing of them; when a role changes, the rules of its
 * users are compiled again. Main thread only. */
#ifndef ACL_ROLES_H
#define ACL_ROLES_H

#include "acl/rules.h"

typedef struct aclRole {
    str name;
    aclRules *rules;
} aclRole;

/* Sorted by name. */
struct aclRoleSet {
    aclRole *list;
    int count, cap;
};

/* The roles that exist; the pointer stays valid. */
const aclRoleSet *rolesCurrent(void);
/* NULL if there is none of that name. Borrowed until a role is added or removed. */
const aclRole *rolesFind(const aclRoleSet *set, slice name);
/* Adds a role, or replaces the rules of one; takes `rules`. */
void rolesAddTake(aclRoleSet *set, slice name, aclRules *rules);
void rolesClear(aclRoleSet *set);
/* Appends "role <name> <rules>". */
void roleDescribeLine(const aclRole *role, str *out);
/* NULL, or why a role cannot have this name (constant). */
const char *roleNameError(slice name);

/* The same of the current set: the users that hold the role follow at once. */
void rolesSetTake(slice name, aclRules *rules);
/* Removes a role that no user holds; false if there is none of that name. */
bool rolesRemove(slice name);
/* Makes `*set` the current one; it is empty afterwards. The caller replaces the users. */
void rolesReplaceTake(aclRoleSet *set);
/* Commands were loaded or unloaded: evaluates the rules of all roles again. */
void rolesCommandsChanged(void);

#endif
