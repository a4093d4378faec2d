/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Performs the failover of a primary step by step: the table in machine.h. */
#include <time.h>

#include "base/base.h"
#include "base/number.h"
#include "monitor/machine.h"

enum {
    DESYNC_MS = 1000,
    TURN_MS = 200,
    RETRY_MS = 250, /* before an election is repeated, at random; doubled each time */
    RETRIES_MAX = 3,
    TAKEOVER_PERIODS = 2, /* of hello messages that a leader has to tell of a promotion */
    GOOD_PING_MS = 5000,
    FIRST_INFO_MS = 1000,
    COORDINATED_REST_MS = 1000, /* with less time left, the order to the primary is not given */
};

static void enter(sentinelView *v, sentinelInstance *primary, failoverStep step) {
    check(primary->kind == INSTANCE_PRIMARY);
    primary->step = step;
    primary->failover_changed_ms = v->now_ms;
}

/* ------------------------------------------------------------------ orders to servers */

typedef struct order {
    int count;
    slice words[8];
} order;

static void sendOrder(sentinelView *v, sentinelInstance *i, const char *command, order o) {
    hotCheck(o.count <= (int)COUNT_OF(o.words));
    (void)sentinelSend(v, i, PENDING_OTHER, command, o.count, o.words); /* the link is open */
}

static void killClients(sentinelView *v, sentinelInstance *i) {
    sendOrder(v, i, "CLIENT", (order){3, {SLICE("KILL"), SLICE("TYPE"), SLICE("normal")}});
    sendOrder(v, i, "CLIENT", (order){3, {SLICE("KILL"), SLICE("TYPE"), SLICE("pubsub")}});
}

bool sentinelSendReplicaOf(sentinelView *v, sentinelInstance *i, const sentinelAddr *addr) {
    char port[NUMBER_TEXT_MAX];
    if (!sentinelCanSend(i)) return false;
    order to = {2, {SLICE("NO"), SLICE("ONE")}};
    if (addr) {
        to.words[0] = sentinelAddrText(v, addr);
        to.words[1] = sliceMake(port, numberPrintInt(port, addr->port));
    }
    sendOrder(v, i, "MULTI", (order){0});
    if (i->in_failover) sendOrder(v, i, "FAILOVER", (order){1, {SLICE("ABORT")}});
    sendOrder(v, i, "SLAVEOF", to);
    sendOrder(v, i, "CONFIG", (order){1, {SLICE("REWRITE")}});
    killClients(v, i);
    sendOrder(v, i, "EXEC", (order){0});
    return true;
}

/* The primary gives its role to the replica that was selected; writes wait meanwhile. */
static bool sendCoordinated(sentinelView *v, sentinelInstance *primary, int64_t ms) {
    check(primary->promoted);
    const sentinelAddr *to = &primary->promoted->addr;
    char port[NUMBER_TEXT_MAX], time[NUMBER_TEXT_MAX];
    if (!sentinelCanSend(primary)) return false;
    slice timeout = sliceMake(time, numberPrintInt(time, ms));
    sendOrder(v, primary, "MULTI", (order){0});
    sendOrder(v, primary, "CLIENT", (order){3, {SLICE("PAUSE"), timeout, SLICE("WRITE")}});
    sendOrder(
        v, primary, "FAILOVER",
        (order){5,
                {SLICE("TO"), sentinelAddrText(v, to),
                 sliceMake(port, numberPrintInt(port, to->port)), SLICE("TIMEOUT"), timeout}});
    sendOrder(v, primary, "EXEC", (order){0});
    return true;
}

static void endCoordinated(sentinelView *v, sentinelInstance *i) {
    if (!sentinelCanSend(i)) return;
    sendOrder(v, i, "MULTI", (order){0});
    sendOrder(v, i, "CONFIG", (order){1, {SLICE("REWRITE")}});
    killClients(v, i);
    sendOrder(v, i, "CLIENT", (order){1, {SLICE("UNPAUSE")}});
    sendOrder(v, i, "EXEC", (order){0});
}

