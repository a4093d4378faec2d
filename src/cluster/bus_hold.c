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
 *   and voters keep the epoch in which they have voted.
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
 * - A majority of the voters, itself not included, has no greater epoch than that of the election:
 *   they have voted in no later one, and now know an owner of the slots with a greater epoch than
 *   others could claim. The old primary counts for the place that this node has now.
 * - Each node of the shard but the old primary follows this one: none was elected, and none will
 *   be that lacks what it has. */
#include "base/base.h"
#include "cluster/bus_priv.h"

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

/* No election has been won that counts what this node has told; or, of a winner, none after its
 * own. */
static bool hasMajorityNotVoted(const clusterMap *m) {
    int count = 0;
    for (int i = 1; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        bool counts = clusterNodeVotes(n) || (isWinner(m) && isHeldFor(m, n));
        count += counts && isHeard(n) && n->links->answered_epoch <= m->held_epoch;
    }
    return count > clusterMapCountVoters(m) / 2;
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
