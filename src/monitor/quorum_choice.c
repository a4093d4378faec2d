/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses the replica to promote if the servers have replication-quorum n: it must have every
 * change that the primary has confirmed. Each such change is on n of the primary's R replicas, so
 * any R - n + 1 replicas include one that has it. Example: with R = 3 and n = 2, of any two
 * replicas at least one has the change. So once R - n + 1 replicas no longer acknowledge anything
 * to the primary, the one among them with the greatest offset has all confirmed changes.
 *
 * The replicas report in INFO whether their data counts (not during a full synchronisation, nor
 * after a restart), to which stream their offset belongs (only offsets of the same stream are
 * compared), and for how long they hold acknowledgements back.
 *
 * The promotion must not happen after the other replicas acknowledge again. So each replica is
 * ordered by REPLCONF HOLD-ACKS to hold its acknowledgements for HOLD_MS. When half of that time
 * has passed, a replica refuses REPLICAOF NO ONE from the same connection. So the chosen replica
 * can be promoted only while all others hold their acknowledgements, whenever the order reaches
 * it. */
#include "base/base.h"
#include "base/number.h"
#include "monitor/machine.h"

enum {
    HOLD_MS = 20000,
    HOLD_AGAIN_MS = HOLD_MS / 8,
    /* The rest of a hold that a promotion needs; clocks differ in speed. */
    REST_MS = HOLD_MS / 2 + HOLD_MS / 20,
    LEASE_MARGIN = 50, /* a lease is waited for a 50th longer, for the same reason */
    GOOD_PING_MS = 5000,
    INFO_PERIODS = 5, /* of PING: older INFO does not count */
};

int64_t sentinelPromotionMs(void) { return HOLD_MS; }

/* The smallest size that a server has said: it needs the most replicas. */
static int64_t quorumOf(const sentinelInstance *primary) {
    int64_t n = primary->sync.repl_quorum;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->replicas)
    if (i->sync.repl_quorum && (!n || i->sync.repl_quorum < n)) n = i->sync.repl_quorum;
    return n;
}

static int64_t leaseOf(const sentinelInstance *primary) {
    int64_t lease_ms = primary->sync.repl_lease_ms;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->replicas)
    if (i->sync.repl_lease_ms > lease_ms) lease_ms = i->sync.repl_lease_ms;
    return lease_ms + lease_ms / LEASE_MARGIN;
}

bool sentinelNeedsConfirmed(const sentinelView *v, const sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    if (primary->is_takeover || primary->flags & INSTANCE_COORDINATED) return false;
    /* One that was promoted already confirms writes of its own, perhaps. */
    const sentinelInstance *best = sentinelSelectReplica(v, primary);
    if (best && sentinelMayBePromoted(v, best)) return false;
    return quorumOf(primary) > 0;
}

/* ------------------------------------------------------------------ holding acknowledgements */

static void forgetHold(sentinelInstance *i) {
    i->sync.hold_sent_ms = i->sync.held_since_ms = i->sync.held_until_ms = 0;
    i->sync.hold_is_open = false;
}

/* After the loss of the link: it may be another process. */
static void checkLink(sentinelInstance *i) {
    if (i->sync.hold_sent_ms &&
        (!sentinelCanSend(i) || i->sync.hold_link_ms != i->link->command_since_ms))
        forgetHold(i);
}

void sentinelNoteHold(const sentinelView *v, sentinelInstance *i) {
    hotCheck(i->kind != INSTANCE_SENTINEL);
    checkLink(i);
    if (!i->sync.hold_sent_ms) return;
    if (i->sync.info_after_hold) i->sync.hold_is_open = false;
    bool was_held = i->sync.held_until_ms > v->mono_ms;
    if (!i->sync.info_after_hold && !was_held) return; /* it may be held by another Sentinel */
    i->sync.held_until_ms =
        i->sync.acks_held_ms > 0 ? i->sync.info_sent_ms + i->sync.acks_held_ms : 0;
    if (!was_held) i->sync.held_since_ms = v->mono_ms;
}

static void sendHold(sentinelView *v, sentinelInstance *i, int64_t ms) {
    char text[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("HOLD-ACKS"), sliceMake(text, numberPrintInt(text, ms))};
    (void)sentinelSend(v, i, PENDING_OTHER, "REPLCONF", COUNT_OF(words), words); /* it is open */
}

/* Orders it again in time, and asks for INFO after that. */
static void hold(sentinelView *v, sentinelInstance *i) {
    hotCheck(sentinelCanSend(i));
    if (!i->sync.hold_sent_ms || v->mono_ms - i->sync.hold_sent_ms >= HOLD_AGAIN_MS) {
        sendHold(v, i, HOLD_MS);
        i->sync.hold_sent_ms = v->mono_ms;
        i->sync.hold_link_ms = i->link->command_since_ms;
        i->sync.hold_is_open = true;
        i->sync.info_after_hold = false;
    }
    if (i->sync.hold_is_open && !i->sync.info_after_hold) sentinelSendInfo(v, i);
}

void sentinelReleaseHolds(sentinelView *v, sentinelInstance *primary) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->replicas) {
        checkLink(i);
        if (!i->sync.hold_sent_ms) continue;
        sendHold(v, i, 0);
        forgetHold(i);
    }
}

/* ------------------------------------------------------------------ the choice */

