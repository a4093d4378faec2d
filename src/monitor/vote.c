/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asks other Sentinels whether they regard a primary as down, and elects the Sentinel that performs
 * the failover.
 *
 * Invariant: in each epoch a Sentinel votes at most once for each primary, and its vote is in its
 * file before it is sent. */
#include "base/base.h"
#include "base/number.h"
#include "monitor/machine.h"

enum {
    ANSWER_PERIODS = 5, /* what another Sentinel has said is true so long */
    DESYNC_MS = 1000,
    ASK_FAST_MS = 100, /* after refused connections, which all notice at about the same time, */
    ASK_FAST_FOR_MS = 5000,
};

/* ------------------------------------------------------------------ asking */

static bool wantsAnswers(const sentinelInstance *primary) {
    bool works = (primary->flags & INSTANCE_COORDINATED) || primary->is_takeover;
    return (primary->flags & INSTANCE_SDOWN) || (works && primary->step == FAILOVER_WAIT_START);
}

static int64_t askPeriod(const sentinelView *v, const sentinelInstance *primary) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    bool fast = primary->refused_after_ms > 0 && (primary->flags & INSTANCE_SDOWN) &&
                v->now_ms - primary->sdown_since_ms < ASK_FAST_FOR_MS;
    return fast && v->periods.ask > ASK_FAST_MS ? ASK_FAST_MS : v->periods.ask;
}

/* With the epoch 0 nothing changes there, and the reply is the last vote; the own id is needed, as
 * else votes are not told. */
static void askPeer(sentinelView *v, sentinelInstance *primary, sentinelInstance *peer,
                    bool for_vote) {
    hotCheck(peer->kind == INSTANCE_SENTINEL);
    char port[NUMBER_TEXT_MAX], epoch[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("is-master-down-by-addr"), sentinelAddrText(v, &primary->addr),
                     sliceMake(port, numberPrintInt(port, primary->addr.port)),
                     sliceMake(epoch, numberPrintUint(epoch, for_vote ? 0 : v->current_epoch)),
                     for_vote || primary->step > FAILOVER_NONE ? sliceOf(v->id) : SLICE("*")};
    (void)sentinelSend(v, peer, for_vote ? PENDING_VOTE : PENDING_ASK, "SENTINEL", COUNT_OF(words),
                       words); /* it is open */
}

void sentinelAsk(sentinelView *v, sentinelInstance *primary, bool at_once) {
    check(primary->kind == INSTANCE_PRIMARY);
    bool wants_answers = wantsAnswers(primary);
    bool for_vote = !wants_answers && sentinelWantsVotes(v, primary);
    SENTINEL_EACH(peer, &primary->sentinels) {
        int64_t age_ms = v->now_ms - peer->asked_reply_ms;
        if (age_ms > v->periods.ask * ANSWER_PERIODS) {
            peer->flags &= ~(uint32_t)INSTANCE_PRIMARY_DOWN;
            strFree(&peer->leader);
        }
        if ((!wants_answers && !for_vote) || !sentinelCanSend(peer)) continue;
        if (!at_once && age_ms < askPeriod(v, primary)) continue;
        if (peer->link->pending_count >= SENTINEL_PENDING_MAX * peer->link->users) continue;
        askPeer(v, primary, peer, for_vote);
    }
}

void sentinelAskReplied(sentinelView *v, sentinelInstance *peer, const sentinelReply *r,
                        bool is_vote) {
    check(peer->kind == INSTANCE_SENTINEL);
    if (r->kind != REPLY_ARRAY || r->count != 3 || r->items[0].kind != REPLY_INTEGER ||
        r->items[1].kind != REPLY_BULK || r->items[2].kind != REPLY_INTEGER)
        return;
    peer->asked_reply_ms = v->now_ms;
    peer->flags &= ~(uint32_t)INSTANCE_PRIMARY_DOWN;
    if (r->items[0].integer == 1) peer->flags |= INSTANCE_PRIMARY_DOWN;
    slice leader = r->items[1].text;
    uint64_t epoch = (uint64_t)r->items[2].integer;
    if (epoch > SENTINEL_EPOCH_MAX) return;
    if (is_vote) {
        peer->vote_told_ms = v->now_ms;
        peer->vote_told_epoch = epoch;
    }
    if (!sliceIsHex(leader, SENTINEL_ID_LEN)) return; /* "*": no vote */
    if (peer->leader_epoch != epoch)
        sentinelEventText(v, LOG_NOTICE, "", NULL, "%s voted for %.*s %llu", strText(&peer->name),
                          (int)leader.len, leader.ptr, (unsigned long long)epoch);
    strFree(&peer->leader);
    peer->leader = strNew(leader);
    peer->leader_epoch = epoch;
}

/* ------------------------------------------------------------------ voting */

