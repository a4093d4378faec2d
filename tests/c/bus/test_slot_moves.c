/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/slot_source.h and bus/slot_target.h: what neither side may do during a hand-over.
 * This node has slots 0-9 and the epoch 3, `other` has 10-19 and the epoch 4. */
#include "bus_test.h"

#include "bus/slot_source.h"
#include "bus/slot_target.h"
#include "bus/topology.h"

enum { PAUSE_MS = 300, MANUAL_MS = 5000, NODE_TIMEOUT_MS = 15000, SILENCE_MS = 60000 };

static clusterMap map;
static clusterNode *other, *third;
static slotMoves moves;
/* What was asked for, and what the owner says. */
static uint32_t sent;
static bool is_behind, is_still, lacks_quorum, finished;
static int hidden; /* calls that hide slots */

static void sendActs(void *arg, slotJob *job, uint32_t acts) { sent |= acts; }
static int64_t heardMs(void *arg, const slotJob *job) { return moves.now_ms; }
static void ignoreJob(void *arg, slotJob *job) {}
static void ignore(void *arg) {}
static bool canStream(void *arg, const slotJob *job) { return true; }
static size_t nothing(void *arg, const slotJob *job) { return 0; }
static uint64_t allKeys(void *arg, const slotJob *job) { return UINT64_MAX; }
static void hideSlots(void *arg, const slotJob *job, bool on) { hidden += on; }
static bool cleanSome(void *arg, slotJob *job) { return false; }
static void finishJob(void *arg, const slotJob *job) { finished = true; }
static bool isStill(void *arg) { return is_still; }
static bool isBehind(void *arg, const slotJob *job) { return is_behind; }
static bool lacksQuorum(void *arg, const slotJob *job) { return lacks_quorum; }
static uint64_t noKeys(void *arg, int slot) { return 0; }
static bool deletesNone(void *arg) { return false; }

static const slotMovesProcs procs = {.send = sendActs,
                                     .close = ignoreJob,
                                     .heardMs = heardMs,
                                     .ended = ignoreJob,
                                     .connect = ignoreJob,
                                     .canStream = canStream,
                                     .beginStream = ignoreJob,
                                     .endStream = ignoreJob,
                                     .unsent = nothing,
                                     .queued = nothing,
                                     .sentKeys = allKeys,
                                     .sentMs = heardMs,
                                     .pause = ignore,
                                     .hide = hideSlots,
                                     .clean = cleanSome,
                                     .finish = finishJob,
                                     .tellAll = ignore,
                                     .isStill = isStill,
                                     .markStream = ignoreJob,
                                     .isBehind = isBehind,
                                     .lacksQuorum = lacksQuorum,
                                     .keys = noKeys,
                                     .deletes = deletesNone};

static int setup(void **state) {
    clusterMapInit(&map, 1000);
    clusterMapSetId(&map, map.myself, idOf(5).text);
    other = addNode(&map, 1);
    third = addNode(&map, 9);
    other->unclaims = third->unclaims = true;
    for (int slot = 0; slot < 20; slot++)
        clusterMapSetOwner(&map, slot, slot < 10 ? map.myself : other);
    clusterMapSetNodeEpoch(&map, map.myself, 3);
    clusterMapSetNodeEpoch(&map, other, 4);
    clusterMapSetEpochs(&map, 4, 0);
    slotMovesInit(&moves, &map, &procs, NULL);
    moves.now_ms = 100000;
    moves.rules = (slotMovesRules){.pause_ms = PAUSE_MS,
                                   .manual_timeout_ms = MANUAL_MS,
                                   .node_timeout_ms = NODE_TIMEOUT_MS,
                                   .silence_ms = SILENCE_MS};
    sent = 0;
    is_behind = is_still = lacks_quorum = finished = false;
    hidden = 0;
    return 0;
}

