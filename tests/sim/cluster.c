/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of the cluster: three primaries with three replicas, or five with ten, find each
 * other, detect failures, elect new primaries, and agree on epochs, roles and owners of slots,
 * whatever the network, the clocks and operators do.
 *
 * In most runs nothing but elections changes owners, also those that operators order. Then no epoch
 * has two winners, a node votes once in an epoch, no two nodes own a slot in the same epoch, no
 * slot gets lost, and who is elected has the writes that it has confirmed. In the others replicas
 * also take over without votes, primaries take slots with a new epoch, and nodes restart with an
 * old file or without one: two nodes may own a slot for a while, and the greater epoch wins.
 *
 * Epochs never go back, over restarts as well; replicas have no slots; without faults no node is
 * suspected; after healing all maps become equal within a bound, and the datasets of replicas that
 * of their primary; a stopped node is marked as failed by all, replaced if it was a primary with a
 * replica, and not marked any more once it is back.
 */
#include <stdio.h>

#include "base/base.h"
#include "cluster_cases.h"
#include "cluster_data.h"
#include "cluster_node.h"
#include "cluster_operator.h"
#include "cluster_rules.h"
#include "sim.h"

enum {
    JOIN_MS = 60 * 1000,
    AGREE_MS = 60 * 1000,
    /* Then operators look what is to be done. */
    REPAIR_AFTER_MS = 20 * 1000,
    REPAIR_PERIOD_MS = 3 * 1000,
    REPAIR_MS = 180 * 1000,
    SERVICE_MS = 30 * 1000,
    /* A PING is sent half a timeout after the last PONG, is pending for a timeout, and reports
     * travel with PINGs. */
    DETECT_MS = 3 * SIM_NODE_TIMEOUT_MS,
    REFUSED_TIMEOUT_MS = 300,
    DETECT_REFUSED_MS = 1500,
    /* The state of a primary with slots is kept for two timeouts. */
    RETURN_MS = 6 * SIM_NODE_TIMEOUT_MS,
    /* The first election begins within a second; if votes are lost the next one four timeouts
     * later. */
    ELECT_MS = 6 * SIM_NODE_TIMEOUT_MS,
};

static bool faults;
static int primaries;

/* ------------------------------------------------------------------ faults */

static void separate(void) {
    node_counts.separations++;
    if (oneIn(2)) {
        networkPartition((uint32_t)randomUniform(1u << sim_node_count));
        int bridge = operatorAnyNode()->host; /* reaches both sides */
        for (int i = 0; i < sim_node_count && oneIn(4); i++) {
            networkBlock(bridge, i, false);
            networkBlock(i, bridge, false);
        }
    } else {
        int from = operatorAnyNode()->host, to = operatorAnyNode()->host;
        if (from != to) networkBlock(from, to, true);
    }
}

/* The clock of a host is set, by seconds or by half an hour. A node that runs does not notice. */
static void stepClock(int host) {
    int64_t most_ms = oneIn(3) ? 1800 * 1000 : 5000;
    networkSetClock(host, (int64_t)randomUniform((uint64_t)most_ms) - most_ms / 2, 0);
    node_counts.clock_steps++;
}

static void restart(simNode *n) {
    if (n->running) {
        simNodeStop(n);
        return;
    }
    if (oneIn(4)) stepClock(n->host);
    if (sim_has_seeds && oneIn(4)) simNodeMove(n);
    simFile file = SIM_FILE;
    if (!rulesAreStrict() && oneIn(6)) file = SIM_NO_FILE;
    if (!rulesAreStrict() && oneIn(6)) file = SIM_OLD_FILE;
    if (file != SIM_FILE) rulesForgetVotes(n);
    simNodeStart(n, file);
    node_counts.restarts++;
    node_counts.lost_files += file == SIM_NO_FILE;
    node_counts.old_files += file == SIM_OLD_FILE;
}

