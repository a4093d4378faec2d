/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With replication-quorum: when a replica acknowledges again, and a winner of an election confirms
 * (bus/bus_hold.c). */
#include "bus_test.h"

#include "bus/bus_priv.h"
#include "bus/manual_failover.h"
#include "bus/message_layout.h"
#include "bus/topology.h"
#include "bus/voters.h"

enum { EPOCH = 7, HOLD_MS = 8000, NOW_MS = 1000 };

static clusterMap map;
static clusterState map_state;
static clusterBus bus;
static clusterNode *primary, *replica, *voters[2];
static bool held;

static void holdAcks(void *arg, bool on) {
    (void)arg;
    held = on;
}

static int64_t offset(void *arg) {
    (void)arg;
    return 1;
}

static uint64_t stream(void *arg) {
    (void)arg;
    return 1;
}

static bool isLinked(void *arg) {
    (void)arg;
    return true;
}

static int sent_flags;
static void noteFlags(void *arg, busLink *l, const str *bytes) {
    (void)arg;
    (void)l;
    assert_true(bytes->len > AT_FLAGS);
    sent_flags = (uint8_t)strText(bytes)[AT_FLAGS];
}

static const busProcs procs = {.holdAcks = holdAcks,
                               .isLinked = isLinked,
                               .offset = offset,
                               .stream = stream,
                               .send = noteFlags};

static void begin(void) {
    busInit(&bus, &map, &map_state, &procs, NULL, NOW_MS);
    bus.server.quorum = 1;
    bus.rules.timeout_ms = 2000;
}

static int setup(void **state) {
    clusterMapInit(&map, 0);
    primary = addNode(&map, 1);
    replica = addNode(&map, 2);
    clusterMapSetOwner(&map, 0, primary);
    for (int i = 0; i < 2; i++) {
        voters[i] = addNode(&map, 3 + i);
        clusterMapSetOwner(&map, 1 + i, voters[i]);
    }
    clusterMapSetPrimary(&map, replica, primary);
    clusterMapSetPrimary(&map, map.myself, primary);
    clusterMapSetShard(&map, replica, primary->shard_id);
    clusterMapSetShard(&map, map.myself, primary->shard_id);
    clusterMapSetEpochs(&map, EPOCH, 0);
    held = false;
    begin();
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    busClear(&bus);
    clusterMapClear(&map);
    return 0;
}

static void win(void) {
    memcpy(bus.election.primary_id, primary->id, NODE_ID_LEN);
    topologyPromote(&map, EPOCH);
    busHoldConfirmations(&bus);
    busHoldAcks(&bus, HOLD_MS);
}

/* It has answered a PING that was sent after all before, with that current epoch and set. */
static bool isHeldWith(clusterNode *n, uint64_t epoch, voterStamp set) {
    nodeLinks *links = busLinksOf(n);
    links->answered = ++links->pings;
    links->answered_epoch = epoch;
    links->answered_voters = set;
    links->answered_as_owner = clusterNodeVotes(n);
    busHoldAcks(&bus, HOLD_MS);
    return held;
}

static bool isHeldAfter(clusterNode *n, uint64_t epoch) {
    return isHeldWith(n, epoch, map.voters.stamp);
}

static void winner_confirms_when_a_majority_has_voted_in_no_later_election(void **state) {
    win();
    assert_true(held);
    assert_memory_equal(map.held_for, primary->id, NODE_ID_LEN);
    assert_true(map.changed & CLUSTER_MAP_SYNC); /* in the file before anything is sent */
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldAfter(voters[1], EPOCH + 1));
    assert_false(isHeldAfter(primary, EPOCH)); /* for the place that it has had */
    assert_int_equal(map.held_for[0], '\0');
}

/* The primary that it has replaced since may have voted in the later election. */
static void owner_that_had_no_slots_when_it_replied_does_not_count(void **state) {
    clusterNode *other = addNode(&map, 5);
    win();
    assert_true(isHeldAfter(other, EPOCH));
    assert_true(isHeldAfter(voters[1], EPOCH));
    clusterMapSetOwner(&map, 1, other);
    assert_false(clusterNodeVotes(voters[0]));
    busHoldAcks(&bus, HOLD_MS);
    assert_true(held);
    assert_false(isHeldAfter(primary, EPOCH));
}

/* A PONG that answers what was sent after the election. */
static bool isHeldAfterPong(clusterNode *n, uint8_t own_flags) {
    busLink *link = busLinksOf(n)->to;
    message m = {.type = MESSAGE_PONG,
                 .header = {.sender = n->id,
                            .current_epoch = EPOCH,
                            .epoch = n->epoch,
                            .slots = (const uint8_t *)clusterNodeSlots(n),
                            .bus_port = n->bus_port,
                            .own_flags = own_flags}};
    n->links->pings++;
    busTake(&bus, link, &m);
    busHoldAcks(&bus, HOLD_MS);
    return held;
}