static int teardown(void **state) {
    slotMovesForget(&moves);
    slotLogClear(&moves.log);
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static slotRanges rangesOf(int first, int last) {
    const slotRange item = {.first = first, .last = last};
    return slotRangesCopy(&item, 1);
}

static bool writesWait(int slot) {
    slotMask mask = {{0}};
    int64_t end_ms = slotSourcePaused(&moves, &mask);
    return slotMaskHas(&mask, slot) && moves.now_ms < end_ms;
}

static void pass(int64_t ms) {
    moves.now_ms += ms;
    slotMovesTick(&moves);
}

/* A job of slots 0-4 to `other`, whose target has all but what is still written. */
static slotJob *export(void) {
    slotRanges ranges = rangesOf(0, 4);
    slotJob *job = slotSourceBegin(&moves, &ranges, other);
    slotMovesStep(&moves);
    slotSourceOn(&moves, job, JOB_OPENED);
    slotSourceOn(&moves, job, JOB_SENT);
    slotSourceOn(&moves, job, JOB_REPLIED_OK);
    slotMovesStep(&moves);
    slotSourceOn(&moves, job, JOB_SNAPSHOT_SENT);
    slotSourceOn(&moves, job, JOB_REQUEST_PAUSE);
    slotMovesStep(&moves);
    return job;
}

/* The same, granted. */
static slotJob *grant(void) {
    slotJob *job = export();
    slotSourceOn(&moves, job, JOB_REQUEST_FAILOVER);
    assert_int_equal(job->state, JOB_GRANTED);
    return job;
}

static const char a_name[] = "0123456789abcdef0123456789abcdef01234567";

static slotJob *import(void) {
    slotRanges ranges = rangesOf(10, 14);
    slotJob *job = slotTargetBegin(&moves, sliceMake(other->id, NODE_ID_LEN),
                                   sliceMake(a_name, SLOT_IMPORT_NAME_LEN), &ranges);
    slotTargetOn(&moves, job, JOB_ACK);
    slotTargetOn(&moves, job, JOB_SNAPSHOT_EOF);
    return job;
}

/* A job of slots 10-14 from `other`, which has granted them and, if `given`, has told so. */
static slotJob *getGrant(bool given) {
    slotJob *job = import();
    slotMovesStep(&moves);
    slotTargetOn(&moves, job, JOB_PAUSED_WORD);
    slotTargetOn(&moves, job, JOB_GRANTED_WORD);
    assert_int_equal(job->state, JOB_TAKING);
    for (int slot = 10; slot < 15 && given; slot++) clusterMapSetClaimed(&map, slot, false);
    return job;
}

static void receive(clusterNode *from, uint64_t epoch, int first, int last) {
    uint8_t claim[SLOT_BYTES] = {0};
    const busRules rules = {.replica_migration = true};
    for (int slot = first; slot <= last; slot++) claim[slot / 8] |= (uint8_t)(1 << slot % 8);
    const messageHeader h = {
        .sender = from->id, .epoch = epoch, .current_epoch = epoch, .slots = claim};
    (void)topologyHeader(&map, from, &h, &rules);
}

/* ------------------------------------------------------------------ the source */

static void writes_wait_from_the_grant_on_until_the_target_owns_the_slots(void **state) {
    slotJob *job = grant();
    pass(20 * PAUSE_MS);
    assert_true(writesWait(0));
    assert_false(writesWait(5));
    assert_int_equal(slotSourceTakes(job, 0), SLOT_CHANGE_LATE);
    receive(other, 5, 0, 4);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_SUCCESS);
    assert_false(writesWait(0));
}

static void source_resumes_writes_only_when_the_grant_has_no_effect_any_more(void **state) {
    slotJob *job = grant();
    slotSourceLost(&moves, job, "lost");
    for (int pongs = 1; pongs <= 3; pongs++) {
        other->pong_ms = moves.now_ms;
        pass(1);
    }
    pass(SLOT_LEASE_MS - 100);
    assert_int_equal(job->state, JOB_GRANTED); /* the target may take them still */
    assert_true(writesWait(0));
    pass(100 + SLOT_LEASE_MARGIN_MS);
    assert_int_equal(job->state, JOB_FAILED);
    assert_false(writesWait(0));
}