void clusterInjectFaults(void) {
    wire *w = oneIn(100) ? wireAny() : NULL;
    if (w && oneIn(2)) wireCut(w);
    if (w && oneIn(4)) wireSilence(w);
    if (w && !w->cut) wireStall(w, 6000);
    if (oneIn(300))
        networkPause(operatorAnyNode()->host, sim_now_ms + (int64_t)randomUniform(9000));
    if (oneIn(300)) separate();
    if (oneIn(250)) networkPartition(0);
    if (oneIn(200)) restart(operatorAnyNode());
}

static void reset(simNode *n) {
    if (!simNodeActs(n) || n->map.myself->slot_count) return;
    /* It may get another id, which has not voted. */
    rulesForgetVotes(n);
    operatorReset(n);
}

static void giveOrders(void) {
    if (oneIn(250)) operatorFailover(operatorAnyNode(), MANUAL_PLAIN);
    if (oneIn(400)) operatorFailover(operatorAnyNode(), MANUAL_FORCE);
    if (oneIn(400)) operatorMeet(operatorAnyNode(), operatorAnyNode());
    if (oneIn(700)) operatorReplicate(operatorAnyNode(), operatorAnyNode());
    if (faults && oneIn(900)) operatorForget(operatorAnyNode());
    if (faults && oneIn(1200)) reset(operatorAnyNode());
    if (rulesAreStrict()) return;
    if (oneIn(200)) operatorTakeSlots(operatorAnyNode());
    if (oneIn(250)) operatorFailover(operatorAnyNode(), MANUAL_TAKEOVER);
}

/* ------------------------------------------------------------------ a step */

void clusterStep(void) {
    sim_now_ms += SIM_NODE_STEP_MS;
    simNodesStep();
    rulesCheckOwners();
    wiresSweep();
}

void clusterVerify(void) {
    for (int i = 0; i < sim_node_count; i++) {
        const char *violated = sim_nodes[i].running ? clusterMapVerify(&sim_nodes[i].map) : NULL;
        if (violated) simFail("map of node %d: %s", i, violated);
    }
}

/* ------------------------------------------------------------------ agreement */

static const clusterNode *sameNode(const simNode *in, const clusterNode *n) {
    return n ? clusterMapFind(&in->map, clusterNodeId(n)) : NULL;
}

/* All nodes see what each regards as its own. As a map has one owner for a slot, no two nodes then
 * own the same. Slots that no node regards as its own are those of fixSlots(). */
static bool agreeOnSlots(void) {
    uint64_t claimed[SLOT_WORDS] = {0};
    for (int i = 0; i < sim_node_count; i++)
        for (int word = 0; word < SLOT_WORDS; word++) claimed[word] |= sim_nodes[i].map.mine[word];
    for (int i = 0; i < sim_node_count; i++) {
        const clusterMap *m = &sim_nodes[i].map;
        for (int k = 0; k < sim_node_count; k++) {
            const uint64_t *seen = clusterNodeSlots(sameNode(&sim_nodes[k], m->myself));
            for (int word = 0; word < SLOT_WORDS; word++)
                if ((seen[word] & claimed[word]) != m->mine[word]) return false;
        }
    }
    return true;
}