/* ------------------------------------------------------------------ beginning */

bool sentinelStartFailover(sentinelView *v, sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    check(primary->step == FAILOVER_NONE);
    if (v->current_epoch >= SENTINEL_EPOCH_MAX) return false;
    v->current_epoch++;
    if (!v->env->save(v)) {
        v->current_epoch--;
        return false;
    }
    enter(v, primary, FAILOVER_WAIT_START);
    primary->flags |= INSTANCE_FAILOVER;
    primary->failover_epoch = v->current_epoch;
    primary->retry_ms = 0;
    sentinelEventText(v, LOG_WARNING, "+new-epoch", primary, "%llu",
                      (unsigned long long)v->current_epoch);
    sentinelEvent(v, LOG_WARNING, "+try-failover", primary, "%s", "");
    primary->failover_start_ms = v->now_ms + (int64_t)v->env->random(v, DESYNC_MS);
    return true;
}

/* Refused connections, and a promotion, are noticed by all at once. So that not all ask for votes
 * at once, and none gets enough, they begin in the order of their ids. Returns how long to wait. */
static int64_t turnMs(const sentinelView *v, const sentinelInstance *primary) {
    int64_t before = 0;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(peer, &primary->sentinels)
    before += !(peer->flags & INSTANCE_SDOWN) && strcmp(strText(&peer->runid), v->id) < 0;
    return before * TURN_MS;
}

/* A failover whose leader has died is to be finished now. */
static bool isTakeover(const sentinelView *v, const sentinelInstance *primary) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    int64_t wait_ms = TAKEOVER_PERIODS * v->periods.publish + turnMs(v, primary);
    SENTINEL_EACH(i, &primary->replicas) {
        if (sentinelIsUnfinished(v, i) && sentinelCanSend(i) && !(i->flags & INSTANCE_SDOWN) &&
            v->now_ms - i->role_since_ms > wait_ms)
            return true;
    }
    return false;
}

static void tellDelay(sentinelView *v, sentinelInstance *primary, int64_t next_ms) {
    hotCheck(primary->failover_start_ms > 0);
    if (primary->failover_told_ms == primary->failover_start_ms) return;
    time_t at = (time_t)(next_ms / 1000);
    char text[32] = "";
    struct tm tm;
    if (localtime_r(&at, &tm))
        (void)strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm); /* it fits */
    sentinelEventText(v, LOG_NOTICE, "", NULL,
                      "Next failover delay: I will not start a failover before %s", text);
    primary->failover_told_ms = primary->failover_start_ms;
}

static bool isTime(sentinelView *v, sentinelInstance *primary) {
    int64_t next_ms = primary->failover_start_ms + 2 * primary->failover_timeout_ms;
    hotCheck(primary->flags & INSTANCE_ODOWN);
    if (primary->failover_start_ms && v->now_ms < next_ms) {
        tellDelay(v, primary, next_ms);
        return false;
    }
    if (v->now_ms - primary->epoch_heard_ms < TURN_MS) return false; /* it asks for a vote soon */
    return !primary->refused_after_ms || v->now_ms - primary->odown_since_ms >= turnMs(v, primary);
}

bool sentinelMaybeStartFailover(sentinelView *v, sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    if (primary->flags & INSTANCE_FAILOVER) return false;
    primary->is_takeover = isTakeover(v, primary);
    if (!(primary->flags & INSTANCE_ODOWN) && !primary->is_takeover) {
        primary->retry_ms = 0;
        return false;
    }
    if (primary->retry_ms) {
        if (v->now_ms < primary->retry_ms) return false;
    } else {
        if (!primary->is_takeover && !isTime(v, primary)) return false;
        primary->retries = 0;
    }
    primary->failover_why = primary->is_takeover ? "its leader has died" : primary->down_why;
    return sentinelStartFailover(v, primary);
}