static void source_asks_the_target_before_it_resumes_writes(void **state) {
    slotJob *job = grant();
    slotSourceLost(&moves, job, "lost");
    pass(10 * SLOT_LEASE_MS);
    assert_int_equal(job->state, JOB_GRANTED);
    assert_true(writesWait(0));
    for (int pongs = 1; pongs <= 3; pongs++) {
        other->pong_ms = moves.now_ms;
        pass(1);
    }
    assert_int_equal(job->state, JOB_FAILED);
}

/* The replica that takes over would claim the slots, as it may not have heard of the target's
 * claim: what it writes until then would be lost. */
static void nothing_is_granted_during_a_failover(void **state) {
    is_still = true;
    slotJob *job = export();
    assert_int_equal(job->state, JOB_WAITING_PAUSE);
    is_still = false;
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_PAUSED);
    is_still = true;
    sent = 0;
    slotSourceOn(&moves, job, JOB_REQUEST_FAILOVER);
    assert_int_equal(job->state, JOB_FAILED);
    assert_false(sent & JOB_ACT_SEND_GRANTED);
    assert_false(clusterMapHasUnclaimed(&map));
}

static void a_granted_job_is_cancelled_when_the_target_cannot_take_the_slots(void **state) {
    slotJob *job = grant();
    assert_true(slotSourceCancelAll(&moves));
    assert_int_equal(job->state, JOB_GRANTED);
    assert_true(writesWait(0));
    other->flags |= NODE_FAILED;
    pass(SLOT_LEASE_MS + SLOT_LEASE_MARGIN_MS);
    assert_int_equal(job->state, JOB_CANCELLED);
    assert_false(writesWait(0));
}

static void granted_slots_are_not_claimed_until_the_job_has_failed(void **state) {
    slotJob *job = grant();
    assert_true(clusterMapIsMine(&map, 0));
    assert_false(clusterMapIsClaimed(&map, 0));
    assert_true(clusterMapIsClaimed(&map, 5));
    other->flags |= NODE_FAILED;
    slotSourceLost(&moves, job, "lost");
    pass(SLOT_LEASE_MS + SLOT_LEASE_MARGIN_MS);
    assert_int_equal(job->state, JOB_FAILED);
    assert_true(clusterMapIsClaimed(&map, 0));
    assert_true(map.myself->epoch > 5); /* than what the target can have taken them with */
}

static void writes_wait_if_the_target_has_passed_on_a_slot_that_it_has_taken(void **state) {
    slotJob *job = grant();
    receive(third, 6, 2, 2);
    pass(1);
    assert_int_equal(job->state, JOB_GRANTED);
    assert_true(writesWait(0));
    clusterMapSetNodeEpoch(&map, other, 5);
    receive(other, 5, 0, 1);
    receive(other, 5, 0, 4);
    pass(1);
    assert_ptr_equal(clusterMapOwner(&map, 2), third);
    assert_int_not_equal(job->state, JOB_GRANTED); /* nothing of it is here any more */
}

static void claim_from_before_the_grant_is_not_one_after_it(void **state) {
    slotJob *job = grant();
    clusterMapSetNodeEpoch(&map, other, 2);
    receive(other, 3, 0, 4);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_GRANTED);
    assert_true(clusterMapIsMine(&map, 0));
}

static void target_of_valkey_may_claim_granted_slots_with_any_epoch(void **state) {
    slotJob *job = grant();
    other->unclaims = false;
    clusterMapSetNodeEpoch(&map, other, 2);
    receive(other, 2, 0, 4);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_SUCCESS);
}

/* ------------------------------------------------------------------ the target */

static void slots_are_taken_with_the_greatest_epoch(void **state) {
    slotJob *job = getGrant(true);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_SUCCESS);
    assert_true(clusterMapIsMine(&map, 10));
    assert_int_equal(map.myself->epoch, 5);
    assert_true(finished);
}

static void grant_that_comes_after_its_lease_has_no_effect(void **state) {
    slotJob *job = getGrant(true);
    pass(SLOT_LEASE_MS);
    assert_int_equal(job->state, JOB_CLEANING);
    assert_ptr_equal(clusterMapOwner(&map, 10), other);
}

