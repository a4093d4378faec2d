/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of the cluster: three primaries and three replicas find each other, detect failures,
 * elect new primaries, and agree on epochs, roles and owners of slots, whatever the network does.
 *
 * In most runs nothing but elections changes owners. Then no epoch has two winners, a node votes
 * once in an epoch, no two nodes own a slot in the same epoch, and no slot gets lost. In the others
 * replicas also take over without votes, and primaries take slots with a new epoch, as CLUSTER
 * FAILOVER TAKEOVER and the end of a slot migration do: two nodes may own a slot for a while, and
 * the greater epoch wins.
 *
 * Epochs never go back, over restarts as well; replicas have no slots; without faults no node is
 * suspected; after healing all maps become equal within a bound, a stopped node is marked as failed
 * by all, replaced if it was a primary with a replica, and not marked any more once it is back.
 */
#include <stdio.h>

#include "base/base.h"
#include "cluster_node.h"
#include "sim.h"

enum {
    PRIMARIES = 3,
    JOIN_MS = 60 * 1000,
    AGREE_MS = 60 * 1000,
    /* A PING is sent half a timeout after the last PONG, is pending for a timeout, and reports
     * travel with PINGs. */
    DETECT_MS = 3 * SIM_NODE_TIMEOUT_MS,
    /* The state of a primary with slots is kept for two timeouts. */
    RETURN_MS = 6 * SIM_NODE_TIMEOUT_MS,
    /* The first election begins within a second; if votes are lost the next one four timeouts
     * later. */
    ELECT_MS = 6 * SIM_NODE_TIMEOUT_MS,
};

enum { EPOCHS_MAX = 4096 };

static bool faults, votes_only;
static int winner_of[EPOCHS_MAX]; /* by epoch: host + 1 */
static uint64_t voted_in[SIM_NODES][EPOCHS_MAX / 64];

void simNodeVoted(const simNode *voter, uint64_t epoch) {
    if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
    uint64_t *word = &voted_in[voter->host][epoch / 64], bit = UINT64_C(1) << epoch % 64;
    if (*word & bit)
        simFail("node %d has voted twice in epoch %llu", voter->host, (unsigned long long)epoch);
    *word |= bit;
    node_counts.votes++;
}

void simNodeWon(const simNode *winner, uint64_t epoch) {
    if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
    if (winner_of[epoch])
        simFail("nodes %d and %d have won epoch %llu", winner_of[epoch] - 1, winner->host,
                (unsigned long long)epoch);
    winner_of[epoch] = winner->host + 1;
    node_counts.wins++;
}

static simNode *anyNode(void) { return &sim_nodes[randomUniform(SIM_NODES)]; }

/* ------------------------------------------------------------------ what operators do */

static void takeSlots(simNode *n) {
    if (!n->running || networkIsPaused(n->host) || !(n->map.myself->flags & NODE_PRIMARY)) return;
    int first = (int)randomUniform(SLOT_COUNT),
        count = 1 + (int)randomUniform(oneIn(3) ? 6000 : 50);
    (void)clusterMapBumpEpoch(&n->map); /* false: it has the greatest already */
    for (int slot = first; slot < first + count && slot < SLOT_COUNT; slot++)
        clusterMapSetOwner(&n->map, slot, n->map.myself);
    node_counts.moves++;
    simNodeStep(n);
}

static void takeOver(simNode *n) {
    if (!n->running || networkIsPaused(n->host)) return;
    node_counts.takeovers += topologyTakeOver(&n->map);
    simNodeStep(n);
}

/* ------------------------------------------------------------------ faults */

static void separate(void) {
    node_counts.separations++;
    if (oneIn(2)) {
        networkPartition((uint32_t)randomUniform(1u << SIM_NODES));
    } else {
        int from = (int)randomUniform(SIM_NODES), to = (int)randomUniform(SIM_NODES);
        if (from != to) networkBlock(from, to, true);
    }
}

static void restart(simNode *n) {
    if (n->running) {
        simNodeStop(n);
    } else {
        simNodeStart(n);
        node_counts.restarts++;
    }
}

static void injectFaults(void) {
    wire *w = oneIn(100) ? wireAny() : NULL;
    if (w && oneIn(2)) wireCut(w);
    if (w && !w->cut) wireStall(w, 6000);
    if (oneIn(300)) networkPause(anyNode()->host, sim_now_ms + (int64_t)randomUniform(9000));
    if (oneIn(300)) separate();
    if (oneIn(250)) networkPartition(0);
    if (oneIn(200)) restart(anyNode());
}

/* ------------------------------------------------------------------ a run */

/* No two nodes own a slot in the same epoch. */
static void checkOwners(void) {
    for (int i = 0; i < SIM_NODES; i++) {
        for (int k = 0; k < i; k++) {
            const clusterMap *a = &sim_nodes[i].map, *b = &sim_nodes[k].map;
            if (!sim_nodes[i].running || !sim_nodes[k].running) continue;
            if (a->myself->epoch != b->myself->epoch) continue;
            for (int word = 0; word < SLOT_WORDS; word++)
                if (a->mine[word] & b->mine[word])
                    simFail("nodes %d and %d own a slot in epoch %llu", k, i,
                            (unsigned long long)a->myself->epoch);
        }
    }
}