void sentinelSawEpoch(sentinelView *v, sentinelInstance *primary, uint64_t epoch) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    if (epoch <= v->current_epoch || epoch > SENTINEL_EPOCH_MAX) return;
    v->current_epoch = epoch;
    primary->epoch_heard_ms = v->now_ms;
    v->env->save_soon(v); /* what is promised in the epoch is saved again, at once */
    sentinelEventText(v, LOG_WARNING, "+new-epoch", primary, "%llu", (unsigned long long)epoch);
}

void sentinelVote(sentinelView *v, sentinelInstance *primary, uint64_t epoch, slice candidate) {
    check(primary->kind == INSTANCE_PRIMARY);
    bool is_self = sliceIs(candidate, v->id);
    /* Strangers get no votes, and cannot change the epoch. */
    if (!is_self && !sentinelFindPeer(primary, candidate)) return;
    sentinelSawEpoch(v, primary, epoch);
    /* It is greater if the epoch has passed, and less if that is beyond all bounds. */
    if (primary->leader_epoch >= epoch || v->current_epoch != epoch) return;
    str old = primary->leader;
    uint64_t old_epoch = primary->leader_epoch;
    int64_t old_ms = primary->voted_ms;
    primary->leader = strNew(candidate);
    primary->leader_epoch = v->current_epoch;
    primary->voted_ms = v->now_ms;
    if (!v->env->save(v)) {
        /* After a restart it would be forgotten, and another one could be given. */
        strFree(&primary->leader);
        primary->leader = old;
        primary->leader_epoch = old_epoch;
        primary->voted_ms = old_ms;
        return;
    }
    strFree(&old);
    sentinelEventText(v, LOG_WARNING, "+vote-for-leader", primary, "%.*s %llu", (int)candidate.len,
                      candidate.ptr, (unsigned long long)epoch);
    if (is_self) return;
    primary->failover_start_ms = v->now_ms + (int64_t)v->env->random(v, DESYNC_MS);
    primary->retry_ms = 0;
}

static int votesFor(const sentinelInstance *primary, slice id, uint64_t epoch) {
    int votes = primary->leader_epoch == epoch && sliceEqual(strSlice(&primary->leader), id);
    SENTINEL_EACH(peer, &primary->sentinels)
    votes +=
        peer->leader_epoch == epoch && peer->leader.len && sliceEqual(strSlice(&peer->leader), id);
    return votes;
}

/* The one with the most votes; empty: there are none. */
static slice frontRunner(const sentinelInstance *primary, uint64_t epoch, int *votes) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    slice best = {"", 0};
    *votes = 0;
    if (primary->leader_epoch == epoch && primary->leader.len) {
        best = strSlice(&primary->leader);
        *votes = votesFor(primary, best, epoch);
    }
    SENTINEL_EACH(peer, &primary->sentinels) {
        if (peer->leader_epoch != epoch || !peer->leader.len) continue;
        int count = votesFor(primary, strSlice(&peer->leader), epoch);
        if (count <= *votes) continue;
        *votes = count;
        best = strSlice(&peer->leader);
    }
    return best;
}

/* A majority of all, and the quorum. */
static int votesNeeded(const sentinelInstance *primary) {
    int majority = ((int)primary->sentinels.count + 1) / 2 + 1;
    hotCheck(primary->quorum > 0);
    int64_t needed = primary->quorum > majority ? primary->quorum : majority;
    return needed < INT32_MAX ? (int)needed : INT32_MAX;
}

slice sentinelLeader(sentinelView *v, sentinelInstance *primary, uint64_t epoch) {
    check(primary->kind == INSTANCE_PRIMARY);
    int votes;
    slice best = frontRunner(primary, epoch, &votes);
    if (primary->leader_epoch < epoch) {
        str choice = strNew(best.len ? best : sliceOf(v->id));
        sentinelVote(v, primary, epoch, strSlice(&choice));
        strFree(&choice);
        best = frontRunner(primary, epoch, &votes);
    }
    return votes >= votesNeeded(primary) ? best : SLICE("");
}

bool sentinelVoteIsSplit(const sentinelInstance *primary, uint64_t epoch) {
    check(primary->kind == INSTANCE_PRIMARY);
    int most, open = 0, known = primary->leader_epoch == epoch && primary->leader.len;
    (void)frontRunner(primary, epoch, &most); /* only the number is used */
    SENTINEL_EACH(peer, &primary->sentinels) {
        bool has_voted = peer->leader_epoch == epoch && peer->leader.len;
        known += has_voted;
        open += !has_voted && sentinelCanSend(peer) && !(peer->flags & INSTANCE_SDOWN);
    }
    bool is_majority = known >= ((int)primary->sentinels.count + 1) / 2 + 1;
    return is_majority && most + open < votesNeeded(primary);
}
