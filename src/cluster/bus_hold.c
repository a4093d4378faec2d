/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With replication-quorum: when a replica acknowledges nothing, and a primary confirms nothing
 * (busProcs.holdAcks).
 *
 * What a replica tells of its primary is counted by others in elections: that it has failed, with
 * an offset. Whatever the replica acknowledges after that could be missing in the winner. So it
 * acknowledges nothing more to this primary while it says so. Should the failure turn out to be
 * none, it waits until the elections that may count it are over (electionHoldMs()). Then one of
 * them may have been won by a node that nobody has heard of since. The replica asks all nodes, and
 * acknowledges again when either is known from replies to a PING that was sent after that time:
 *
 * - A majority of the voters has no greater epoch than this node had when it began to tell. An
 *   election that counts what it has told has a greater one, as its candidate has read the message,
 *   and voters keep the epoch in which they have voted. An owner that had no slots in its reply
 *   does not count: the one that had them may have voted. Voters with a later set (voters.h) than
 *   this node do not count: they may be outnumbered by others in it.
 * - No other node of the shard was elected: each of them has been heard, or was forgotten.
 *
 * A node that was elected claims the slots when it is heard, and this one follows it. What is held
 * is in the configuration file (clusterMap.held_for), as a restart changes nothing about it.
 *
 * A replica that is elected may be lost at once, and another one elected after it that has not
 * heard of it. If the first one comes back first, what it confirms is lost when the second one is
 * back. So it confirms nothing until one of the same is known from replies to a PING that was sent
 * after its election, and tells of it:
 *
 * - A majority of the voters has no greater epoch than that of the election: they have voted in no
 *   later one, and now know an owner of the slots with a greater epoch than others could claim.
 *   Among owners the old primary counts for the place that this node has now. A winner that is a
 *   member of a set counts, unless it has voted in a later election before it won its own.
 * - Each node of the shard but the old primary follows this one: none was elected, and none will
 *   be that lacks what it has.
 *
 * Until then it does not vote as an owner (election.c): the other one would, in the same place. */
#include "base/base.h"
#include "cluster/bus_priv.h"
#include "cluster/voters.h"

static bool isHeldFor(const clusterMap *m, const clusterNode *primary) {
    return primary && memcmp(m->held_for, primary->id, NODE_ID_LEN) == 0;
}

/* True for a primary that was elected in the place of clusterMap.held_for, and confirms nothing. */
static bool isWinner(const clusterMap *m) { return m->held_for[0] && clusterNodeVotes(m->myself); }

static bool isHeard(const clusterNode *n) {
    return n->links && n->links->answered > n->links->asked;
}

/* Asks all nodes; what they have sent before does not count. */
static void askAll(clusterBus *b) {
    for (int i = 1; i < b->map->node_count; i++) {
        nodeLinks *links = busLinksOf(b->map->nodes[i]);
        links->asked = links->pings;
    }
    b->hold.asked_ms = b->now_ms;
    busPingAll(b);
}

/* It has voted in no election after that of held_epoch, and acts by no later set. */
static bool hasNotVoted(const clusterMap *m, const clusterNode *n) {
    return isHeard(n) && n->links->answered_epoch <= m->held_epoch &&
           voterStampCompare(n->links->answered_voters, m->voters.stamp) <= 0;
}

/* The place of a winner among the owners: for those that have not heard of it its old primary has
 * it. One that has slots again counts for these. */
static bool hasPlaceNotVoted(const clusterMap *m) {
    const clusterNode *old = clusterMapFind(m, sliceMake(m->held_for, NODE_ID_LEN));
    return old && !clusterNodeVotes(old) && hasNotVoted(m, old);
}

static bool hasVoterNotVoted(const void *arg, const clusterNode *n) {
    const clusterMap *m = arg;
    bool as_owner = clusterNodeVotesAsOwner(m, n);
    if (n != m->myself) return hasNotVoted(m, n) && (!as_owner || n->links->answered_as_owner);
    bool is_member = m->voters.rule != VOTERS_OWNERS; /* the own vote may be for a later one */
    return (!as_owner || hasPlaceNotVoted(m)) && (!is_member || m->vote_epoch <= m->held_epoch);
}

/* No election has been won that counts what this node has told; or, of a winner, none after its
 * own. Members of a set of a later term need not be those of that election. */
static bool hasMajorityNotVoted(const clusterMap *m) {
    return m->voters.stamp.term <= m->held_epoch && votersAgree(m, hasVoterNotVoted, m);
}

/* Another node of the shard that was not heard; NULL: there is none. */
static const clusterNode *findUnheard(const clusterMap *m) {
    for (int i = 1; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        bool is_other = !isHeldFor(m, n) && clusterNodesShareShard(n, m->myself);
        if ((is_other || isHeldFor(m, n->primary)) && !isHeard(n)) return n;
    }
    return NULL;
}

static bool isDecided(clusterBus *b) {
    const clusterNode *unheard;
    if (!b->hold.asked_ms) askAll(b);
    if (hasMajorityNotVoted(b->map) || !(unheard = findUnheard(b->map))) return true;
    if (b->now_ms - b->hold.asked_ms > b->rules.timeout_ms &&
        logIsDue(&b->hold.complained_ms, b->now_ms, BUS_COMPLAINT_MS))
        logWarning("Nothing is %s: node %s may have been elected instead, and is not heard. If it "
                   "is lost for good, it is to be forgotten (CLUSTER FORGET; replication-quorum).",
                   isWinner(b->map) ? "confirmed" : "acknowledged to the primary",
                   clusterNodeLabel(unheard).text);
    return false;
}

static void end(clusterBus *b) {
    clusterMapSetHold(b->map, NULL, 0);
    b->hold = (busHold){0};
}

void busHoldConfirmations(clusterBus *b) {
    clusterMap *m = b->map;
    bool on = b->rules.quorum > 0;
    check(clusterNodeVotes(m->myself));
    clusterMapSetHold(m, on ? b->election.primary_id : NULL, on ? m->myself->epoch : 0);
    b->hold = (busHold){0};
    if (b->procs->holdAcks) b->procs->holdAcks(b->arg, on);
}

void busHoldAcks(clusterBus *b, int64_t hold_ms) {
    clusterMap *m = b->map;
    const clusterNode *primary = m->myself->primary;
    bool told = b->rules.quorum && m->myself->flags & NODE_PRIMARY_FAILED;
    if (!b->procs->holdAcks) return;
    if (told) {
        if (!isHeldFor(m, primary)) {
            b->procs->holdAcks(b->arg, false); /* it was for another one */
            clusterMapSetHold(m, primary->id, m->current_epoch);
        }
        b->hold = (busHold){.until_ms = b->now_ms + hold_ms};
    }
    bool is_held = m->held_for[0] != '\0';
    if (is_held && !b->hold.until_ms) b->hold.until_ms = b->now_ms + hold_ms; /* it has started */
    bool passed = isWinner(m) || b->now_ms >= b->hold.until_ms;
    bool applies = isWinner(m) || isHeldFor(m, primary);
    if (is_held && passed && (!b->rules.quorum || !applies || isDecided(b))) {
        end(b);
        is_held = false;
    }
    b->procs->holdAcks(b->arg, is_held && applies);
}
