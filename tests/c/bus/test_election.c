/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/election.h: candidate and voter, row by row. The simulation (tests/sim/cluster.c) runs
 * them against each other. */
#include "bus_test.h"

#include "base/random.h"
#include "bus/election.h"

enum { T = 3000, D = 100 };

static clusterMap map;
static clusterNode *failed, *other, *fellow, *third;
static election e;
static electionRules rules;
static int64_t vote_ms;
static uint8_t claim[SLOT_BYTES];

static void setSlots(clusterNode *n, int first, int last) {
    for (int slot = first; slot <= last; slot++) clusterMapSetOwner(&map, slot, n);
}

/* This node and `fellow` are replicas of `failed`; `other` and `third` vote. */
static int setup(void **state) {
    randomSeed(1);
    clusterMapInit(&map, 0);
    clusterMapSetId(&map, map.myself, idOf(5).text);
    failed = addNode(&map, 1);
    other = addNode(&map, 2);
    third = addNode(&map, 3);
    fellow = addNode(&map, 4);
    setSlots(failed, 0, 9);
    setSlots(other, 10, 19);
    setSlots(third, 20, 29);
    clusterMapSetPrimary(&map, map.myself, failed);
    clusterMapSetPrimary(&map, fellow, failed);
    clusterMapSetNodeEpoch(&map, failed, 3);
    clusterMapSetNodeEpoch(&map, other, 2);
    clusterMapSetEpochs(&map, 6, 1);
    clusterMapSetFlags(&map, failed, NODE_FAILED, 0);
    memset(&e, 0, sizeof(e));
    vote_ms = 0;
    rules = (electionRules){.timeout_ms = T, .allowed = true, .validity_factor = 10};
    memset(claim, 0, sizeof(claim));
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static electionActs tick(int64_t now_ms) { return electionTick(&e, &map, &rules, now_ms); }

static electionActs vote(clusterNode *from, uint64_t current_epoch) {
    const messageHeader h = {.sender = from->id, .current_epoch = current_epoch};
    return electionVote(&e, &map, from, &h, vote_ms);
}

static void it_waits_by_rank_then_asks_and_wins_with_the_majority(void **state) {
    map.myself->offset = 50;
    fellow->offset = 60;
    assert_true(tick(1000).tell_replicas);
    assert_true(map.myself->flags & NODE_PRIMARY_FAILED);
    assert_int_equal(e.rank, 1);
    assert_in_range(e.start_ms, 1000 + 3 * D, 1000 + 4 * D - 1);
    assert_false(tick(1000 + 3 * D - 1).ask);
    assert_true(tick(1000 + 4 * D).ask);
    assert_int_equal(map.current_epoch, 7);
    assert_int_equal(e.epoch, 7);
    assert_false(tick(1000 + 4 * D + 1).ask);
    assert_false(vote(fellow, 7).won); /* does not vote */
    assert_false(vote(other, 6).won);  /* of an earlier election */
    assert_false(vote(other, 7).won);
    assert_false(vote(other, 7).won); /* counts once */
    map.changed = 0;
    assert_true(vote(third, 8).won);
    assert_true(map.myself->flags & NODE_PRIMARY);
    assert_int_equal(map.myself->slot_count, 10);
    assert_int_equal(map.myself->epoch, 7);
    assert_int_equal(failed->slot_count, 0);
    assert_true(map.changed & CLUSTER_MAP_SYNC);
    assert_false(tick(9000).tell_replicas);
}

static void ranks_that_grow_delay_it_further(void **state) {
    map.myself->offset = 50;
    (void)tick(1000);
    int64_t start_ms = e.start_ms;
    fellow->offset = 60;
    (void)tick(1001);
    assert_int_equal(e.start_ms, start_ms + 2 * D);
    /* A failed primary with a replica and a smaller shard id. */
    clusterNode *replica = addNode(&map, 6);
    clusterMapSetPrimary(&map, replica, other);
    memset(map.myself->shard_id, 'f', NODE_ID_LEN);
    memset(failed->shard_id, 'f', NODE_ID_LEN);
    clusterMapSetFlags(&map, other, NODE_FAILED, 0);
    other->failed_ms = 1000;
    (void)tick(1002);
    assert_int_equal(e.failed_rank, 1);
    assert_int_equal(e.start_ms, start_ms + 3 * D);
}

/* Lower ones first, then the one with more data; a replica without data comes last. */
static void priority_goes_before_the_offset(void **state) {
    map.myself->offset = 50;
    fellow->offset = 60;
    clusterMapSetReplicaPriority(&map, fellow, 1);
    (void)tick(1000);
    assert_int_equal(e.rank, 0);
    clusterMapSetReplicaPriority(&map, map.myself, 2);
    (void)tick(1001);
    assert_int_equal(e.rank, 1);
    clusterMapSetReplicaPriority(&map, fellow, 2);
    (void)tick(1002);
    assert_int_equal(e.rank, 1);
    fellow->offset = 40;
    (void)tick(1003);
    assert_int_equal(e.rank, 0);
    fellow->offset = 50; /* its id is smaller */
    (void)tick(1004);
    assert_int_equal(e.rank, 1);
    fellow->offset = 0;
    clusterMapSetReplicaPriority(&map, fellow, 0);
    (void)tick(1005);
    assert_int_equal(e.rank, 0);
}

/* A sibling that does not know priorities has another order: both would have rank 1, or both 0. */
static void a_sibling_without_priorities_makes_all_compare_by_offset(void **state) {
    clusterNode *mate = addNode(&map, 6);
    clusterMapSetPrimary(&map, mate, failed);
    map.myself->offset = fellow->offset = mate->offset = 50;
    clusterMapSetReplicaPriority(&map, map.myself, 2);
    clusterMapSetReplicaPriority(&map, fellow, 3);
    (void)tick(1000);
    assert_int_equal(e.rank, 1); /* `mate` has priority 0 */
    mate->heard_ms = 900;
    (void)tick(1001);
    assert_int_equal(e.rank, 1); /* `fellow` has the smaller id */
    fellow->offset = 40;
    (void)tick(1002);
    assert_int_equal(e.rank, 0);
    mate->takes_priority = true;
    (void)tick(1003);
    assert_int_equal(e.rank, 1);
    mate->takes_priority = false;
    clusterMapSetFlags(&map, mate, NODE_NO_FAILOVER, 0);
    fellow->offset = 60;
    (void)tick(1004);
    assert_int_equal(e.rank, 0); /* `mate` does not take part */
}

/* Several primaries are gone at once, and marked one after the other. */
static void primaries_that_will_fail_come_first_as_well(void **state) {
    clusterNode *replica = addNode(&map, 6);
    clusterMapSetPrimary(&map, replica, other);
    memset(map.myself->shard_id, 'f', NODE_ID_LEN);
    memset(failed->shard_id, 'f', NODE_ID_LEN);
    map.myself->offset = 70;
    fellow->offset = 60;
    clusterMapSetFlags(&map, fellow, NODE_PRIMARY_FAILED, 0);
    other->heard_ms = 1000;
    other->ping_sent_ms = 1000;
    assert_false(tick(1001 + T / 4).ask);
    assert_int_equal(e.failed_rank, 1);
    /* It has replied. */
    other->ping_sent_ms = 0;
    assert_true(tick(1002 + T / 4).ask);
}

/* Candidates that wait start one after the other when another election has begun. */
static void another_election_postpones_the_start(void **state) {
    clusterNode *replica = addNode(&map, 6);
    clusterMapSetPrimary(&map, replica, other);
    memset(map.myself->shard_id, 'f', NODE_ID_LEN);
    memset(failed->shard_id, 'f', NODE_ID_LEN);
    map.myself->offset = 70;
    clusterMapSetFlags(&map, other, NODE_MAYBE_FAILED, 0);
    (void)tick(1000);
    int64_t start_ms = e.start_ms;
    clusterMapSetEpochs(&map, 7, 1);
    (void)tick(start_ms - 1);
    assert_int_equal(e.start_ms, start_ms - 1 + D);
}

static void without_data_it_waits_longer(void **state) {
    fellow->flags |= NODE_NO_FAILOVER;
    (void)tick(1000);
    assert_int_equal(e.rank, 0);
    assert_in_range(e.start_ms, 1500 + D, 1500 + 2 * D - 1);
}

static void the_best_replica_starts_at_once_if_all_know(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_false(tick(1001).ask);
    fellow->flags |= NODE_PRIMARY_FAILED;
    assert_true(tick(1002).ask);
    assert_true(e.force);
}

static void election_expires_and_is_repeated(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    (void)tick(2001 + 2 * T);
    assert_int_equal(e.step, ELECTION_EXPIRED);
    assert_false(vote(other, 7).won);
    assert_int_equal(e.votes, 0);
    (void)tick(2000 + 4 * T);
    assert_int_equal(e.step, ELECTION_EXPIRED);
    (void)tick(2001 + 4 * T);
    assert_true(tick(2002 + 4 * T).tell_replicas);
    assert_true(tick(4000 + 4 * T).ask);
    assert_int_equal(e.epoch, 8);
}

static void it_ends_when_the_primary_works_or_another_one_is_followed(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    (void)tick(1100);
    assert_int_equal(e.step, ELECTION_IDLE);
    assert_false(map.myself->flags & NODE_PRIMARY_FAILED);
    clusterMapSetFlags(&map, failed, NODE_FAILED, 0);
    (void)tick(1200);
    assert_true(tick(3000).ask);
    (void)vote(other, 7);
    clusterMapSetPrimary(&map, map.myself, third);
    assert_false(vote(third, 7).won); /* it would replace another one */
    assert_true(map.myself->flags & NODE_REPLICA);
}

static void old_data_and_rules_forbid_it(void **state) {
    rules.data_age_max_ms = 1000;
    rules.data_age_ms = 1001;
    assert_false(tick(1000).tell_replicas);
    rules.data_age_ms = 1000;
    rules.allowed = false;
    assert_false(tick(1000).tell_replicas);
    rules.allowed = true;
    assert_true(tick(1000).tell_replicas);
}

static void best_replica_that_all_agree_with_does_not_wait(void **state) {
    map.myself->offset = 70;
    fellow->flags |= NODE_PRIMARY_FAILED;
    electionActs acts = tick(1000);
    assert_true(acts.ask);
    assert_true(acts.tell_replicas);
    assert_true(e.force);
}

static void with_a_quorum_enough_replicas_must_agree_and_none_have_more(void **state) {
    clusterNode *last = addNode(&map, 6);
    clusterMapSetPrimary(&map, last, failed);
    map.myself->offset = 70;
    fellow->offset = 60;
    last->offset =
        80; /* it has not told that the primary has failed: it may have been left behind */
    fellow->heard_ms = last->heard_ms = 100000;
    rules.quorum = 2; /* of three: two must agree */
    (void)tick(100000);
    assert_false(tick(100000 + T).ask);
    assert_int_equal(e.step, ELECTION_DELAYED);
    fellow->flags |= NODE_PRIMARY_FAILED;
    assert_true(tick(100000 + T).ask);
    /* What it has told long ago may have changed. */
    memset(&e, 0, sizeof(e));
    (void)tick(100000 + T + 1);
    assert_false(tick(100000 + 2 * T).ask);
    fellow->heard_ms = 100000 + 2 * T;
    assert_true(tick(100000 + 2 * T + 1).ask);
    /* One that agrees has more. */
    memset(&e, 0, sizeof(e));
    fellow->heard_ms = 200000;
    fellow->offset = 71;
    (void)tick(200000);
    assert_false(tick(200000 + T).ask);
    /* One that is being synchronised does not count. */
    fellow->offset = 0;
    assert_false(tick(200000 + T).ask);
    /* With a quorum of one all three must agree. */
    fellow->offset = 70;
    rules.quorum = 1;
    assert_false(tick(200000 + T).ask);
    last->offset = 70;
    last->heard_ms = 200000;
    last->flags |= NODE_PRIMARY_FAILED;
    assert_true(tick(200000 + T).ask);
}

/* The primary has started again before it failed: it has begun another stream, in which offsets are
 * smaller, and one replica was not linked to it since. */
static void with_a_quorum_offsets_of_two_streams_are_not_compared(void **state) {
    clusterNode *last = addNode(&map, 6);
    clusterMapSetPrimary(&map, last, failed);
    map.myself->offset = last->offset = 70;
    map.myself->stream = last->stream = 2;
    fellow->offset = 9000;
    fellow->stream = 1;
    fellow->heard_ms = last->heard_ms = 100000;
    clusterMapSetFlags(&map, fellow, NODE_PRIMARY_FAILED, 0);
    rules.quorum = 2; /* of three: two must agree */
    (void)tick(100000);
    assert_false(tick(100000 + T).ask);
    clusterMapSetFlags(&map, last, NODE_PRIMARY_FAILED, 0);
    assert_true(tick(100000 + T).ask);
    /* This one has the former stream. */
    memset(&e, 0, sizeof(e));
    map.myself->offset = 9000;
    map.myself->stream = 1;
    fellow->heard_ms = last->heard_ms = 200000;
    fellow->stream = 2;
    (void)tick(200000);
    assert_false(tick(200000 + T).ask);
    assert_false(electionMayForce(&map, 2, T, 200000));
}

static void with_a_lease_the_election_begins_after_it(void **state) {
    map.myself->offset = fellow->offset = 70;
    fellow->flags |= NODE_PRIMARY_FAILED;
    fellow->heard_ms = 1000;
    rules.quorum = 1;
    rules.lease_ms = 1500;
    (void)tick(999);
    assert_false(tick(1000).ask);
    assert_false(tick(2529).ask); /* a 50th more, as clocks differ */
    assert_true(tick(2530).ask);
}

/* Others may have heard that it follows the new primary, and this one not. */
static void with_a_quorum_a_former_primary_of_the_shard_is_one_of_the_replicas(void **state) {
    clusterNode *former = addNode(&map, 6);
    memcpy(former->shard_id, failed->shard_id, NODE_ID_LEN);
    map.myself->offset = fellow->offset = 70;
    fellow->flags |= NODE_PRIMARY_FAILED;
    fellow->heard_ms = 1000;
    rules.quorum = 1; /* of three */
    (void)tick(1000);
    assert_false(tick(1000 + T).ask);
    rules.quorum = 2;
    assert_true(tick(1000 + T).ask);
}

static void with_a_quorum_an_order_by_force_waits_as_an_election_does(void **state) {
    map.myself->offset = 70;
    fellow->offset = 71;
    fellow->heard_ms = 1000;
    assert_true(electionMayForce(&map, 0, T, 1000));
    assert_false(electionMayForce(&map, 2, T, 1000)); /* it does not know of the failure */
    map.myself->flags |= NODE_PRIMARY_FAILED;
    assert_true(electionMayForce(&map, 2, T, 1000));
    assert_false(electionMayForce(&map, 1, T, 1000));
    fellow->flags |= NODE_PRIMARY_FAILED;
    assert_false(electionMayForce(&map, 1, T, 1000)); /* it has more */
    fellow->offset = 70;
    assert_true(electionMayForce(&map, 1, T, 1000));
    rules.quorum = 1;
    rules.lease_ms = 1000;
    rules.manual_end_ms = 10000;
    rules.is_forced = true;
    assert_false(tick(1000).ask);
    assert_true(tick(2020).ask);
}

/* Else the next election of a replica of this node would begin too early. */
static void flag_of_a_failed_primary_ends_with_the_role(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    assert_true(map.myself->flags & NODE_PRIMARY_FAILED);
    (void)vote(other, 7);
    assert_true(vote(third, 7).won);
    assert_false(map.myself->flags & NODE_PRIMARY_FAILED);
    clusterMapSetFlags(&map, fellow, NODE_PRIMARY_FAILED, 0);
    clusterMapSetPrimary(&map, fellow, map.myself);
    assert_false(fellow->flags & NODE_PRIMARY_FAILED);
}

static void claim_with_the_same_or_a_greater_epoch_ends_it(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    electionClaim(&e, &map, third, 9); /* of another shard */
    assert_int_equal(e.step, ELECTION_ASKED);
    clusterMapMakePrimary(&map, fellow);
    setSlots(fellow, 0, 9);
    electionClaim(&e, &map, fellow, 6); /* older */
    assert_int_equal(e.step, ELECTION_ASKED);
    electionClaim(&e, &map, fellow, 7);
    assert_int_equal(e.step, ELECTION_IDLE);
}

/* The majority has voted for another one. */
static void another_winner_of_its_epoch_ends_it(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    electionClaim(&e, &map, third, 7);
    assert_int_equal(e.step, ELECTION_IDLE);
    (void)tick(2001);
    assert_true(tick(3000).ask);
    assert_int_equal(e.epoch, 8);
}

static void votes_do_not_count_after_the_end(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    vote_ms = 2001 + 2 * T;
    (void)vote(other, 7);
    assert_false(vote(third, 7).won);
    assert_int_equal(e.votes, 0);
}

static void votes_do_not_count_when_the_data_is_gone(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    (void)vote(other, 7);
    map.myself->offset = 0; /* a full synchronisation has begun */
    assert_false(vote(third, 7).won);
}

/* Else it would elect a second winner of its epoch, with the vote of its primary's place. */
static void winner_does_not_vote_in_the_epoch_that_it_has_won(void **state) {
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    (void)vote(other, 7);
    assert_true(vote(third, 7).won);
    clusterMapSetPrimary(&map, fellow, other);
    const messageHeader h = {.sender = fellow->id,
                             .current_epoch = 7,
                             .epoch = 2,
                             .flags = MESSAGE_FORCE_ACK,
                             .slots = claim};
    assert_false(electionRequest(&map, fellow, &h, -5000, 3000).granted);
    assert_int_equal(map.vote_epoch, 7);
}

static void primaries_whose_replicas_have_no_data_are_counted(void **state) {
    assert_int_equal(electionCountUnsynced(&map), 1);
    fellow->offset = 1;
    assert_int_equal(electionCountUnsynced(&map), 0);
    clusterMapSetFlags(&map, fellow, NODE_FAILED, 0);
    assert_int_equal(electionCountUnsynced(&map), 1);
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    assert_int_equal(electionCountUnsynced(&map), 0);
}

/* The greatest epoch leaves none for another election; nothing may overflow or stop the process. */
static void there_is_no_election_after_the_greatest_epoch(void **state) {
    clusterMapSetEpochs(&map, UINT64_MAX, 1);
    map.myself->offset = 70;
    (void)tick(1000);
    assert_false(tick(2000).ask);
    assert_int_equal(map.current_epoch, UINT64_MAX);
    (void)clusterMapBumpEpoch(&map);
    assert_int_equal(map.current_epoch, UINT64_MAX);
}

/* ------------------------------------------------------------------ refused votes */

static void nack(clusterNode *from, uint64_t epoch, unsigned why) {
    electionNack(&e, &map, from, epoch, why);
}

/* Of three voters one has failed: one refusal leaves no majority. */
static void refused_votes_end_an_election_without_a_majority(void **state) {
    map.myself->offset = 70;
    nack(other, 7, NACK_ALREADY_VOTED); /* nothing was asked */
    (void)tick(1000);
    assert_true(tick(2000).ask);
    nack(other, 6, NACK_ALREADY_VOTED);  /* of an earlier election */
    nack(fellow, 7, NACK_ALREADY_VOTED); /* does not vote */
    assert_int_equal(e.nacks, 0);
    assert_int_equal(e.step, ELECTION_ASKED);
    nack(other, 7, NACK_STALE_CONFIG);
    assert_int_equal(e.step, ELECTION_IDLE);
    assert_false(vote(other, 7).won); /* and counts no votes any more */
    assert_false(vote(third, 7).won);
    assert_int_equal(map.myself->slot_count, 0);
    (void)tick(2001);
    assert_in_range(e.start_ms, 2001 + 2 * D, 2001 + 4 * D - 1);
    assert_true(tick(2001 + 4 * D).ask);
    assert_int_equal(e.epoch, 8);
    assert_int_equal(e.nacks, 0);
    (void)vote(other, 8);
    assert_true(vote(third, 8).won);
}

static void refused_votes_are_counted_once_and_wait_for_the_rest(void **state) {
    map.myself->offset = 70;
    clusterNode *fourth = addNode(&map, 6), *fifth = addNode(&map, 7);
    setSlots(fourth, 30, 39);
    setSlots(fifth, 40, 49);
    (void)tick(1000);
    assert_true(tick(2000).ask);
    nack(other, 7, NACK_ALREADY_VOTED);
    nack(other, 7, NACK_ALREADY_VOTED);
    assert_int_equal(e.nacks, 1);
    assert_int_equal(e.step, ELECTION_ASKED); /* three are left, and three are needed */
    clusterMapSetFlags(&map, other, NODE_FAILED, 0);
    nack(failed, 7, NACK_EPOCH_OLD); /* a failed one is out of reach only once */
    assert_int_equal(e.step, ELECTION_ASKED);
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    clusterMapSetFlags(&map, failed, NODE_FAILED, 0);
    (void)vote(third, 7);
    (void)vote(fourth, 7);
    assert_int_equal(e.votes, 2);
    assert_true(vote(fifth, 7).won);
}

static void other_reasons_are_no_end(void **state) {
    const unsigned reasons[] = {NACK_NONE,       NACK_NOT_SAFE,   NACK_IS_PRIMARY,
                                NACK_NO_PRIMARY, NACK_PRIMARY_UP, NACK_REASONS};
    map.myself->offset = 70;
    (void)tick(1000);
    assert_true(tick(2000).ask);
    for (size_t i = 0; i < COUNT_OF(reasons); i++) {
        nack(other, 7, reasons[i]);
        nack(third, 7, reasons[i]);
    }
    assert_int_equal(e.nacks, 0);
    (void)vote(other, 7);
    assert_true(vote(third, 7).won); /* a voter that was not ready may vote after all */
}

/* If all are refused, elections get as rare as without refusals. */
static void elections_that_are_refused_get_rare(void **state) {
    int64_t now_ms = 1000, waited_ms = 0;
    map.myself->offset = 70;
    for (int i = 0; i < 12; i++) {
        (void)tick(now_ms);
        assert_int_equal(e.step, ELECTION_DELAYED);
        assert_false(tick(e.start_ms - 1).ask);
        waited_ms = e.start_ms - now_ms;
        now_ms = e.start_ms;
        assert_true(tick(now_ms).ask);
        nack(other, e.epoch, NACK_STALE_CONFIG);
    }
    assert_in_range(waited_ms, 4 * T, 4 * T + 3 * D);
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    (void)tick(now_ms);
    assert_int_equal(e.refusals, 0);
}

/* By order, too: each election has an epoch of its own. */
static void refused_order_is_repeated_after_a_delay(void **state) {
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    map.myself->offset = 70;
    rules.manual_end_ms = 9000;
    assert_true(tick(1000).ask);
    nack(other, 7, NACK_ALREADY_VOTED);
    assert_int_equal(e.step, ELECTION_ASKED); /* its primary votes */
    nack(third, 7, NACK_ALREADY_VOTED);
    assert_int_equal(e.step, ELECTION_IDLE);
    assert_false(tick(1001).ask);
    assert_false(tick(1000 + D).ask);
    assert_true(tick(1001 + 2 * D).ask);
    assert_int_equal(e.epoch, 8);
    nack(other, 8, NACK_ALREADY_VOTED);
    nack(third, 8, NACK_ALREADY_VOTED);
    electionReset(&e); /* a new order does not wait */
    assert_true(tick(1002 + 2 * D).ask);
}

/* ------------------------------------------------------------------ the voter */

/* `fellow` asks for the place of `failed`; this node votes. */
static electionVerdict request(uint64_t current, uint64_t epoch, uint8_t flags, int64_t now_ms) {
    const messageHeader h = {.sender = fellow->id,
                             .current_epoch = current,
                             .epoch = epoch,
                             .flags = flags,
                             .slots = claim};
    for (int slot = 0; slot < 10; slot++) claim[slot / 8] |= (uint8_t)(1 << slot % 8);
    return electionRequest(&map, fellow, &h, 0, now_ms);
}

static void becomeVoter(void) {
    clusterMapMakePrimary(&map, map.myself);
    setSlots(map.myself, 30, 39);
}

/* FORGET of a failing primary before its replica is elected. */
static void replica_of_a_forgotten_primary_gets_a_vote(void **state) {
    testId id = idOf(1);
    memcpy(id.text, failed->id, NODE_ID_LEN);
    becomeVoter();
    clusterMapRemove(&map, failed);
    messageHeader h = {.sender = fellow->id, .current_epoch = 7, .epoch = 3, .slots = claim};
    for (int slot = 0; slot < 10; slot++) claim[slot / 8] |= (uint8_t)(1 << slot % 8);
    assert_false(electionRequest(&map, fellow, &h, 0, 5000).granted);
    h.primary = id.text;
    assert_false(electionRequest(&map, fellow, &h, 0, 5000).granted); /* it was never known */
    clusterMapForbid(&map, sliceMake(id.text, NODE_ID_LEN), 4000);
    clusterMapSetOwner(&map, 9, other);
    assert_false(electionRequest(&map, fellow, &h, 0, 5000).granted); /* the slot has an owner */
    clusterMapSetOwner(&map, 9, NULL);
    assert_true(electionRequest(&map, fellow, &h, 0, 5000).granted);
}

static void one_vote_in_each_epoch(void **state) {
    assert_false(request(7, 3, 0, 5000).granted); /* a replica does not vote */
    becomeVoter();
    assert_false(request(7, 3, 0, 1999).granted); /* just started */
    assert_false(request(5, 3, 0, 5000).granted); /* an old epoch */
    map.changed = 0;
    assert_true(request(7, 3, 0, 5000).granted);
    assert_int_equal(map.vote_epoch, 7);
    assert_int_equal(map.current_epoch, 7);
    assert_true(map.changed & CLUSTER_MAP_SYNC); /* on disk before it is sent */
    assert_false(request(7, 3, 0, 5000).granted);
    assert_true(request(8, 3, 0, 5000).granted);
}

/* With a quorum: its replica with an order may have been elected by others meanwhile, and votes in
 * its place. */
static void no_vote_of_a_primary_that_may_have_been_replaced_by_order(void **state) {
    becomeVoter();
    clusterMapSetPause(&map, other->id, 6);
    assert_true(request(7, 3, 0, 5000).granted); /* no earlier one than that of the order */
    assert_false(request(8, 3, 0, 5000).granted);
    assert_int_equal(map.vote_epoch, 7);
    clusterMapSetPause(&map, fellow->id, 6); /* who asks has the order */
    assert_true(request(9, 3, MESSAGE_FORCE_ACK, 5000).granted);
    clusterMapSetPause(&map, other->id, 6);
    assert_false(request(10, 3, 0, 5000).granted);
    clusterMapSetPause(&map, NULL, 0);
    assert_true(request(10, 3, 0, 5000).granted);
}

/* With a quorum: it was elected, and does not know yet whether another one was after it. */
static void no_vote_of_a_winner_that_confirms_nothing(void **state) {
    becomeVoter();
    clusterMapSetHold(&map, failed->id, 6);
    assert_false(request(7, 3, 0, 5000).granted);
    assert_true(map.vote_epoch < 7);
    clusterMapSetHold(&map, NULL, 0);
    assert_true(request(8, 3, 0, 5000).granted);
}

/* As of a released server, which has no replication-quorum; its primary had it. */
static void no_vote_for_a_replica_without_the_quorum_of_its_primary(void **state) {
    becomeVoter();
    failed->heard_ms = fellow->heard_ms = 1000;
    failed->stream = 5;
    assert_true(electionLacksQuorum(&map, fellow));
    assert_false(request(7, 3, 0, 5000).granted);
    assert_false(request(7, 3, MESSAGE_FORCE_ACK, 5000).granted);
    assert_true(map.vote_epoch < 7);
    /* By order, while the primary works. */
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    assert_true(request(7, 3, MESSAGE_FORCE_ACK, 5000).granted);
    clusterMapSetFlags(&map, failed, NODE_FAILED, 0);
    /* What is known if the primary has not been heard since the start of this node. */
    failed->heard_ms = failed->stream = 0;
    assert_true(request(8, 3, 0, 5000).granted);
    map.myself->stream = 6;
    assert_false(request(9, 3, 0, 5000).granted);
    map.myself->stream = 0;
    clusterNode *mate = addNode(&map, 6);
    clusterMapSetPrimary(&map, mate, failed);
    mate->stream = 5;
    assert_false(request(9, 3, 0, 5000).granted);
    fellow->stream = 5;
    assert_false(electionLacksQuorum(&map, fellow));
    /* The primary has told that it has none. */
    failed->heard_ms = 1000;
    fellow->stream = 0;
    assert_false(electionLacksQuorum(&map, fellow));
    assert_true(request(10, 3, 0, 5000).granted);
}

static void no_vote_while_the_primary_is_up_unless_forced(void **state) {
    becomeVoter();
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    assert_false(request(7, 3, 0, 5000).granted);
    assert_true(request(7, 3, MESSAGE_FORCE_ACK, 5000).granted);
    clusterMapSetPrimary(&map, fellow, NULL);
    assert_false(request(8, 3, MESSAGE_FORCE_ACK, 5000).granted);
    clusterMapMakePrimary(&map, fellow);
    assert_false(request(9, 3, MESSAGE_FORCE_ACK, 5000).granted);
}

static void epoch_that_cannot_be_right_gets_no_vote(void **state) {
    becomeVoter();
    assert_false(request(UINT64_MAX, 3, 0, 5000).granted);
    assert_int_equal(map.current_epoch, 6);
    assert_true(request(7, 3, 0, 5000).granted);
}

static void older_claim_gets_an_update_instead_of_a_vote(void **state) {
    becomeVoter();
    clusterMapSetNodeEpoch(&map, other, 5);
    clusterMapSetOwner(&map, 4, other);
    electionVerdict v = request(7, 3, 0, 5000);
    assert_false(v.granted);
    assert_ptr_equal(v.update, other);
    assert_int_equal(map.vote_epoch, 1);
}

static void refusals_have_reasons(void **state) {
    assert_int_equal(request(7, 3, 0, 5000).nack, NACK_NONE); /* a replica does not vote */
    becomeVoter();
    assert_int_equal(request(7, 3, 0, 1999).nack, NACK_NOT_SAFE);
    assert_int_equal(request(5, 3, 0, 5000).nack, NACK_EPOCH_OLD);
    assert_int_equal(request(7, 3, 0, 5000).nack, NACK_NONE); /* granted */
    assert_int_equal(request(7, 3, 0, 5000).nack, NACK_ALREADY_VOTED);
    clusterMapSetNodeEpoch(&map, other, 5);
    clusterMapSetOwner(&map, 4, other);
    assert_int_equal(request(8, 3, 0, 5000).nack, NACK_STALE_CONFIG);
    clusterMapSetFlags(&map, failed, 0, NODE_FAILED);
    assert_int_equal(request(8, 3, 0, 5000).nack, NACK_PRIMARY_UP);
    clusterMapSetHold(&map, failed->id, 6);
    assert_int_equal(request(8, 3, MESSAGE_FORCE_ACK, 5000).nack, NACK_NOT_SAFE);
    clusterMapSetPrimary(&map, fellow, NULL);
    assert_int_equal(request(8, 3, 0, 5000).nack, NACK_NO_PRIMARY);
    clusterMapMakePrimary(&map, fellow);
    assert_int_equal(request(8, 3, 0, 5000).nack, NACK_IS_PRIMARY);
}

int test_election(void);
int test_election(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(it_waits_by_rank_then_asks_and_wins_with_the_majority),
        CASE(ranks_that_grow_delay_it_further),
        CASE(priority_goes_before_the_offset),
        CASE(a_sibling_without_priorities_makes_all_compare_by_offset),
        CASE(primaries_that_will_fail_come_first_as_well),
        CASE(another_election_postpones_the_start),
        CASE(without_data_it_waits_longer),
        CASE(the_best_replica_starts_at_once_if_all_know),
        CASE(election_expires_and_is_repeated),
        CASE(it_ends_when_the_primary_works_or_another_one_is_followed),
        CASE(old_data_and_rules_forbid_it),
        CASE(best_replica_that_all_agree_with_does_not_wait),
        CASE(flag_of_a_failed_primary_ends_with_the_role),
        CASE(with_a_quorum_enough_replicas_must_agree_and_none_have_more),
        CASE(with_a_quorum_offsets_of_two_streams_are_not_compared),
        CASE(with_a_quorum_a_former_primary_of_the_shard_is_one_of_the_replicas),
        CASE(with_a_quorum_an_order_by_force_waits_as_an_election_does),
        CASE(with_a_lease_the_election_begins_after_it),
        CASE(claim_with_the_same_or_a_greater_epoch_ends_it),
        CASE(another_winner_of_its_epoch_ends_it),
        CASE(votes_do_not_count_after_the_end),
        CASE(votes_do_not_count_when_the_data_is_gone),
        CASE(winner_does_not_vote_in_the_epoch_that_it_has_won),
        CASE(primaries_whose_replicas_have_no_data_are_counted),
        CASE(there_is_no_election_after_the_greatest_epoch),
        CASE(refused_votes_end_an_election_without_a_majority),
        CASE(refused_votes_are_counted_once_and_wait_for_the_rest),
        CASE(other_reasons_are_no_end),
        CASE(elections_that_are_refused_get_rare),
        CASE(refused_order_is_repeated_after_a_delay),
        CASE(refusals_have_reasons),
        CASE(epoch_that_cannot_be_right_gets_no_vote),
        CASE(replica_of_a_forgotten_primary_gets_a_vote),
        CASE(one_vote_in_each_epoch),
        CASE(no_vote_of_a_primary_that_may_have_been_replaced_by_order),
        CASE(no_vote_of_a_winner_that_confirms_nothing),
        CASE(no_vote_for_a_replica_without_the_quorum_of_its_primary),
        CASE(no_vote_while_the_primary_is_up_unless_forced),
        CASE(older_claim_gets_an_update_instead_of_a_vote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
