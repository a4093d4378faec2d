/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/failure.h: the rows of its table; and what is told of it in gossip (bus/gossip.h). */
#include "bus_test.h"

#include "bus/failure.h"
#include "bus/gossip.h"

enum { T = 2000 };

static clusterMap map;
static clusterNode *a, *b, *c; /* voters, as this node; c: a replica */
static int told;
static clusterNode *last_told;

static void failed(void *arg, clusterNode *n) {
    told++;
    last_told = n;
}

static const busRules directives = {.timeout_ms = T};
static const failureRules rules = {.directives = &directives, .failed = failed};

static int setup(void **state) {
    clusterMapInit(&map, 0);
    a = addNode(&map, 1);
    b = addNode(&map, 2);
    c = addNode(&map, 3);
    clusterMapSetPrimary(&map, c, a);
    clusterMapSetOwner(&map, 0, map.myself);
    clusterMapSetOwner(&map, 1, a);
    clusterMapSetOwner(&map, 2, b);
    told = 0;
    last_told = NULL;
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static void gossip(const clusterNode *from, clusterNode *about, uint32_t flags, int64_t now_ms) {
    gossipEntry entry = {.id = about->id, .node_flags = (uint16_t)flags};
    failureGossip(&map, from, about, &entry, &rules, now_ms);
}

static void refused_connections_count_as_silence(void **state) {
    const busRules with_refused = {.timeout_ms = T, .refused_timeout_ms = 300};
    const failureRules refused = {.directives = &with_refused, .failed = failed};
    failureRefused(a, 1000);
    failureRefused(a, 1299);
    assert_false(failureTick(&map, &refused, 1400)); /* it may have been started since */
    failureRefused(a, 1300);
    assert_false(failureTick(&map, &rules, 1300)); /* off */
    assert_true(failureTick(&map, &refused, 1300));
    assert_true(a->flags & NODE_MAYBE_FAILED);
    assert_false(a->flags & NODE_FAILED);            /* the majority decides */
    assert_false(failureTick(&map, &refused, 1400)); /* known already */
    failurePong(&map, a, &refused, 1500);
    assert_false(failureTick(&map, &refused, 1600));
    failureRefused(b, 2000);
    failureNotRefused(b);
    failureRefused(b, 2400);
    failureRefused(b, 2600);
    assert_false(failureTick(&map, &refused, 2600));
}

/* The node that is told to forget another one does not take it back. It is told with every message,
 * and repetitions do not prolong it. */
static void forgotten_node_is_told(void **state) {
    const gossipRules tells = {.percent = 100, .supported = NODE_HAS_EXTENSIONS, .now_ms = 1000};
    message m;
    str bytes = STR_EMPTY;
    testId gone = idOf(7);
    slice gone_id = sliceMake(gone.text, NODE_ID_LEN);
    clusterMap other;
    clusterMapInit(&other, 0);
    clusterNode *me = clusterMapAdd(&other, map.myself->id, 0);
    (void)addNode(&other, 7);
    clusterNode *it = clusterMapAdd(&map, other.myself->id, 0);
    clusterMapSetFlags(&map, it, NODE_HAS_EXTENSIONS, 0);
    clusterMapForbid(&map, gone_id, 61000);
    gossipWrite(&bytes, &map, &tells, MESSAGE_PONG, it, false);
    assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
    gossipReadExtensions(&other, me, &m, &rules, 1000);
    assert_null(clusterMapFind(&other, gone_id));
    gossipReadExtensions(&other, me, &m, &rules, 2000);
    assert_true(clusterMapIsForbidden(&other, gone_id, 60999));
    assert_false(clusterMapIsForbidden(&other, gone_id, 61000));
    assert_map_valid(&other);
    clusterMapClear(&other);
    strFree(&bytes);
}

static void unanswered_ping_marks_after_the_timeout(void **state) {
    failurePinged(a, 1000);
    failurePinged(a, 1500); /* the first one counts */
    failureTick(&map, &rules, 1000 + T);
    assert_false(a->flags & NODE_MAYBE_FAILED);
    failureTick(&map, &rules, 1001 + T);
    assert_true(a->flags & NODE_MAYBE_FAILED);
    assert_false(b->flags & NODE_MAYBE_FAILED);
    assert_int_equal(told, 0);
    failurePong(&map, a, &rules, 1002 + T);
    assert_false(a->flags & NODE_MAYBE_FAILED);
    assert_int_equal(a->ping_sent_ms, 0);
}

static void data_without_a_pong_keeps_a_node(void **state) {
    failurePinged(a, 1000);
    failureHeard(a, 2500);
    failureTick(&map, &rules, 2500 + T);
    assert_false(a->flags & NODE_MAYBE_FAILED);
    failureTick(&map, &rules, 2501 + T);
    assert_true(a->flags & NODE_MAYBE_FAILED);
}

static void majority_marks_and_tells_once(void **state) {
    failurePinged(a, 1000);
    gossip(b, a, NODE_MAYBE_FAILED, 2000);
    assert_int_equal(told, 0); /* this node can reach it */
    assert_int_equal(failureCountReports(a, &rules, 2000), 1);
    failureTick(&map, &rules, 1001 + T);
    assert_true(a->flags & NODE_FAILED);
    assert_false(a->flags & NODE_MAYBE_FAILED);
    assert_ptr_equal(last_told, a);
    gossip(b, a, NODE_FAILED, 4000);
    failureTick(&map, &rules, 9000);
    assert_int_equal(told, 1);
}

static void reports_of_replicas_and_old_ones_do_not_count(void **state) {
    failurePinged(b, 1000);
    gossip(c, b, NODE_MAYBE_FAILED, 2000);
    gossip(a, b, NODE_MAYBE_FAILED, 0);
    failureTick(&map, &rules, 1 + 2 * T);
    assert_true(b->flags & NODE_MAYBE_FAILED);
    assert_int_equal(told, 0);
    gossip(a, b, NODE_FAILED, 5000);
    assert_int_equal(told, 1);
}

static void report_is_withdrawn(void **state) {
    failurePinged(b, 1000);
    gossip(a, b, NODE_MAYBE_FAILED, 2000);
    gossip(a, b, 0, 2100);
    failureTick(&map, &rules, 3001);
    assert_true(b->flags & NODE_MAYBE_FAILED);
    assert_int_equal(told, 0);
}

static void fail_message_is_obeyed_and_cleared_by_role(void **state) {
    failureReceived(&map, b, a, 1000);
    failureReceived(&map, b, c, 1000);
    failureReceived(&map, b, map.myself, 1000);
    assert_true(a->flags & NODE_FAILED);
    assert_false(map.myself->flags & NODE_FAILED);
    failurePong(&map, c, &rules, 1100);
    assert_false(c->flags & NODE_FAILED);
    failurePong(&map, a, &rules, 1000 + 2 * T);
    assert_true(a->flags & NODE_FAILED); /* a replica may be elected meanwhile */
    failurePong(&map, a, &rules, 1001 + 2 * T);
    assert_false(a->flags & NODE_FAILED);
    assert_int_equal(told, 0);
}

static void newer_pong_times_of_others_count_unless_they_are_in_the_future(void **state) {
    gossipEntry entry = {.id = a->id, .pong_s = 50};
    failureGossip(&map, b, a, &entry, &rules, 49400);
    assert_int_equal(a->pong_ms, 0);
    failureGossip(&map, b, a, &entry, &rules, 49500);
    assert_int_equal(a->pong_ms, 50000);
    entry.pong_s = 60;
    failurePinged(a, 60000);
    failureGossip(&map, b, a, &entry, &rules, 60000);
    assert_int_equal(a->pong_ms, 50000); /* a PING is pending */
}

/* ------------------------------------------------------------------ in messages */

static void all_suspected_nodes_are_told(void **state) {
    const gossipRules tells = {.percent = 10, .supported = NODE_HAS_EXTENSIONS};
    clusterMapSetFlags(&map, c, NODE_MAYBE_FAILED, 0);
    for (int i = 0; i < 20; i++) {
        message m;
        str bytes = STR_EMPTY;
        bool found = false;
        gossipWrite(&bytes, &map, &tells, MESSAGE_PING, a, i % 2);
        assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
        char id[NODE_ID_LEN];
        size_t at = 0;
        for (int k = 0; k < m.gossip_count; k++) {
            gossipEntry g = messageNextGossip(&m, &at, id);
            found |= !memcmp(g.id, c->id, NODE_ID_LEN) && g.node_flags & NODE_MAYBE_FAILED;
            assert_memory_not_equal(g.id, a->id, NODE_ID_LEN);
        }
        assert_true(found);
        assert_int_equal(m.extension_count, 0); /* the receiver has not shown that it has them */
        strFree(&bytes);
    }
}

/* What one node writes another one reads into its own map. */
static void gossip_and_extensions_reach_another_map(void **state) {
    const gossipRules tells = {
        .percent = 100, .supported = NODE_HAS_EXTENSIONS, .announces_ip = true};
    message m;
    str bytes = STR_EMPTY;
    clusterMap other;
    clusterMapInit(&other, 0);
    clusterNode *me = clusterMapAdd(&other, map.myself->id, 0);
    clusterNode *it = clusterMapAdd(&map, other.myself->id, 0);
    clusterMapSetFlags(&map, it, NODE_HAS_EXTENSIONS, 0);
    clusterMapSetText(&map, &map.myself->hostname, SLICE("host.example"));
    clusterMapSetText(&map, &map.myself->ip, SLICE("10.0.0.1"));
    clusterMapSetPort(&map, &map.myself->tcp_port, 7000);
    clusterMapSetText(&map, &a->ip, SLICE("10.0.0.2"));
    clusterMapSetPort(&map, &a->bus_port, 17001);
    gossipWrite(&bytes, &map, &tells, MESSAGE_PING, it, false);
    assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
    clusterMapForbid(&other, clusterNodeId(b), 1000);
    gossipRead(&other, me, &m, &rules, &tells, 0);
    gossipReadExtensions(&other, me, &m, &rules, 0);
    assert_true(gossipReadAddress(&other, me, &m.header, SLICE("1.1.1.1"), false));
    assert_false(gossipReadAddress(&other, me, &m.header, SLICE("1.1.1.1"), false));
    assert_string_equal(strText(&me->ip), "10.0.0.1");
    assert_string_equal(strText(&me->hostname), "host.example");
    assert_true(clusterNodesShareShard(me, map.myself));
    const clusterNode *added = clusterMapFind(&other, clusterNodeId(a));
    assert_non_null(added);
    assert_int_equal(added->bus_port, 17001);
    assert_null(clusterMapFind(&other, clusterNodeId(b))); /* forbidden, and without an address */
    assert_map_valid(&other);
    clusterMapClear(&other);
    strFree(&bytes);
}

/* A MEET of an unknown node: the nodes that it tells of are taken at once, its reports are not. */
static void gossip_of_a_node_to_be_met_adds_nodes(void **state) {
    const gossipRules tells = {.percent = 100};
    message m;
    str bytes = STR_EMPTY;
    clusterMap other;
    clusterMapInit(&other, 0);
    clusterNode *known = addNode(&other, 2);
    clusterMapSetText(&map, &a->ip, SLICE("10.0.0.2"));
    clusterMapSetPort(&map, &a->bus_port, 17001);
    a->is_connected = true;
    clusterMapSetFlags(&map, b, NODE_FAILED, 0);
    gossipWrite(&bytes, &map, &tells, MESSAGE_MEET, NULL, false);
    assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
    gossipReadMeet(&other, &m, &tells, 0);
    assert_non_null(clusterMapFind(&other, clusterNodeId(a)));
    assert_int_equal(other.node_count, 3);
    assert_int_equal(known->report_count, 0);
    assert_map_valid(&other);
    clusterMapClear(&other);
    strFree(&bytes);
}

/* A text that would damage the configuration file of every other node. */
static void invalid_texts_of_others_are_ignored(void **state) {
    message m;
    str bytes = STR_EMPTY;
    const messageHeader h = {.sender = a->id,
                             .flags = MESSAGE_HAS_EXTENSIONS,
                             .slots = (const uint8_t *)clusterNodeSlots(a)};
    const messageExtensions e = {.hostname = SLICE("a b"),
                                 .human_name = SLICE("x,y"),
                                 .availability_zone = SLICE("zone 1"),
                                 .client_ipv4 = SLICE("fd00::1"),
                                 .forgotten = {{map.myself->id, 60}, {b->id, 60}},
                                 .forgotten_count = 2};
    messageWriter w = messageBegin(&bytes, MESSAGE_PONG, &h);
    messageAddExtensions(&w, &e);
    messageEnd(&w);
    assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
    testId id_of_b = idOf(2);
    gossipReadExtensions(&map, a, &m, &rules, 0);
    assert_int_equal(a->hostname.len + a->human_name.len + a->availability_zone.len, 0);
    assert_int_equal(a->client_ipv4.len, 0);
    assert_null(clusterMapFind(&map, sliceMake(id_of_b.text, NODE_ID_LEN)));
    assert_true(clusterMapIsForbidden(&map, sliceMake(id_of_b.text, NODE_ID_LEN), 59999));
    assert_int_equal(map.forbidden_count, 1);
    strFree(&bytes);
}

/* Voters forget the primary of this node before they have marked it as failed: nobody reports it
 * any more, and this node, which cannot forget it, has to replace it. */
static void forgotten_primary_fails_if_it_cannot_be_reached(void **state) {
    clusterMapSetOwner(&map, 0, a);
    clusterMapSetPrimary(&map, map.myself, a);
    clusterNode *d = addNode(&map, 4);
    clusterMapSetOwner(&map, 3, d);
    failureForgotten(&map, b, a, &rules, 0); /* this node reaches it */
    failureForgotten(&map, d, a, &rules, 0);
    assert_false(a->flags & NODE_FAILED);
    clusterMapSetFlags(&map, a, NODE_MAYBE_FAILED, 0);
    failureForgotten(&map, c, a, &rules, 0); /* it does not vote */
    failureForgotten(&map, b, a, &rules, 0);
    assert_false(a->flags & NODE_FAILED);
    failureForgotten(&map, d, a, &rules, 0);
    assert_true(a->flags & NODE_FAILED);
    assert_int_equal(told, 1);
}

/* A new node meets a replica whose primary is down. */
static void silent_primary_is_in_the_shard_of_its_replica(void **state) {
    static const char shard[] = "5555555555555555555555555555555555555555";
    static const char later[] = "6666666666666666666666666666666666666666";
    clusterNode *senders[] = {c, a, c};
    const char *shards[] = {shard, later, shard};
    for (size_t i = 0; i < COUNT_OF(senders); i++) {
        message m;
        str bytes = STR_EMPTY;
        const messageHeader h = {.sender = senders[i]->id,
                                 .flags = MESSAGE_HAS_EXTENSIONS,
                                 .slots = (const uint8_t *)clusterNodeSlots(senders[i])};
        const messageExtensions e = {.shard_id = shards[i]};
        messageWriter w = messageBegin(&bytes, MESSAGE_PONG, &h);
        messageAddExtensions(&w, &e);
        messageEnd(&w);
        assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
        gossipReadExtensions(&map, senders[i], &m, &rules, 0);
        assert_memory_equal(c->shard_id, shards[i], NODE_ID_LEN);
        assert_memory_equal(a->shard_id, i ? later : shard, NODE_ID_LEN);
        strFree(&bytes);
    }
}

int test_failure(void);
int test_failure(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(refused_connections_count_as_silence),
        CASE(forgotten_node_is_told),
        CASE(unanswered_ping_marks_after_the_timeout),
        CASE(data_without_a_pong_keeps_a_node),
        CASE(majority_marks_and_tells_once),
        CASE(reports_of_replicas_and_old_ones_do_not_count),
        CASE(report_is_withdrawn),
        CASE(fail_message_is_obeyed_and_cleared_by_role),
        CASE(newer_pong_times_of_others_count_unless_they_are_in_the_future),
        CASE(all_suspected_nodes_are_told),
        CASE(gossip_and_extensions_reach_another_map),
        CASE(gossip_of_a_node_to_be_met_adds_nodes),
        CASE(invalid_texts_of_others_are_ignored),
        CASE(forgotten_primary_fails_if_it_cannot_be_reached),
        CASE(silent_primary_is_in_the_shard_of_its_replica),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
