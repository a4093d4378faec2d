/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registered users. A user is a name with compiled rules, which are replaced as a whole;
 * sessions refer to the user, so they follow at their next request. A removed user exists until its
 * last session has ended. Main thread only. */
#ifndef ACL_USERS_H
#define ACL_USERS_H

#include "acl/roles.h"
#include "engine/user.h"

typedef struct aclUser aclUser;
struct aclUser {
    user as_user; /* first: engine's view */
    aclRules *rules;
    uint32_t checks; /* enum aclCheckFlag: what its sessions are armed for */
    /* aclActionsFill() of the rules, once a session needs it; NULL and 0 before. */
    uint32_t action_count, key_count;
    uint8_t *actions;
    const aclPattern *keys; /* key patterns of the selector that the actions are about */
    bool removed;
    struct aclUser *next_private; /* of those that are not registered */
};

static inline aclUser *aclUserOf(const session *s) { return (aclUser *)s->user; }
aclUser *usersFind(slice name);
/* All users, sorted by name; borrowed until a user is added or removed. */
aclUser *const *usersAll(int *count);
aclUser *usersDefault(void);

/* Adds a user or replaces the rules of an existing one; takes `rules`. Sessions that use a channel
 * they have lost are closed. */
void usersSetTake(slice name, aclRules *rules);
/* Removes a user other than the default one and closes its sessions, the caller's after the reply.
 * False if there is none of that name. */
bool usersRemove(slice name);

/* A user outside of the registry; takes `rules`. */
aclUser *usersNewPrivateTake(slice name, aclRules *rules);
/* Closes its sessions; it is freed with the last one. */
void usersFreePrivate(aclUser *u);
/* Replaces the rules of a user, registered or not; takes `rules`. */
void usersSetRulesTake(aclUser *u, aclRules *rules);

/* A set of users that replaces all (ACL LOAD): those of the same name keep their sessions. */
typedef struct loadedUser {
    slice name;      /* borrowed */
    aclRules *rules; /* owned until usersReplaceTake() */
    int line;
} loadedUser;
/* Takes the rules of all `list`ed users, whose names must be unique and include "default", and the
 * roles that they hold. */
void usersReplaceTake(loadedUser *list, int count, aclRoleSet *roles);

/* The rules of a role were replaced: those of its users are compiled again. */
void usersRoleChanged(slice role);
/* True if a user holds the role. */
bool usersHoldRole(slice role);

/* False if the name is not allowed. */
bool userNameIsValid(slice name);
/* Arms the gates of a session as its user requires; see gate.c. */
void gatesArmFor(session *s);
/* Appends "user <name> <rules>". */
void userDescribeLine(const aclUser *u, void (*describe)(const aclRules *rules, str *out),
                      str *out);
/* Implements userPolicy.may_run_queue. */
bool mayRunQueue(const ctx *c, str *why);
/* Allocates and fills the actions of a user. */
void userActionsNew(aclUser *u);
/* The rules of the default user without further configuration; `password` (requirepass) may be
 * empty. */
aclRules *defaultRulesNew(slice password);
/* Commands were loaded or unloaded: evaluates the rules of all users again, so that a rule for a
 * category or a name includes a command that was loaded after it. */
void usersCommandsChanged(void);
/* The last session of a user has left it. */
void userLastLeft(user *u);
void usersFree(void);

/* acl-pubsub-default: new users may use all channels. */
bool aclGivesAllChannels(void);

#endif
