/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares of time (cpu_bucket.h). Invariant: the credit is at most the bucket's percentage of
 * BURST_NS, and at least minus that percentage of DEBT_NS, so that one very long command delays the
 * following ones by a minute at most. */
#include "account/cpu_bucket.h"

#include "base/base.h"

static const int64_t BURST_NS = INT64_C(100) * 1000 * 1000;
static const int64_t DEBT_NS = INT64_C(60) * 1000 * 1000 * 1000;

static bool isLimited(const cpuBucket *b) { return b->percent > 0 && b->percent < 100; }

void cpuBucketInit(cpuBucket *b, int percent, int64_t now_ns) {
    check(percent >= 0);
    check(percent <= 100);
    *b = (cpuBucket){.percent = percent,
                     .credit_ns = BURST_NS / 100 * percent,
                     .at_ns = now_ns,
                     .others_ns = now_ns};
}

/* Adds the credit for the time since the last call. */
static void refill(cpuBucket *b, int64_t now_ns) {
    int64_t passed_ns = now_ns - b->at_ns;
    if (passed_ns <= 0) return;
    if (passed_ns > 2 * DEBT_NS) passed_ns = 2 * DEBT_NS;
    b->credit_ns += passed_ns * b->percent / 100;
    b->at_ns = now_ns;
    int64_t most = BURST_NS / 100 * b->percent;
    if (b->credit_ns > most) b->credit_ns = most;
}

/* Records when another client last executed a command. `own` may be ahead of `executed` for a
 * moment: quick commands of one client are added to `executed` together, after the last of them. */
static void lookAtOthers(cpuBucket *b, uint64_t executed, int64_t now_ns) {
    uint64_t others = executed > b->own ? executed - b->own : 0;
    if (others > b->others) {
        b->others = others;
        b->others_ns = now_ns;
    }
    hotCheck(b->others >= others);
}

bool cpuBucketAllows(cpuBucket *b, uint64_t turn, uint64_t executed, int64_t now_ns) {
    if (!isLimited(b)) return true;
    refill(b, now_ns);
    lookAtOthers(b, executed, now_ns);
    if (b->turn == turn && b->turn_ns >= CPU_TURN_NS) return false;
    return b->credit_ns >= 0 || now_ns - b->others_ns >= CPU_IDLE_NS;
}

bool cpuBucketIsOver(const cpuBucket *b) { return isLimited(b) && b->credit_ns < 0; }

void cpuBucketTake(cpuBucket *b, uint64_t turn, uint64_t commands, int64_t ns, bool is_free) {
    hotCheck(ns >= 0);
    if (!isLimited(b)) return;
    if (b->turn != turn) {
        b->turn = turn;
        b->turn_ns = 0;
    }
    b->turn_ns += ns;
    b->others_ns += ns; /* others could not run in this time */
    if (is_free) return;
    b->own += commands;
    b->credit_ns -= ns;
    int64_t least = -(DEBT_NS / 100 * b->percent);
    if (b->credit_ns < least) b->credit_ns = least;
}

int64_t cpuBucketWaitNs(const cpuBucket *b, int64_t now_ns) {
    hotCheck(b->percent >= 0);
    if (!isLimited(b) || b->credit_ns >= 0) return 0;
    int64_t paid_ns = -b->credit_ns / b->percent * 100 - (now_ns - b->at_ns);
    int64_t idle_ns = b->others_ns + CPU_IDLE_NS - now_ns;
    int64_t wait_ns = paid_ns < idle_ns ? paid_ns : idle_ns;
    return wait_ns > 0 ? wait_ns : 0;
}
