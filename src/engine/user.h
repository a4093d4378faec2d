/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users as folders other than `acl` see them: a name, the sessions that are logged in, and
 * questions about rights, which `acl` answers. A session without user (internal ones, and all of a
 * server without `acl`) may do everything. Main thread only. */
#ifndef ENGINE_USER_H
#define ENGINE_USER_H

#include <stdbool.h>

#include "engine/ctx.h"

/* `acl` embeds this in its own structure. */
struct user {
    slice name;
    uint64_t session_count; /* sessions that are logged in */
    struct quota *quota;    /* account/quota.h; NULL: no limit */
    struct share *share;    /* account/share.h; NULL: none */
};

/* Functions that `acl` implements. */
typedef struct userPolicy {
    user *(*find)(slice name);
    /* The last session of a user has left it. */
    void (*last_left)(user *u);
    bool (*reads_all_keys)(const ctx *c, bool of_all_dbs);
    bool (*may_run)(const session *s, const command *cmd, const slice *argv, int argc);
    bool (*may_run_queue)(const ctx *c, str *why);
    bool (*may_receive)(const user *u, slice channel, bool is_pattern);
    bool (*may_read)(const user *u, int db_id, slice key);
    bool (*may_read_all)(const user *u);
    bool (*is_on)(const user *u);
    void (*log_certificate)(const session *s, slice name);
} userPolicy;
void userSetPolicy(const userPolicy *policy); /* NULL: none; for tests */

/* How all sessions of clients are visited; registered by `net`. A session has no list node for its
 * user: users change rarely, and there may be a million clients. */
typedef void sessionVisitProc(session *s, void *arg);
typedef void sessionWalkProc(sessionVisitProc *visit, void *arg);
void userSetSessionWalk(sessionWalkProc *walk);
/* Visits the sessions of a user. O(all sessions). */
void userEachSession(const user *u, void (*visit)(session *s));
/* Visits the sessions of all clients. */
void userEverySession(void (*visit)(session *s));

/* The user of that name, NULL if there is none. */
user *userFind(slice name);
/* True if the user may log in. */
bool userIsOn(const user *u);
/* Notes in ACL LOG that the certificate of the session's client names no user. */
void userLogCertificate(const session *s, slice name);
/* The name of a session's user; "default" without one. */
slice userNameOf(const session *s);
/* True if the rights with which the caller may run this request (one selector has them all) include
 * reading every key of the current database, or of all databases: BY and GET of SORT, CHANGES. */
bool userReadsAllKeys(const ctx *c, bool of_all_dbs);
/* True if the session's user may run this request now, in its current database. Neither logs nor
 * counts a refusal. `cmd` is that of argv (commandResolve()); the arity is not checked. For
 * acl_check_cmd of scripts. */
bool userMayRun(const session *s, const command *cmd, const slice *argv, int argc);
/* Changes with any change of the rights of any user. */
uint64_t userRightsVersion(void);
void userRightsChanged(void);
/* True if the session's user may run all commands of its transaction now. Else the refusal is in
 * ACL LOG, and its text is appended to `why`. */
bool userMayRunQueue(const ctx *c, str *why);
/* True if the session's user may be subscribed to the channel, or to the pattern as it is written.
 * To be asked for existing subscriptions on SESSION_CHANNELS_TAKEN. */
bool userMayReceive(const session *s, slice channel, bool is_pattern);
/* True if the session's user may read this key, whatever the command: a selector has the key and a
 * command that reads. */
bool userMayRead(const session *s, int db_id, slice key);
/* True if that holds for all keys of all databases, as it mostly does; false if each has to be
 * asked for. */
bool userMayReadAll(const session *s);
/* Closes a session whose user was removed or has lost what it uses: after the reply if its command
 * is running, else at once. */
void userCloseSession(session *s);
/* The user of the session is removed: closes it, unless it is a link of another node. That one
 * becomes the default user's after its job, wait or transaction has ended with an error, and
 * SESSION_USER_CHANGED is signalled. */
void userLeaveSession(session *s);

#endif
