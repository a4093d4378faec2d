/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides by the set of voters whether a majority agrees, and compares and installs sets.
 *
 * Invariant: a node that has a later set than this node does not count as agreeing; only
 * votersAreReached() counts it for a while. The README of src/cluster proves that two majorities
 * always have a node in common. */
#include "bus/voters.h"

#include <stdlib.h>

#include "base/base.h"

/* The version of sets that no votes are behind: a leader elsewhere may have the same epoch. */
static const uint32_t TAKEN_OVER = 1u << 31;

int voterStampCompare(voterStamp a, voterStamp b) {
    if (a.term != b.term) return a.term < b.term ? -1 : 1;
    return a.version < b.version ? -1 : a.version > b.version;
}

static int compareIds(const void *a, const void *b) { return memcmp(a, b, NODE_ID_LEN); }

bool votersHas(const voterSet *set, const char id[NODE_ID_LEN]) {
    return set->count && bsearch(id, set->ids, (size_t)set->count, NODE_ID_LEN, compareIds);
}

bool clusterNodeVotesAsOwner(const clusterMap *m, const clusterNode *n) {
    return m->voters.rule != VOTERS_ALL && clusterNodeVotes(n);
}

bool clusterNodeIsVoter(const clusterMap *m, const clusterNode *n) {
    return clusterNodeVotesAsOwner(m, n) || (m->voters.rule != VOTERS_OWNERS && n->is_member);
}

/* It acts by a later set already. */
static bool isAhead(const clusterMap *m, const clusterNode *n) {
    return n != m->myself && voterStampCompare(n->voters, m->voters.stamp) > 0;
}

/* `at_ms`: nodes that are ahead since then do not count. */
static bool isMajority(const clusterMap *m, voterTest *agrees, const void *arg, int64_t at_ms) {
    int owners = 0, agreeing_owners = 0, agreeing_members = 0;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (!clusterNodeIsVoter(m, n)) continue;
        bool yes = (!isAhead(m, n) || n->ahead_ms > at_ms) && agrees(arg, n);
        owners += clusterNodeVotes(n);
        agreeing_owners += clusterNodeVotes(n) && yes;
        agreeing_members += n->is_member && yes;
    }
    check(agreeing_members <= m->voters.count);
    if (m->voters.rule != VOTERS_ALL && agreeing_owners < owners / 2 + 1) return false;
    return m->voters.rule == VOTERS_OWNERS || agreeing_members >= m->voters.count / 2 + 1;
}

bool votersAgree(const clusterMap *m, voterTest *agrees, const void *arg) {
    return isMajority(m, agrees, arg, INT64_MAX);
}

bool voterHasVoted(const void *arg, const clusterNode *n) {
    const voterBallot *b = arg;
    return n == b->map->myself ? b->map->vote_epoch == b->epoch : n->ack_epoch == b->epoch;
}

/* By the rule of Valkey nodes that were not heard since the start count for a timeout. */
static bool isReached(const void *arg, const clusterNode *n) {
    const clusterMap *m = arg;
    if (n->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) return false;
    return m->voters.rule == VOTERS_OWNERS || n == m->myself || n->has_told_voters;
}

bool votersAreReached(const clusterMap *m, int64_t grace_ms, int64_t now_ms) {
    return isMajority(m, isReached, m, now_ms - grace_ms);
}

int votersQuorum(const clusterMap *m) {
    bool owners = m->voters.rule == VOTERS_OWNERS;
    return (owners ? clusterMapCountVoters(m) : m->voters.count) / 2 + 1;
}

bool votersTrust(const clusterMap *m, voterStamp of) {
    /* By the rule of Valkey nodes count that know no sets. */
    if (m->voters.rule == VOTERS_OWNERS && !of.term) return true;
    return voterStampCompare(of, m->voters.stamp) >= 0;
}

/* ------------------------------------------------------------------ changes */

static const char *const rule_texts[VOTER_RULES] = {
    [VOTERS_OWNERS] = "primaries with slots vote",
    [VOTERS_BOTH] = "a majority of primaries with slots and one of all nodes is needed",
    [VOTERS_ALL] = "all nodes vote",
};

static void take(clusterMap *m, const voterSet *set) {
    voterSet *own = &m->voters;
    size_t size = (size_t)set->count * sizeof(*own->ids);
    char(*ids)[NODE_ID_LEN] = size ? memAlloc(size) : NULL;
    if (size) memcpy(ids, set->ids, size);
    memFree(own->ids);
    *own = (voterSet){set->stamp, set->rule, ids, set->count};
    if (size) qsort(ids, (size_t)set->count, sizeof(*ids), compareIds);
    for (int i = 0; i < m->node_count; i++) {
        clusterNode *n = m->nodes[i];
        n->is_member = votersHas(own, n->id);
        if (voterStampCompare(n->voters, own->stamp) <= 0) n->ahead_ms = 0;
    }
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC | CLUSTER_MAP_STATE;
}

bool votersInstall(clusterMap *m, const voterSet *set) {
    if (voterStampCompare(set->stamp, m->voters.stamp) <= 0) return false;
    if (set->rule != m->voters.rule || set->count != m->voters.count)
        logNotice("cluster-replicas-vote: %s. Members: %d (set %llu.%u)", rule_texts[set->rule],
                  set->count, (unsigned long long)set->stamp.term, set->stamp.version);
    take(m, set);
    return true;
}

void votersTakeOver(clusterMap *m) {
    const voterSet begin = {.stamp = {m->myself->epoch, TAKEN_OVER}, .rule = VOTERS_OWNERS};
    if (m->voters.rule != VOTERS_OWNERS) (void)votersInstall(m, &begin);
}

void votersReset(clusterMap *m) {
    const voterSet none = {.ids = NULL};
    if (m->voters.stamp.term) take(m, &none);
}

void votersHeard(clusterMap *m, clusterNode *from, const messageHeader *h, int64_t now_ms) {
    check(from != m->myself);
    from->has_told_voters = true;
    from->tells_voters = h->own_flags & MESSAGE_TELLS_VOTERS;
    from->wants_vote = h->own_flags & MESSAGE_REPLICAS_VOTE;
    from->voters = h->voters;
    from->voters_epoch = h->current_epoch;
    m->has_heard_voters |= from->tells_voters;
    if (!isAhead(m, from)) {
        from->ahead_ms = 0;
    } else if (!from->ahead_ms) {
        from->ahead_ms = now_ms;
    }
}
