/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/topology.h: the rows of its table, one by one. */
#include "bus_test.h"

#include "bus/topology.h"

static clusterMap map;
static clusterNode *a, *b;
static uint8_t claim[SLOT_BYTES];
static busRules rules;

/* This node, a and b with slots 0-9, 10-19 and 20-29 and epochs 1, 2, 3. */
static int setup(void **state) {
    clusterMapInit(&map, 1000);
    clusterMapSetId(&map, map.myself, idOf(5).text);
    a = addNode(&map, 1);
    b = addNode(&map, 9);
    clusterNode *owners[] = {map.myself, a, b};
    for (int slot = 0; slot < 30; slot++) clusterMapSetOwner(&map, slot, owners[slot / 10]);
    for (int i = 0; i < 3; i++) clusterMapSetNodeEpoch(&map, owners[i], (uint64_t)i + 1);
    clusterMapSetEpochs(&map, 3, 0);
    memset(claim, 0, sizeof(claim));
    rules.replica_migration = true;
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static void claimSlots(int first, int last) {
    for (int slot = first; slot <= last; slot++) claim[slot / 8] |= (uint8_t)(1 << slot % 8);
}

static topologyActs receive(clusterNode *from, const clusterNode *primary, uint64_t epoch,
                            uint64_t current) {
    const messageHeader h = {.sender = from->id,
                             .primary = primary ? primary->id : NULL,
                             .epoch = epoch,
                             .current_epoch = current,
                             .slots = claim};
    return topologyHeader(&map, from, &h, &rules);
}

static void known_claim_changes_nothing(void **state) {
    claimSlots(10, 19);
    map.changed = 0;
    topologyActs acts = receive(a, NULL, 2, 3);
    assert_null(acts.update);
    assert_null(acts.follow);
    assert_int_equal(map.changed, 0);
}

static void an_offset_that_no_stream_has_is_none(void **state) {
    (void)state;
    static const uint64_t told[] = {55, UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 62, 56};
    static const int64_t taken[] = {55, 0, 0, 0, 56};
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        const messageHeader h = {
            .sender = a->id, .epoch = 2, .current_epoch = 3, .slots = claim, .offset = told[i]};
        (void)topologyHeader(&map, a, &h, &rules);
        assert_int_equal(a->offset, taken[i]);
    }
}

static void greater_epochs_are_taken_over(void **state) {
    claimSlots(10, 19);
    (void)receive(a, NULL, 4, 9);
    assert_int_equal(map.current_epoch, 9);
    assert_int_equal(a->epoch, 4);
    (void)receive(a, NULL, 2, 3);
    assert_int_equal(map.current_epoch, 9);
    assert_int_equal(a->epoch, 4);
}

static void epochs_that_cannot_be_right_are_refused(void **state) {
    const uint64_t limit = UINT64_C(1) << 63;
    claimSlots(10, 19);
    assert_true(receive(a, NULL, 2, UINT64_MAX).is_stale);
    assert_true(receive(a, NULL, UINT64_MAX, 3).is_stale);
    assert_true(receive(a, NULL, 2, limit + 1).is_stale);
    assert_int_equal(map.current_epoch, 3);
    /* A cluster that has got there otherwise still counts. */
    assert_false(receive(a, NULL, 2, limit).is_stale);
    assert_false(receive(a, NULL, 2, limit + 1).is_stale);
    assert_true(receive(a, NULL, 2, UINT64_MAX).is_stale);
    clusterMapSetEpochs(&map, UINT64_MAX, 0);
    clusterMapSetNodeEpoch(&map, map.myself, 2);
    assert_false(receive(b, NULL, 2, UINT64_MAX).is_stale); /* the same epoch: no next one */
    assert_int_equal(map.current_epoch, UINT64_MAX);
    assert_int_equal(map.myself->epoch, 2);
}

static void claim_of_an_unassigned_slot_wins(void **state) {
    claimSlots(10, 19);
    claimSlots(100, 100);
    (void)receive(a, NULL, 2, 3);
    assert_ptr_equal(clusterMapOwner(&map, 100), a);
}

