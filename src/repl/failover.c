/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER (failover.h). Invariant: is_failing_over and is_paused of the primary are set if and only if the state is not
 * FAILOVER_NONE. */
#include "repl/failover.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/hot.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "repl/procs.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "store/store.h"

typedef enum failoverState {
    FAILOVER_NONE,
    FAILOVER_WAITING_FOR_SYNC,
    FAILOVER_IN_PROGRESS
} failoverState;

static struct {
    failoverState state;
    str host; /* of the target; empty: any replica */
    int64_t port;
    bool force;
    int64_t deadline_ms; /* wall time; 0: none */
} failover;

const char *failoverStateName(void) {
    static const char *const names[] = {"no-failover", "waiting-for-sync", "failover-in-progress"};
    return names[failover.state];
}

bool failoverIsInProgress(void) { return failover.state == FAILOVER_IN_PROGRESS; }

/* "H:P" or "any replica", for the log. */
static const char *targetName(str *name) {
    strClear(name);
    if (!failover.host.len) return "any replica";
    strAppendFormat(name, "%s:%lld", strText(&failover.host), (long long)failover.port);
    return strText(name);
}

static void setState(failoverState state) {
    failover.state = state;
    replPrimary *p = replicasThis();
    p->is_failing_over = p->is_paused = state != FAILOVER_NONE;
    if (state == FAILOVER_NONE) pauseEnd(PAUSE_FOR_FAILOVER);
}

static void abortFailover(const char *why) {
    str name = STR_EMPTY;
    logNotice("FAILOVER to %s aborted: %s", targetName(&name), why);
    strFree(&name);
    if (failover.state == FAILOVER_IN_PROGRESS) replicaPromote();
    setState(FAILOVER_NONE);
}

/* The target's answer to PSYNC FAILOVER. */
static void ended(bool accepted) {
    if (failover.state != FAILOVER_IN_PROGRESS) return;
    if (accepted) {
        setState(FAILOVER_NONE);
    } else {
        abortFailover("Failover target rejected psync request");
    }
}

static void proceed(void) {
    setState(FAILOVER_IN_PROGRESS);
    replicaFollowSuccessor(strSlice(&failover.host), (int)failover.port, ended);
}

/* ------------------------------------------------------------------ waiting for a replica */

static bool isTarget(const replPeer *peer, slice host, int64_t port) {
    str ip = STR_EMPTY;
    replicasAppendIp(peer, &ip);
    bool is = peer->port == port && sliceIs(strSlice(&ip), host.ptr);
    strFree(&ip);
    return is;
}

/* NULL if there is no such replica. */
static const replPeer *findReplica(slice host, int64_t port) {
    const replPrimary *p = replicasThis();
    str text = strNew(host); /* ends with a NUL */
    const replPeer *found = NULL;
    for (listNode *n = listFirst(&p->peers); n && !found; n = listNext(&p->peers, n)) {
        if (isTarget(peerOf(n), strSlice(&text), port)) found = peerOf(n);
    }
    strFree(&text);
    return found;
}

static bool hasEverything(const replPeer *peer) {
    return peer->state == PEER_ONLINE && peer->acked == replicasThis()->stream->history.offset;
}

static const replPeer *findSynced(void) {
    const replPrimary *p = replicasThis();
    if (failover.host.len) {
        const replPeer *peer = findReplica(strSlice(&failover.host), failover.port);
        return peer && hasEverything(peer) ? peer : NULL;
    }
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        if (hasEverything(peerOf(n)) && peerOf(n)->port) return peerOf(n);
    }
    return NULL;
}

void failoverTick(int64_t budget_us) {
    (void)budget_us; /* O(replicas) */
    if (failover.state != FAILOVER_WAITING_FOR_SYNC) return;
    str name = STR_EMPTY;
    const replPeer *synced = findSynced();
    if (synced) {
        if (!failover.host.len) {
            replicasAppendIp(synced, &failover.host);
            failover.port = synced->port;
        }
        logNotice("Failover target %s is synced, failing over.", targetName(&name));
        proceed();
    } else if (failover.deadline_ms && engineHot.now_ms >= failover.deadline_ms) {
        if (failover.force) {
            logNotice("FAILOVER to %s time out exceeded, failing over.", targetName(&name));
            proceed();
        } else {
            abortFailover("Replica never caught up before timeout");
        }
    }
    strFree(&name);
}