/* True if a replica may be promoted by order. A coordinated failover needs a replica whose link to
 * the primary is up; another order accepts an older copy. */
static bool hasCandidate(const sentinelView *v, sentinelInstance *primary, bool coordinated) {
    uint32_t flags = primary->flags;
    hotCheck(!(flags & INSTANCE_FAILOVER));
    primary->flags |= coordinated ? INSTANCE_COORDINATED : INSTANCE_FORCED;
    bool has = sentinelSelectReplica(v, primary) != NULL;
    primary->flags = flags;
    return has;
}

status sentinelOrderFailover(sentinelView *v, sentinelInstance *primary, bool coordinated) {
    check(primary->kind == INSTANCE_PRIMARY);
    if (primary->flags & INSTANCE_FAILOVER) return ERR_EXISTS;
    if (!hasCandidate(v, primary, coordinated)) return ERR_NOT_FOUND;
    primary->is_takeover = false;
    primary->failover_why = coordinated ? "a coordinated order" : "an order";
    if (!sentinelStartFailover(v, primary)) return ERR_IO;
    if (coordinated) {
        primary->flags |= INSTANCE_COORDINATED;
    } else {
        primary->flags |= INSTANCE_FORCED | INSTANCE_SDOWN;
        primary->sdown_since_ms = v->now_ms;
    }
    /* A forced one does not need the votes, but others that have given them know what goes on. */
    sentinelAsk(v, primary, true);
    return OK;
}

/* ------------------------------------------------------------------ the choice of a replica */

static bool hasFreshInfo(const sentinelView *v, const sentinelInstance *i) {
    hotCheck(i->primary);
    int64_t max_ms =
        (i->primary->flags & INSTANCE_SDOWN) ? v->periods.ping * 5 : v->periods.info * 3;
    return v->now_ms - i->info_ms <= max_ms;
}

/* If connections are refused, the election is over before replicas have replied to the INFO that is
 * sent more often from then on. True if there is one that may still do so. */
static bool awaitsInfo(const sentinelView *v, const sentinelInstance *primary, bool has_good) {
    bool awaits = false;
    int64_t max_ms = has_good ? TURN_MS : FIRST_INFO_MS;
    check(primary->step == FAILOVER_SELECT_REPLICA);
    if (v->now_ms - primary->failover_changed_ms > max_ms) return false;
    SENTINEL_EACH(i, &primary->replicas)
    awaits = awaits || (i->info_pending && sentinelCanSend(i) && !(i->flags & INSTANCE_SDOWN) &&
                        !hasFreshInfo(v, i));
    return awaits;
}

/* True if the replica may be promoted, whatever the age of its data. */
static bool isReachable(const sentinelView *v, const sentinelInstance *primary,
                        const sentinelInstance *i) {
    hotCheck(i->kind == INSTANCE_REPLICA);
    return !(i->flags & (INSTANCE_SDOWN | INSTANCE_ODOWN)) && sentinelCanSend(i) &&
           v->now_ms - i->link->ping_good_ms <= GOOD_PING_MS && i->priority != 0 &&
           hasFreshInfo(v, i) &&
           /* FAILOVER is refused for a replica that is not online. */
           (i->link_up || !(primary->flags & INSTANCE_COORDINATED));
}

/* How long the link of a replica to its primary may have been down if the replica is to be promoted
 * without an order. */
static int64_t linkDownMaxMs(const sentinelView *v, const sentinelInstance *primary) {
    int64_t max_ms = primary->down_after_ms * 10;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    if (primary->flags & INSTANCE_SDOWN) max_ms += v->now_ms - primary->sdown_since_ms;
    return max_ms;
}

/* True if the data are recent enough for an automatic failover. If the primary has lost its data,
 * the age of the replica's data does not matter. */
static bool isRecent(const sentinelInstance *i, int64_t link_down_max_ms) {
    return i->sync.keeps_lost_data || i->link_down_ms <= link_down_max_ms;
}

