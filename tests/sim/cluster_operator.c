/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_operator.h"

#include "base/base.h"
#include "cluster_data.h"
#include "cluster_rules.h"
#include "cluster_voter_rules.h"
#include "sim.h"

simNode *operatorAnyNode(void) { return &sim_nodes[randomUniform((uint64_t)sim_node_count)]; }

static clusterNode *seenBy(const simNode *n, const simNode *other) {
    return clusterMapFind(&n->map, clusterNodeId(other->map.myself));
}

void operatorMeet(simNode *n, const simNode *other) {
    if (!simNodeActs(n) || !other->running || n == other) return;
    node_counts.meets +=
        busMeet(&n->bus, SLICE("127.0.0.1"), 7000 + other->host, other->bus_port, simNodeClock(n));
    simNodeFinish(n);
}

void operatorReplicate(simNode *n, const simNode *primary) {
    if (!simNodeActs(n) || !primary->running || n == primary) return;
    clusterNode *seen = seenBy(n, primary), *myself = n->map.myself;
    if (!seen || seen->flags & (NODE_REPLICA | NODE_HANDSHAKE) || seen == myself->primary) return;
    if (myself->flags & NODE_PRIMARY && myself->slot_count) return;
    n->has_order = true;
    busFollow(&n->bus, seen, simNodeClock(n));
    n->has_order = false;
    simNodeFinish(n);
}

void operatorFailover(simNode *n, manualOrder order) {
    if (!simNodeActs(n)) return;
    /* An operator who forces a replica without data loses all keys, and knows it. */
    if (order != MANUAL_PLAIN && n->data.version == VERSION_NONE) return;
    const clusterNode *primary = n->map.myself->primary;
    const simNode *from = primary ? simNodeOf(primary) : NULL;
    n->by_takeover = order == MANUAL_TAKEOVER;
    if (busFailover(&n->bus, order, SLICE("operator"), simNodeClock(n)) == NULL) {
        node_counts.orders++;
        n->ordered_ms = sim_now_ms;
        n->ordered_from = order == MANUAL_PLAIN && from ? from->host : -1;
    }
    n->by_takeover = false;
    simNodeFinish(n);
}

void operatorForget(simNode *n) {
    if (!simNodeActs(n) || n->map.node_count < 2) return;
    clusterNode *gone = n->map.nodes[1 + randomUniform((uint64_t)n->map.node_count - 1)];
    if (clusterNodeVotes(gone) || gone == n->map.myself->primary) return;
    node_counts.forgets++;
    busForget(&n->bus, gone, simNodeClock(n));
    simNodeFinish(n);
}

void operatorReset(simNode *n) {
    if (!simNodeActs(n) || n->map.myself->slot_count) return;
    bool hard = oneIn(2);
    node_counts.resets++;
    dataInit(n);
    busReset(&n->bus, hard);
    if (hard) n->epochs = n->saved_epochs = (simEpochs){.current = 0};
    simNodeFinish(n);
}

void operatorResetMember(simNode *n) {
    if (!simNodeActs(n) || n->map.myself->slot_count) return;
    char old_id[NODE_ID_LEN];
    memcpy(old_id, n->map.myself->id, NODE_ID_LEN);
    voterRulesForget(n); /* the set; its votes only with the id */
    operatorReset(n);
    rulesRename(n, old_id);
}

void operatorTakeSlots(simNode *n) {
    if (!simNodeActs(n) || !(n->map.myself->flags & NODE_PRIMARY)) return;
    int first = (int)randomUniform(SLOT_COUNT),
        count = 1 + (int)randomUniform(oneIn(3) ? 6000 : 50);
    (void)clusterMapBumpEpoch(&n->map); /* false: it has the greatest already */
    for (int slot = first; slot < first + count && slot < SLOT_COUNT; slot++)
        clusterMapSetOwner(&n->map, slot, n->map.myself);
    node_counts.moves++;
    simNodeFinish(n);
}

/* ------------------------------------------------------------------ repair */

/* The first node that has slots: what the cluster is. */
static simNode *firstOwner(void) {
    for (int i = 0; i < sim_node_count; i++)
        if (clusterNodeVotes(sim_nodes[i].map.myself)) return &sim_nodes[i];
    return NULL;
}

static const char *meetUnknown(simNode *first) {
    const char *done = NULL;
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        if (n == first || (seenBy(first, n) && seenBy(n, first))) continue;
        operatorMeet(first, n);
        done = "met nodes";
    }
    return done;
}

/* Ids that no server has any more. */
static const char *forgetIds(void) {
    const char *done = NULL;
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        for (int k = n->map.node_count - 1; k > 0; k--) {
            clusterNode *node = n->map.nodes[k];
            if (node->flags & NODE_HANDSHAKE || simNodeOf(node)) continue;
            if (node == n->map.myself->primary && rulesAreStrict()) {
                operatorResetMember(n); /* it was reset, and so has a successor elsewhere */
                return "reset a replica";
            }
            if (node == n->map.myself->primary) {
                if (n->data.version == VERSION_NONE) dataInit(n); /* it is lost */
                operatorFailover(n, MANUAL_TAKEOVER);
            }
            if (node == n->map.myself->primary) continue;
            node_counts.forgets++;
            busForget(&n->bus, node, simNodeClock(n));
            done = "forgot nodes";
            k = n->map.node_count;
        }
        simNodeFinish(n);
    }
    return done;
}

/* Of the owners of slots, as the first one sees them, that with the fewest replicas. */
static simNode *poorest(const simNode *first) {
    const clusterNode *found = NULL;
    for (int i = 0; i < first->map.node_count; i++) {
        const clusterNode *n = first->map.nodes[i];
        if (!clusterNodeVotes(n) || !simNodeOf(n)) continue;
        if (!found || n->replica_count < found->replica_count) found = n;
    }
    return found ? simNodeOf(found) : NULL;
}

/* An empty primary becomes a replica, one at a time. */
static const char *useEmpty(const simNode *first) {
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i], *to = poorest(first);
        const clusterNode *myself = n->map.myself, *seen = seenBy(first, n);
        if (myself->slot_count || myself->primary || !to || !seen || seen->slot_count) continue;
        operatorReplicate(n, to);
        return "gave replicas to primaries";
    }
    return NULL;
}

static bool exists(const char id[NODE_ID_LEN]) {
    for (int i = 0; i < sim_node_count; i++)
        if (sim_nodes[i].running && !memcmp(sim_nodes[i].map.myself->id, id, NODE_ID_LEN))
            return true;
    return false;
}

/* A majority of the voters was forgotten or reset: nothing but TAKEOVER ends that. */
static const char *replaceVoters(void) {
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        const voterSet *set = &n->map.voters;
        const clusterNode *primary = n->map.myself->primary;
        int left = 0;
        for (int k = 0; k < set->count; k++) left += exists(set->ids[k]);
        if (left >= set->count / 2 + 1 || set->rule == VOTERS_OWNERS) continue;
        if (!primary || !simNodeOf(primary) || !dataIsSame(n, simNodeOf(primary))) continue;
        operatorFailover(n, MANUAL_TAKEOVER);
        return "replaced lost voters";
    }
    return NULL;
}

const char *operatorRepair(void) {
    simNode *first = firstOwner();
    if (!first) return NULL;
    const char *done = forgetIds();
    if (!done) done = meetUnknown(first);
    if (!done) done = useEmpty(first);
    if (!done) done = replaceVoters();
    return done;
}
