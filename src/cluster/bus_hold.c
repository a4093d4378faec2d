/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With replication-quorum: when a replica acknowledges nothing (busProcs.holdAcks).
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
 * is in the configuration file (clusterMap.held_for), as a restart changes nothing about it. */
#include "base/base.h"
#include "cluster/bus_priv.h"

static bool isHeldFor(const clusterMap *m, const clusterNode *primary) {
    return primary && memcmp(m->held_for, primary->id, NODE_ID_LEN) == 0;
}

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

/* No election has been won that counts what this node has told. */
static bool hasMajorityNotVoted(const clusterMap *m) {
    int count = 0;
    for (int i = 1; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        count += clusterNodeVotes(n) && isHeard(n) && n->links->answered_epoch <= m->held_epoch;
    }
    return count > clusterMapCountVoters(m) / 2;
}

/* Another node of the shard that was not heard; NULL: there is none. */
static const clusterNode *findUnheard(const clusterMap *m) {
    const clusterNode *primary = m->myself->primary;
    for (int i = 1; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        bool is_other = n != primary && clusterNodesShareShard(n, primary);
        if ((is_other || n->primary == primary) && !isHeard(n)) return n;
    }
    return NULL;
}

/* True if the primary is still that of the node's reports. */
static bool isDecided(clusterBus *b) {
    const clusterNode *unheard;
    if (!b->hold.asked_ms) askAll(b);
    if (hasMajorityNotVoted(b->map) || !(unheard = findUnheard(b->map))) return true;
    if (b->now_ms - b->hold.asked_ms > b->rules.timeout_ms &&
        logIsDue(&b->hold.complained_ms, b->now_ms, BUS_COMPLAINT_MS))
        logWarning("Nothing is acknowledged to the primary: node %s may have been elected instead, "
                   "and is not heard. If it is lost for good, it is to be forgotten (CLUSTER "
                   "FORGET; replication-quorum).",
                   clusterNodeLabel(unheard).text);
    return false;
}

static void end(clusterBus *b) {
    clusterMapSetHold(b->map, NULL, 0);
    b->hold = (busHold){0};
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
    bool passed = b->now_ms >= b->hold.until_ms;
    if (is_held && passed && (!b->rules.quorum || !isHeldFor(m, primary) || isDecided(b))) {
        end(b);
        is_held = false;
    }
    b->procs->holdAcks(b->arg, is_held && isHeldFor(m, primary));
}
