/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Holds acknowledgements back by order of a client (ack_hold.h). */
#include "repl/ack_hold.h"

#include "base/base.h"
#include "repl/ack_hold_file.h"
#include "repl/replica.h"
#include "repl/replicas.h"

static struct {
    uint64_t by;               /* the connection with the last order; 0: none */
    int64_t until_ms;          /* 0: nothing is held */
    int64_t others_until_ms;   /* by orders of earlier connections */
    int64_t promotes_until_ms; /* `by` may promote until then */
} hold;

static void forget(void) {
    if (!hold.until_ms) return;
    hold.by = 0;
    hold.until_ms = hold.others_until_ms = hold.promotes_until_ms = 0;
    replicaHoldAcks(false);
}

/* A configuration that was not rewritten names the former primary: for that one the order lasts
 * over a restart. */
void ackHoldForget(void) {
    forget();
    ackHoldFileExcept();
}

static void release(void) {
    int64_t others_ms = hold.others_until_ms;
    if (others_ms <= clockMonoMs()) {
        forget();
        ackHoldFileRemove();
        return;
    }
    hold.by = 0;
    hold.until_ms = others_ms;
}

static void end(session *by) {
    replicasPeer(by)->ordered_hold = false;
    if (hold.by == by->id) release();
}

status ackHoldOrder(session *by, int64_t ms, reason *why) {
    check(ms >= 0);
    check(ms <= ACK_HOLD_MAX_MS);
    if (!ms) {
        end(by);
        return OK;
    }
    status st = ackHoldFileKeep(ms, why);
    if (st != OK) return st;
    replicasPeer(by)->ordered_hold = true;
    int64_t now_ms = clockMonoMs();
    if (!hold.until_ms)
        logNotice("Nothing more is acknowledged to the primary for %lld ms, by order of a client "
                  "that may promote a replica.",
                  (long long)ms);
    if (hold.by != by->id) hold.others_until_ms = hold.until_ms;
    hold.by = by->id;
    if (hold.until_ms < now_ms + ms) hold.until_ms = now_ms + ms;
    hold.promotes_until_ms = now_ms + ms / 2;
    replicaHoldAcks(true);
    return OK;
}

void ackHoldResume(void) {
    int64_t ms = ackHoldFileRead();
    if (!ms || !replicaIsOn()) return;
    logNotice("Nothing is acknowledged to the primary for %lld ms: a client that may promote a "
              "replica has ordered it before this server was restarted.",
              (long long)ms);
    hold.until_ms = clockMonoMs() + ms;
    replicaHoldAcks(true);
}

bool ackHoldAllowsPromotion(const session *by) {
    const replPeer *peer = replicasFind(by);
    if (!peer || !peer->ordered_hold) return true;
    return hold.by == by->id && clockMonoMs() < hold.promotes_until_ms;
}

bool ackHoldAllowsFollowing(const session *by) {
    const replPeer *peer = replicasFind(by);
    if (!peer || !peer->ordered_hold) return true;
    return !ackHoldRestMs() || hold.by == by->id;
}

int64_t ackHoldRestMs(void) {
    int64_t rest_ms = hold.until_ms ? hold.until_ms - clockMonoMs() : 0;
    return rest_ms > 0 ? rest_ms : 0;
}

void ackHoldTick(void) {
    if (hold.until_ms && !ackHoldRestMs()) forget();
    ackHoldFileTick();
}
