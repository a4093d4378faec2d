/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of cluster-replicas-vote: one to three primaries and their replicas, in most runs
 * too few primaries for a majority without one of them. Nodes switch the directive on and off, also
 * by restarts; operators forget, reset and meet nodes meanwhile. No epoch has two winners, a node
 * votes once in an epoch, all nodes have the same set of one age, and at no moment two majorities
 * could exist. After healing all nodes vote if all have the directive; then a stopped primary is
 * replaced. */
#include <stdio.h>

#include "base/base.h"
#include "cluster_cases.h"
#include "cluster_data.h"
#include "cluster_operator.h"
#include "cluster_rules.h"
#include "cluster_voter_rules.h"
#include "sim.h"

enum {
    SETTLE_MS = 60 * 1000,
    DETECT_MS = 3 * SIM_NODE_TIMEOUT_MS,
    ELECT_MS = 12 * SIM_NODE_TIMEOUT_MS, /* votes may be split */
};

static bool faults;

static void giveOrders(void) {
    if (oneIn(400)) operatorFailover(operatorAnyNode(), MANUAL_PLAIN);
    if (oneIn(600)) operatorFailover(operatorAnyNode(), MANUAL_FORCE);
    if (oneIn(400)) operatorMeet(operatorAnyNode(), operatorAnyNode());
    if (oneIn(900)) operatorReplicate(operatorAnyNode(), operatorAnyNode());
    if (!faults) return;
    if (oneIn(600)) operatorForget(operatorAnyNode());
    if (oneIn(1500)) operatorResetMember(operatorAnyNode());
}

/* All nodes have the last set, and it is that of all nodes; or the rule of Valkey. */
static bool isSettled(bool all_vote) {
    const voterSet *set = &sim_nodes[0].map.voters;
    for (int i = 0; i < sim_node_count; i++) {
        const voterSet *other = &sim_nodes[i].map.voters;
        if (other->rule != (all_vote ? VOTERS_ALL : VOTERS_OWNERS)) return false;
        if (all_vote && other->count != sim_node_count) return false;
        if (all_vote && !votersHas(set, sim_nodes[i].map.myself->id)) return false;
        if (all_vote && voterStampCompare(other->stamp, set->stamp)) return false;
    }
    return true;
}

static void settle(bool all_vote) {
    int64_t end_ms = sim_now_ms + SETTLE_MS;
    while (!isSettled(all_vote)) {
        if (sim_now_ms > end_ms) {
            const voterSet *set = &sim_nodes[0].map.voters;
            simFail("%s, but node 0 has set %llu.%u, rule %d, of %d members",
                    all_vote ? "all nodes are to vote" : "not all nodes vote",
                    (unsigned long long)set->stamp.term, set->stamp.version, (int)set->rule,
                    set->count);
        }
        clusterStep();
    }
}

static void restartAll(int percent) {
    sim_voting_percent = percent;
    for (int i = 0; i < sim_node_count; i++) {
        simNodeStop(&sim_nodes[i]);
        simNodeStart(&sim_nodes[i], SIM_FILE);
        for (int k = 0; k < 20; k++) clusterStep();
    }
}

static bool isReplaced(const char id[NODE_ID_LEN], const simNode *gone) {
    for (int i = 0; i < sim_node_count; i++) {
        if (&sim_nodes[i] == gone) continue;
        const clusterNode *seen = clusterMapFind(&sim_nodes[i].map, sliceMake(id, NODE_ID_LEN));
        if (seen && seen->slot_count) return false;
        if (!sim_nodes[i].state.ok) return false;
    }
    return true;
}

/* Without one of the primaries a majority is left, as replicas vote. */
static void failPrimary(void) {
    simNode *n = operatorAnyNode();
    for (int i = 0; i < 10 && !clusterNodeVotes(n->map.myself); i++) n = operatorAnyNode();
    if (!clusterNodeVotes(n->map.myself) || !clusterHasCurrentReplica(n->map.myself)) return;
    char id[NODE_ID_LEN];
    memcpy(id, n->map.myself->id, NODE_ID_LEN);
    simNodeStop(n);
    int64_t end_ms = sim_now_ms + DETECT_MS + ELECT_MS;
    while (!isReplaced(id, n)) {
        if (sim_now_ms > end_ms) simFail("primary %d is stopped and not replaced", n->host);
        clusterStep();
    }
    node_counts.failures_found++;
    simNodeStart(n, SIM_FILE);
    clusterAgree();
    clusterAwaitService();
}

static void form(void) {
    static const int shapes[][2] = {{1, 2}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}, {3, 1}};
    const int *shape = shapes[randomUniform(COUNT_OF(shapes))];
    sim_now_ms = 1700000000000;
    clusterForm(shape[0], shape[1], false);
}

static void run(void) {
    faults = !oneIn(6);
    rulesReset(true);
    sim_replica_migration = oneIn(2);
    sim_has_seeds = false;
    sim_full_percent = oneIn(2) ? 0 : 30;
    sim_refused_timeout_ms = oneIn(4) ? 300 : 0;
    bool changes = oneIn(3);
    sim_voting_percent = 100;
    form();
    int steps = 500 + (int)randomUniform(4000);
    for (int i = 0; i < steps; i++) {
        if (changes && oneIn(500)) sim_voting_percent = (int)randomUniform(3) * 50;
        if (changes && oneIn(400)) simNodeChooseVote(operatorAnyNode());
        if (faults) clusterInjectFaults();
        giveOrders();
        if (oneIn(8)) dataWrite(operatorAnyNode());
        clusterStep();
        if (i % 500 == 0) clusterVerify();
    }
    sim_voting_percent = 100;
    clusterHeal();
    restartAll(100);
    clusterAgree();
    settle(true);
    clusterAwaitService();
    if (sim_node_count >= 3) failPrimary();
    if (oneIn(3)) {
        if (oneIn(2)) {
            sim_voting_percent = 0;
            for (int i = 0; i < sim_node_count; i++) simNodeChooseVote(&sim_nodes[i]);
        } else {
            restartAll(0);
        }
        clusterAgree();
        settle(false);
    }
    for (int i = 0; i < sim_node_count; i++) simNodeClear(&sim_nodes[i]);
    networkReset(0, 0, 0);
    sim_voting_percent = 0;
}

static void print(const char *what, uint64_t count) {
    printf(", %llu %s", (unsigned long long)count, what);
}

static void report(void) {
    const simNodeCounts *c = &node_counts;
    printf("%llu sets of voters", (unsigned long long)c->voter_sets);
    print("elections won", c->wins);
    print("votes", c->votes);
    print("FAIL", c->fails);
    print("restarts", c->restarts);
    print("separations", c->separations);
    print("FORGET", c->forgets);
    print("RESET", c->resets);
    print("stopped primaries replaced", c->failures_found);
    printf("\n");
}

const simScenario votersScenario = {.name = "voters", .run = run, .report = report};