/* True if `a` is to be preferred. */
static bool isBetter(const sentinelView *v, const sentinelInstance *a, const sentinelInstance *b) {
    bool promoted = sentinelMayBePromoted(v, a);
    if (promoted != sentinelMayBePromoted(v, b)) return promoted;
    /* Others have begun anew with the primary. */
    if (a->sync.keeps_lost_data != b->sync.keeps_lost_data) return a->sync.keeps_lost_data;
    if (a->priority != b->priority) return a->priority < b->priority;
    if (a->offset != b->offset) return a->offset > b->offset;
    if (!a->runid.len || !b->runid.len) return a->runid.len > b->runid.len;
    return sliceCompare(strSlice(&a->runid), strSlice(&b->runid)) < 0;
}

/* ---- copies that are older than an automatic failover accepts */

/* True if the replica has a copy older than that. A server without keys, or one that is loading
 * them, has no copy. */
static bool isOlderCopy(const sentinelView *v, const sentinelInstance *primary,
                        const sentinelInstance *i) {
    return i->sync.has_keys && !i->sync.is_loading && isReachable(v, primary, i) &&
           !isRecent(i, linkDownMaxMs(v, primary));
}

static bool isOfStream(const sentinelInstance *primary, const sentinelInstance *i) {
    return i->sync.stream && i->sync.stream == primary->sync.stream;
}

/* Compares by the changes that would be lost first, then by priorities. */
static bool isNewer(const sentinelView *v, const sentinelInstance *a, const sentinelInstance *b) {
    bool known = isOfStream(a->primary, a);
    hotCheck(a->primary == b->primary);
    if (known != isOfStream(b->primary, b)) return known;
    return known && a->offset != b->offset ? b->offset < a->offset : isBetter(v, a, b);
}

static sentinelInstance *selectOlderCopy(const sentinelView *v, const sentinelInstance *primary) {
    sentinelInstance *best = NULL;
    check(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->replicas) {
        if (isOlderCopy(v, primary, i) && (!best || isNewer(v, i, best))) best = i;
    }
    return best;
}

static void tellLoss(sentinelView *v, sentinelInstance *i, const char *what) {
    const sentinelInstance *primary = i->primary;
    long long down_s = (long long)(i->link_down_ms / 1000);
    check(primary);
    if (!isOfStream(primary, i) || i->offset > primary->offset) {
        sentinelEvent(v, LOG_WARNING, "+older-copy", i,
                      " #its link to the primary was down for %lld s; how much is lost is not "
                      "known, as its offset is not of the primary's last stream%s",
                      down_s, what);
        return;
    }
    sentinelEvent(v, LOG_WARNING, "+older-copy", i,
                  " #its link to the primary was down for %lld s; at least %llu bytes of the "
                  "stream are lost: its offset is %llu, the last known one of the primary %llu%s",
                  down_s, (unsigned long long)(primary->offset - i->offset),
                  (unsigned long long)i->offset, (unsigned long long)primary->offset, what);
}

static void tellOlderCopies(sentinelView *v, const sentinelInstance *primary) {
    SENTINEL_EACH(i, &primary->replicas) {
        if (isOlderCopy(v, primary, i)) tellLoss(v, i, "; SENTINEL FAILOVER promotes it");
    }
}

sentinelInstance *sentinelSelectReplica(const sentinelView *v, const sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    sentinelInstance *best = NULL;
    int64_t max_ms = linkDownMaxMs(v, primary);
    SENTINEL_EACH(i, &primary->replicas) {
        if (primary->is_takeover && !sentinelIsUnfinished(v, i)) continue;
        if (!isReachable(v, primary, i) || !isRecent(i, max_ms)) continue;
        if (!best || isBetter(v, i, best)) best = i;
    }
    return best || !(primary->flags & INSTANCE_FORCED) ? best : selectOlderCopy(v, primary);
}

/* ------------------------------------------------------------------ the steps */

