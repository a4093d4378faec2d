/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/voters.h and voters_change.h: who votes, what a majority is, and how sets of voters
 * change; their text in the file and their bytes in messages. The simulation
 * (tests/sim/cluster_voters.c) runs them against each other. */
#include "bus_test.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/election.h"
#include "bus/failure.h"
#include "bus/voters_change.h"

enum { T = 2000 };

static clusterMap map;
static clusterNode *myself, *a, *b;
static votersChange change;
static busRules rules;

/* This node owns all slots; `a` and `b` are its replicas. */
static int setup(void **state) {
    randomSeed(1);
    clusterMapInit(&map, 0);
    clusterMapSetId(&map, map.myself, idOf(5).text);
    myself = map.myself;
    a = addNode(&map, 1);
    b = addNode(&map, 2);
    for (int slot = 0; slot < SLOT_COUNT; slot++) clusterMapSetOwner(&map, slot, myself);
    clusterMapSetPrimary(&map, a, myself);
    clusterMapSetPrimary(&map, b, myself);
    clusterMapSetEpochs(&map, 6, 1);
    memset(&change, 0, sizeof(change));
    rules = (busRules){.replicas_vote = true, .timeout_ms = T};
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static void install(uint64_t term, uint32_t version, voterRule rule, const char *digits) {
    char ids[16][NODE_ID_LEN];
    voterSet set = {.stamp = {term, version}, .rule = rule, .ids = ids};
    for (; digits[set.count]; set.count++) memset(ids[set.count], digits[set.count], NODE_ID_LEN);
    assert_true(votersInstall(&map, &set));
}

/* The node tells that it has the directive, and the set of that age. */
static void tell(clusterNode *from, uint64_t term, uint32_t version, uint64_t epoch) {
    const messageHeader h = {.own_flags = MESSAGE_REPLICAS_VOTE | MESSAGE_TELLS_VOTERS,
                             .voters = {term, version},
                             .current_epoch = epoch};
    votersHeard(&map, from, &h, 1000);
}

static void tellNothing(clusterNode *from) {
    const messageHeader h = {.current_epoch = map.current_epoch};
    votersHeard(&map, from, &h, 1000);
}

static void tellAsThisNode(void) {
    for (int i = 1; i < map.node_count; i++)
        tell(map.nodes[i], map.voters.stamp.term, map.voters.stamp.version, map.current_epoch);
}

/* ------------------------------------------------------------------ majorities */

static bool isIn(const void *arg, const clusterNode *n) { return strchr(arg, n->id[0]) != NULL; }

static bool agree(const char *digits) { return votersAgree(&map, isIn, digits); }

static void each_rule_has_its_majority(void **state) {
    assert_true(agree("5"));
    assert_false(agree("12"));
    install(7, 0, VOTERS_BOTH, "125");
    assert_false(agree("5"));
    assert_false(agree("12"));
    assert_true(agree("15"));
    install(7, 1, VOTERS_ALL, "125");
    assert_false(agree("5"));
    assert_true(agree("12"));
    assert_int_equal(votersQuorum(&map), 2);
    install(7, 2, VOTERS_ALL, "125789"); /* three of them are not known */
    assert_false(agree("125"));
    assert_int_equal(votersQuorum(&map), 4);
}

static void voters_with_a_later_set_do_not_count(void **state) {
    install(7, 1, VOTERS_ALL, "125");
    tell(a, 7, 1, 7);
    tell(b, 6, 3, 7);
    assert_true(agree("15"));
    tell(a, 7, 2, 7);
    assert_false(agree("15"));
    assert_true(agree("25"));
    install(7, 2, VOTERS_ALL, "125");
    assert_true(agree("15"));
}

static void reached_voters_were_heard_and_have_no_later_set_for_long(void **state) {
    assert_true(votersAreReached(&map, T, 1000)); /* by the rule of Valkey it is alone */
    install(7, 1, VOTERS_ALL, "125");
    assert_false(votersAreReached(&map, T, 1000));
    tell(a, 7, 1, 7);
    assert_true(votersAreReached(&map, T, 1000));
    tell(a, 7, 2, 7);
    assert_true(votersAreReached(&map, T, 1000 + T - 1));
    assert_false(votersAreReached(&map, T, 1000 + T));
    tell(a, 7, 1, 7);
    assert_true(votersAreReached(&map, T, 1000 + T));
    clusterMapSetFlags(&map, a, NODE_MAYBE_FAILED, 0);
    assert_false(votersAreReached(&map, T, 1000 + T));
}

static void earlier_sets_are_not_taken(void **state) {
    install(7, 1, VOTERS_ALL, "125");
    const voterSet same = {.stamp = {7, 1}}, earlier = {.stamp = {6, 9}};
    assert_false(votersInstall(&map, &same));
    assert_false(votersInstall(&map, &earlier));
    map.changed = 0;
    install(8, 0, VOTERS_ALL, "12");
    assert_true(map.changed & CLUSTER_MAP_SYNC);
    assert_false(myself->is_member);
    addNode(&map, 7);
    assert_false(clusterMapFind(&map, sliceMake(idOf(7).text, NODE_ID_LEN))->is_member);
    install(8, 1, VOTERS_ALL, "1278");
    assert_true(clusterMapFind(&map, sliceMake(idOf(7).text, NODE_ID_LEN))->is_member);
    assert_true(addNode(&map, 8)->is_member);
    char id[NODE_ID_LEN];
    memcpy(id, myself->id, NODE_ID_LEN);
    clusterMapReset(&map, false);
    assert_memory_not_equal(id, myself->id, NODE_ID_LEN);
    assert_int_equal(map.current_epoch, 6); /* it has voted in it */
    assert_int_equal(map.voters.stamp.term, 0);
    assert_int_equal(map.voters.count, 0);
}

/* A node that is cut off may have the set of which this one was a member, and counts for itself and
 * for nodes without a set. */
static void a_node_that_has_got_a_set_is_another_one_after_a_reset(void **state) {
    char id[NODE_ID_LEN];
    memcpy(id, myself->id, NODE_ID_LEN);
    clusterMapReset(&map, false);
    assert_memory_equal(id, myself->id, NODE_ID_LEN);
    install(7, 2, VOTERS_ALL, "125");
    install(7, 5, VOTERS_OWNERS, "");
    clusterMapReset(&map, false);
    assert_memory_not_equal(id, myself->id, NODE_ID_LEN);
    assert_int_equal(map.voters.stamp.term, 0);
}

/* ------------------------------------------------------------------ changes */

static votersActs tick(int64_t now_ms) { return votersTick(&change, &map, &rules, now_ms); }

static votersActs vote(clusterNode *from) {
    const messageHeader h = {.current_epoch = map.current_epoch};
    return votersVote(&change, &map, from, &h);
}

/* Until there is nothing to do, while the others have what this node tells them and vote for it. */
static void settle(void) {
    for (int64_t t = 0; t < 20 * T; t += 100) {
        if (tick(100000 + t).ask)
            for (int i = 1; i < map.node_count; i++) (void)vote(map.nodes[i]);
        tellAsThisNode();
    }
}

static void all_nodes_vote_once_all_have_the_directive(void **state) {
    assert_false(tick(10000).tell);
    assert_false(tick(10000 + T).tell); /* nobody was heard */
    tellAsThisNode();
    assert_false(tick(20000).tell); /* it must last */
    assert_true(tick(20000 + T).ask);
    assert_int_equal(map.current_epoch, 7); /* of its own election */
    assert_int_equal(map.vote_epoch, 7);
    assert_false(vote(a).tell); /* its own vote is a majority of owners: all are needed */
    assert_true(vote(b).tell);
    assert_int_equal(map.voters.stamp.term, 7);
    assert_int_equal(map.voters.rule, VOTERS_OWNERS);
    assert_false(tick(20100 + T).tell); /* the owner has that set, and all are to have it */
    tell(a, 7, 0, 7);
    tell(b, 7, 0, 8); /* it has voted in a later election */
    assert_false(tick(20100 + T).tell);
    tell(b, 7, 0, 7);
    assert_true(tick(20100 + T).tell);
    assert_int_equal(map.voters.rule, VOTERS_BOTH);
    assert_int_equal(map.voters.count, 3);
    assert_false(tick(20200 + T).tell);
    tell(a, 7, 1, 7);
    assert_false(tick(20300 + T).tell); /* `b` counts by the rule of Valkey */
    tell(b, 7, 1, 7);
    assert_true(tick(20300 + T).tell);
    assert_int_equal(map.voters.rule, VOTERS_ALL);
    assert_int_equal(map.voters.stamp.version, 2);
    settle();
    assert_int_equal(map.voters.stamp.version, 2);
}

static void a_set_is_not_changed_before_a_majority_has_it_in_its_term(void **state) {
    tellAsThisNode();
    settle();
    assert_int_equal(map.voters.rule, VOTERS_ALL);
    voterStamp stamp = map.voters.stamp;
    clusterMapRemove(&map, b);
    change.since_ms = 1;
    tell(a, stamp.term, stamp.version - 1, stamp.term);
    assert_false(tick(200000).tell);
    tell(a, stamp.term, stamp.version, stamp.term + 1); /* it has voted in a later election */
    assert_false(tick(200100).tell);
    tell(a, stamp.term, stamp.version, stamp.term);
    assert_true(tick(200200).tell);
    assert_int_equal(map.voters.count, 2);
    assert_int_equal(map.voters.stamp.version, stamp.version + 1);
    assert_false(tick(250000).tell);
    /* A later epoch ends its term. */
    clusterMapSetEpochs(&map, stamp.term + 3, map.vote_epoch);
    clusterNode *c = addNode(&map, 3);
    tellAsThisNode();
    assert_false(tick(300000).ask);
    votersActs acts = tick(300000 + T);
    assert_true(acts.ask);
    assert_false(acts.tell);
    const messageHeader h = {.current_epoch = stamp.term + 4};
    assert_false(votersVote(&change, &map, c, &h).tell); /* no member */
    assert_true(votersVote(&change, &map, a, &h).tell);
    assert_int_equal(map.voters.stamp.term, stamp.term + 4);
    assert_int_equal(map.voters.count, 2);
    tellAsThisNode();
    assert_true(tick(300100 + T).tell);
    assert_true(c->is_member);
}

static void a_node_without_it_leads_back_and_a_failing_one_does_not(void **state) {
    tellAsThisNode();
    settle();
    assert_int_equal(map.voters.rule, VOTERS_ALL);
    tellNothing(b);
    clusterMapSetFlags(&map, b, NODE_MAYBE_FAILED, 0);
    b->voters = map.voters.stamp;
    for (int64_t t = 0; t < 10 * T; t += 100) assert_false(tick(300000 + t).tell);
    assert_int_equal(map.voters.rule, VOTERS_ALL);
    clusterMapSetFlags(&map, b, 0, NODE_MAYBE_FAILED);
    for (int64_t t = 0; t < 10 * T; t += 100) {
        (void)tick(400000 + t);
        tell(a, map.voters.stamp.term, map.voters.stamp.version, map.current_epoch);
    }
    assert_int_equal(map.voters.rule, VOTERS_OWNERS);
    assert_int_equal(map.voters.count, 0);
}

static void nothing_changes_without_it_or_without_all_slots(void **state) {
    rules.replicas_vote = false;
    tellAsThisNode();
    settle();
    assert_int_equal(map.voters.stamp.term, 0);
    rules.replicas_vote = true;
    clusterMapSetOwner(&map, 9, NULL);
    settle();
    assert_int_equal(map.voters.stamp.term, 0);
    clusterMapSetOwner(&map, 9, a); /* a voter with a smaller id: it is the leader */
    clusterMapMakePrimary(&map, a);
    settle();
    assert_int_equal(map.voters.stamp.term, 0);
}

/* ------------------------------------------------------------------ votes */

static bool request(uint64_t epoch, uint64_t term, uint32_t version, int64_t now_ms) {
    const messageHeader h = {.current_epoch = epoch, .voters = {term, version}};
    return votersRequest(&map, a, &h, 0, now_ms);
}

static void a_voter_votes_once_and_not_for_an_earlier_set(void **state) {
    clusterMapMoveSlots(&map, myself, a); /* with the rule of Valkey all vote about sets */
    assert_true(request(6, 0, 0, 10000));
    install(6, 2, VOTERS_ALL, "125");
    assert_false(request(7, 6, 2, 100)); /* it has just started */
    assert_false(request(7, 6, 1, 10000));
    assert_false(request(5, 6, 2, 10000));
    assert_true(request(7, 6, 2, 10000));
    assert_int_equal(map.vote_epoch, 7);
    assert_false(request(7, 6, 2, 10000));
    assert_true(request(8, 6, 3, 10000)); /* a later set is fine */
    install(9, 0, VOTERS_ALL, "12");
    assert_false(request(10, 9, 0, 10000)); /* it is no voter */
}

/* This node becomes a replica of `b`, which fails. */
static void failPrimary(void) {
    clusterMapMakePrimary(&map, b);
    clusterMapMoveSlots(&map, myself, b);
    clusterMapSetPrimary(&map, myself, b);
    clusterMapSetPrimary(&map, a, b);
    clusterMapSetFlags(&map, b, NODE_FAILED, 0);
    myself->offset = 100;
}

static void a_replica_votes_for_itself_and_wins_with_the_other(void **state) {
    election e = {0};
    const electionRules r = {.timeout_ms = T, .allowed = true, .validity_factor = 10};
    const messageHeader vote = {.sender = a->id, .current_epoch = 7};
    install(6, 2, VOTERS_ALL, "125");
    failPrimary();
    (void)electionTick(&e, &map, &r, 1000);
    assert_true(electionTick(&e, &map, &r, 3000).ask);
    assert_int_equal(map.vote_epoch, 7);
    assert_true(electionVote(&e, &map, a, &vote, 3100).won);
}

static void a_vote_of_another_set_does_not_count(void **state) {
    election e = {0};
    const electionRules r = {.timeout_ms = T, .allowed = true, .validity_factor = 10};
    const messageHeader vote = {.sender = a->id, .current_epoch = 7};
    install(6, 2, VOTERS_ALL, "125");
    failPrimary();
    (void)electionTick(&e, &map, &r, 1000);
    assert_true(electionTick(&e, &map, &r, 3000).ask);
    install(6, 3, VOTERS_ALL, "125");
    assert_false(electionVote(&e, &map, a, &vote, 3100).won);
}

static void a_primary_that_is_no_member_is_not_replaced(void **state) {
    election e = {0};
    const electionRules r = {.timeout_ms = T, .allowed = true, .validity_factor = 10};
    install(6, 2, VOTERS_ALL, "15");
    failPrimary();
    for (int64_t t = 1000; t < 20000; t += 100) assert_false(electionTick(&e, &map, &r, t).ask);
}

static void a_replica_grants_votes_to_candidates_that_have_its_set(void **state) {
    static uint8_t claim[SLOT_BYTES];
    messageHeader h = {.current_epoch = 7, .slots = claim, .voters = {6, 1}};
    install(6, 2, VOTERS_ALL, "125");
    failPrimary();
    assert_false(electionRequest(&map, a, &h, 0, 10000).granted);
    assert_int_equal(map.current_epoch, 6);
    h.voters.version = 2;
    assert_true(electionRequest(&map, a, &h, 0, 10000).granted);
    assert_int_equal(map.vote_epoch, 7);
    assert_false(electionRequest(&map, a, &h, 0, 10000).granted);
}

static void a_released_candidate_gets_votes_by_the_rule_of_valkey_only(void **state) {
    install(6, 2, VOTERS_BOTH, "125");
    const voterStamp none = {0, 0}, earlier = {5, 1};
    assert_false(votersTrust(&map, none));
    install(6, 3, VOTERS_OWNERS, "");
    assert_true(votersTrust(&map, none));
    assert_false(votersTrust(&map, earlier));
}

static int told;
static void failed(void *arg, clusterNode *n) { told++; }

static void members_report_failures(void **state) {
    const failureRules f = {.directives = &rules, .failed = failed};
    gossipEntry entry = {.id = b->id, .node_flags = NODE_MAYBE_FAILED};
    told = 0;
    install(6, 2, VOTERS_ALL, "1256");
    failurePinged(b, 1000);
    assert_true(failureTick(&map, &f, 1000 + 2 * T));
    failureGossip(&map, a, b, &entry, &f, 1100 + 2 * T);
    assert_int_equal(told, 0); /* two of four */
    install(6, 3, VOTERS_ALL, "125");
    failureGossip(&map, a, b, &entry, &f, 1200 + 2 * T);
    assert_int_equal(told, 1);
    assert_true(b->flags & NODE_FAILED);
    /* A FAIL of a node that may have found it by an outdated set. */
    clusterMapSetFlags(&map, b, 0, NODE_FAILED);
    tell(a, 6, 2, 7);
    failureReceived(&map, a, b, 5000);
    assert_false(b->flags & NODE_FAILED);
    tell(a, 6, 3, 7);
    failureReceived(&map, a, b, 5000);
    assert_true(b->flags & NODE_FAILED);
}

static void a_takeover_begins_with_the_rule_of_valkey(void **state) {
    install(6, 2, VOTERS_ALL, "579");
    clusterMapSetNodeEpoch(&map, myself, 8);
    votersTakeOver(&map);
    assert_int_equal(map.voters.rule, VOTERS_OWNERS);
    assert_int_equal(map.voters.stamp.term, 8);
    assert_int_equal(map.voters.stamp.version, 1u << 31); /* later than any set of a leader */
    assert_true(agree("5"));
}

/* ------------------------------------------------------------------ file and messages */

static void the_set_is_in_the_file(void **state) {
    str text = STR_EMPTY, again = STR_EMPTY;
    clusterMap m;
    reason why;
    install(6, 2, VOTERS_ALL, "257");
    clusterMapPrint(&map, false, &text);
    assert_int_equal(clusterMapParse(&m, strSlice(&text), false, 1, &why), OK);
    assert_int_equal(m.voters.stamp.term, 6);
    assert_int_equal(m.voters.stamp.version, 2);
    assert_int_equal(m.voters.rule, VOTERS_ALL);
    assert_int_equal(m.voters.count, 3);
    assert_true(m.myself->is_member);
    assert_false(clusterMapFind(&m, sliceMake(idOf(1).text, NODE_ID_LEN))->is_member);
    clusterMapPrint(&m, false, &again);
    assert_non_null(strstr(strText(&again), "votersTerm 6 votersVersion 2 votersRule 2 voters 22"));
    clusterMapClear(&m);
    strFree(&text);
    strFree(&again);
}

static void invalid_sets_in_the_file_are_refused(void **state) {
#define ID "5555555555555555555555555555555555555555"
#define LINE ID " 127.0.0.1:7000@17000 myself,master - 0 0 4 connected\n"
#define LATER "7777777777777777777777777777777777777777"
    static const char *const texts[] = {
        LINE "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 7 votersVersion 0 votersRule 0",
        LINE "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 6 votersVersion 0 votersRule 3",
        LINE "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 6 votersVersion 0 votersRule 2",
        LINE
        "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 6 votersVersion 0 votersRule 2 voters x",
        LINE
        "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 6 votersVersion 0 votersRule 0 voters " ID,
        LINE
        "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 6 votersVersion 0 votersRule 2 voters " LATER
        "," ID,
        LINE
        "vars currentEpoch 6 lastVoteEpoch 6 votersTerm 6 votersVersion 4294967296 votersRule 0"};
    clusterMap m;
    reason why;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_int_equal(clusterMapParse(&m, sliceOf(texts[i]), false, 1, &why), ERR_SYNTAX);
    assert_int_equal(
        clusterMapParse(&m,
                        SLICE(LINE "vars currentEpoch 6 votersTerm 6 votersVersion 1 votersRule "
                                   "1 voters " ID "," LATER "\n"),
                        false, 1, &why),
        OK);
    assert_int_equal(m.voters.count, 2);
    clusterMapClear(&m);
}

static void the_set_is_in_messages(void **state) {
    str bytes = STR_EMPTY;
    message m;
    messageExtensions e;
    voterSet set;
    reason why;
    const char *none = "0000000000000000000000000000000000000000";
    install(6, 2, VOTERS_ALL, "25c");
    for (int is_short = 0; is_short < 2; is_short++) {
        const messageHeader h = {.flags = MESSAGE_HAS_EXTENSIONS,
                                 .own_flags = MESSAGE_TELLS_VOTERS,
                                 .sender = none,
                                 .slots = (const uint8_t *)map.mine,
                                 .ip = SLICE(""),
                                 .voters = {6, 2}};
        messageWriter w = is_short ? messageBeginShort(&bytes, MESSAGE_PING, &h)
                                   : messageBegin(&bytes, MESSAGE_PING, &h);
        messageAddVoters(&w, &map.voters);
        messageEnd(&w);
        assert_int_equal(messageRead(strSlice(&bytes), &m, &why), OK);
        assert_int_equal(m.header.voters.term, 6);
        assert_int_equal(m.header.voters.version, 2);
        messageReadExtensions(&m, &e);
        assert_int_equal(e.unknown_type, -1);
        assert_true(messageReadVoters(e.voters, &set));
        assert_int_equal(set.count, 3);
        assert_int_equal(set.stamp.version, 2);
        assert_memory_equal(set.ids, map.voters.ids, 3 * NODE_ID_LEN);
        memFree(set.ids);
        strClear(&bytes);
    }
    strFree(&bytes);
}

static void invalid_sets_in_messages_are_refused(void **state) {
    enum { SIZE = 20 + 2 * NODE_ID_LEN / 2 };
    char bytes[SIZE] = {0}, *ids = bytes + 20;
    voterSet set;
    slice all = sliceMake(bytes, SIZE);
    assert_true(messageReadVoters(all, &set)); /* rule 0 has no members */
    assert_null(set.ids);
    bytes[15] = 3;
    assert_false(messageReadVoters(all, &set)); /* no rule */
    bytes[15] = 2;
    assert_false(messageReadVoters(all, &set)); /* no members */
    bytes[19] = 3;
    assert_false(messageReadVoters(all, &set)); /* too short */
    bytes[19] = 2;
    assert_false(messageReadVoters(all, &set)); /* the same id twice */
    ids[NODE_ID_LEN / 2] = 1;
    assert_true(messageReadVoters(all, &set));
    memFree(set.ids);
    ids[0] = 2;
    assert_false(messageReadVoters(all, &set)); /* not in order */
    ids[0] = 0;
    bytes[15] = 0;
    assert_false(messageReadVoters(all, &set)); /* members without a rule for them */
}

int test_voters(void);
int test_voters(void) {
#define WITH_MAP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_MAP(each_rule_has_its_majority),
        WITH_MAP(voters_with_a_later_set_do_not_count),
        WITH_MAP(reached_voters_were_heard_and_have_no_later_set_for_long),
        WITH_MAP(earlier_sets_are_not_taken),
        WITH_MAP(a_node_that_has_got_a_set_is_another_one_after_a_reset),
        WITH_MAP(all_nodes_vote_once_all_have_the_directive),
        WITH_MAP(a_set_is_not_changed_before_a_majority_has_it_in_its_term),
        WITH_MAP(a_node_without_it_leads_back_and_a_failing_one_does_not),
        WITH_MAP(nothing_changes_without_it_or_without_all_slots),
        WITH_MAP(a_voter_votes_once_and_not_for_an_earlier_set),
        WITH_MAP(a_replica_votes_for_itself_and_wins_with_the_other),
        WITH_MAP(a_vote_of_another_set_does_not_count),
        WITH_MAP(a_primary_that_is_no_member_is_not_replaced),
        WITH_MAP(a_replica_grants_votes_to_candidates_that_have_its_set),
        WITH_MAP(a_released_candidate_gets_votes_by_the_rule_of_valkey_only),
        WITH_MAP(members_report_failures),
        WITH_MAP(a_takeover_begins_with_the_rule_of_valkey),
        WITH_MAP(the_set_is_in_the_file),
        cmocka_unit_test(invalid_sets_in_the_file_are_refused),
        WITH_MAP(the_set_is_in_messages),
        cmocka_unit_test(invalid_sets_in_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
