/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/manual_failover.h: the rows of its tables. */
#include "bus_test.h"

#include "bus/manual_failover.h"

enum { M = 5000 };

static clusterMap map;
static clusterNode *primary, *replica, *other;
static manualFailover f;
static election e;
static electionRules rules;
static uint64_t pings; /* of this node to the primary */

static int setup(void **state) {
    clusterMapInit(&map, 0);
    primary = addNode(&map, 1);
    replica = addNode(&map, 2);
    other = addNode(&map, 3);
    primary->is_connected = true;
    clusterMapSetOwner(&map, 0, primary);
    clusterMapSetOwner(&map, 1, other);
    memset(&f, 0, sizeof(f));
    memset(&e, 0, sizeof(e));
    rules = (electionRules){.timeout_ms = 3000, .allowed = true};
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static void follow(void) {
    clusterMapSetPrimary(&map, map.myself, primary);
    map.myself->offset = 100;
}

static manualActs order(manualOrder kind, int64_t now_ms) {
    assert_null(manualFailoverRefusal(&map, kind));
    manualActs acts = manualFailoverOrder(&f, &e, &map, kind, SLICE("id=1"), M, now_ms);
    if (acts.ask_primary) manualFailoverAsked(&f, ++pings);
    return acts;
}

static manualActs header(const clusterNode *from, uint8_t flags, uint64_t offset) {
    const messageHeader h = {.sender = from->id, .flags = flags, .offset = offset};
    const manualReply reply = {.ping = pings};
    return manualFailoverHeader(&f, &map, from, &h, reply, map.myself->offset);
}

static electionActs elect(int64_t now_ms) {
    rules.manual_end_ms = manualFailoverReadyUntil(&f);
    return electionTick(&e, &map, &rules, now_ms);
}

static void refusals_are_in_the_order_of_the_released_server(void **state) {
    assert_string_equal(manualFailoverRefusal(&map, MANUAL_FORCE),
                        "You should send CLUSTER FAILOVER to a replica");
    clusterMapSetPrimary(&map, map.myself, NULL);
    assert_string_equal(manualFailoverRefusal(&map, MANUAL_TAKEOVER),
                        "I'm a replica but my master is unknown to me");
    follow();
    assert_null(manualFailoverRefusal(&map, MANUAL_PLAIN));
    clusterMapSetFlags(&map, primary, NODE_MAYBE_FAILED, 0);
    assert_null(manualFailoverRefusal(&map, MANUAL_PLAIN));
    primary->is_connected = false;
    assert_string_equal(manualFailoverRefusal(&map, MANUAL_PLAIN),
                        "Master is down or failed, please use CLUSTER FAILOVER FORCE");
    assert_null(manualFailoverRefusal(&map, MANUAL_FORCE));
}

static void plain_form_waits_for_the_end_of_the_stream(void **state) {
    follow();
    manualActs acts = order(MANUAL_PLAIN, 1000);
    assert_true(acts.ask_primary);
    assert_false(acts.start_election);
    assert_false(elect(1001).ask); /* the primary works */
    assert_false(header(primary, 0, 100).start_election);
    assert_false(header(other, MESSAGE_PAUSED, 100).start_election);
    assert_false(header(primary, MESSAGE_PAUSED, 120).start_election);
    assert_true(manualFailoverAwaitsOffset(&f));
    assert_false(header(primary, MESSAGE_PAUSED, 130).start_election); /* the first one counts */
    assert_false(manualFailoverTick(&f, &map, map.myself->offset, 1100).start_election);
    map.myself->offset = 120;
    assert_true(manualFailoverTick(&f, &map, map.myself->offset, 1200).start_election);
    assert_int_equal(manualFailoverReadyUntil(&f), 1000 + M);
    electionActs asked = elect(1200);
    assert_true(asked.ask);
    assert_false(asked.tell_replicas);
    assert_true(e.force);
    assert_int_equal(e.epoch, 1);
}

/* The primary has paused for an earlier order, and its messages about that are late. */
static void second_order_waits_for_the_answer_to_its_ping(void **state) {
    follow();
    (void)order(MANUAL_PLAIN, 1000);
    (void)manualFailoverTick(&f, &map, map.myself->offset, 1001 + M);
    uint64_t before = pings;
    manualActs acts = order(MANUAL_PLAIN, 2000 + M);
    assert_true(acts.ask_primary);
    messageHeader h = {.sender = primary->id, .flags = MESSAGE_PAUSED, .offset = 100};
    const manualReply none = {0}, late = {.ping = before}, newer = {.ping = pings};
    acts = manualFailoverHeader(&f, &map, primary, &h, none, 100); /* a PING */
    assert_false(acts.start_election);
    acts = manualFailoverHeader(&f, &map, primary, &h, late, 100);
    assert_false(acts.start_election);
    assert_false(manualFailoverAwaitsOffset(&f));
    acts = manualFailoverTick(&f, &map, 100, 2099 + M);
    assert_null(acts.ping);
    acts = manualFailoverTick(&f, &map, 100, 2100 + M);
    assert_ptr_equal(acts.ping, primary); /* in case a PONG was dropped */
    h.offset = 120;
    assert_false(manualFailoverHeader(&f, &map, primary, &h, newer, 100).start_election);
    assert_true(manualFailoverAwaitsOffset(&f));
    assert_int_equal(f.primary_offset, 120);
}

/* The primary has handed them over, and this replica has not heard their new owner so far. */
static void slots_that_the_paused_primary_does_not_claim_are_not_taken(void **state) {
    follow();
    clusterMapSetOwner(&map, 5, primary);
    clusterMapSetClaimed(&map, 5, false);
    (void)order(MANUAL_PLAIN, 1000);
    assert_false(header(primary, 0, 100).start_election);
    assert_ptr_equal(clusterMapOwner(&map, 5), primary); /* it may take them back */
    assert_true(header(primary, MESSAGE_PAUSED, 100).start_election);
    assert_null(clusterMapOwner(&map, 5));
    assert_ptr_equal(clusterMapOwner(&map, 0), primary);
    assert_ptr_equal(clusterMapOwner(&map, 1), other);
}

static void an_order_that_may_have_got_lost_with_its_link_is_sent_again(void **state) {
    follow();
    (void)order(MANUAL_PLAIN, 1000);
    const messageHeader h = {.sender = primary->id, .flags = MESSAGE_PAUSED, .offset = 100};
    const manualReply other_link = {.ping = pings + 2, .link_began = pings};
    manualActs acts = manualFailoverHeader(&f, &map, primary, &h, other_link, 100);
    assert_true(acts.ask_primary);
    assert_false(acts.start_election);
    manualFailoverAsked(&f, pings + 3);
    const manualReply reply = {.ping = pings + 3, .link_began = pings};
    assert_true(manualFailoverHeader(&f, &map, primary, &h, reply, 100).start_election);
}

/* Both may be at 0 although the primary has data. */
static void replica_without_data_does_not_start(void **state) {
    follow();
    map.myself->offset = 0;
    (void)order(MANUAL_PLAIN, 1000);
    const messageHeader h = {.sender = primary->id, .flags = MESSAGE_PAUSED};
    const manualReply reply = {.ping = pings};
    assert_false(manualFailoverHeader(&f, &map, primary, &h, reply, -1).start_election);
    assert_false(manualFailoverTick(&f, &map, -1, 1100).start_election);
}

static void replica_of_a_stream_at_0_starts(void **state) {
    follow();
    map.myself->offset = 0;
    (void)order(MANUAL_PLAIN, 1000);
    assert_true(header(primary, MESSAGE_PAUSED, 0).start_election);
    assert_int_equal(manualFailoverReadyUntil(&f), 1000 + M);
    assert_true(elect(1000).ask);
}

static void force_starts_at_once_and_wins(void **state) {
    follow();
    clusterMapSetFlags(&map, primary, NODE_FAILED, 0);
    rules.allowed = false; /* a user may nevertheless */
    assert_true(order(MANUAL_FORCE, 1000).start_election);
    assert_true(elect(1000).ask);
    const messageHeader h = {.sender = other->id, .current_epoch = 1};
    const messageHeader h2 = {.sender = primary->id, .current_epoch = 1};
    assert_false(electionVote(&e, &map, other, &h, 1001).won);
    assert_true(electionVote(&e, &map, primary, &h2, 1002).won); /* it votes, too */
    manualActs acts = manualFailoverTick(&f, &map, map.myself->offset, 1003);
    assert_false(acts.resume);
    assert_int_equal(f.step, MANUAL_IDLE);
}

static void takeover_needs_no_votes(void **state) {
    follow();
    assert_true(order(MANUAL_TAKEOVER, 1000).promoted);
    assert_true(map.myself->flags & NODE_PRIMARY);
    assert_true(clusterMapIsMine(&map, 0));
    assert_int_equal(map.myself->epoch, 1);
    assert_int_equal(f.step, MANUAL_IDLE);
}

/* The primary accepts writes again, at the latest, after twice the time. */
static void no_vote_counts_after_the_timeout(void **state) {
    follow();
    (void)order(MANUAL_FORCE, 1000);
    (void)elect(1000 + M - 100);
    const messageHeader h = {.sender = other->id, .current_epoch = 1};
    const messageHeader h2 = {.sender = primary->id, .current_epoch = 1};
    assert_false(electionVote(&e, &map, other, &h, 1000 + M).won);
    assert_false(electionVote(&e, &map, primary, &h2, 1001 + M).won);
    (void)manualFailoverTick(&f, &map, map.myself->offset, 1001 + M);
    assert_int_equal(f.step, MANUAL_IDLE);
    (void)elect(1001 + M);
    assert_int_equal(e.step, ELECTION_IDLE);
}

static void new_order_resets_an_election(void **state) {
    follow();
    (void)order(MANUAL_FORCE, 1000);
    assert_true(elect(1000).ask);
    (void)order(MANUAL_FORCE, 2000);
    assert_int_equal(e.step, ELECTION_IDLE);
    assert_true(elect(2000).ask);
    assert_int_equal(e.epoch, 2);
    assert_int_equal(manualFailoverReadyUntil(&f), 2000 + M);
}

static void it_ends_when_another_primary_is_followed(void **state) {
    follow();
    (void)order(MANUAL_FORCE, 1000);
    clusterMapSetPrimary(&map, map.myself, other);
    (void)manualFailoverTick(&f, &map, map.myself->offset, 1001);
    assert_int_equal(f.step, MANUAL_IDLE);
}

/* It has paused no more, and has accepted writes. */
static void it_ends_when_the_primary_was_replaced_and_is_back(void **state) {
    follow();
    clusterMapSetNodeEpoch(&map, primary, 1);
    (void)order(MANUAL_PLAIN, 1000);
    assert_true(header(primary, MESSAGE_PAUSED, 100).start_election);
    clusterMapSetNodeEpoch(&map, primary, 3);
    (void)manualFailoverTick(&f, &map, map.myself->offset, 1100);
    assert_int_equal(manualFailoverReadyUntil(&f), 0);
}

/* ------------------------------------------------------------------ the primary */

static void it_ends_when_a_synchronisation_begins(void **state) {
    follow();
    (void)order(MANUAL_FORCE, 1000);
    map.myself->offset = 0;
    (void)manualFailoverTick(&f, &map, 0, 1100);
    assert_int_equal(f.step, MANUAL_IDLE);
    /* Who orders it without data knows what that costs. */
    (void)order(MANUAL_FORCE, 1200);
    (void)manualFailoverTick(&f, &map, 0, 1300);
    assert_int_equal(f.step, MANUAL_READY);
}

static void primary_pauses_and_tells_its_replica(void **state) {
    manualActs acts = manualFailoverRequested(&f, &map, replica, M, 1000);
    assert_int_equal(acts.pause_ms, 0); /* not its replica */
    clusterMapSetPrimary(&map, replica, map.myself);
    acts = manualFailoverRequested(&f, &map, replica, M, 1000);
    assert_int_equal(acts.pause_ms, 2 * M);
    assert_ptr_equal(acts.ping, replica);
    assert_true(manualFailoverHasPaused(&f));
    assert_null(manualFailoverTick(&f, &map, map.myself->offset, 1050).ping);
    assert_ptr_equal(manualFailoverTick(&f, &map, map.myself->offset, 1100).ping, replica);
    assert_null(manualFailoverTick(&f, &map, map.myself->offset, 1150).ping);
    assert_false(manualFailoverTick(&f, &map, map.myself->offset, 1000 + M).resume);
    assert_true(manualFailoverTick(&f, &map, map.myself->offset, 1001 + M).resume);
    assert_false(manualFailoverHasPaused(&f));
    assert_false(manualFailoverTick(&f, &map, map.myself->offset, 1002 + M).resume);
}

/* It was elected unseen by this node, and has been replaced by another one, which will be heard. */
static void pause_goes_on_if_the_replica_follows_another_node_of_the_shard(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    clusterMapSetShard(&map, other, map.myself->shard_id);
    clusterMapSetPrimary(&map, replica, other);
    assert_false(manualFailoverTick(&f, &map, 0, 1001).resume);
    assert_true(manualFailoverTick(&f, &map, 0, 1001 + M).resume);
}

/* That replica may have been elected, and not be heard so far. */
static void pause_goes_on_after_a_restart(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    assert_int_equal(manualFailoverResume(&f, &map, M, 1000).pause_ms, 0); /* nothing was paused */
    clusterMapSetEpochs(&map, 5, 0);
    clusterMapSetPause(&map, replica->id, 5);
    manualActs acts = manualFailoverResume(&f, &map, M, 1000);
    assert_int_equal(acts.pause_ms, 2 * M);
    assert_ptr_equal(acts.ping, replica);
    assert_int_equal(f.began_epoch, 5);
    clusterMapSetEpochs(&map, 6, 0); /* an election has begun */
    assert_true(manualFailoverKeepsPause(&f, &map, 1, M, 1001 + M));
    assert_true(manualFailoverKeepsPause(&f, &map, 1, M, 1001 + 10 * M));
    const messageHeader h = {.sender = replica->id, .primary = map.myself->id};
    const manualReply reply = {.ping = 2};
    assert_true(manualFailoverHeader(&f, &map, replica, &h, reply, 0).resume);
}

/* Both could be elected, one after the other, and the writes of the first one would be lost. */
static void order_of_a_second_replica_is_refused_while_the_first_may_be_elected(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    clusterMapSetPrimary(&map, other, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    assert_int_equal(manualFailoverRequested(&f, &map, other, M, 2000).pause_ms, 0);
    assert_ptr_equal(manualFailoverPeer(&f, &map), replica);
    assert_int_equal(manualFailoverRequested(&f, &map, replica, M, 2000).pause_ms, 2 * M);
    clusterMapSetFlags(&map, replica, NODE_MAYBE_FAILED, 0);
    assert_int_equal(manualFailoverRequested(&f, &map, other, M, 3000).pause_ms, 2 * M);
    assert_ptr_equal(manualFailoverPeer(&f, &map), other);
    assert_true(manualFailoverTick(&f, &map, 0, 3001 + M).resume);
    assert_int_equal(manualFailoverRequested(&f, &map, replica, M, 4000 + M).pause_ms, 2 * M);
}

/* The first one would vote in the place of this primary, as the second one does. */
static void with_a_quorum_it_is_refused_even_if_the_first_has_failed(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    clusterMapSetPrimary(&map, other, map.myself);
    clusterMapSetEpochs(&map, 5, 0);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    clusterMapSetPause(&map, replica->id, 5);
    clusterMapSetFlags(&map, replica, NODE_FAILED, 0);
    assert_int_equal(manualFailoverRequested(&f, &map, other, M, 2000).pause_ms, 2 * M);
    clusterMapSetFlags(&map, other, NODE_FAILED, 0);
    (void)manualFailoverRequested(&f, &map, replica, M, 3000);
    clusterMapSetEpochs(&map, 6, 0); /* an election has begun */
    assert_int_equal(manualFailoverRequested(&f, &map, other, M, 4000).pause_ms, 0);
    assert_ptr_equal(manualFailoverPeer(&f, &map), replica);
    assert_int_equal(manualFailoverRequested(&f, &map, replica, M, 4000).pause_ms, 2 * M);
    clusterMapSetPause(&map, NULL, 0); /* without a quorum */
    assert_int_equal(manualFailoverRequested(&f, &map, other, M, 4000).pause_ms, 2 * M);
}

static void primary_does_not_pause_while_it_hands_slots_over(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    clusterMapSetOwner(&map, 7, map.myself);
    clusterMapSetClaimed(&map, 7, false);
    assert_int_equal(manualFailoverRequested(&f, &map, replica, M, 1000).pause_ms, 0);
    assert_int_equal(f.step, MANUAL_IDLE);
    clusterMapSetClaimed(&map, 7, true);
    assert_int_equal(manualFailoverRequested(&f, &map, replica, M, 1000).pause_ms, 2 * M);
}

static void primary_resumes_when_it_is_replaced(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    clusterMapMakePrimary(&map, replica);
    clusterMapSetPrimary(&map, map.myself, replica);
    assert_true(manualFailoverTick(&f, &map, map.myself->offset, 1001).resume);
    assert_int_equal(f.step, MANUAL_IDLE);
}

/* By a third node, while the replica is a primary without slots for a moment. */
static void primary_that_is_replaced_by_another_one_stays_paused_no_longer(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    clusterMapMakePrimary(&map, replica);
    assert_true(manualFailoverKeepsPause(&f, &map, 1, M, 1001 + M));
    clusterMapSetPrimary(&map, map.myself, other);
    assert_false(manualFailoverKeepsPause(&f, &map, 1, M, 1001 + M));
    assert_true(manualFailoverTick(&f, &map, map.myself->offset, 1001 + M).resume);
}

static void with_a_quorum_the_primary_stays_paused_until_the_outcome_is_known(void **state) {
    const uint64_t sent = 7;
    const messageHeader h = {.sender = replica->id};
    clusterMapSetPrimary(&map, replica, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    assert_false(manualFailoverKeepsPause(&f, &map, 1, M, 1000 + M));
    assert_true(manualFailoverKeepsPause(&f, &map, 1, M, 1001 + M)); /* its clock may be slower */
    assert_true(manualFailoverKeepsPause(&f, &map, sent, M, 1001 + M + M / 20));
    manualReply reply = {.ping = sent};
    assert_false(manualFailoverHeader(&f, &map, replica, &h, reply, 0).resume);
    reply.ping = sent + 1;
    assert_true(manualFailoverHeader(&f, &map, replica, &h, reply, 0).resume);
    assert_int_equal(f.step, MANUAL_IDLE);
    /* After a restart no PING was sent to it yet. */
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    assert_true(manualFailoverKeepsPause(&f, &map, 0, M, 1001 + M + M / 20));
    assert_true(f.is_overdue); /* it is logged once */
    assert_true(manualFailoverKeepsPause(&f, &map, 1, M, 1001 + M + M / 10));
    reply.ping = 1;
    assert_true(manualFailoverHeader(&f, &map, replica, &h, reply, 0).resume);
    /* Nobody was asked for votes; or somebody was. */
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    assert_true(manualFailoverKeepsPause(&f, &map, sent, M, 1000 + 2 * M));
    assert_false(manualFailoverKeepsPause(&f, &map, sent, M, 1001 + 2 * M));
    clusterMapSetEpochs(&map, map.current_epoch + 1, map.vote_epoch);
    assert_true(manualFailoverKeepsPause(&f, &map, sent, M, 1000 + 100 * M));
    clusterMapRemove(&map, replica);
    assert_false(manualFailoverKeepsPause(&f, &map, sent, M, 1000 + 100 * M));
}

/* A message in which it is a primary, as it was before, has come late over another connection. */
static void a_late_message_does_not_end_the_pause(void **state) {
    uint64_t sent = 1;
    const messageHeader h = {.sender = replica->id};
    manualReply reply = {.ping = sent + 1};
    clusterMapSetPrimary(&map, replica, map.myself);
    clusterMapSetOwner(&map, 7, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    clusterMapSetPause(&map, replica->id, map.current_epoch);
    clusterMapSetEpochs(&map, map.current_epoch + 1, map.vote_epoch); /* an election has begun */
    clusterMapMakePrimary(&map, replica);
    assert_false(manualFailoverTick(&f, &map, map.myself->offset, 1000 + M).resume);
    assert_false(manualFailoverHeader(&f, &map, replica, &h, reply, 0).resume);
    assert_true(manualFailoverKeepsPause(&f, &map, sent, M, 1001 + M));
    assert_true(manualFailoverKeepsPause(&f, &map, sent, M, 1000 + 10 * M));
    /* It answers so. */
    assert_true(manualFailoverHeader(&f, &map, replica, &h, reply, 0).resume);
}

/* It may still be elected by the others until then. */
static void primary_stays_paused_when_the_replica_is_forgotten(void **state) {
    clusterMapSetPrimary(&map, replica, map.myself);
    (void)manualFailoverRequested(&f, &map, replica, M, 1000);
    clusterMapRemove(&map, replica);
    assert_false(manualFailoverTick(&f, &map, map.myself->offset, 1000 + M).resume);
    assert_null(manualFailoverTick(&f, &map, map.myself->offset, 1000 + M).ping);
    assert_true(manualFailoverTick(&f, &map, map.myself->offset, 1001 + M).resume);
}

int test_manual_failover(void);
int test_manual_failover(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(refusals_are_in_the_order_of_the_released_server),
        CASE(plain_form_waits_for_the_end_of_the_stream),
        CASE(second_order_waits_for_the_answer_to_its_ping),
        CASE(slots_that_the_paused_primary_does_not_claim_are_not_taken),
        CASE(an_order_that_may_have_got_lost_with_its_link_is_sent_again),
        CASE(replica_without_data_does_not_start),
        CASE(replica_of_a_stream_at_0_starts),
        CASE(force_starts_at_once_and_wins),
        CASE(takeover_needs_no_votes),
        CASE(no_vote_counts_after_the_timeout),
        CASE(new_order_resets_an_election),
        CASE(it_ends_when_another_primary_is_followed),
        CASE(it_ends_when_the_primary_was_replaced_and_is_back),
        CASE(primary_pauses_and_tells_its_replica),
        CASE(pause_goes_on_if_the_replica_follows_another_node_of_the_shard),
        CASE(pause_goes_on_after_a_restart),
        CASE(order_of_a_second_replica_is_refused_while_the_first_may_be_elected),
        CASE(with_a_quorum_it_is_refused_even_if_the_first_has_failed),
        CASE(primary_does_not_pause_while_it_hands_slots_over),
        CASE(primary_resumes_when_it_is_replaced),
        CASE(primary_that_is_replaced_by_another_one_stays_paused_no_longer),
        CASE(it_ends_when_a_synchronisation_begins),
        CASE(a_late_message_does_not_end_the_pause),
        CASE(primary_stays_paused_when_the_replica_is_forgotten),
        CASE(with_a_quorum_the_primary_stays_paused_until_the_outcome_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