static void clearReconfiguration(sentinelInstance *primary) {
    SENTINEL_EACH(i, &primary->replicas)
    i->flags &= ~(uint32_t)(INSTANCE_PROMOTED | INSTANCE_RECONF_SENT | INSTANCE_RECONF_INPROG |
                            INSTANCE_RECONF_DONE);
}

void sentinelAbortFailover(sentinelView *v, sentinelInstance *primary) {
    check(primary->step <= FAILOVER_WAIT_PROMOTION);
    if (primary->step <= FAILOVER_SELECT_REPLICA) sentinelReleaseHolds(v, primary);
    primary->sync.is_confirmed = false;
    primary->sync.waiting_why = NULL;
    /* A primary whose successor does not take over must not wait for it. */
    bool ordered = (primary->flags & INSTANCE_COORDINATED) &&
                   primary->step == FAILOVER_WAIT_PROMOTION && sentinelCanSend(primary);
    if (ordered) {
        sendOrder(v, primary, "FAILOVER", (order){1, {SLICE("ABORT")}});
        sendOrder(v, primary, "CLIENT", (order){1, {SLICE("UNPAUSE")}});
    }
    primary->flags &= ~(uint32_t)(INSTANCE_FAILOVER | INSTANCE_FORCED | INSTANCE_COORDINATED);
    primary->is_takeover = false;
    enter(v, primary, FAILOVER_NONE);
    clearReconfiguration(primary);
    primary->promoted = NULL;
}

/* Another try is made soon, at a random time. */
static void retrySoon(sentinelView *v, sentinelInstance *primary) {
    check(primary->step == FAILOVER_NONE);
    int64_t window_ms = RETRY_MS << primary->retries;
    if (primary->retries < RETRIES_MAX) primary->retries++;
    primary->retry_ms = v->now_ms + 1 + (int64_t)v->env->random(v, (uint64_t)window_ms);
}

/* With replication-quorum: a replica that is missing may come back any moment. An ordered failover
 * is not repeated. */
static void abortUnconfirmed(sentinelView *v, sentinelInstance *primary, const char *why) {
    bool forced = primary->flags & INSTANCE_FORCED;
    sentinelEvent(v, LOG_WARNING, "-failover-abort-quorum", primary, " #%s", why);
    sentinelAbortFailover(v, primary);
    if (!forced) retrySoon(v, primary);
}

/* If no Sentinel can win, this one begins another epoch soon, at a random time, so that the others
 * do not begin at the same time. If it has voted in a later epoch, it gives up. */
static bool repeatElection(sentinelView *v, sentinelInstance *primary) {
    bool is_past = primary->leader_epoch > primary->failover_epoch;
    hotCheck(primary->step == FAILOVER_WAIT_START);
    if (!is_past && !sentinelVoteIsSplit(primary, primary->failover_epoch)) return false;
    sentinelEvent(v, LOG_WARNING, "-failover-abort-not-elected", primary, "%s", "");
    bool repeat = !is_past && !(primary->flags & INSTANCE_COORDINATED);
    sentinelAbortFailover(v, primary);
    if (!repeat) return true;
    retrySoon(v, primary);
    return true;
}

static void waitStart(sentinelView *v, sentinelInstance *primary) {
    hotCheck(primary->failover_epoch > 0);
    slice leader = sentinelLeader(v, primary, primary->failover_epoch);
    bool is_leader = sliceIs(leader, v->id);
    if (!is_leader && !(primary->flags & INSTANCE_FORCED)) {
        if (repeatElection(v, primary)) return;
        int64_t wait_ms = v->periods.election;
        if (wait_ms > primary->failover_timeout_ms) wait_ms = primary->failover_timeout_ms;
        if (v->now_ms - primary->failover_start_ms <= wait_ms) return;
        sentinelEvent(v, LOG_WARNING, "-failover-abort-not-elected", primary, "%s", "");
        sentinelAbortFailover(v, primary);
        return;
    }
    sentinelEvent(v, LOG_WARNING, "+elected-leader", primary, "%s", "");
    primary->led_epoch = primary->failover_epoch;
    if (v->simulated & SIMULATE_ELECTION_CRASH) v->env->crash(v);
    enter(v, primary, FAILOVER_SELECT_REPLICA);
    sentinelEvent(v, LOG_WARNING, "+failover-state-select-slave", primary, "%s", "");
}