/* NULL if all nodes have the same picture, else what differs. */
static const char *disagreement(void) {
    const clusterMap *first = &sim_nodes[0].map;
    for (int k = 0; k < sim_node_count; k++) {
        const clusterMap *m = &sim_nodes[k].map;
        if (m->node_count != sim_node_count) return "the number of nodes";
        for (int i = 0; i < first->node_count; i++) {
            const clusterNode *a = first->nodes[i], *b = sameNode(&sim_nodes[k], a);
            const uint32_t flags = NODE_PRIMARY | NODE_REPLICA;
            if (!b || !simNodeOf(b)) return "the ids of nodes";
            if (b->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) return "whether a node works";
            if ((a->flags & flags) != (b->flags & flags)) return "the role of a node";
            if (sameNode(&sim_nodes[k], a->primary) != b->primary) return "the primary of a node";
            if (b->primary && b->primary->primary) return "the primary of a replica, which is one";
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
    for (int i = 0; i < sim_node_count; i++) {
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
        for (int i = 0; i < 25; i++) clusterStep();
    }
    checkEpochsDiffer();
    clusterVerify();
}

void clusterAgree(void) { agree(RETURN_MS + AGREE_MS); }

/* After healing: by themselves first, then with what operators do. */
static void repair(void) {
    int64_t end_ms = sim_now_ms + REPAIR_MS;
    for (int64_t t = 0; disagreement() && t < REPAIR_AFTER_MS; t += SIM_NODE_STEP_MS) clusterStep();
    const char *last = NULL, *done;
    while ((done = operatorRepair()) != NULL || disagreement()) {
        if (done) last = done;
        if (sim_now_ms > end_ms) {
            printMaps();
            simFail("the nodes do not agree on %s; operators have %s", disagreement(),
                    last ? last : "had nothing to do");
        }
        for (int64_t t = 0; t < REPAIR_PERIOD_MS; t += SIM_NODE_STEP_MS) clusterStep();
    }
    agree(AGREE_MS);
}

static bool isClaimed(int slot) {
    for (int i = 0; i < sim_node_count; i++)
        if (clusterMapIsMine(&sim_nodes[i].map, slot)) return true;
    return false;
}

/* When replicas take over one after the other, each with what it knew last, a slot may be left that
 * no node regards as its own: others have it with a node that has given it up. `valkey-cli
 * --cluster fix` gives such slots to a node. */
static void fixSlots(void) {
    bool found = false;
    simNode *to = NULL;
    for (int i = 0; i < sim_node_count && !to; i++)
        if (sim_nodes[i].map.myself->flags & NODE_PRIMARY) to = &sim_nodes[i];
    if (!to) simFail("there is no primary");
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (isClaimed(slot)) continue;
        if (rulesAreStrict()) simFail("no node regards slot %d as its own", slot);
        if (!found) (void)clusterMapBumpEpoch(&to->map); /* false: it has the greatest already */
        found = true;
        node_counts.fixed_slots++;
        clusterMapSetOwner(&to->map, slot, to->map.myself);
    }
    if (found) agree(AGREE_MS);
    for (int i = 0; i < sim_node_count; i++)
        if (sim_nodes[i].map.slots_assigned != SLOT_COUNT) simFail("node %d misses slots", i);
}

/* A node that does not serve requests, or whose data is not that of its primary; NULL: none. */
static const simNode *unusable(void) {
    for (int i = 0; i < sim_node_count; i++) {
        const simNode *n = &sim_nodes[i];
        const clusterNode *primary = n->map.myself->primary;
        if (!n->state.ok || (primary && !dataIsSame(n, simNodeOf(primary)))) return n;
    }
    return NULL;
}

void clusterAwaitService(void) {
    int64_t end_ms = sim_now_ms + SERVICE_MS;
    const simNode *n;
    while ((n = unusable()) != NULL) {
        if (sim_now_ms > end_ms) {
            printMaps();
            simFail("node %d does not %s", n->host,
                    n->state.ok ? "have the data of its primary" : "serve requests");
        }
        for (int i = 0; i < 25; i++) clusterStep();
    }
}

/* ------------------------------------------------------------------ a run */

/* Keys of a slot are with its owner only. A node that has lost its file may have some of a slot
 * that it never knew to be its own. */
static void checkKeys(void) {
    if (!rulesAreStrict()) return;
    for (int i = 0; i < sim_node_count; i++) {
        int slot = dataForeignSlot(&sim_nodes[i]);
        if (slot >= 0 && sim_nodes[i].map.myself->flags & NODE_PRIMARY)
            simFail("node %d has keys of slot %d of another node", i, slot);
    }
}

void clusterForm(int owners, int replicas, bool together) {
    primaries = owners;
    sim_node_count = owners * (1 + replicas);
    networkReset(sim_node_count + 1, 1, oneIn(2) ? 2 : 1 + (int64_t)randomUniform(100));
    dataReset();
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        /* Clocks differ by minutes. */
        networkSetClock(i, oneIn(2) ? 0 : (int64_t)randomUniform(600000) - 300000, 0);
        simNodeInit(n, i);
        if (i > 0) operatorMeet(n, &sim_nodes[0]);
        for (int slot = 0; i < primaries && slot < SLOT_COUNT; slot++)
            if (slot * primaries / SLOT_COUNT == i)
                clusterMapSetOwner(&n->map, slot, n->map.myself);
    }
    agree(JOIN_MS);
    for (int i = primaries; i < sim_node_count; i++)
        operatorReplicate(&sim_nodes[i], &sim_nodes[together ? 0 : i % primaries]);
    agree(AGREE_MS);
    clusterAwaitService();
}