static void claim_with_a_greater_epoch_wins(void **state) {
    claimSlots(10, 20);
    topologyActs acts = receive(a, NULL, 4, 4);
    assert_ptr_equal(clusterMapOwner(&map, 20), a);
    assert_ptr_equal(clusterMapOwner(&map, 21), b);
    assert_null(acts.update);
}

static void claim_with_a_lower_epoch_gets_an_update(void **state) {
    claimSlots(10, 20);
    b->has_told = true;
    topologyActs acts = receive(a, NULL, 2, 3);
    assert_ptr_equal(clusterMapOwner(&map, 20), b);
    assert_ptr_equal(acts.update, b);
}

/* Keys of a slot without owner wait for one. */
static void slot_that_had_no_owner_may_have_keys_to_delete(void **state) {
    claimSlots(10, 19);
    assert_false(receive(a, NULL, 2, 3).lost_slots);
    claimSlots(100, 100);
    assert_true(receive(a, NULL, 2, 3).lost_slots);
}

/* What a file says of it may be older than its epoch: it would take the slot from its new owner. */
static void owner_that_has_not_told_since_the_start_is_no_better_one(void **state) {
    claimSlots(10, 20);
    topologyActs acts = receive(a, NULL, 2, 3);
    assert_ptr_equal(clusterMapOwner(&map, 20), b);
    assert_null(acts.update);
    memset(claim, 0, sizeof(claim));
    claimSlots(21, 29);
    (void)receive(b, NULL, 3, 3);
    memset(claim, 0, sizeof(claim));
    claimSlots(10, 20);
    assert_null(receive(a, NULL, 2, 3).update);
    assert_ptr_equal(clusterMapOwner(&map, 20), a);
}

/* The source of a move that has failed after the grant. */
static void slot_that_its_owner_claims_again_is_claimed(void **state) {
    claimSlots(21, 29);
    (void)receive(b, NULL, 3, 3);
    assert_false(clusterMapIsClaimed(&map, 20));
    claimSlots(20, 20);
    (void)receive(b, NULL, 3, 3);
    assert_true(clusterMapIsClaimed(&map, 20));
    memset(claim, 0, sizeof(claim));
    claimSlots(10, 20);
    assert_ptr_equal(receive(a, NULL, 2, 3).update, b);
    assert_ptr_equal(clusterMapOwner(&map, 20), b);
}

static void slot_that_its_owner_gave_up_goes_to_any_claim(void **state) {
    claimSlots(21, 29);
    (void)receive(b, NULL, 3, 3);
    assert_ptr_equal(clusterMapOwner(&map, 20), b);
    assert_false(clusterMapIsClaimed(&map, 20));
    memset(claim, 0, sizeof(claim));
    claimSlots(10, 20);
    topologyActs acts = receive(a, NULL, 2, 3);
    assert_ptr_equal(clusterMapOwner(&map, 20), a);
    assert_null(acts.update);
}

static void the_smaller_id_resolves_a_collision(void **state) {
    claimSlots(20, 29);
    clusterMapSetNodeEpoch(&map, map.myself, 3);
    (void)receive(b, NULL, 3, 3); /* its id is greater */
    assert_int_equal(map.myself->epoch, 4);
    assert_int_equal(map.current_epoch, 4);
    memset(claim, 0, sizeof(claim));
    claimSlots(10, 19);
    clusterMapSetNodeEpoch(&map, a, 4);
    (void)receive(a, NULL, 4, 4);
    assert_int_equal(map.myself->epoch, 4); /* the other one does */
}

static void primary_that_loses_its_last_slot_follows(void **state) {
    claimSlots(0, 8);
    claimSlots(20, 29);
    topologyActs acts = receive(b, NULL, 4, 4);
    assert_null(acts.follow);
    assert_int_equal(map.myself->slot_count, 1);
    assert_true(map.changed & CLUSTER_MAP_OWN_SLOTS);
    claimSlots(9, 9);
    acts = receive(b, NULL, 4, 4);
    assert_ptr_equal(acts.follow, b);
    assert_ptr_equal(map.myself->primary, b);
}