/* No replica that may be promoted has certainly all that was confirmed. */
static void awaitConfirmed(sentinelView *v, sentinelInstance *primary) {
    check(primary->sync.waiting_why);
    if (!(primary->flags & (INSTANCE_FORCED | INSTANCE_ODOWN))) {
        abortUnconfirmed(v, primary, "the primary is back");
    } else if (v->now_ms - primary->failover_changed_ms > primary->failover_timeout_ms) {
        abortUnconfirmed(v, primary, primary->sync.waiting_why);
    }
}

static void selectReplica(sentinelView *v, sentinelInstance *primary) {
    hotCheck(!primary->promoted);
    bool is_confirmed = sentinelNeedsConfirmed(v, primary);
    sentinelInstance *best =
        is_confirmed ? sentinelChooseConfirmed(v, primary) : sentinelSelectReplica(v, primary);
    if (!is_confirmed && awaitsInfo(v, primary, best != NULL)) return;
    if (is_confirmed && !best) {
        awaitConfirmed(v, primary);
        return;
    }
    primary->sync.is_confirmed = is_confirmed;
    if (!best) {
        sentinelEvent(v, LOG_WARNING, "-failover-abort-no-good-slave", primary, "%s", "");
        tellOlderCopies(v, primary);
        sentinelAbortFailover(v, primary);
        return;
    }
    sentinelEvent(v, LOG_WARNING, "+selected-slave", best, "%s", "");
    if (!is_confirmed && isOlderCopy(v, primary, best))
        tellLoss(v, best, "; it is promoted by order");
    best->flags |= INSTANCE_PROMOTED;
    primary->promoted = best;
    enter(v, primary, FAILOVER_SEND_PROMOTION);
    sentinelEvent(v, LOG_NOTICE, "+failover-state-send-slaveof-noone", best, "%s", "");
}

static void sendPromotion(sentinelView *v, sentinelInstance *primary) {
    sentinelInstance *promoted = primary->promoted;
    check(promoted);
    int64_t elapsed_ms = v->now_ms - primary->failover_changed_ms;
    int64_t rest_ms = primary->failover_timeout_ms - elapsed_ms;
    if (primary->flags & INSTANCE_COORDINATED) {
        if (rest_ms < COORDINATED_REST_MS) {
            sentinelEvent(v, LOG_WARNING, "-failover-abort-master-timeout", primary, "%s", "");
            sentinelAbortFailover(v, primary);
            return;
        }
        if (!sendCoordinated(v, primary, rest_ms)) return;
    } else if (!sentinelSendReplicaOf(v, promoted, NULL)) {
        if (primary->sync.is_confirmed) {
            abortUnconfirmed(v, primary, "the link to the replica was lost");
            return;
        }
        if (rest_ms >= 0) return;
        sentinelEvent(v, LOG_WARNING, "-failover-abort-slave-timeout", primary, "%s", "");
        sentinelAbortFailover(v, primary);
        return;
    }
    sentinelEvent(v, LOG_NOTICE, "+failover-state-wait-promotion", promoted, "%s", "");
    enter(v, primary, FAILOVER_WAIT_PROMOTION);
}

/* The end is seen by sentinelPromoted(). */
static void waitPromotion(sentinelView *v, sentinelInstance *primary) {
    check(primary->promoted);
    int64_t elapsed_ms = v->now_ms - primary->failover_changed_ms;
    if (primary->sync.is_confirmed && elapsed_ms > sentinelPromotionMs()) {
        abortUnconfirmed(v, primary, "the replica was not promoted in time");
        return;
    }
    if (elapsed_ms <= primary->failover_timeout_ms) return;
    sentinelEvent(v, LOG_WARNING, "-failover-abort-slave-timeout", primary, "%s", "");
    sentinelAbortFailover(v, primary);
}