/* Else two nodes that give each other slots at once get the same epoch. */
static void slots_are_not_taken_while_their_owner_claims_them(void **state) {
    slotJob *job = getGrant(false);
    pass(1);
    assert_int_equal(job->state, JOB_TAKING);
    for (int slot = 10; slot < 15; slot++) clusterMapSetClaimed(&map, slot, false);
    pass(1);
    assert_int_equal(job->state, JOB_SUCCESS);
}

static void target_asks_again_whether_the_source_owns_the_slots(void **state) {
    slotJob *job = getGrant(true);
    clusterMapSetOwner(&map, 12, third);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_CLEANING);
    assert_ptr_equal(clusterMapOwner(&map, 10), other);
}

static void target_waits_for_its_replicas_for_half_of_the_lease(void **state) {
    is_behind = true;
    slotJob *job = getGrant(true);
    pass(SLOT_LEASE_MS / 2 - 1);
    assert_int_equal(job->state, JOB_TAKING);
    pass(1);
    assert_int_equal(job->state, JOB_SUCCESS);
}

static void target_asks_for_the_pause_when_its_replicas_have_the_snapshot(void **state) {
    is_behind = true;
    (void)import();
    pass(100);
    assert_false(sent & JOB_ACT_SEND_REQUEST_PAUSE);
    is_behind = false;
    pass(100);
    assert_true(sent & JOB_ACT_SEND_REQUEST_PAUSE);
}

static void target_asks_for_the_pause_when_the_quorum_has_the_snapshot(void **state) {
    lacks_quorum = true;
    (void)import();
    pass(SILENCE_MS);
    assert_false(sent & JOB_ACT_SEND_REQUEST_PAUSE);
    lacks_quorum = false;
    pass(100);
    assert_true(sent & JOB_ACT_SEND_REQUEST_PAUSE);
}

static void import_fails_without_a_quorum_before_writes_wait(void **state) {
    lacks_quorum = true;
    slotJob *job = import();
    pass(SILENCE_MS + 1);
    assert_int_equal(job->state, JOB_CLEANING);
    assert_false(sent & JOB_ACT_SEND_REQUEST_PAUSE);
    assert_string_equal(strText(&job->message),
                        "Not enough replicas of the target have confirmed the keys in time "
                        "(replication-quorum)");
}

static void target_takes_slots_only_with_a_quorum(void **state) {
    slotJob *job = getGrant(true);
    lacks_quorum = true;
    pass(SLOT_LEASE_MS - 1);
    assert_int_equal(job->state, JOB_TAKING);
    lacks_quorum = false;
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_SUCCESS);
}

static void grant_ends_without_a_quorum(void **state) {
    slotJob *job = getGrant(true);
    lacks_quorum = true;
    pass(SLOT_LEASE_MS);
    assert_int_equal(job->state, JOB_CLEANING);
    assert_ptr_equal(clusterMapOwner(&map, 10), other);
}

/* This node is a replica of `third`, which has taken slots 10-14 and was lost, and is promoted.
 * `is_told`: it has heard the claim of `third` on the bus. */
static slotJob *promoteAfterTaking(bool is_told) {
    slotJob *job = import();
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, third);
    clusterMapSetPrimary(&map, map.myself, third);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_ON_PRIMARY);
    for (int slot = 10; slot < 15; slot++) {
        clusterMapSetClaimed(&map, slot, false); /* by `other`, since the grant */
        if (is_told) clusterMapSetOwner(&map, slot, third);
    }
    clusterMapMakePrimary(&map, map.myself);
    for (int slot = 0; slot < 20; slot++)
        if (clusterMapOwner(&map, slot) == third) clusterMapSetOwner(&map, slot, map.myself);
    slotMovesStep(&moves);
    return job;
}

