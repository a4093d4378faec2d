/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes new sets of voters, if this node is the leader, and votes for other leaders
 * (voters_change.h).
 *
 * Invariant: a step adds one member, removes one, or moves the rule one step along owners, both,
 * all. So each majority of a set has a node in common with each majority of the next set. */
#include "bus/voters_change.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/topology.h"

enum {
    SETTLE_MIN_MS = 1000, /* a reason to change must last for a timeout, at least so long */
    VOTES_MIN_MS = 2000,
    SAFE_AFTER_MS = 2000, /* a node that has just started does not vote */
    COMPLAINT_MS = 600000,
};

/* ------------------------------------------------------------------ what is to be changed */

/* Nodes that have no id of their own yet, or none at all, are not known. */
static bool isKnown(const clusterNode *n) { return !(n->flags & NODE_HANDSHAKE); }

static bool works(const clusterMap *m, const clusterNode *n) {
    const uint32_t lost = NODE_FAILED | NODE_MAYBE_FAILED | NODE_NO_ADDRESS;
    return n == m->myself || (n->has_told_voters && !(n->flags & lost));
}

static bool allKnown(const clusterMap *m, voterTest *test, const void *arg) {
    for (int i = 0; i < m->node_count; i++)
        if (isKnown(m->nodes[i]) && !test(arg, m->nodes[i])) return false;
    return true;
}

static bool isWorking(const void *arg, const clusterNode *n) { return works(arg, n); }

/* A known node without the directive; NULL: there is none. */
static const clusterNode *findUnwilling(const clusterMap *m, bool replicas_vote) {
    if (!replicas_vote) return m->myself;
    for (int i = 1; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (isKnown(n) && n->has_told_voters && !n->wants_vote) return n;
    }
    return NULL;
}

typedef struct change {
    bool any;
    voterRule rule;
    const char *added, *removed; /* ids */
} change;

static change ruleOf(const clusterMap *m, const clusterNode *unwilling) {
    static const voterRule up[] = {VOTERS_BOTH, VOTERS_ALL, VOTERS_ALL};
    static const voterRule down[] = {VOTERS_OWNERS, VOTERS_OWNERS, VOTERS_BOTH};
    voterRule next = unwilling ? down[m->voters.rule] : up[m->voters.rule];
    return (change){.any = next != m->voters.rule, .rule = next};
}

static change memberOf(const clusterMap *m, const clusterNode *unwilling) {
    const voterSet *set = &m->voters;
    change c = {.rule = set->rule};
    for (int i = 0; i < set->count && !c.removed; i++) {
        const clusterNode *n = clusterMapFind(m, sliceMake(set->ids[i], NODE_ID_LEN));
        if (!n || !isKnown(n)) c.removed = set->ids[i];
    }
    for (int i = 0; i < m->node_count && !c.removed && !c.added && !unwilling; i++) {
        const clusterNode *n = m->nodes[i];
        bool has_set = n == m->myself || voterStampCompare(n->voters, set->stamp) == 0;
        if (isKnown(n) && !n->is_member && works(m, n) && has_set) c.added = n->id;
    }
    c.any = c.added || c.removed;
    return c;
}

static change findChange(const clusterMap *m, const clusterNode *unwilling) {
    if (m->voters.rule != VOTERS_OWNERS) {
        change c = memberOf(m, unwilling);
        if (c.any) return c;
    }
    /* Nodes that are not of one cluster yet make no sets of their own. */
    bool is_whole = m->voters.stamp.term || m->slots_assigned == SLOT_COUNT;
    return is_whole && allKnown(m, isWorking, m) ? ruleOf(m, unwilling) : (change){0};
}

/* ------------------------------------------------------------------ a new set */

/* `c` NULL: the same one, of a new term. */
static void make(clusterMap *m, voterStamp stamp, const change *c) {
    const voterSet *own = &m->voters;
    voterRule rule = c ? c->rule : own->rule;
    voterSet next = {.stamp = stamp, .rule = rule};
    bool from_map = own->rule == VOTERS_OWNERS && rule != VOTERS_OWNERS;
    int most = from_map ? m->node_count : own->count + 1;
    next.ids = memAlloc((size_t)most * NODE_ID_LEN);
    for (int i = 0; from_map && i < m->node_count; i++)
        if (isKnown(m->nodes[i])) memcpy(next.ids[next.count++], m->nodes[i]->id, NODE_ID_LEN);
    for (int i = 0; rule != VOTERS_OWNERS && i < own->count; i++)
        if (!c || c->removed != own->ids[i])
            memcpy(next.ids[next.count++], own->ids[i], NODE_ID_LEN);
    if (c && c->added) memcpy(next.ids[next.count++], c->added, NODE_ID_LEN);
    check(next.count <= most);
    check(votersInstall(m, &next));
    memFree(next.ids);
}

/* It has the set, and has voted in no later election. */
static bool hasSet(const void *arg, const clusterNode *n) {
    const clusterMap *m = arg;
    if (n == m->myself) return true;
    return voterStampCompare(n->voters, m->voters.stamp) == 0 &&
           n->voters_epoch == m->voters.stamp.term;
}

/* The present set may be replaced. A majority of primaries is not enough where one counts itself as
 * such that was replaced; and with VOTERS_ALL none must be left that counts by the rule of Valkey,
 * as it has no set yet. */
static bool isConfirmed(const clusterMap *m, voterRule next) {
    bool by_all =
        m->voters.rule == VOTERS_OWNERS || (m->voters.rule == VOTERS_BOTH && next == VOTERS_ALL);
    return votersAgree(m, hasSet, m) && (!by_all || allKnown(m, hasSet, m));
}