static void or_is_empty_where_replicas_do_not_migrate(void **state) {
    rules.replica_migration = false;
    claimSlots(0, 9);
    claimSlots(20, 29);
    topologyActs acts = receive(b, NULL, 4, 4);
    assert_null(acts.follow);
    assert_true(acts.is_emptied);
    assert_true(map.myself->flags & NODE_PRIMARY);
}

/* A primary that was away: its replica replaced it, and a slot had been moved before. */
static void last_slot_that_goes_elsewhere_after_a_failover_does_not_matter(void **state) {
    clusterNode *successor = addNode(&map, 7);
    memcpy(successor->shard_id, map.myself->shard_id, NODE_ID_LEN);
    rules.replica_migration = false;
    claimSlots(0, 8);
    assert_null(receive(successor, NULL, 4, 4).follow);
    memset(claim, 0, sizeof(claim));
    claimSlots(9, 19);
    assert_ptr_equal(receive(a, NULL, 5, 5).follow, successor);
    assert_ptr_equal(map.myself->primary, successor);
}

/* A message on the other one of the two connections was faster. */
static void late_message_claims_nothing(void **state) {
    claimSlots(11, 19);
    (void)receive(a, NULL, 4, 4);
    assert_false(clusterMapIsClaimed(&map, 10));
    claimSlots(10, 10);
    claimSlots(0, 0);
    assert_ptr_equal(receive(a, NULL, 3, 4).update, a);
    assert_false(clusterMapIsClaimed(&map, 10));
    assert_ptr_equal(clusterMapOwner(&map, 0), map.myself);
}

static void replica_that_takes_over_is_followed_by_the_others(void **state) {
    clusterMapSetOwner(&map, 0, NULL);
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, NULL);
    clusterMapSetPrimary(&map, map.myself, b);
    clusterMapSetPrimary(&map, a, b);
    for (int slot = 10; slot < 20; slot++) clusterMapSetOwner(&map, slot, NULL);
    claimSlots(20, 29);
    topologyActs acts = receive(a, NULL, 7, 7);
    assert_true(a->flags & NODE_PRIMARY);
    assert_ptr_equal(acts.follow, a);
    assert_int_equal(a->slot_count, 10);
    /* The old primary is a replica now. */
    acts = receive(b, a, 7, 7);
    assert_ptr_equal(b->primary, a);
    assert_int_equal(b->slot_count, 0);
}

static void slots_of_a_demoted_primary_go_to_its_shard_alone(void **state) {
    clusterMapSetShard(&map, a, b->shard_id);
    claimSlots(10, 29);
    (void)receive(b, a, 4, 4);
    assert_int_equal(a->slot_count, 20);
    assert_int_equal(a->epoch, 4);
    /* In another shard they are unassigned. */
    clusterNode *c = addNode(&map, 10);
    (void)receive(a, c, 5, 5);
    assert_int_equal(a->slot_count + c->slot_count, 0);
    assert_ptr_equal(a->primary, c);
    assert_int_equal(map.slots_assigned, 10);
}

/* `a` was away and has an old map, in which its successor has a slot that this one gave away. */
static void a_primary_that_is_replaced_does_not_say_what_its_successor_has(void **state) {
    clusterNode *next = addNode(&map, 6);
    clusterMapSetShard(&map, next, a->shard_id);
    claimSlots(10, 18);
    (void)receive(next, NULL, 7, 7);
    assert_ptr_equal(clusterMapOwner(&map, 18), next);
    assert_ptr_equal(clusterMapOwner(&map, 19), a);
    claimSlots(10, 19);
    (void)receive(a, next, 7, 7);
    assert_ptr_equal(a->primary, next);
    assert_ptr_equal(clusterMapOwner(&map, 18), next);
    assert_null(clusterMapOwner(&map, 19));
}