/* The documented hole of replication-quorum: docs/durability.md, what is not covered. */
static void successor_keeps_moved_keys_only_if_it_was_told_of_the_new_owner(void **state) {
    slotJob *job = promoteAfterTaking(false);
    assert_int_equal(job->state, JOB_CLEANING);
    assert_ptr_equal(clusterMapOwner(&map, 10), other);
}

static void message_of_the_new_owner_to_its_successor_is_enough(void **state) {
    slotJob *job = promoteAfterTaking(true);
    assert_int_equal(job->state, JOB_SUCCESS);
    assert_ptr_equal(clusterMapOwner(&map, 10), map.myself);
}

/* The way out: this node has taken the slots, was lost, and comes back with its files. */
static void new_owner_that_comes_back_keeps_slots_that_its_successor_was_not_told_of(void **state) {
    slotJob *job = getGrant(true);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_SUCCESS);
    receive(third, map.current_epoch + 1, 0, 9);
    assert_ptr_equal(clusterMapOwner(&map, 0), third);
    for (int slot = 10; slot < 15; slot++)
        assert_ptr_equal(clusterMapOwner(&map, slot), map.myself);
    assert_true(map.myself->flags & NODE_PRIMARY);
}

static void new_replica_ends_a_job_with_its_primary(void **state) {
    slotJob *job = import();
    is_still = true; /* it was paused for the failover */
    clusterMapSetPrimary(&map, map.myself, third);
    slotMovesStep(&moves);
    assert_int_equal(job->state, JOB_ON_PRIMARY);
    slotTargetFinish(&moves, job, false, SLICE("a failover"));
    assert_int_equal(job->state, JOB_FAILED);
}

static void end_of_a_job_reaches_a_replica_before_it_knows_its_role(void **state) {
    slotJob *job = import();
    slotTargetFinish(&moves, job, true, SLICE(""));
    assert_int_equal(job->state, JOB_SUCCESS);
}

static void slots_of_this_node_are_shown_while_a_failed_job_is_cleaned_up(void **state) {
    slotJob *job = import();
    clusterMapSetOwner(&map, 10, map.myself);
    hidden = 0;
    slotTargetFail(&moves, job, "a failover");
    assert_int_equal(job->state, JOB_CLEANING);
    assert_int_equal(hidden, 1); /* slotMovesProcs.hide() shows slots of this node */
}

int test_slot_moves(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(writes_wait_from_the_grant_on_until_the_target_owns_the_slots),
        T(source_resumes_writes_only_when_the_grant_has_no_effect_any_more),
        T(source_asks_the_target_before_it_resumes_writes),
        T(nothing_is_granted_during_a_failover),
        T(a_granted_job_is_cancelled_when_the_target_cannot_take_the_slots),
        T(granted_slots_are_not_claimed_until_the_job_has_failed),
        T(writes_wait_if_the_target_has_passed_on_a_slot_that_it_has_taken),
        T(claim_from_before_the_grant_is_not_one_after_it),
        T(target_of_valkey_may_claim_granted_slots_with_any_epoch),
        T(slots_are_taken_with_the_greatest_epoch),
        T(grant_that_comes_after_its_lease_has_no_effect),
        T(slots_are_not_taken_while_their_owner_claims_them),
        T(target_asks_again_whether_the_source_owns_the_slots),
        T(target_waits_for_its_replicas_for_half_of_the_lease),
        T(target_asks_for_the_pause_when_its_replicas_have_the_snapshot),
        T(target_asks_for_the_pause_when_the_quorum_has_the_snapshot),
        T(import_fails_without_a_quorum_before_writes_wait),
        T(target_takes_slots_only_with_a_quorum),
        T(grant_ends_without_a_quorum),
        T(successor_keeps_moved_keys_only_if_it_was_told_of_the_new_owner),
        T(message_of_the_new_owner_to_its_successor_is_enough),
        T(new_owner_that_comes_back_keeps_slots_that_its_successor_was_not_told_of),
        T(new_replica_ends_a_job_with_its_primary),
        T(end_of_a_job_reaches_a_replica_before_it_knows_its_role),
        T(slots_of_this_node_are_shown_while_a_failed_job_is_cleaned_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