void sentinelPromoted(sentinelView *v, sentinelInstance *replica) {
    sentinelInstance *primary = replica->primary;
    check(primary->promoted == replica);
    primary->config_epoch = primary->failover_epoch;
    enter(v, primary, FAILOVER_RECONF_REPLICAS);
    (void)v->env->save(v); /* a failure is logged; the promotion has happened */
    sentinelEvent(v, LOG_WARNING, "+promoted-slave", replica, "%s", "");
    if (v->simulated & SIMULATE_PROMOTION_CRASH) v->env->crash(v);
    if (primary->flags & INSTANCE_COORDINATED) {
        endCoordinated(v, primary);
        endCoordinated(v, replica);
    }
    sentinelEvent(v, LOG_WARNING, "+failover-state-reconf-slaves", primary, "%s", "");
    sentinelRunReconfig(v, primary, "leader", &primary->addr, &replica->addr);
    sentinelForceHello(primary);
}

static bool isReconfigured(const sentinelInstance *i) {
    return (i->flags & (INSTANCE_PROMOTED | INSTANCE_RECONF_DONE | INSTANCE_SDOWN)) != 0;
}

static void sendRest(sentinelView *v, sentinelInstance *primary) {
    check(primary->promoted);
    SENTINEL_EACH(i, &primary->replicas) {
        if (i->flags & (INSTANCE_PROMOTED | INSTANCE_RECONF_DONE | INSTANCE_RECONF_SENT)) continue;
        if (!sentinelSendReplicaOf(v, i, &primary->promoted->addr)) continue;
        sentinelEvent(v, LOG_NOTICE, "+slave-reconf-sent-be", i, "%s", "");
        i->flags |= INSTANCE_RECONF_SENT;
    }
}

/* True if orders to the server have not been replied to. On a closed link no order is open. */
static bool hasOrders(const sentinelInstance *i) {
    const sentinelLink *l = i->link;
    hotCheck(l);
    for (int at = 0; at < l->pending_count; at++) {
        if (l->pending[at].of == i && l->pending[at].kind == PENDING_OTHER) return true;
    }
    return false;
}

static void checkEnd(sentinelView *v, sentinelInstance *primary) {
    check(primary->promoted);
    if (primary->promoted->flags & INSTANCE_SDOWN) return;
    /* The links are closed at the end, so a coordinated failover waits for the replies to its last
     * orders. Without these orders the clients of the old primary would wait until the pause is
     * over, and then get the error READONLY. */
    bool all = !(primary->flags & INSTANCE_COORDINATED &&
                 (hasOrders(primary) || hasOrders(primary->promoted)));
    SENTINEL_EACH(i, &primary->replicas) all = all && isReconfigured(i);
    bool timeout = v->now_ms - primary->failover_changed_ms > primary->failover_timeout_ms;
    if (!all && !timeout) return;
    if (timeout) sentinelEvent(v, LOG_WARNING, "+failover-end-for-timeout", primary, "%s", "");
    sentinelEvent(v, LOG_WARNING, "+failover-end", primary, "%s", "");
    if (timeout) sendRest(v, primary);
    enter(v, primary, FAILOVER_UPDATE_CONFIG);
}

/* A replica that has not reacted in time does not keep the others waiting; it gets no second
 * order. */
static int64_t countReconfiguring(sentinelView *v, sentinelInstance *primary) {
    int64_t count = 0;
    SENTINEL_EACH(i, &primary->replicas) {
        bool late = (i->flags & INSTANCE_RECONF_SENT) &&
                    v->now_ms - i->reconf_sent_ms > v->periods.reconf_timeout;
        if (late) {
            sentinelEvent(v, LOG_NOTICE, "-slave-reconf-sent-timeout", i, "%s", "");
            i->flags &= ~(uint32_t)INSTANCE_RECONF_SENT;
            i->flags |= INSTANCE_RECONF_DONE;
        }
        count += (i->flags & (INSTANCE_RECONF_SENT | INSTANCE_RECONF_INPROG)) != 0;
    }
    return count;
}

