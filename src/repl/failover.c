/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER (failover.h): gives the state machine of failover_state.h the replicas and the link of
 * this server.
 *
 * Invariant: is_failing_over and is_paused of the primary are set if and only if the state is not
 * FAILOVER_NONE. */
#include "repl/failover.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "psync/failover_state.h"
#include "psync/primary_peer.h"
#include "repl/procs.h"
#include "repl/replica.h"
#include "repl/repl_priv.h"
#include "repl/replicas.h"
#include "repl/role.h"
#include "store/store.h"

static replFailover failover;
static bool has_asked; /* the replicas for acknowledgements, since writes are paused */

const char *failoverStateName(void) {
    hotCheck(failover.state <= FAILOVER_IN_PROGRESS);
    static const char *const names[] = {"no-failover", "waiting-for-sync", "failover-in-progress"};
    return names[failover.state];
}

bool failoverIsInProgress(void) { return failover.state == FAILOVER_IN_PROGRESS; }

/* The pause of CLIENT PAUSE in which this server has handed over its role. */
static uint64_t pause_number;

static void answered(bool accepted) {
    pause_number = accepted ? pauseNumber(PAUSE_BY_COMMAND) : 0;
    failoverAnswered(&failover, accepted);
}

bool failoverHoldsWrites(void) {
    if (failoverIsInProgress()) return pauseIsFor(PAUSE_BY_COMMAND);
    return pause_number && pauseNumber(PAUSE_BY_COMMAND) == pause_number;
}

static void envFollow(void *arg, slice host, int64_t port) {
    (void)arg;
    replicaFollowSuccessor(host, (int)port, failover.force, answered);
}

static void envPromote(void *arg) {
    (void)arg;
    replicaPromote();
}

/* In each turn: what a replica has acknowledged in the last one counts at once. */
static void advance(void) {
    if (!engineHot.current && failover.state != FAILOVER_NONE)
        failoverAdvance(&failover, clockMonoMs());
}

static const stageJob turn_stages[] = {{STAGE_AFTER_SLEEP, advance}, {0, NULL}};
static const feature turns = {.name = "failover", .stages = turn_stages};

static void advanceInTurns(bool on) {
    static bool is_on;
    if (on == is_on) return;
    is_on = on;
    if (on) {
        hooksAddFeature(&turns);
        engineStayAwake();
    } else {
        hooksRemoveFeature(&turns);
    }
}

static void envChanged(void *arg, failoverState state) {
    hotCheck(state == failover.state);
    (void)arg;
    replPrimary *p = replicasThis();
    p->is_failing_over = state != FAILOVER_NONE;
    replHoldStream(p->is_failing_over);
    advanceInTurns(p->is_failing_over);
    has_asked = false;
    if (state == FAILOVER_NONE) {
        pauseEnd(PAUSE_FOR_FAILOVER);
    } else {
        (void)jobEndChanges(); /* a change that has begun has its effect before */
        pauseBegin(PAUSE_FOR_FAILOVER, PAUSE_WRITES, INT64_MAX); /* the state machine ends it */
    }
}

/* ------------------------------------------------------------------ waiting for a replica */

static bool isTarget(const replPeer *peer, slice host, int64_t port) {
    hotCheck(host.len > 0);
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
        const replPeer *peer = peerOf(n);
        if (peerIsReplica(peer) && isTarget(peer, strSlice(&text), port)) found = peer;
    }
    strFree(&text);
    return found;
}

static bool hasEverything(const replPeer *peer) { return primaryHasRead(replicasThis(), peer); }

/* A named target, which is in `host` and `port`. */
static failoverTarget checkNamed(slice host, int64_t port) {
    hotCheck(host.len > 0);
    const replPeer *peer = findReplica(host, port);
    if (!peer) return FAILOVER_TARGET_GONE;
    return hasEverything(peer) ? FAILOVER_TARGET_SYNCED : FAILOVER_TARGET_BEHIND;
}

static failoverTarget find(str *host, int64_t *port) {
    const replPrimary *p = replicasThis();
    if (host->len) return checkNamed(strSlice(host), *port);
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (!hasEverything(peer) || !peer->port || !peerIsReplica(peer)) continue;
        replicasAppendIp(peer, host);
        *port = peer->port;
        return FAILOVER_TARGET_SYNCED;
    }
    return primaryReplicaCount(p) ? FAILOVER_TARGET_BEHIND : FAILOVER_TARGET_GONE;
}

static failoverTarget envFind(void *arg, str *host, int64_t *port) {
    (void)arg;
    failoverTarget target = find(host, port);
    if (target == FAILOVER_TARGET_BEHIND && !has_asked) {
        primaryAskTwice(replicasThis());
        has_asked = true;
    }
    return target;
}

static const failoverEnv env = {
    .find = envFind, .follow = envFollow, .promote = envPromote, .changed = envChanged};

void failoverTick(int64_t budget_us) {
    (void)budget_us; /* O(replicas) */
    if (failover.state != FAILOVER_NONE) failoverAdvance(&failover, clockMonoMs());
}

bool failoverIsBusy(void) { return failover.state != FAILOVER_NONE; }

/* ------------------------------------------------------------------ the command */

typedef struct failoverArgs {
    slice host; /* empty: any replica */
    int64_t port, timeout_ms;
    bool force, abort, has_timeout, has_target;
} failoverArgs;

/* False: the error was replied. */
static bool parse(ctx *c, failoverArgs *r) {
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

static bool admits(ctx *c, const failoverArgs *r) {
    const replPrimary *p = replicasThis();
    if (failover.state != FAILOVER_NONE) {
        replyError(c, SLICE("ERR FAILOVER already in progress."));
    } else if (replicaIsOn()) {
        replyError(c, SLICE("ERR FAILOVER is not valid when server is a replica."));
    } else if (!primaryReplicaCount(p)) {
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
    failoverAbort(&failover, "Failover manually aborted");
    replyOk(c);
}

/* FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT ms]. Reply: OK; the failover goes on in the
 * background. */
void failoverCommand(ctx *c) {
    failoverArgs r = {0};
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
    int64_t deadline_ms = 0, now_ms = clockMonoMs();
    if (r.has_timeout && !numberAdd(r.timeout_ms, now_ms, &deadline_ms)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return;
    }
    if (!failover.env) failoverInit(&failover, &env, NULL);
    const failoverRequest begin = {.host = r.host,
                                   .port = r.port,
                                   .force = r.force,
                                   .deadline_ms = deadline_ms,
                                   .limit_ms = (int64_t)replConf.repl_timeout * 1000};
    failoverBegin(&failover, &begin, now_ms);
    replyOk(c);
}
