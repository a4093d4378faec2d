/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that `acl` registers (user.h). Main thread only. */
#include "engine/user.h"

#include "base/base.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "engine/job.h"
#include "engine/session_priv.h"
#include "engine/transaction.h"

static const userPolicy *policy;
static sessionWalkProc *session_walk;

void userSetSessionWalk(sessionWalkProc *walk) { session_walk = walk; }

void userSetPolicy(const userPolicy *to) { policy = to; }

user *userFind(slice name) { return policy ? policy->find(name) : NULL; }

bool userIsOn(const user *u) { return policy->is_on(u); }

void userLogCertificate(const session *s, slice name) {
    if (policy) policy->log_certificate(s, name);
}

slice userNameOf(const session *s) { return s->user ? s->user->name : SLICE("default"); }

bool userReadsAllKeys(const ctx *c, bool of_all_dbs) {
    if (!policy || !c->who->user || ctxIsReplay(c)) return true;
    return policy->reads_all_keys(c, of_all_dbs);
}

bool userMayRun(const session *s, const command *cmd, const slice *argv, int argc) {
    hotCheck(argc > 0);
    if (!policy || !s->user) return true;
    return policy->may_run(s, cmd, argv, argc);
}

static uint64_t rights_version = 1;

uint64_t userRightsVersion(void) { return rights_version; }

void userRightsChanged(void) { rights_version++; }

bool userMayRunQueue(const ctx *c, str *why) {
    hotCheck(c->who->flags & SESSION_IN_MULTI);
    if (!policy || !c->who->user || ctxIsReplay(c)) return true;
    return policy->may_run_queue(c, why);
}

bool userMayReceive(const session *s, slice channel, bool is_pattern) {
    if (!policy || !s->user) return true;
    return policy->may_receive(s->user, channel, is_pattern);
}

bool userMayRead(const session *s, int db_id, slice key) {
    if (!policy || !s->user) return true;
    return policy->may_read(s->user, db_id, key);
}

bool userMayReadAll(const session *s) {
    return !policy || !s->user || policy->may_read_all(s->user);
}

void userCloseSession(session *s) {
    hotCheck(threadIsMain());
    if (sessionIsExecuting(s)) {
        sessionCloseSoon(s);
    } else {
        sessionCloseNow(s);
    }
}

void userLeaveSession(session *s) {
    user *other = userFind(SLICE("default"));
    bool stays =
        s->flags & SESSION_NODE_LINK && other && other != s->user && !sessionIsExecuting(s);
    if (stays && s->flags & SESSION_BLOCKED) {
        /* A change that has begun is completed. */
        slice error =
            jobIsChange(s)
                ? SLICE("UNKNOWN The command may have been executed: its user was removed")
                : SLICE("NOPERM The user was removed while the command was executed");
        stays = blockEnd(s, error);
    }
    if (!stays) {
        userCloseSession(s);
        return;
    }
    if (s->flags & SESSION_IN_MULTI) transactionDiscard(s);
    sessionSetAuthenticated(s, other, true);
}

/* Logs the session in as another user. */
void userMoveSession(session *s, user *to) {
    hotCheck(threadIsMain());
    user *from = s->user;
    if (from == to) return;
    s->user = to;
    if (to) to->session_count++;
    if (from && --from->session_count == 0 && policy) policy->last_left(from);
}

typedef struct userVisit {
    const user *of;
    void (*visit)(session *s);
} userVisit;

static void visitIfOf(session *s, void *arg) {
    const userVisit *v = arg;
    if (s->user == v->of) v->visit(s);
}

static void visitAny(session *s, void *arg) { (*(void (**)(session *))arg)(s); }

void userEverySession(void (*visit)(session *s)) {
    if (session_walk) session_walk(visitAny, &visit);
}

void userEachSession(const user *u, void (*visit)(session *s)) {
    userVisit v = {.of = u, .visit = visit};
    if (session_walk && u->session_count) session_walk(visitIfOf, &v);
}