/* b gave slots 25 to 29 to c, unseen by this node; then a, its replica, took over. */
static void slots_that_were_moved_before_a_failover_wait_for_their_owner(void **state) {
    clusterNode *c = addNode(&map, 10);
    clusterMapSetShard(&map, a, b->shard_id);
    claimSlots(10, 24);
    (void)receive(b, a, 5, 5);
    assert_int_equal(a->slot_count, 15);
    assert_null(clusterMapOwner(&map, 25));
    memset(claim, 0, sizeof(claim));
    claimSlots(25, 29);
    assert_null(receive(c, NULL, 4, 5).update); /* its claim is older than the failover, and good */
    assert_int_equal(c->slot_count, 5);
}

static void new_primary_that_has_not_told_so_yet_gets_the_slots_as_a_primary(void **state) {
    clusterMapSetShard(&map, a, b->shard_id);
    for (int slot = 10; slot < 20; slot++) clusterMapSetOwner(&map, slot, NULL);
    clusterMapSetPrimary(&map, a, b);
    claimSlots(20, 29);
    (void)receive(b, a, 4, 4);
    assert_true(a->flags & NODE_PRIMARY);
    assert_int_equal(a->slot_count, 10);
    /* It is a replica again before it has told us of the time between. */
    (void)receive(a, b, 5, 5);
    assert_int_equal(a->slot_count, 0);
    assert_int_equal(b->slot_count, 10);
}

static void older_claim_of_a_demotion_is_stale(void **state) {
    clusterMapSetShard(&map, a, b->shard_id);
    topologyActs acts = receive(b, a, 2, 3);
    assert_true(acts.is_stale);
    assert_true(b->flags & NODE_PRIMARY);
    assert_int_equal(b->slot_count, 10);
}

/* The winner of an election has sent it before it won. */
static void older_message_of_the_new_primary_does_not_end_its_role(void **state) {
    clusterMapSetShard(&map, b, map.myself->shard_id);
    clusterMapMoveSlots(&map, map.myself, b);
    clusterMapSetPrimary(&map, map.myself, b);
    topologyActs acts = receive(b, map.myself, 1, 3);
    assert_true(acts.is_stale);
    assert_false(acts.is_released);
    assert_int_equal(b->slot_count, 20);
    assert_ptr_equal(map.myself->primary, b);
}

/* Orders to replicate each other have crossed: one of the two is a primary again. */
static void two_nodes_that_follow_each_other_do_not_stay_so(void **state) {
    clusterMapMoveSlots(&map, map.myself, NULL);
    clusterMapMoveSlots(&map, a, NULL);
    clusterMapSetPrimary(&map, map.myself, a);
    clusterMapSetNodeEpoch(&map, map.myself, 5);
    topologyActs acts = receive(a, map.myself, 5, 5);
    assert_true(acts.is_released);
    assert_true(map.myself->flags & NODE_PRIMARY);
    assert_ptr_equal(a->primary, map.myself);
}

/* It has started with a file of the time when it was a replica. */
static void older_claim_that_does_not_end_is_believed(void **state) {
    clusterMapSetShard(&map, a, b->shard_id);
    for (int i = 0; i < 20; i++) assert_true(receive(b, a, 2, 3).is_stale);
    assert_false(receive(b, a, 2, 3).is_stale);
    assert_ptr_equal(b->primary, a);
    assert_int_equal(b->slot_count, 0);
}

static void replica_of_a_replica_moves_up(void **state) {
    for (int slot = 0; slot < 20; slot++) clusterMapSetOwner(&map, slot, NULL);
    clusterMapSetPrimary(&map, map.myself, a);
    topologyActs acts = receive(a, b, 3, 3);
    assert_ptr_equal(acts.follow, b);
    assert_ptr_equal(map.myself->primary, b);
}

static void update_is_applied_if_it_is_newer(void **state) {
    message m = {.type = MESSAGE_UPDATE, .id = b->id, .epoch = 3, .slots = claim};
    claimSlots(10, 29);
    (void)topologyUpdate(&map, a, &m, &rules);
    assert_int_equal(b->slot_count, 10);
    m.epoch = 8;
    (void)topologyUpdate(&map, a, &m, &rules);
    assert_int_equal(b->slot_count, 20);
    assert_int_equal(b->epoch, 8);
    assert_int_equal(map.current_epoch, 8);
    /* About an unknown node. */
    testId unknown = idOf(14);
    m.id = unknown.text;
    m.epoch = 20;
    (void)topologyUpdate(&map, a, &m, &rules);
    assert_int_equal(map.current_epoch, 8);
}