static void begin(void) {
    sim_now_ms = 1700000000000;
    bool large = oneIn(10);
    clusterForm(large ? 5 : 3, large ? 2 : 1, oneIn(3)); /* together: votes are split */
}

static void heal(void) {
    networkHeal();
    for (int i = 0; i < sim_node_count; i++)
        if (!sim_nodes[i].running) simNodeStart(&sim_nodes[i], SIM_FILE);
}

static bool areAllClaimed(void) {
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (!isClaimed(slot)) return false;
    return true;
}

/* A slot that is being moved key by key may be without an owner for the time of a few messages: its
 * source has given it up, and the target, which had taken it with a smaller epoch, takes it again
 * when it hears that. */
static void awaitClaims(void) {
    int64_t end_ms = sim_now_ms + AGREE_MS;
    if (areAllClaimed()) return;
    while (!areAllClaimed() && sim_now_ms < end_ms) clusterStep();
    agree(AGREE_MS);
}

static void healNodes(void) {
    heal();
    repair();
    awaitClaims();
    fixSlots();
    clusterAwaitService();
}

static bool allKnowAll(void) {
    for (int i = 0; i < sim_node_count; i++)
        if (sim_nodes[i].map.node_count != sim_node_count) return false;
    return true;
}

/* The times that follow are those of a network that works. Messages that were delayed arrive now:
 * one that tells of a FORGET removes a node that operators have met again since, so they do that
 * once more. */
static void healWires(void) {
    wiresHeal();
    for (int i = 0; i < 50; i++) clusterStep();
    if (!allKnowAll()) repair();
}

void clusterHeal(void) {
    healNodes();
    healWires();
}

/* Whether all others have marked a node as failed and, if `replaced`, know another owner of its
 * slots. */
static bool isGone(const clusterNode *n, int except, bool replaced) {
    for (int i = 0; i < sim_node_count; i++) {
        const clusterNode *seen = i == except ? NULL : sameNode(&sim_nodes[i], n);
        if (!seen) continue;
        if (!(seen->flags & NODE_FAILED) || (replaced && seen->slot_count)) return false;
    }
    return true;
}

bool clusterHasCurrentReplica(const clusterNode *primary) {
    for (int i = 0; i < primary->replica_count; i++) {
        int64_t age_ms = dataAge(simNodeOf(primary->replicas[i]));
        if (age_ms >= 0 && age_ms < SIM_NODE_TIMEOUT_MS) return true;
    }
    return false;
}

/* A stopped node is found by all, if the majority is left, and a primary is replaced. */
static void failOne(void) {
    simNode *n = operatorAnyNode();
    bool voted = clusterNodeVotes(n->map.myself),
         replaced = voted && clusterHasCurrentReplica(n->map.myself);
    int voters = clusterMapCountVoters(&n->map);
    if (voters - voted < voters / 2 + 1) return;
    clusterNode gone = *n->map.myself;
    simNodeStop(n);
    int64_t bound_ms = sim_refused_timeout_ms ? DETECT_REFUSED_MS : DETECT_MS;
    int64_t end_ms = sim_now_ms + bound_ms + (replaced ? ELECT_MS : 0);
    while (!isGone(&gone, n->host, replaced)) {
        if (sim_now_ms > end_ms) {
            printMaps();
            simFail("node %d is stopped, and not marked as failed%s", n->host,
                    replaced ? " or not replaced" : "");
        }
        clusterStep();
    }
    node_counts.failures_found++;
    simNodeStart(n, SIM_FILE);
    clusterAgree();
    if (replaced && n->map.myself->flags & NODE_PRIMARY)
        simFail("node %d was replaced, and follows nobody", n->host);
}

