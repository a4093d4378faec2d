/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the rate of lag_throttle.h by short pauses of writes: if a turn has added more bytes to the
 * stream than its share, writes wait after it until the rate is met again.
 *
 * Invariant: the stage is registered if and only if the throttle is active, so an inactive throttle
 * costs a turn nothing. */
#include "repl/throttle.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/memory.h"
#include "engine/pause.h"
#include "engine/session_report.h"
#include "net/net.h"
#include "psync/primary_peer.h"
#include "repl/lag_throttle.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/replicas.h"

enum { BURST_MS = 20, PAUSE_MAX_MS = 1000 };

static struct {
    lagThrottle lag;
    bool has_stage;
    int64_t offset;      /* of the stream at the last tick */
    int64_t turn_offset; /* and at the end of the last turn */
    int64_t turn_ms;
    double credit; /* bytes that writers may add now */
    bool was_limited;
    int held; /* requests that have waited in this pause */
    uint64_t commands;
} throttle;

/* At the end of each turn, while it is active. */
static void endTurn(void) {
    int64_t now_ms = clockMonoMs(), offset = replThis()->history.offset;
    hotCheck(throttle.lag.is_active);
    double rate = throttle.lag.rate, most = rate * BURST_MS / 1000;
    hotCheck(rate > 0);
    throttle.credit += rate * (double)(now_ms - throttle.turn_ms) / 1000;
    if (throttle.credit > most) throttle.credit = most;
    throttle.credit -= (double)(offset - throttle.turn_offset);
    throttle.turn_ms = now_ms;
    throttle.turn_offset = offset;
    int held = pauseHeldCount();
    if (held > throttle.held) throttle.commands += (uint64_t)(held - throttle.held);
    throttle.held = held;
    if (throttle.credit >= 0) {
        if (pauseIsFor(PAUSE_FOR_LAG)) pauseEnd(PAUSE_FOR_LAG);
        return;
    }
    throttle.was_limited = true;
    if (pauseIsFor(PAUSE_FOR_LAG)) return;
    int64_t wait_ms = (int64_t)(-throttle.credit / rate * 1000) + 1;
    if (wait_ms > PAUSE_MAX_MS) wait_ms = PAUSE_MAX_MS;
    throttle.held = 0;
    pauseBegin(PAUSE_FOR_LAG, PAUSE_WRITES, clockWallMs() + wait_ms);
}

static const stageJob stages[] = {{STAGE_REPLICATE, endTurn}, {0, NULL}};
static const feature active = {.name = "replication throttling", .stages = stages};

static void setStage(bool on) {
    if (on == throttle.has_stage) return;
    throttle.has_stage = on;
    if (on) {
        throttle.turn_ms = clockMonoMs();
        throttle.turn_offset = replThis()->history.offset;
        throttle.credit = 0;
        throttle.held = 0;
        hooksAddFeature(&active);
        logNotice("Writers are slowed down, so that the replica that lags most does not reach its "
                  "output limit (repl-throttling-enabled): it has %zu bytes to get",
                  throttle.lag.held);
        return;
    }
    hotCheck(!throttle.lag.is_active);
    hooksRemoveFeature(&active);
    pauseEnd(PAUSE_FOR_LAG);
    logNotice("Writers are not slowed down any more: the replicas have caught up");
}

/* Bytes that are kept for the online replica that lags most. One that wants the dataset alone, as
 * for a backup, does not count. */
static size_t mostHeld(const replPrimary *p) {
    size_t most = 0;
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        int64_t blocks;
        if (peer->state != PEER_ONLINE || peer->only_dataset || peer->is_former) continue;
        if (!peerIsReplica(peer)) continue;
        most = sizeMax(most, peerHeld(p, peer, &blocks));
    }
    return most;
}

static bool hasReplicas(const replPrimary *p) {
    for (listNode *n = listFirst(&p->peers); n; n = listNext(&p->peers, n)) {
        const replPeer *peer = peerOf(n);
        if (peer->state == PEER_ONLINE && !peer->only_dataset && peerIsReplica(peer)) return true;
    }
    return false;
}

void throttleTick(int64_t budget_us) {
    (void)budget_us; /* O(replicas) */
    if (likely(!replConf.repl_throttling_enabled)) return;
    const replPrimary *p = replicasThis();
    int64_t offset = replThis()->history.offset, produced = offset - throttle.offset;
    bool applies = !replicaIsOn() && hasReplicas(p);
    size_t limit = applies ? netReplicaSoftLimit((size_t)p->settings.backlog_limit) : 0;
    throttle.offset = offset;
    if (produced < 0) produced = 0; /* another stream */
    lagThrottleUpdate(&throttle.lag, mostHeld(p), limit, (size_t)produced, throttle.was_limited,
                      clockMonoMs());
    throttle.was_limited = false;
    setStage(throttle.lag.is_active);
}

bool throttleIsBusy(void) { return throttle.lag.is_active; }

bool throttleExempts(void) {
    return throttle.has_stage && lagThrottleExempts(&throttle.lag, clockMonoMs()) &&
           !memoryIsOver();
}

status throttleApply(reason *why) {
    (void)why; /* cannot fail */
    if (replConf.repl_throttling_enabled) {
        throttle.offset = replThis()->history.offset;
        return OK;
    }
    lagThrottleStop(&throttle.lag);
    setStage(false);
    return OK;
}

void throttlePrintInfo(str *out) {
    const lagThrottle *t = &throttle.lag;
    enum { PERIODS_PER_SECOND = 1000 / THROTTLE_PERIOD_MS };
    strAppendFormat(
        out,
        "repl_throttle_rate:%.2f\r\nrepl_throttle_activation_events:%llu\r\n"
        "repl_throttle_below_guardrail_secs:%llu\r\nrepl_throttle_total_commands:%llu\r\n"
        "total_throttled_commands:%llu\r\n",
        t->is_active ? t->rate : -1, (unsigned long long)t->activations,
        (unsigned long long)(t->floor_periods / PERIODS_PER_SECOND),
        (unsigned long long)throttle.commands, (unsigned long long)throttle.commands);
}

void throttlePrintDebug(str *out) {
    const lagThrottle *t = &throttle.lag;
    hotCheck(threadIsMain());
    strAppendFormat(out,
                    "repl_throttle_more_events:%llu\r\nrepl_throttle_less_events:%llu\r\n"
                    "repl_throttle_current_clients:%d\r\n",
                    (unsigned long long)t->more, (unsigned long long)t->less,
                    throttle.has_stage && pauseIsFor(PAUSE_FOR_LAG) ? pauseHeldCount() : 0);
}

/* CLIENT LIST. */
static void report(const session *s, sessionReport *out) {
    out->is_throttled =
        throttle.has_stage && s->flags & SESSION_HELD_WRITE && pauseIsFor(PAUSE_FOR_LAG);
}

void throttleInit(void) { sessionReportAddProc(report); }