static bool leads(const votersChange *c, const clusterMap *m) {
    return c->leads && m->voters.stamp.term == c->term && m->current_epoch == c->term &&
           m->voters.stamp.version < UINT32_MAX;
}

/* ------------------------------------------------------------------ the leader */

/* Members lead only if no primary with slots is a voter: it was not one when it got them. */
static bool isFirst(const clusterMap *m) {
    bool owners = false;
    for (int i = 0; i < m->node_count; i++)
        owners |= clusterNodeVotes(m->nodes[i]) && clusterNodeIsVoter(m, m->nodes[i]);
    const clusterNode *first = NULL;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (!clusterNodeIsVoter(m, n) || !works(m, n) || (owners && !clusterNodeVotes(n))) continue;
        if (!first || memcmp(n->id, first->id, NODE_ID_LEN) < 0) first = n;
    }
    return first == m->myself;
}

/* By the rule of Valkey a primary that was replaced, and does not know, counts as well as its
 * successor, so a majority would not be unique. No set is needed while a node is lost: all vote. */
static bool votesForLeader(const clusterMap *m, const clusterNode *n) {
    return m->voters.rule == VOTERS_OWNERS ? isKnown(n) : clusterNodeIsVoter(m, n);
}

static bool isElected(const clusterMap *m, const voterBallot *b) {
    bool by_all = m->voters.rule == VOTERS_OWNERS;
    return votersAgree(m, voterHasVoted, b) && (!by_all || allKnown(m, voterHasVoted, b));
}

static votersActs count(votersChange *c, clusterMap *m) {
    const voterBallot b = {m, c->term};
    check(c->asked);
    if (m->current_epoch != c->term || !isElected(m, &b)) return (votersActs){0};
    c->asked = false;
    c->leads = true;
    logVerbose("cluster-replicas-vote: this node makes the sets of term %llu",
               (unsigned long long)c->term);
    make(m, (voterStamp){c->term, 0}, NULL);
    return (votersActs){.tell = true};
}

static votersActs ask(votersChange *c, clusterMap *m, const busRules *rules, int64_t now_ms) {
    uint64_t epoch = clusterMapNextEpoch(m);
    int64_t wait_ms = 2 * rules->timeout_ms;
    if (wait_ms < VOTES_MIN_MS) wait_ms = VOTES_MIN_MS;
    c->retry_ms = now_ms + wait_ms + (int64_t)randomUniform((uint64_t)wait_ms);
    c->leads = c->asked = false;
    if (epoch == m->current_epoch) return (votersActs){0}; /* there is none */
    /* Its own vote, before it is counted. */
    clusterMapSetEpochs(m, epoch, epoch);
    c->term = epoch;
    c->asked = true;
    votersActs acts = count(c, m);
    acts.ask = c->asked;
    return acts;
}

static void tellUnwilling(votersChange *c, const clusterMap *m, const clusterNode *n,
                          int64_t now_ms) {
    if (n == m->myself || !logIsDue(&c->told_ms, now_ms, COMPLAINT_MS)) return;
    logWarning("cluster-replicas-vote: node %s does not have it, so only primaries with slots "
               "vote, as in Valkey.",
               clusterNodeLabel(n).text);
}

votersActs votersTick(votersChange *c, clusterMap *m, const busRules *rules, int64_t now_ms) {
    if (!rules->replicas_vote && !m->voters.stamp.term) return (votersActs){0};
    const clusterNode *unwilling = findUnwilling(m, rules->replicas_vote);
    if (unwilling && rules->replicas_vote) tellUnwilling(c, m, unwilling, now_ms);
    change next = findChange(m, unwilling);
    if (!next.any || !isFirst(m)) {
        c->since_ms = 0;
        return (votersActs){0};
    }
    int64_t settle_ms = rules->timeout_ms < SETTLE_MIN_MS ? SETTLE_MIN_MS : rules->timeout_ms;
    if (!c->since_ms) c->since_ms = now_ms;
    if (now_ms - c->since_ms < settle_ms) return (votersActs){0};
    if (!leads(c, m)) return now_ms >= c->retry_ms ? ask(c, m, rules, now_ms) : (votersActs){0};
    if (!isConfirmed(m, next.rule)) return (votersActs){0};
    make(m, (voterStamp){c->term, m->voters.stamp.version + 1}, &next);
    return (votersActs){.tell = true};
}

votersActs votersVote(votersChange *c, clusterMap *m, clusterNode *from, const messageHeader *h) {
    if (!c->asked || h->current_epoch != c->term || !votesForLeader(m, from))
        return (votersActs){0};
    from->ack_epoch = c->term;
    return count(c, m);
}

/* ------------------------------------------------------------------ the voter */

bool votersRequest(clusterMap *m, clusterNode *candidate, const messageHeader *h,
                   int64_t started_ms, int64_t now_ms) {
    if (!votesForLeader(m, m->myself) || now_ms - started_ms < SAFE_AFTER_MS) return false;
    if (!topologyAccepts(m, candidate, h->current_epoch, h->epoch)) return false;
    if (!votersTrust(m, h->voters) || h->current_epoch < m->current_epoch) return false;
    if (m->vote_epoch >= h->current_epoch) return false;
    clusterMapSetEpochs(m, h->current_epoch, h->current_epoch);
    logVerbose("Vote for node %s, which changes the set of voters, in epoch %llu",
               clusterNodeLabel(candidate).text, (unsigned long long)h->current_epoch);
    return true;
}