static void answer_that_asks_for_the_full_form_does_not_count(void **state) {
    busLink links[2] = {{.is_open = true, .is_greeted = true},
                        {.is_open = true, .is_greeted = true}};
    win();
    for (int i = 0; i < 2; i++) {
        links[i].node = voters[i];
        busLinksOf(voters[i])->to = &links[i];
    }
    assert_true(isHeldAfterPong(voters[0], 0));
    assert_true(isHeldAfterPong(voters[1], MESSAGE_WANTS_FULL));
    assert_false(isHeldAfterPong(voters[1], 0));
    for (int i = 0; i < 2; i++) voters[i]->links->to = NULL;
}

static void winner_confirms_when_the_others_of_the_shard_follow_it(void **state) {
    win();
    assert_true(isHeldAfter(voters[0], EPOCH + 1));
    assert_true(isHeldAfter(voters[1], EPOCH + 1));
    assert_false(isHeldAfter(replica, EPOCH + 1)); /* the old primary may never come back */
}

static void winner_that_starts_again_confirms_nothing_until_then(void **state) {
    win();
    busClear(&bus);
    held = false;
    begin();
    busHoldAcks(&bus, HOLD_MS);
    assert_true(held);
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_false(isHeldAfter(voters[1], EPOCH));
}

/* It is replaced before it has confirmed anything: what it acknowledges then is another matter. */
static void winner_that_follows_another_one_acknowledges(void **state) {
    win();
    clusterMapMakePrimary(&map, replica);
    clusterMapSetOwner(&map, 0, replica);
    topologyFollow(&map, replica);
    bus.now_ms = NOW_MS + HOLD_MS;
    busHoldAcks(&bus, HOLD_MS);
    assert_false(held);
}

static void without_a_quorum_a_winner_is_free(void **state) {
    bus.server.quorum = 0;
    win();
    assert_false(held);
}

static void replica_that_has_told_of_a_failure_waits_for_the_same(void **state) {
    clusterMapSetFlags(&map, map.myself, NODE_PRIMARY_FAILED, 0);
    busHoldAcks(&bus, HOLD_MS);
    assert_true(held);
    clusterMapSetFlags(&map, map.myself, 0, NODE_PRIMARY_FAILED);
    assert_true(isHeldAfter(primary, EPOCH)); /* too early */
    bus.now_ms = NOW_MS + HOLD_MS;
    busHoldAcks(&bus, HOLD_MS);
    assert_true(held);
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldAfter(voters[1], EPOCH + 1));
    assert_false(isHeldAfter(replica, EPOCH + 1));
}

/* ------------------------------------------------------------------ sets of voters */

/* Of all five nodes, this one included. */
static void install(voterRule rule, voterStamp stamp) {
    char ids[5][NODE_ID_LEN];
    clusterMapSetId(&map, map.myself, idOf(5).text);
    for (int i = 0; i < map.node_count; i++) memcpy(ids[i], map.nodes[i]->id, NODE_ID_LEN);
    const voterSet set = {.stamp = stamp, .rule = rule, .ids = ids, .count = map.node_count};
    assert_int_equal(map.node_count, 5);
    assert_true(votersInstall(&map, &set));
}

static const voterStamp present = {5, 2}, later = {5, 3}, of_later_term = {EPOCH + 1, 0};

static void winner_that_is_a_member_counts(void **state) {
    install(VOTERS_ALL, present);
    win();
    assert_int_equal(map.vote_epoch, 0); /* win() has no ballot */
    clusterMapSetEpochs(&map, EPOCH, EPOCH);
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldAfter(voters[1], EPOCH + 1));
    assert_false(isHeldAfter(primary, EPOCH)); /* as the member that it is */
}

/* It has won with the votes of others, after it had given its own to a later candidate. */
static void winner_that_has_voted_in_a_later_election_does_not_count(void **state) {
    install(VOTERS_ALL, present);
    win();
    clusterMapSetEpochs(&map, EPOCH + 1, EPOCH + 1);
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldAfter(primary, EPOCH));
    assert_false(isHeldAfter(voters[1], EPOCH));
}

/* Only owners have places; this node is a voter itself. */
static void old_primary_that_is_no_member_does_not_count(void **state) {
    install(VOTERS_ALL, present);
    char ids[4][NODE_ID_LEN];
    for (int i = 0; i < 2; i++) memcpy(ids[i], voters[i]->id, NODE_ID_LEN);
    memcpy(ids[2], replica->id, NODE_ID_LEN);
    memcpy(ids[3], map.myself->id, NODE_ID_LEN);
    const voterSet without = {.stamp = later, .rule = VOTERS_ALL, .ids = ids, .count = 4};
    assert_true(votersInstall(&map, &without));
    win();
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldAfter(primary, EPOCH));
    assert_false(isHeldAfter(voters[1], EPOCH));
}

static void winner_needs_both_majorities_with_both_rules(void **state) {
    install(VOTERS_BOTH, present);
    win();
    clusterMapSetEpochs(&map, EPOCH, EPOCH);
    assert_true(isHeldAfter(voters[0], EPOCH)); /* one of three owners */
    assert_true(isHeldAfter(voters[1], EPOCH)); /* two of them, two of five members */
    assert_false(isHeldAfter(primary, EPOCH));  /* all owners, and four members */
}

