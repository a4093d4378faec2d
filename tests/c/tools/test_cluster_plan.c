/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Plans: slots and replicas of a new cluster, slots to move. */
#include "base/alloc.h"
#include "tools/cli/cluster_plan.h"
#include "tools_test.h"

/* Nodes on these hosts, separated by blanks, with ports from 0. */
static clusterNodes nodesOn(const char *hosts) {
    clusterNodes nodes = {0};
    while (*hosts) {
        size_t len = strcspn(hosts, " ");
        str host = strNew(sliceMake(hosts, len));
        clusterNodesAdd(&nodes, clusterNodeNew(strText(&host), nodes.count, 0));
        strFree(&host);
        hosts += len + (hosts[len] == ' ');
    }
    return nodes;
}

static void fillSlots(clusterNode *node, int first, int count) {
    for (int i = 0; i < count; i++) slotSetAdd(&node->slots, first + i);
}

static void hostsTakeTurns(void **state) {
    static const int expected[] = {0, 3, 5, 1, 4, 2};
    clusterNodes nodes = nodesOn("a a a b b c");
    clusterNode *order[6];
    planInterleave(&nodes, order);
    for (int i = 0; i < 6; i++) assert_int_equal(order[i]->port, expected[i]);
    clusterNodesClear(&nodes);
}

static void slotsAreSharedEqually(void **state) {
    clusterNodes nodes = nodesOn("a a a a a a a");
    for (int count = 1; count <= nodes.count; count++) {
        slotSet all = {0};
        for (int i = 0; i < count; i++) nodes.list[i]->slots = (slotSet){0};
        planShareSlots(nodes.list, count);
        for (int i = 0; i < count; i++) {
            int first, last;
            assert_true(slotSetRange(&nodes.list[i]->slots, 0, &first, &last));
            assert_int_equal(last - first + 1, nodes.list[i]->slots.count);
            assert_in_range(nodes.list[i]->slots.count, SLOT_COUNT / count, SLOT_COUNT / count + 1);
            slotSetAddAll(&all, &nodes.list[i]->slots);
        }
        assert_int_equal(all.count, SLOT_COUNT);
    }
    /* The ranges that Valkey gives to three primaries. */
    for (int i = 0; i < 3; i++) nodes.list[i]->slots = (slotSet){0};
    planShareSlots(nodes.list, 3);
    assert_int_equal(slotSetNext(&nodes.list[1]->slots, 0), 5461);
    assert_int_equal(slotSetNext(&nodes.list[2]->slots, 0), 10923);
    clusterNodesClear(&nodes);
}

/* Assigns replicas, and compares "replica>primary" of each with the expected text. */
static int expectReplicas(const char *hosts, int primaries, int per_primary, const char *expected) {
    clusterNodes nodes = nodesOn(hosts);
    clusterNode **order = memNewArray(clusterNode *, nodes.count);
    replicaChoice *choices = memNewArray(replicaChoice, nodes.count);
    str text = STR_EMPTY;
    planInterleave(&nodes, order);
    int made = planReplicas(order, nodes.count, primaries, per_primary, choices);
    for (int i = 0; i < made; i++)
        strAppendFormat(&text, "%s%d>%d%s", i ? " " : "", choices[i].replica->port,
                        choices[i].primary->port, choices[i].is_extra ? "+" : "");
    assert_string_equal(strText(&text), expected);
    int cost = planSpread(choices, made);
    assert_int_equal(cost, planAffinity(choices, made));
    for (int i = 0; i < made; i++) { /* no replica lost or doubled, no primary with too many */
        int same = 0;
        for (int j = 0; j < made; j++) same += choices[i].replica == choices[j].replica;
        assert_int_equal(same, 1);
    }
    strFree(&text);
    memFree(choices);
    memFree(order);
    clusterNodesClear(&nodes);
    return cost;
}

static void replicasAvoidTheHostOfTheirPrimary(void **state) {
    assert_int_equal(expectReplicas("a a b b c c", 3, 1, "3>0 5>2 1>4"), 0);
    assert_int_equal(expectReplicas("a a a b b b", 3, 1, "5>0 2>3 4>1"), 0);
    assert_int_equal(expectReplicas("a a a a b b", 3, 1, "5>0 2>4 3>1"), AFFINITY_PRIMARY);
    /* Two replicas of each primary on the other host. */
    assert_int_equal(expectReplicas("a a a b b b", 2, 2, "4>0 5>0 2>3 1>3"), 2);
    assert_int_equal(expectReplicas("a a a", 3, 0, ""), 0);
}

static void replicasThatAreLeftAreExtra(void **state) {
    assert_int_equal(expectReplicas("a a a a a", 2, 1, "3>0 4>1 2>0+"), 3 * AFFINITY_PRIMARY + 1);
    assert_int_equal(expectReplicas("a a a a a a a", 3, 1, "4>0 5>1 6>2 3>0+"),
                     4 * AFFINITY_PRIMARY + 1);
}

static void spreadingFindsPerfectPlans(void **state) {
    clusterNodes nodes = nodesOn("a b c d a b c d a b c d");
    replicaChoice choices[8];
    for (int i = 0; i < 8; i++) /* the worst: both replicas on the primary's host */
        choices[i] = (replicaChoice){nodes.list[4 + i], nodes.list[i % 4], false};
    assert_int_equal(planAffinity(choices, 8), 8 * AFFINITY_PRIMARY + 4);
    assert_int_equal(planSpread(choices, 8), 0);
    clusterNodesClear(&nodes);
}