/* Its offset may count once it holds its acknowledgements. */
static bool isUsable(sentinelView *v, const sentinelInstance *primary, const sentinelInstance *i) {
    hotCheck(i->kind == INSTANCE_REPLICA);
    return !(i->flags & (INSTANCE_SDOWN | INSTANCE_ODOWN)) && sentinelCanSend(i) &&
           v->now_ms - i->link->ping_good_ms <= GOOD_PING_MS && i->info_ms &&
           v->now_ms - i->info_ms <= v->periods.ping * INFO_PERIODS && i->role_is_replica &&
           i->sync.repl_quorum && i->sync.has_caught_up &&
           sentinelAddrIs(v, &primary->addr, strSlice(&i->reported_host), i->reported_port);
}

static int64_t countUsable(sentinelView *v, const sentinelInstance *primary, uint64_t stream) {
    int64_t count = 0;
    SENTINEL_EACH(i, &primary->replicas)
    count += isUsable(v, primary, i) && i->sync.stream == stream;
    return count;
}

/* Returns the stream of most replicas. A primary that restarts begins another stream with smaller
 * offsets, and a replica that was not linked to it since then has an offset of the former one. */
static uint64_t streamOf(sentinelView *v, const sentinelInstance *primary) {
    uint64_t stream = 0;
    int64_t most = 0;
    SENTINEL_EACH(i, &primary->replicas) {
        int64_t count = isUsable(v, primary, i) ? countUsable(v, primary, i->sync.stream) : 0;
        if (count <= most) continue;
        most = count;
        stream = i->sync.stream;
    }
    return stream;
}

static bool mayCount(sentinelView *v, const sentinelInstance *primary, const sentinelInstance *i,
                     uint64_t stream) {
    return i->sync.stream == stream && isUsable(v, primary, i);
}

static bool isBetter(const sentinelInstance *a, const sentinelInstance *b) {
    if (a->offset != b->offset) return a->offset > b->offset;
    if (!a->priority || !b->priority) return a->priority > b->priority;
    if (a->priority != b->priority) return a->priority < b->priority;
    return sliceCompare(strSlice(&a->runid), strSlice(&b->runid)) < 0;
}

/* Returns the replica that a user has made the primary by hand: the old primary follows it. NULL:
 * there is none. */
static sentinelInstance *successorOf(sentinelView *v, const sentinelInstance *primary) {
    sentinelInstance *found = NULL;
    bool follows = primary->role_is_replica && primary->info_ms &&
                   v->now_ms - primary->info_ms <= v->periods.info * 2;
    if (!follows) return NULL;
    SENTINEL_EACH(i, &primary->replicas) {
        slice host = strSlice(&primary->reported_host);
        bool is_it = sentinelAddrIs(v, &i->addr, host, primary->reported_port);
        if (is_it && !i->role_is_replica && !(i->flags & INSTANCE_SDOWN) && sentinelCanSend(i))
            found = i;
    }
    return found;
}

/* How many replicas meet the conditions of a promotion, and the best one. */
typedef struct choice {
    int64_t ready;  /* that may count */
    int64_t held;   /* that acknowledge nothing, */
    int64_t safe;   /* and so for longer than a promotion may take, */
    int64_t silent; /* and so since the time of a lease */
    sentinelInstance *best;
} choice;

static choice look(sentinelView *v, sentinelInstance *primary, uint64_t stream) {
    choice c = {0};
    int64_t lease_ms = leaseOf(primary);
    SENTINEL_EACH(i, &primary->replicas) {
        if (!mayCount(v, primary, i, stream)) continue;
        c.ready++;
        checkLink(i);
        if (i->sync.held_until_ms <= v->mono_ms) continue;
        c.held++;
        c.safe += i->sync.held_until_ms - v->mono_ms >= REST_MS;
        c.silent += v->mono_ms - i->sync.held_since_ms >= lease_ms;
        if (!c.best || isBetter(i, c.best)) c.best = i;
    }
    check(c.safe <= c.held);
    return c;
}

static const char is_telling[] = "replication-quorum: replicas are told to acknowledge nothing";
static const char are_missing[] = "replication-quorum: not enough replicas are reachable and have "
                                  "caught up, one that is missing may have more data";
static const char is_unwilling[] =
    "replication-quorum: the replica with the most data has priority 0";
static const char has_lease[] = "replication-read-lease of the primary has not passed";

static sentinelInstance *await(sentinelView *v, sentinelInstance *primary, const char *why) {
    bool is_told = why == is_telling || primary->sync.waiting_why == why;
    primary->sync.waiting_why = why;
    if (!is_told) sentinelEvent(v, LOG_WARNING, "+failover-wait-quorum", primary, " #%s", why);
    return NULL;
}

sentinelInstance *sentinelChooseConfirmed(sentinelView *v, sentinelInstance *primary) {
    check(primary->step == FAILOVER_SELECT_REPLICA);
    int64_t needed = (int64_t)primary->replicas.count - quorumOf(primary) + 1;
    sentinelInstance *successor = successorOf(v, primary);
    if (successor) return successor;
    if (needed < 1) needed = 1;
    uint64_t stream = streamOf(v, primary);
    choice c = look(v, primary, stream);
    /* Those that are there may be the ones that the primary works with: they go on. */
    if (c.ready < needed) return await(v, primary, are_missing);
    SENTINEL_EACH(i, &primary->replicas)
    if (mayCount(v, primary, i, stream)) hold(v, i);
    if (c.held < needed) return await(v, primary, is_telling);
    if (!c.best->priority) return await(v, primary, is_unwilling);
    if (c.silent < needed) return await(v, primary, has_lease);
    /* An order that is not executed yet would make the time longer in which it is promoted. */
    if (c.safe < needed || c.best->sync.hold_is_open) return await(v, primary, is_telling);
    return c.best;
}