static void reconfigureReplicas(sentinelView *v, sentinelInstance *primary) {
    int64_t count = countReconfiguring(v, primary);
    check(primary->promoted);
    SENTINEL_EACH(i, &primary->replicas) {
        if (count >= primary->parallel_syncs) continue;
        if (i->flags & (INSTANCE_PROMOTED | INSTANCE_RECONF_DONE | INSTANCE_RECONF_SENT |
                        INSTANCE_RECONF_INPROG))
            continue;
        if (!sentinelSendReplicaOf(v, i, &primary->promoted->addr)) continue;
        i->flags |= INSTANCE_RECONF_SENT;
        i->reconf_sent_ms = v->now_ms;
        sentinelEvent(v, LOG_NOTICE, "+slave-reconf-sent", i, "%s", "");
        count++;
    }
    checkEnd(v, primary);
}

void sentinelFailoverStep(sentinelView *v, sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    if (!(primary->flags & INSTANCE_FAILOVER)) return;
    switch (primary->step) {
    case FAILOVER_WAIT_START: waitStart(v, primary); break;
    case FAILOVER_SELECT_REPLICA: selectReplica(v, primary); break;
    case FAILOVER_SEND_PROMOTION: sendPromotion(v, primary); break;
    case FAILOVER_WAIT_PROMOTION: waitPromotion(v, primary); break;
    case FAILOVER_RECONF_REPLICAS: reconfigureReplicas(v, primary); break;
    case FAILOVER_NONE:
    case FAILOVER_UPDATE_CONFIG: break;
    }
}

int64_t sentinelHurryMs(const sentinelView *v) {
    enum { LONGEST_MS = 2000 }; /* of a step: what takes longer waits for something else */
    SENTINEL_EACH(primary, &v->primaries) {
        if (primary->flags & INSTANCE_COORDINATED && primary->step > FAILOVER_WAIT_START &&
            v->now_ms - primary->failover_changed_ms < LONGEST_MS)
            return SENTINEL_HURRY_MS;
    }
    return 0;
}

void sentinelRunReconfig(sentinelView *v, sentinelInstance *primary, const char *role,
                         const sentinelAddr *from, const sentinelAddr *to) {
    char ports[2][NUMBER_TEXT_MAX];
    if (!primary->reconfig_script.len) return;
    hotCheck(from->port >= 0);
    slice args[] = {strSlice(&primary->name),
                    sliceOf(role),
                    SLICE("start"),
                    sentinelAddrText(v, from),
                    sliceMake(ports[0], numberPrintInt(ports[0], from->port)),
                    sentinelAddrText(v, to),
                    sliceMake(ports[1], numberPrintInt(ports[1], to->port))};
    v->env->run_script(v, strSlice(&primary->reconfig_script), COUNT_OF(args), args);
}

void sentinelFailoverFinish(sentinelView *v, sentinelInstance *primary) {
    check(primary->step == FAILOVER_UPDATE_CONFIG);
    const sentinelInstance *promoted = primary->promoted ? primary->promoted : primary;
    slice old = sentinelAddrText(v, &primary->addr), new = sentinelAddrText(v, &promoted->addr);
    sentinelEventText(v, LOG_WARNING, "+switch-master", primary, "%s %.*s %d %.*s %d",
                      strText(&primary->name), (int)old.len, old.ptr, primary->addr.port,
                      (int)new.len, new.ptr, promoted->addr.port);
    primary->switch_why = primary->failover_why;
    sentinelAddr addr = {.host = strNew(strSlice(&promoted->addr.host)),
                         .port = promoted->addr.port};
    memcpy(addr.ip, promoted->addr.ip, sizeof(addr.ip));
    sentinelSwitchPrimary(v, primary, &addr);
}