static void step(void) {
    sim_now_ms += SIM_NODE_STEP_MS;
    for (int i = 0; i < SIM_NODES; i++) simNodeStep(&sim_nodes[i]);
    if (votes_only) checkOwners();
    wiresSweep();
}

static void verifyMaps(void) {
    for (int i = 0; i < SIM_NODES; i++) {
        const char *violated = sim_nodes[i].running ? clusterMapVerify(&sim_nodes[i].map) : NULL;
        if (violated) simFail("map of node %d: %s", i, violated);
    }
}

static const clusterNode *sameNode(const simNode *in, const clusterNode *n) {
    return n ? clusterMapFind(&in->map, clusterNodeId(n)) : NULL;
}

/* The host whose node regards a slot as its own; -1: none, -2: several do. */
static int claimantOf(int slot) {
    int found = -1;
    for (int i = 0; i < SIM_NODES; i++) {
        if (clusterMapIsMine(&sim_nodes[i].map, slot)) found = found == -1 ? i : -2;
    }
    return found;
}

static bool agreeOnSlots(void) {
    const clusterNode *seen[SIM_NODES][SIM_NODES]; /* by one host: the node of another */
    for (int i = 0; i < SIM_NODES; i++)
        for (int k = 0; k < SIM_NODES; k++)
            seen[i][k] = sameNode(&sim_nodes[i], sim_nodes[k].map.myself);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        int claimant = claimantOf(slot);
        if (claimant == -2) return false;
        for (int i = 0; i < SIM_NODES && claimant >= 0; i++)
            if (clusterMapOwner(&sim_nodes[i].map, slot) != seen[i][claimant]) return false;
    }
    return true;
}

/* NULL if all nodes have the same picture, else what differs. */
static const char *disagreement(void) {
    const clusterMap *first = &sim_nodes[0].map;
    for (int k = 0; k < SIM_NODES; k++) {
        const clusterMap *m = &sim_nodes[k].map;
        if (m->node_count != SIM_NODES) return "the number of nodes";
        for (int i = 0; i < first->node_count; i++) {
            const clusterNode *a = first->nodes[i], *b = sameNode(&sim_nodes[k], a);
            const uint32_t flags = NODE_PRIMARY | NODE_REPLICA;
            if (!b) return "the ids of nodes";
            if (b->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) return "whether a node works";
            if ((a->flags & flags) != (b->flags & flags)) return "the role of a node";
            if (sameNode(&sim_nodes[k], a->primary) != b->primary) return "the primary of a node";
            if (a->flags & NODE_PRIMARY && a->epoch != b->epoch) return "the epoch of a primary";
            if (!clusterNodesShareShard(a, b)) return "the shard of a node";
        }
    }
    return agreeOnSlots() ? NULL : "the owner of a slot";
}

static void checkEpochsDiffer(void) {
    const clusterMap *m = &sim_nodes[0].map;
    for (int i = 0; i < m->node_count; i++)
        for (int k = 0; k < i; k++)
            if (m->nodes[i]->flags & m->nodes[k]->flags & NODE_PRIMARY &&
                m->nodes[i]->epoch == m->nodes[k]->epoch)
                simFail("two primaries have epoch %llu", (unsigned long long)m->nodes[i]->epoch);
}

static void printMaps(void) {
    for (int i = 0; i < SIM_NODES; i++) {
        str text = STR_EMPTY;
        clusterMapPrint(&sim_nodes[i].map, false, &text);
        printf("node %d:\n%s", i, strText(&text));
        strFree(&text);
    }
}

static void agree(int64_t bound_ms) {
    const char *differs;
    int64_t end_ms = sim_now_ms + bound_ms;
    while ((differs = disagreement()) != NULL) {
        if (sim_now_ms > end_ms) {
            printMaps();
            simFail("the nodes do not agree on %s", differs);
        }
        for (int i = 0; i < 25; i++) step();
    }
    checkEpochsDiffer();
    verifyMaps();
}

/* When replicas take over one after the other, each with what it knew last, a slot may be left that
 * no node regards as its own: others have it with a node that has given it up. `valkey-cli
 * --cluster fix` gives such slots to a node. */
static void fixSlots(void) {
    bool found = false;
    simNode *to = NULL;
    for (int i = 0; i < SIM_NODES && !to; i++)
        if (sim_nodes[i].map.myself->flags & NODE_PRIMARY) to = &sim_nodes[i];
    if (!to) simFail("there is no primary");
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (claimantOf(slot) != -1) continue;
        if (votes_only) simFail("no node regards slot %d as its own", slot);
        if (!found) (void)clusterMapBumpEpoch(&to->map); /* false: it has the greatest already */
        found = true;
        node_counts.fixed_slots++;
        clusterMapSetOwner(&to->map, slot, to->map.myself);
    }
    if (found) agree(AGREE_MS);
    for (int i = 0; i < SIM_NODES; i++)
        if (sim_nodes[i].map.slots_assigned != SLOT_COUNT) simFail("node %d misses slots", i);
}

