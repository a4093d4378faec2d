/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/cluster_state.h: when requests are served. */
#include "bus_test.h"

#include "bus/cluster_state.h"

static clusterMap map;
static clusterState now_state;
static busRules rules;

static void update(int64_t now_ms) { clusterStateUpdate(&now_state, &map, &rules, false, now_ms); }

/* This node and two others with slots; the state is ok at 3000. */
static int setup(void **state) {
    memset(&now_state, 0, sizeof(now_state));
    rules = (busRules){.full_coverage = true, .timeout_ms = 1000};
    clusterMapInit(&map, 1000);
    clusterNode *owners[] = {map.myself, addNode(&map, 1), addNode(&map, 2)};
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        clusterMapSetOwner(&map, slot, owners[slot * 3 / SLOT_COUNT]);
    update(1000);
    assert_false(now_state.ok);
    update(2999);
    assert_false(now_state.ok); /* a starting primary waits */
    update(3000);
    assert_true(now_state.ok);
    assert_int_equal(now_state.size, 3);
    return 0;
}

static int teardown(void **state) {
    clusterMapClear(&map);
    return 0;
}

static void failed_owner_and_missing_slot_matter_with_full_coverage(void **state) {
    clusterMapSetFlags(&map, map.nodes[1], NODE_FAILED, 0);
    assert_int_equal(clusterMapCountSlots(&map, NODE_FAILED), map.nodes[1]->slot_count);
    update(4000);
    assert_false(now_state.ok);
    rules.full_coverage = false;
    update(4001);
    assert_true(now_state.ok);
    clusterMapSetFlags(&map, map.nodes[1], 0, NODE_FAILED);
    clusterMapSetOwner(&map, 0, NULL);
    update(4002);
    assert_true(now_state.ok);
    rules.full_coverage = true;
    update(4003);
    assert_false(now_state.ok);
}

static void primary_that_was_in_a_minority_waits(void **state) {
    clusterMapSetFlags(&map, map.nodes[1], NODE_MAYBE_FAILED, 0);
    update(5000);
    assert_true(now_state.ok); /* two of three can be reached */
    clusterMapSetFlags(&map, map.nodes[2], NODE_MAYBE_FAILED, 0);
    update(5100);
    assert_false(now_state.ok);
    clusterMapSetFlags(&map, map.nodes[2], 0, NODE_MAYBE_FAILED);
    update(6099);
    assert_false(now_state.ok);
    update(6100);
    assert_true(now_state.ok);
}

static void the_wait_is_at_least_half_a_second_and_at_most_five(void **state) {
    for (int i = 0; i < 2; i++) {
        int64_t wait_ms = i ? 5000 : 500, start_ms = 10000 * (i + 1);
        rules.timeout_ms = i ? 60000 : 1;
        for (int k = 1; k < 3; k++) clusterMapSetFlags(&map, map.nodes[k], NODE_MAYBE_FAILED, 0);
        update(start_ms);
        assert_false(now_state.ok);
        for (int k = 1; k < 3; k++) clusterMapSetFlags(&map, map.nodes[k], 0, NODE_MAYBE_FAILED);
        update(start_ms + wait_ms - 1);
        assert_false(now_state.ok);
        update(start_ms + wait_ms);
        assert_true(now_state.ok);
    }
}

int test_cluster_state(void);
int test_cluster_state(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(failed_owner_and_missing_slot_matter_with_full_coverage,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(primary_that_was_in_a_minority_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(the_wait_is_at_least_half_a_second_and_at_most_five, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
