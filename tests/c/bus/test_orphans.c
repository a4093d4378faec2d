/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/orphans.h: which replica joins a primary that has lost its own. */
#include "bus_test.h"

#include "bus/orphans.h"

static clusterMap map;
static clusterNode *rich, *orphan, *fellow, *lost;
static busRules rules;
static bool cluster_ok;

/* This node (5) and `fellow` (8) are replicas of `rich`; `lost` was the only one of `orphan`. */
static int setup(void **state) {
    clusterMapInit(&map, 0);
    clusterMapSetId(&map, map.myself, idOf(5).text);
    rich = addNode(&map, 1);
    orphan = addNode(&map, 2);
    lost = addNode(&map, 3);
    fellow = addNode(&map, 8);
    clusterMapSetOwner(&map, 0, rich);
    clusterMapSetOwner(&map, 1, orphan);
    clusterMapSetPrimary(&map, map.myself, rich);
    clusterMapSetPrimary(&map, fellow, rich);
    clusterMapSetPrimary(&map, lost, orphan);
    clusterMapSetFlags(&map, lost, NODE_FAILED, 0);
    rules = (busRules){.replica_migration = true, .migration_barrier = 1};
    cluster_ok = true;
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static void the_first_replica_joins_after_five_seconds(void **state) {
    assert_null(orphansTick(&map, &rules, cluster_ok, 1000));
    assert_null(orphansTick(&map, &rules, cluster_ok, 6000));
    assert_ptr_equal(orphansTick(&map, &rules, cluster_ok, 6001), orphan);
    clusterMapSetId(&map, fellow, idOf(4).text); /* now it is the first one */
    assert_null(orphansTick(&map, &rules, cluster_ok, 6002));
    clusterMapSetFlags(&map, fellow, NODE_FAILED, 0);
    assert_null(orphansTick(&map, &rules, cluster_ok, 6003)); /* there are no two */
}

static void a_replica_that_is_back_starts_the_time_anew(void **state) {
    assert_null(orphansTick(&map, &rules, cluster_ok, 1000));
    clusterMapSetFlags(&map, lost, 0, NODE_FAILED);
    assert_null(orphansTick(&map, &rules, cluster_ok, 4000));
    clusterMapSetFlags(&map, lost, NODE_FAILED, 0);
    assert_null(orphansTick(&map, &rules, cluster_ok, 5000));
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
    assert_ptr_equal(orphansTick(&map, &rules, cluster_ok, 10001), orphan);
}

static void rules_and_state_forbid_it(void **state) {
    assert_null(orphansTick(&map, &rules, cluster_ok, 1000));
    rules.migration_barrier = 2; /* one would be left */
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
    rules = (busRules){.migration_barrier = 1};
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
    rules = (busRules){.replica_migration = true, .migration_barrier = 1};
    cluster_ok = false;
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
    rules = (busRules){.replica_migration = true, .migration_barrier = 0};
    cluster_ok = true;
    clusterMapSetFlags(&map, orphan, NODE_FAILED, 0);
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
}

static void only_the_primary_with_the_most_replicas_gives_one(void **state) {
    clusterNode *richer = addNode(&map, 6);
    clusterMapSetOwner(&map, 2, richer);
    for (int i = 9; i < 12; i++) clusterMapSetPrimary(&map, addNode(&map, i), richer);
    assert_null(orphansTick(&map, &rules, cluster_ok, 1000));
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
}

/* The flag NODE_MIGRATE_TO says that a primary is to have replicas. */
static void primaries_that_lost_their_replicas_by_order_are_no_orphans(void **state) {
    assert_true(orphan->flags & NODE_MIGRATE_TO);
    clusterMapRemove(&map, lost);
    assert_false(orphan->flags & NODE_MIGRATE_TO);
    assert_null(orphansTick(&map, &rules, cluster_ok, 1000));
    assert_null(orphansTick(&map, &rules, cluster_ok, 9000));
    /* A new primary where others have replicas is to have some. */
    clusterNode *fresh = addNode(&map, 7);
    clusterMapSetOwner(&map, 5, fresh);
    assert_true(fresh->flags & NODE_MIGRATE_TO);
    assert_null(orphansTick(&map, &rules, cluster_ok, 10000));
    assert_ptr_equal(orphansTick(&map, &rules, cluster_ok, 15001), fresh);
}

int test_orphans(void);
int test_orphans(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_first_replica_joins_after_five_seconds),
        CASE(a_replica_that_is_back_starts_the_time_anew),
        CASE(rules_and_state_forbid_it),
        CASE(only_the_primary_with_the_most_replicas_gives_one),
        CASE(primaries_that_lost_their_replicas_by_order_are_no_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