bool failoverIsBusy(void) { return failover.state != FAILOVER_NONE; }

/* ------------------------------------------------------------------ the command */

typedef struct failoverRequest {
    slice host; /* empty: any replica */
    int64_t port, timeout_ms;
    bool force, abort, has_timeout, has_target;
} failoverRequest;

/* False: the error was replied. */
static bool parse(ctx *c, failoverRequest *r) {
    for (int i = 1; i < c->argc; i++) {
        if (ctxArgIs(c, i, "timeout") && i + 1 < c->argc && !r->has_timeout) {
            if (!ctxArgInt(c, ++i, &r->timeout_ms)) return false;
            if (r->timeout_ms <= 0) {
                replyError(c, SLICE("ERR FAILOVER timeout must be greater than 0"));
                return false;
            }
            r->has_timeout = true;
        } else if (ctxArgIs(c, i, "abort") && c->argc == 2) {
            r->abort = true;
        } else if (ctxArgIs(c, i, "to") && i + 2 < c->argc && !r->has_target) {
            r->host = c->argv[i + 1];
            if (!ctxArgInt(c, i + 2, &r->port)) return false;
            r->has_target = true;
            i += 2;
        } else if (ctxArgIs(c, i, "force") && !r->force) {
            r->force = true;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

static bool admits(ctx *c, const failoverRequest *r) {
    const replPrimary *p = replicasThis();
    if (failover.state != FAILOVER_NONE) {
        replyError(c, SLICE("ERR FAILOVER already in progress."));
    } else if (replicaIsOn()) {
        replyError(c, SLICE("ERR FAILOVER is not valid when server is a replica."));
    } else if (!p->peers.count) {
        replyError(c, SLICE("ERR FAILOVER requires connected replicas."));
    } else if (r->force && (!r->has_timeout || !r->has_target)) {
        replyError(c, SLICE("ERR FAILOVER with force option requires both a timeout and target "
                            "HOST and IP."));
    } else if (r->has_target) {
        const replPeer *target = findReplica(r->host, r->port);
        if (target && target->state == PEER_ONLINE) return true;
        replyError(c, target ? SLICE("ERR FAILOVER target replica is not online.")
                             : SLICE("ERR FAILOVER target HOST and PORT is not a replica."));
    } else {
        return true;
    }
    return false;
}

static void abortByUser(ctx *c) {
    if (failover.state == FAILOVER_NONE) {
        replyError(c, SLICE("ERR No failover in progress."));
        return;
    }
    abortFailover("Failover manually aborted");
    replyOk(c);
}

/* FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT ms]. Reply: OK; the failover goes on in the background. */
void failoverCommand(ctx *c) {
    failoverRequest r = {0};
    if (storeIsSlotted()) {
        replyError(c, SLICE("ERR FAILOVER not allowed in cluster mode."));
        return;
    }
    if (!parse(c, &r)) return;
    if (r.abort) {
        abortByUser(c);
        return;
    }
    if (!admits(c, &r)) return;
    int64_t deadline_ms = 0;
    if (r.has_timeout && !numberAdd(r.timeout_ms, c->now_ms, &deadline_ms)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return;
    }
    strFree(&failover.host);
    failover.host = strNew(r.host);
    failover.port = r.port;
    failover.force = r.force;
    failover.deadline_ms = deadline_ms;
    str name = STR_EMPTY;
    logNotice("FAILOVER requested to %s.", targetName(&name));
    strFree(&name);
    setState(FAILOVER_WAITING_FOR_SYNC);
    pauseBegin(PAUSE_FOR_FAILOVER, PAUSE_WRITES, INT64_MAX);
    replyOk(c);
}