/* A node that has started with an old file would never be believed with its old epoch. */
static void node_with_an_old_epoch_is_told_and_takes_its_own(void **state) {
    message m = {.type = MESSAGE_UPDATE, .id = map.myself->id, .epoch = 20, .slots = claim};
    claimSlots(20, 29);
    assert_ptr_equal(receive(b, NULL, 2, 3).update, b);
    (void)topologyUpdate(&map, a, &m, &rules);
    assert_int_equal(map.myself->epoch, 20);
    assert_int_equal(map.current_epoch, 20);
    assert_int_equal(map.myself->slot_count, 10); /* it alone decides about its slots */
    m.epoch = 19;
    (void)topologyUpdate(&map, a, &m, &rules);
    assert_int_equal(map.myself->epoch, 20);
}

/* An epoch without votes may be that of an election, too; without slots it does no harm. */
static void a_primary_without_slots_resolves_a_collision(void **state) {
    clusterMapSetNodeEpoch(&map, map.myself, 3);
    clusterNode *empty = addNode(&map, 14);
    (void)receive(empty, NULL, 3, 3); /* its id is greater, but it has no slots */
    assert_int_equal(map.myself->epoch, 3);
    clusterMapMoveSlots(&map, map.myself, NULL);
    claimSlots(10, 19);
    (void)receive(a, NULL, 3, 3); /* its id is smaller, but it has slots */
    assert_int_equal(map.myself->epoch, 4);
}

static void take_over_gets_slots_and_the_greatest_epoch(void **state) {
    assert_false(topologyTakeOver(&map));
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, NULL);
    clusterMapSetPrimary(&map, map.myself, a);
    assert_true(topologyTakeOver(&map));
    assert_int_equal(map.myself->slot_count, 10);
    assert_int_equal(map.myself->epoch, 4);
    assert_int_equal(map.current_epoch, 4);
}

int test_topology(void);
int test_topology(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(known_claim_changes_nothing),
        T(an_offset_that_no_stream_has_is_none),
        T(greater_epochs_are_taken_over),
        T(epochs_that_cannot_be_right_are_refused),
        T(claim_of_an_unassigned_slot_wins),
        T(claim_with_a_greater_epoch_wins),
        T(claim_with_a_lower_epoch_gets_an_update),
        T(slot_that_had_no_owner_may_have_keys_to_delete),
        T(owner_that_has_not_told_since_the_start_is_no_better_one),
        T(slot_that_its_owner_gave_up_goes_to_any_claim),
        T(slot_that_its_owner_claims_again_is_claimed),
        T(the_smaller_id_resolves_a_collision),
        T(primary_that_loses_its_last_slot_follows),
        T(or_is_empty_where_replicas_do_not_migrate),
        T(last_slot_that_goes_elsewhere_after_a_failover_does_not_matter),
        T(late_message_claims_nothing),
        T(replica_that_takes_over_is_followed_by_the_others),
        T(slots_of_a_demoted_primary_go_to_its_shard_alone),
        T(a_primary_that_is_replaced_does_not_say_what_its_successor_has),
        T(slots_that_were_moved_before_a_failover_wait_for_their_owner),
        T(new_primary_that_has_not_told_so_yet_gets_the_slots_as_a_primary),
        T(older_claim_of_a_demotion_is_stale),
        T(older_message_of_the_new_primary_does_not_end_its_role),
        T(two_nodes_that_follow_each_other_do_not_stay_so),
        T(older_claim_that_does_not_end_is_believed),
        T(replica_of_a_replica_moves_up),
        T(update_is_applied_if_it_is_newer),
        T(node_with_an_old_epoch_is_told_and_takes_its_own),
        T(a_primary_without_slots_resolves_a_collision),
        T(take_over_gets_slots_and_the_greatest_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
