/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two rules of replication-quorum, which busProcs.holdAcks puts into effect: when a replica
 * acknowledges nothing to its primary, and when a primary confirms nothing to its clients.
 *
 * First rule: when a replica acknowledges nothing. Replica R reports to the other nodes that its
 * primary P has failed, together with R's offset. Another replica may be elected because of this
 * report. Writes that R acknowledges to P after the report could be missing in the elected replica,
 * although P has confirmed them. So R acknowledges nothing to P while it reports the failure. If P
 * works after all, R waits until every election that may count the report has ended
 * (electionHoldMs()). Even then a replica may have won such an election and have been lost before R
 * heard of it. So R sends a PING to all nodes, and acknowledges again when the replies show one of
 * these:
 *
 * - A majority of the voters has no greater epoch than R had when it reported the failure. An
 *   election that counts the report has a greater epoch, because its candidate has read the report,
 *   and a voter keeps the epoch of its vote. Two kinds of voters do not count here: an owner whose
 *   reply claims no slots, because the node that had its slots may have voted; and a voter with a
 *   later set of voters (voters.h) than R, because other members of that set may outnumber it.
 * - Each other node of the shard has replied, or was forgotten, and none of them was elected. An
 *   elected node claims the slots of P in its reply, and R follows it.
 *
 * clusterMap.held_for names P. It is in the configuration file, so the rule survives a restart.
 *
 * Second rule: when a primary confirms nothing. Replica A is elected and lost at once; replica B,
 * which has not heard of A, is elected after it. If A returns before B does, A could confirm writes
 * that are lost when B returns and the nodes follow B. So an elected A sends a PING to all nodes,
 * and confirms nothing until the replies show one of these:
 *
 * - A majority of the voters has no greater epoch than that of A's election. They have voted in no
 *   later election, and they now know A as the owner of the slots with an epoch that exceeds any
 *   other claim. Among owners of slots the old primary counts in the place of A. If A is a member
 *   of the set of voters, it counts itself, unless it had voted in a later election before it won.
 * - Each node of the shard but the old primary follows A. So no other node was elected, and a node
 *   that is elected later has all that A has.
 *
 * Until then A does not vote as an owner of slots (election.c), because B would vote as the owner
 * of the same slots. */
#include "base/base.h"
#include "bus/bus_priv.h"
#include "bus/voters.h"

static bool isHeldFor(const clusterMap *m, const clusterNode *primary) {
    return primary && memcmp(m->held_for, primary->id, NODE_ID_LEN) == 0;
}

/* True if this node is a primary that was elected in the place of the node clusterMap.held_for. */
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

/* True if `n` has voted in no election after that of held_epoch, and has no later set of voters. */
static bool hasNotVoted(const clusterMap *m, const clusterNode *n) {
    return isHeard(n) && n->links->answered_epoch <= m->held_epoch &&
           voterStampCompare(n->links->answered_voters, m->voters.stamp) <= 0;
}

/* True if the old primary, in whose place this node was elected, has voted in no later election.
 * Nodes that have not heard of the election count the old primary as the owner of the slots. If it
 * owns slots again, it votes for those, and not in the place of this node. */
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

/* True if a majority of the voters has voted in no election after that of held_epoch: so no node
 * was elected in a later one. A set of voters of a later term does not count: its members may be
 * others than those that could vote in that election. */
static bool hasMajorityNotVoted(const clusterMap *m) {
    return m->voters.stamp.term <= m->held_epoch && votersAgree(m, hasVoterNotVoted, m);
}

/* Returns a node of the shard that has not replied since askAll(); NULL: all others have. */
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
    bool on = b->server.quorum > 0;
    check(clusterNodeVotes(m->myself));
    clusterMapSetHold(m, on ? b->election.primary_id : NULL, on ? m->myself->epoch : 0);
    b->hold = (busHold){0};
    if (b->procs->holdAcks) b->procs->holdAcks(b->arg, on);
}

void busHoldAcks(clusterBus *b, int64_t hold_ms) {
    clusterMap *m = b->map;
    const clusterNode *primary = m->myself->primary;
    bool told = b->server.quorum && m->myself->flags & NODE_PRIMARY_FAILED;
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
    if (is_held && passed && (!b->server.quorum || !applies || isDecided(b))) {
        end(b);
        is_held = false;
    }
    b->procs->holdAcks(b->arg, is_held && applies);
}