/* All nodes restart with new addresses, within less than a timeout. They have found each other 1.5
 * timeouts after the last start, or as much later as their messages may wait for saves, and have
 * not replaced anybody. */
static void moveAll(void) {
    for (int i = 0; i < sim_node_count; i++) simNodeStop(&sim_nodes[i]);
    bool swap = oneIn(2);
    if (swap) simNodesSwap();
    for (int i = 0; i < sim_node_count && !swap; i++) simNodeMove(&sim_nodes[i]);
    for (int i = 0, left = sim_node_count; left; i = (i + 1) % sim_node_count) {
        if (sim_nodes[i].running || oneIn(2)) continue;
        simNodeStart(&sim_nodes[i], SIM_FILE);
        left--;
        int64_t pause_ms = (int64_t)randomUniform(SIM_NODE_TIMEOUT_MS * 3 / 4) / sim_node_count;
        for (int64_t t = 0; t < pause_ms; t += SIM_NODE_STEP_MS) clusterStep();
    }
    int64_t end_ms = sim_now_ms + SIM_NODE_TIMEOUT_MS * 3 / 2;
    if (sim_slow_saves) end_ms += 2 * SIM_SAVE_MAX_MS;
    const simNode *n = NULL;
    while ((n = unusable()) != NULL || disagreement()) {
        if (sim_now_ms > end_ms) {
            printMaps();
            simFail("after a restart with new addresses the nodes %s",
                    disagreement() ? disagreement() : "do not serve requests");
        }
        clusterStep();
    }
}

static void chooseRules(void) {
    faults = !oneIn(4);
    rulesReset(!oneIn(3));
    sim_replica_migration = oneIn(2);
    sim_has_seeds = oneIn(2);
    sim_full_percent = oneIn(2) ? 0 : oneIn(4) ? 100 : 30;
    sim_refused_timeout_ms = oneIn(4) ? REFUSED_TIMEOUT_MS : 0;
}

static void run(void) {
    chooseRules();
    begin();
    int steps = 300 + (int)randomUniform(3000);
    for (int i = 0; i < steps; i++) {
        if (faults) clusterInjectFaults();
        giveOrders();
        if (oneIn(8)) dataWrite(operatorAnyNode());
        clusterStep();
        if (i % 500 == 0) clusterVerify();
    }
    for (int i = 0; i < sim_node_count && !faults; i++)
        if (sim_nodes[i].failed_seen) simFail("node %d has suspected one that works", i);
    healNodes();
    checkKeys();
    healWires();
    if (oneIn(2)) casesRun();
    failOne();
    if (sim_has_seeds && sim_refused_timeout_ms == 0) moveAll();
    for (int i = 0; i < sim_node_count; i++) simNodeClear(&sim_nodes[i]);
    networkReset(0, 0, 0);
}

static void print(const char *what, uint64_t count) {
    printf(", %llu %s", (unsigned long long)count, what);
}

static void report(void) {
    const simNodeCounts *c = &node_counts;
    printf("%llu messages (%llu MB)", (unsigned long long)c->messages,
           (unsigned long long)c->bytes >> 20);
    print("short", c->short_messages);
    print("UPDATE", c->updates);
    print("FAIL", c->fails);
    print("links", c->links);
    print("restarts", c->restarts);
    print("without a file", c->lost_files);
    print("with an old file", c->old_files);
    print("separations", c->separations);
    print("clocks set", c->clock_steps);
    print("elections won", c->wins);
    print("votes", c->votes);
    print("votes refused", c->refusals);
    print("orders to fail over", c->orders);
    print("takeovers", c->takeovers);
    print("MEET", c->meets);
    print("FORGET", c->forgets);
    print("RESET", c->resets);
    print("moves of slots", c->moves);
    print("slots fixed", c->fixed_slots);
    print("writes", c->writes);
    print("synchronisations", c->syncs);
    print("stopped nodes found", c->failures_found);
    print("new addresses", c->new_addresses);
    print("addresses tried", c->probes);
    print("slow saves", c->slow_saves);
    print("saves lost", c->lost_saves);
    printf("\n");
}

const simScenario clusterScenario = {.name = "cluster", .run = run, .report = report};