static void place_of_the_old_primary_counts_among_the_owners(void **state) {
    clusterMapMakePrimary(&map, replica);
    clusterMapSetOwner(&map, 3, replica); /* four owners */
    install(VOTERS_BOTH, present);
    win();
    clusterMapSetEpochs(&map, EPOCH, EPOCH);
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldAfter(voters[1], EPOCH)); /* three members, two owners */
    assert_false(isHeldAfter(primary, EPOCH));
}

static void old_primary_with_slots_does_not_count_twice(void **state) {
    win();
    clusterMapSetOwner(&map, 3, primary); /* four owners */
    assert_true(isHeldAfter(primary, EPOCH));
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_false(isHeldAfter(voters[1], EPOCH));
}

static void voters_with_a_later_set_do_not_count(void **state) {
    install(VOTERS_ALL, present);
    win();
    clusterMapSetEpochs(&map, EPOCH, EPOCH);
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_true(isHeldWith(voters[1], EPOCH, later));
    assert_false(isHeldAfter(voters[1], EPOCH));
}

/* What others have answered before is of another set. */
static void no_majority_counts_with_a_set_of_a_later_term(void **state) {
    install(VOTERS_ALL, present);
    win();
    clusterMapSetEpochs(&map, EPOCH, EPOCH);
    assert_true(isHeldAfter(voters[0], EPOCH));
    install(VOTERS_ALL, of_later_term);
    assert_true(isHeldAfter(voters[1], EPOCH));
    assert_true(isHeldAfter(primary, EPOCH));
    assert_false(isHeldAfter(replica, EPOCH)); /* the shard is known */
}

static void tellAndRetract(void) {
    clusterMapSetFlags(&map, map.myself, NODE_PRIMARY_FAILED, 0);
    busHoldAcks(&bus, HOLD_MS);
    clusterMapSetFlags(&map, map.myself, 0, NODE_PRIMARY_FAILED);
    bus.now_ms = NOW_MS + HOLD_MS;
    busHoldAcks(&bus, HOLD_MS);
}

static void replica_that_is_a_member_counts(void **state) {
    install(VOTERS_ALL, present);
    tellAndRetract();
    clusterMapSetEpochs(&map, EPOCH + 1, EPOCH); /* it has heard of a later one */
    assert_true(isHeldAfter(primary, EPOCH));
    assert_false(isHeldAfter(voters[0], EPOCH));
}

static void replica_that_has_voted_in_a_later_election_does_not_count(void **state) {
    install(VOTERS_ALL, present);
    tellAndRetract();
    clusterMapSetEpochs(&map, EPOCH + 1, EPOCH + 1);
    assert_true(isHeldAfter(primary, EPOCH));
    assert_true(isHeldAfter(voters[0], EPOCH));
    assert_false(isHeldAfter(voters[1], EPOCH));
}

/* The order of the other one is refused then: it would take the pause for the answer to it. */
static void pause_is_told_to_the_replica_for_which_it_is(void **state) {
    busLink link = {.is_open = true};
    win();
    clusterMapSetPrimary(&map, replica, map.myself);
    clusterMapSetPrimary(&map, primary, map.myself);
    (void)manualFailoverRequested(&bus.manual, &map, replica, 5000, NOW_MS);
    assert_true(manualFailoverHasPaused(&bus.manual));
    busPong(&bus, &link, replica);
    assert_int_equal(sent_flags & MESSAGE_PAUSED, MESSAGE_PAUSED);
    busPong(&bus, &link, primary);
    assert_int_equal(sent_flags & MESSAGE_PAUSED, 0);
    bus.server.quorum = 0;
    busPong(&bus, &link, primary);
    assert_int_equal(sent_flags & MESSAGE_PAUSED, 0);
}

int test_bus_hold(void);
int test_bus_hold(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(winner_confirms_when_a_majority_has_voted_in_no_later_election),
        CASE(owner_that_had_no_slots_when_it_replied_does_not_count),
        CASE(answer_that_asks_for_the_full_form_does_not_count),
        CASE(winner_confirms_when_the_others_of_the_shard_follow_it),
        CASE(winner_that_starts_again_confirms_nothing_until_then),
        CASE(winner_that_follows_another_one_acknowledges),
        CASE(without_a_quorum_a_winner_is_free),
        CASE(replica_that_has_told_of_a_failure_waits_for_the_same),
        CASE(winner_that_is_a_member_counts),
        CASE(winner_that_has_voted_in_a_later_election_does_not_count),
        CASE(old_primary_that_is_no_member_does_not_count),
        CASE(winner_needs_both_majorities_with_both_rules),
        CASE(place_of_the_old_primary_counts_among_the_owners),
        CASE(old_primary_with_slots_does_not_count_twice),
        CASE(voters_with_a_later_set_do_not_count),
        CASE(no_majority_counts_with_a_set_of_a_later_term),
        CASE(replica_that_is_a_member_counts),
        CASE(replica_that_has_voted_in_a_later_election_does_not_count),
        CASE(pause_is_told_to_the_replica_for_which_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
