/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/map.h: nodes, roles, slots, epochs, reports, the blacklist. */
#include "bus_test.h"

static clusterMap map;

static int setup(void **state) {
    clusterMapInit(&map, 1000);
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static void new_map_has_this_node_alone(void **state) {
    assert_int_equal(map.node_count, 1);
    assert_int_equal(map.myself->flags, NODE_MYSELF | NODE_PRIMARY);
    assert_ptr_equal(clusterMapFind(&map, clusterNodeId(map.myself)), map.myself);
    assert_null(clusterMapFind(&map, SLICE("x")));
    assert_int_equal(map.changed, CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE);
}

static void two_maps_do_not_share_anything(void **state) {
    clusterMap other;
    clusterMapInit(&other, 2000);
    clusterNode *n = addNode(&map, 1);
    assert_null(clusterMapFind(&other, clusterNodeId(n)));
    clusterMapSetOwner(&map, 7, map.myself);
    assert_null(clusterMapOwner(&other, 7));
    assert_true(clusterMapIsMine(&map, 7));
    assert_false(clusterMapIsMine(&other, 7));
    clusterMapSetEpochs(&other, 9, 8);
    assert_int_equal(map.current_epoch, 0);
    clusterMapClear(&other);
}

static void set_id_moves_a_node_in_the_index(void **state) {
    clusterNode *n = addNode(&map, 1);
    clusterMapSetId(&map, n, idOf(2).text);
    assert_null(clusterMapFind(&map, sliceMake(idOf(1).text, NODE_ID_LEN)));
    assert_ptr_equal(clusterMapFind(&map, sliceMake(idOf(2).text, NODE_ID_LEN)), n);
}

static void replicas_follow_the_role(void **state) {
    clusterNode *a = addNode(&map, 1), *b = addNode(&map, 2), *c = addNode(&map, 3);
    clusterMapSetPrimary(&map, b, a);
    clusterMapSetPrimary(&map, c, a);
    assert_int_equal(a->replica_count, 2);
    assert_memory_equal(b->shard_id, a->shard_id, NODE_ID_LEN);
    assert_ptr_equal(clusterNodePrimary(b), a);
    clusterMapMakePrimary(&map, b);
    assert_int_equal(a->replica_count, 1);
    assert_ptr_equal(a->replicas[0], c);
    clusterMapSetPrimary(&map, a, b);
    assert_map_valid(&map);
    /* The shard of a primary becomes known after its replicas. */
    clusterMapSetShard(&map, b, idOf(9).text);
    assert_memory_equal(a->shard_id, idOf(9).text, NODE_ID_LEN);
    /* A replica of an unknown node. */
    clusterMapSetPrimary(&map, c, NULL);
    assert_true(c->flags & NODE_REPLICA);
    assert_null(clusterNodePrimary(c));
    clusterMapRemove(&map, b);
    assert_null(a->primary);
    assert_true(a->flags & NODE_REPLICA);
}

static void removed_node_leaves_nothing(void **state) {
    clusterNode *a = addNode(&map, 1), *b = addNode(&map, 2);
    clusterMapSetOwner(&map, 5, a);
    clusterMapSetClaimed(&map, 5, false);
    clusterMapSetOwner(&map, 6, b);
    clusterMapSetOpenSlot(&map, SLOT_MIGRATING, 100, a);
    clusterMapSetOpenSlot(&map, SLOT_IMPORTING, 101, b);
    assert_true(clusterNodeReport(b, a, 10));
    clusterMapRemove(&map, a);
    assert_null(clusterMapOwner(&map, 5));
    assert_ptr_equal(clusterMapOwner(&map, 6), b);
    assert_null(clusterMapOpenSlot(&map, SLOT_MIGRATING, 100));
    assert_ptr_equal(clusterMapOpenSlot(&map, SLOT_IMPORTING, 101), b);
    assert_int_equal(b->report_count, 0);
    assert_int_equal(map.slots_assigned, 1);
}

static void runs_of_slots(void **state) {
    int last;
    assert_int_equal(clusterNodeNextSlots(map.myself, 0, &last), -1);
    for (int slot = 60; slot < 200; slot++) clusterMapSetOwner(&map, slot, map.myself);
    clusterMapSetOwner(&map, 128, NULL);
    clusterMapSetOwner(&map, SLOT_COUNT - 1, map.myself);
    assert_int_equal(clusterNodeNextSlots(map.myself, 0, &last), 60);
    assert_int_equal(last, 127);
    assert_int_equal(clusterNodeNextSlots(map.myself, last + 1, &last), 129);
    assert_int_equal(last, 199);
    assert_int_equal(clusterNodeNextSlots(map.myself, last + 1, &last), SLOT_COUNT - 1);
    assert_int_equal(last, SLOT_COUNT - 1);
    assert_int_equal(clusterNodeNextSlots(map.myself, SLOT_COUNT, &last), -1);
    assert_int_equal(clusterNodeNextSlots(map.myself, 150, &last), 150);
}

static void slots_are_stored_as_in_messages(void **state) {
    clusterNode *n = addNode(&map, 1);
    clusterMapSetOwner(&map, 9, n);
    clusterMapSetOwner(&map, 16383, n);
    const uint8_t *bytes = (const uint8_t *)clusterNodeSlots(n);
    assert_int_equal(bytes[1], 2);
    assert_int_equal(bytes[SLOT_BYTES - 1], 0x80);
    assert_int_equal(clusterNodeSlots(addNode(&map, 2))[0], 0);
}

static void unclaimed_slots_stay_with_their_owner(void **state) {
    clusterNode *n = addNode(&map, 1);
    clusterMapSetOwner(&map, 3, n);
    assert_true(clusterMapIsClaimed(&map, 3));
    clusterMapSetClaimed(&map, 3, false);
    assert_false(clusterMapIsClaimed(&map, 3));
    assert_ptr_equal(clusterMapOwner(&map, 3), n);
    clusterMapSetOwner(&map, 3, map.myself);
    assert_true(clusterMapIsClaimed(&map, 3));
    assert_false(clusterMapIsClaimed(&map, 4));
}

static void bump_gives_the_greatest_epoch_once(void **state) {
    clusterNode *n = addNode(&map, 1);
    clusterMapSetNodeEpoch(&map, n, 6);
    assert_true(clusterMapBumpEpoch(&map));
    assert_int_equal(map.myself->epoch, 7);
    assert_int_equal(map.current_epoch, 7);
    assert_false(clusterMapBumpEpoch(&map));
    clusterMapSetEpochs(&map, 9, 9);
    assert_true(clusterMapBumpEpoch(&map));
    assert_int_equal(map.myself->epoch, 10);
    assert_int_equal(map.vote_epoch, 9);
}

static void reset_keeps_id_and_epochs_unless_hard(void **state) {
    clusterNode *a = addNode(&map, 1);
    char id[NODE_ID_LEN], shard_id[NODE_ID_LEN];
    memcpy(id, map.myself->id, NODE_ID_LEN);
    memcpy(shard_id, map.myself->shard_id, NODE_ID_LEN);
    clusterMapSetPrimary(&map, map.myself, a);
    clusterMapSetOwner(&map, 1, a);
    clusterMapSetOpenSlot(&map, SLOT_IMPORTING, 2, a);
    clusterMapSetEpochs(&map, 5, 4);
    clusterMapForbid(&map, SLICE("1111111111111111111111111111111111111111"), 5000);
    clusterMapReset(&map, false);
    assert_int_equal(map.node_count, 1);
    assert_int_equal(map.slots_assigned, 0);
    assert_int_equal(map.myself->flags, NODE_MYSELF | NODE_PRIMARY);
    assert_memory_equal(map.myself->id, id, NODE_ID_LEN);
    assert_memory_not_equal(map.myself->shard_id, shard_id, NODE_ID_LEN);
    assert_int_equal(map.current_epoch, 5);
    assert_int_equal(map.forbidden_count, 0);
    clusterMapReset(&map, true);
    assert_memory_not_equal(map.myself->id, id, NODE_ID_LEN);
    assert_int_equal(map.current_epoch + map.vote_epoch, 0);
    assert_ptr_equal(clusterMapFind(&map, clusterNodeId(map.myself)), map.myself);
}

static void reports_are_renewed_withdrawn_and_expire(void **state) {
    clusterNode *a = addNode(&map, 1), *b = addNode(&map, 2);
    assert_true(clusterNodeReport(a, b, 100));
    assert_true(clusterNodeReport(a, map.myself, 100));
    assert_false(clusterNodeReport(a, b, 300));
    assert_int_equal(clusterNodeCountReports(a, 1100, 1000), 2);
    assert_int_equal(clusterNodeCountReports(a, 1101, 1000), 1);
    assert_false(clusterNodeUnreport(a, map.myself));
    assert_true(clusterNodeUnreport(a, b));
    assert_int_equal(clusterNodeCountReports(a, 1101, 1000), 0);
}

static void forbidden_ids_expire(void **state) {
    testId a = idOf(1), b = idOf(2);
    clusterMapForbid(&map, sliceMake(a.text, NODE_ID_LEN), 100);
    clusterMapForbid(&map, sliceMake(b.text, NODE_ID_LEN), 200);
    clusterMapForbid(&map, sliceMake(b.text, NODE_ID_LEN), 300);
    assert_int_equal(map.forbidden_count, 2);
    assert_true(clusterMapIsForbidden(&map, sliceMake(a.text, NODE_ID_LEN), 99));
    assert_false(clusterMapIsForbidden(&map, sliceMake(a.text, NODE_ID_LEN), 100));
    assert_true(clusterMapIsForbidden(&map, sliceMake(b.text, NODE_ID_LEN), 299));
    assert_false(clusterMapIsForbidden(&map, SLICE(""), 299));
}

/* They are not added because they ask, until an order brings them back. */
static void forgotten_ids_are_kept_until_they_are_known_again(void **state) {
    testId first = idOf(1), last = idOf(2);
    clusterMapForbid(&map, sliceMake(first.text, NODE_ID_LEN), 100);
    for (int i = 0; i < 300; i++) {
        char text[NODE_ID_LEN + 1];
        snprintf(text, sizeof(text), "%0*d", NODE_ID_LEN, i);
        clusterMapForbid(&map, sliceOf(text), 100);
    }
    clusterMapForbid(&map, sliceMake(last.text, NODE_ID_LEN), 100);
    assert_true(clusterMapIsForbidden(&map, sliceMake(first.text, NODE_ID_LEN), 99));
    assert_false(clusterMapIsForbidden(&map, sliceMake(last.text, NODE_ID_LEN), 100));
    assert_true(clusterMapWasForgotten(&map, sliceMake(last.text, NODE_ID_LEN)));
    assert_false(clusterMapWasForgotten(&map, sliceMake(first.text, NODE_ID_LEN))); /* too many */
    (void)clusterMapAdd(&map, last.text, 200);
    assert_false(clusterMapWasForgotten(&map, sliceMake(last.text, NODE_ID_LEN)));
}

static void only_changes_that_matter_are_noted(void **state) {
    clusterNode *n = addNode(&map, 1);
    clusterMapSetOwner(&map, 1, n);
    map.changed = 0;
    clusterMapSetOwner(&map, 1, n);
    clusterMapSetText(&map, &n->ip, SLICE(""));
    clusterMapSetPort(&map, &n->tcp_port, 0);
    clusterMapSetFlags(&map, n, NODE_HAS_EXTENSIONS, 0);
    clusterMapSetEpochs(&map, 0, 0);
    clusterMapMakePrimary(&map, n);
    assert_int_equal(map.changed, 0);
    clusterMapSetFlags(&map, n, NODE_FAILED, NODE_MAYBE_FAILED);
    assert_int_equal(map.changed, CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE);
    map.changed = 0;
    clusterMapSetEpochs(&map, 1, 0);
    assert_int_equal(map.changed, CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC);
    map.changed = 0;
    clusterMapSetOwner(&map, 1, map.myself);
    assert_true(map.changed & CLUSTER_MAP_OWN_SLOTS);
}

int test_map(void);
int test_map(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(new_map_has_this_node_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(two_maps_do_not_share_anything, setup, teardown),
        cmocka_unit_test_setup_teardown(set_id_moves_a_node_in_the_index, setup, teardown),
        cmocka_unit_test_setup_teardown(replicas_follow_the_role, setup, teardown),
        cmocka_unit_test_setup_teardown(removed_node_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(runs_of_slots, setup, teardown),
        cmocka_unit_test_setup_teardown(slots_are_stored_as_in_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(unclaimed_slots_stay_with_their_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(bump_gives_the_greatest_epoch_once, setup, teardown),
        cmocka_unit_test_setup_teardown(reset_keeps_id_and_epochs_unless_hard, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_are_renewed_withdrawn_and_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(forbidden_ids_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten_ids_are_kept_until_they_are_known_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_changes_that_matter_are_noted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