static void reshardTakesInProportion(void **state) {
    clusterNodes nodes = nodesOn("a a a a");
    slotMove *moves;
    fillSlots(nodes.list[0], 0, 100);
    fillSlots(nodes.list[1], 1000, 300);
    assert_int_equal(planReshard(nodes.list, 2, 8, &moves), 8);
    for (int i = 0; i < 6; i++) { /* most slots first, lowest slots first */
        assert_ptr_equal(moves[i].source, nodes.list[1]);
        assert_int_equal(moves[i].slot, 1000 + i);
    }
    assert_int_equal(moves[6].slot, 0);
    assert_int_equal(moves[7].slot, 1);
    memFree(moves);
    assert_int_equal(planReshard(nodes.list, 2, 5000, &moves), 400);
    memFree(moves);
    assert_int_equal(planReshard(nodes.list, 0, 5, &moves), 0);
    memFree(moves);
    clusterNodesClear(&nodes);
}

static void reshardTakesAsManyAsWanted(void **state) {
    clusterNodes nodes = nodesOn("a a a a");
    for (int i = 0; i < 4; i++) fillSlots(nodes.list[i], i * 4096, 4096);
    for (int wanted = 1; wanted < 40; wanted++) {
        slotMove *moves;
        slotSet seen = {0};
        assert_int_equal(planReshard(nodes.list, 4, wanted, &moves), wanted);
        for (int i = 0; i < wanted; i++) slotSetAdd(&seen, moves[i].slot);
        assert_int_equal(seen.count, wanted);
        memFree(moves);
    }
    clusterNodesClear(&nodes);
}

/* Carries the transfers out; returns how many there were. */
static int transferAll(nodeShare *shares, int count) {
    clusterNode *source, *target;
    int transfers = 0;
    for (int slots; (slots = planNextTransfer(shares, count, &source, &target)) > 0; transfers++) {
        for (; slots > 0; slots--) {
            int slot = slotSetNext(&source->slots, 0);
            slotSetRemove(&source->slots, slot);
            slotSetAdd(&target->slots, slot);
        }
    }
    return transfers;
}

static void rebalancingGivesEachItsShare(void **state) {
    clusterNodes nodes = nodesOn("a a a a");
    fillSlots(nodes.list[0], 0, 10923);
    fillSlots(nodes.list[1], 10923, 5461);
    nodeShare shares[4];
    for (int i = 0; i < 4; i++) shares[i] = (nodeShare){nodes.list[i], 1, 0};
    assert_true(planBalance(shares, 4, 2.0));
    assert_int_equal(transferAll(shares, 4), 3);
    for (int i = 0; i < 4; i++) assert_int_equal(nodes.list[i]->slots.count, 4096);
    assert_false(planBalance(shares, 4, 2.0));
    clusterNodesClear(&nodes);
}

static void weightsDivideTheSlots(void **state) {
    clusterNodes nodes = nodesOn("a a a");
    fillSlots(nodes.list[0], 0, SLOT_COUNT);
    nodeShare shares[] = {{nodes.list[0], 0, 0}, {nodes.list[1], 1, 0}, {nodes.list[2], 3, 0}};
    assert_true(planBalance(shares, 3, 2.0));
    (void)transferAll(shares, 3);
    assert_int_equal(nodes.list[0]->slots.count, 0);
    assert_int_equal(nodes.list[1]->slots.count, 4096);
    assert_int_equal(nodes.list[2]->slots.count, 12288);
    clusterNodesClear(&nodes);
}

static void smallDifferencesNeedNoRebalancing(void **state) {
    clusterNodes nodes = nodesOn("a a");
    fillSlots(nodes.list[0], 0, 8192 + 100);
    fillSlots(nodes.list[1], 8292, 8192 - 100);
    nodeShare shares[] = {{nodes.list[0], 1, 0}, {nodes.list[1], 1, 0}};
    assert_false(planBalance(shares, 2, 2.0));
    assert_true(planBalance(shares, 2, 1.0));
    assert_false(planBalance(shares, 2, 0));
    clusterNodesClear(&nodes);
}

static void theOwnerIsTheNodeWithMostKeys(void **state) {
    clusterNodes nodes = nodesOn("a a a");
    slotHolder holders[] = {{nodes.list[0], 1}, {nodes.list[1], 5}, {nodes.list[2], 5}};
    assert_ptr_equal(planOwnerByKeys(holders, 3), nodes.list[1]);
    assert_null(planOwnerByKeys(holders, 0));
    clusterNodesClear(&nodes);
}

int test_cluster_plan(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostsTakeTurns),
        cmocka_unit_test(slotsAreSharedEqually),
        cmocka_unit_test(replicasAvoidTheHostOfTheirPrimary),
        cmocka_unit_test(replicasThatAreLeftAreExtra),
        cmocka_unit_test(spreadingFindsPerfectPlans),
        cmocka_unit_test(reshardTakesInProportion),
        cmocka_unit_test(reshardTakesAsManyAsWanted),
        cmocka_unit_test(rebalancingGivesEachItsShare),
        cmocka_unit_test(weightsDivideTheSlots),
        cmocka_unit_test(smallDifferencesNeedNoRebalancing),
        cmocka_unit_test(theOwnerIsTheNodeWithMostKeys),
    };
    return cmocka_run_group_tests_name("cluster_plan", tests, NULL, NULL);
}