/* Nodes introduce themselves to the first one, and learn of each other by gossip. */
static void begin(void) {
    sim_now_ms = 1700000000000;
    networkReset(SIM_NODES, 1, oneIn(2) ? 2 : 1 + (int64_t)randomUniform(100));
    for (int i = 0; i < SIM_NODES; i++) {
        simNode *n = &sim_nodes[i];
        /* Clocks differ by minutes, and run differently. */
        networkSetClock(i, oneIn(2) ? 0 : (int64_t)randomUniform(600000) - 300000,
                        (int64_t)randomUniform(400) - 200);
        simNodeInit(n, i);
        if (i > 0) simNodeMeet(n, &sim_nodes[0]);
        for (int slot = 0; i < PRIMARIES && slot < SLOT_COUNT; slot++)
            if (slot * PRIMARIES / SLOT_COUNT == i)
                clusterMapSetOwner(&n->map, slot, n->map.myself);
    }
    agree(JOIN_MS);
    bool together = oneIn(3); /* all replicas of one primary, so that votes are split */
    for (int i = PRIMARIES; i < SIM_NODES; i++) {
        simNode *n = &sim_nodes[i];
        const clusterMap *of = &sim_nodes[together ? 0 : i - PRIMARIES].map;
        topologyFollow(&n->map, clusterMapFind(&n->map, clusterNodeId(of->myself)));
    }
    agree(AGREE_MS);
}

static void heal(void) {
    networkHeal();
    for (int i = 0; i < SIM_NODES; i++)
        if (!sim_nodes[i].running) simNodeStart(&sim_nodes[i]);
}

/* Whether all others have marked a node as failed and, if `replaced`, know another owner of its
 * slots. */
static bool isGone(const clusterNode *n, int except, bool replaced) {
    for (int i = 0; i < SIM_NODES; i++) {
        const clusterNode *seen = i == except ? NULL : sameNode(&sim_nodes[i], n);
        if (!seen) continue;
        if (!(seen->flags & NODE_FAILED) || (replaced && seen->slot_count)) return false;
    }
    return true;
}

/* A stopped node is found by all, if the majority is left, and a primary is replaced. */
static void failOne(void) {
    int host = (int)randomUniform(SIM_NODES);
    simNode *n = &sim_nodes[host];
    bool voted = clusterNodeVotes(n->map.myself), replaced = voted && n->map.myself->replica_count;
    int voters = clusterMapCountVoters(&n->map);
    if (voters - voted < voters / 2 + 1) return;
    const clusterNode *seen = sameNode(&sim_nodes[(host + 1) % SIM_NODES], n->map.myself);
    simNodeStop(n);
    int64_t bound_ms = DETECT_MS + (replaced ? ELECT_MS : 0);
    for (int64_t end_ms = sim_now_ms + bound_ms; !isGone(seen, host, replaced); step())
        if (sim_now_ms > end_ms)
            simFail("node %d is stopped, and not marked or not replaced", host);
    node_counts.failures_found++;
    simNodeStart(n);
    agree(RETURN_MS + AGREE_MS);
}

static void run(void) {
    faults = !oneIn(4);
    votes_only = !oneIn(3);
    memset(winner_of, 0, sizeof(winner_of));
    memset(voted_in, 0, sizeof(voted_in));
    begin();
    int steps = 300 + (int)randomUniform(3000);
    for (int i = 0; i < steps; i++) {
        if (faults) injectFaults();
        if (!votes_only && oneIn(200)) takeSlots(anyNode());
        if (!votes_only && oneIn(250)) takeOver(anyNode());
        step();
        if (i % 500 == 0) verifyMaps();
    }
    for (int i = 0; i < SIM_NODES && !faults; i++)
        if (sim_nodes[i].failed_seen) simFail("node %d has suspected one that works", i);
    heal();
    agree(AGREE_MS);
    fixSlots();
    failOne();
    for (int i = 0; i < SIM_NODES; i++) simNodeClear(&sim_nodes[i]);
    networkReset(0, 0, 0);
}

static void report(void) {
    const simNodeCounts *c = &node_counts;
    printf(
        "%llu messages (%llu MB), %llu UPDATE, %llu FAIL, %llu links, %llu restarts, %llu takeovers, %llu elections (%llu won, %llu votes), "
        "%llu moves of slots (%llu slots fixed), %llu separations, %llu stopped nodes found\n",
        (unsigned long long)c->messages, (unsigned long long)c->bytes >> 20,
        (unsigned long long)c->updates, (unsigned long long)c->fails, (unsigned long long)c->links,
        (unsigned long long)c->restarts, (unsigned long long)c->takeovers,
        (unsigned long long)c->elections, (unsigned long long)c->wins, (unsigned long long)c->votes,
        (unsigned long long)c->moves, (unsigned long long)c->fixed_slots,
        (unsigned long long)c->separations, (unsigned long long)c->failures_found);
}

const simScenario clusterScenario = {.name = "cluster", .run = run, .report = report};
