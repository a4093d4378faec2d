/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/gossip.h: which nodes a message tells of. */
#include "bus_test.h"

#include "bus/gossip.h"

enum { NODES = 10, NOW_MS = 100000 };

static clusterMap map;
static clusterNode *nodes[NODES]; /* 1 to 9 */
static gossipRules rules;

/* All have answered just now. */
static int setup(void **state) {
    clusterMapInit(&map, 0);
    clusterMapSetId(&map, map.myself, idOf(0).text);
    for (int i = 1; i < NODES; i++) {
        nodes[i] = addNode(&map, i);
        clusterMapSetText(&map, &nodes[i]->ip, SLICE("127.0.0.1"));
        nodes[i]->is_connected = true;
        nodes[i]->pong_ms = NOW_MS;
    }
    rules = (gossipRules){.percent = 100, .now_ms = NOW_MS, .moved_since_ms = NOW_MS};
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

/* The numbers of the nodes that a PING to node 9 tells of, as bits. */
static unsigned tellsOf(bool is_short) {
    str bytes = STR_EMPTY;
    message m;
    gossipWrite(&bytes, &map, &rules, MESSAGE_PING, nodes[9], is_short);
    assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
    unsigned told = 0;
    size_t at = 0;
    for (int i = 0; i < m.gossip_count; i++) {
        char id[NODE_ID_LEN];
        gossipEntry entry = messageNextGossip(&m, &at, id);
        told |= 1u << (entry.id[0] - '0');
    }
    strFree(&bytes);
    return told;
}

/* The priority that a message to node 9 tells; and what node 9 takes from such a message. */
static int toldPriority(bool is_short, int sent) {
    str bytes = STR_EMPTY;
    message m;
    messageExtensions e;
    clusterMapSetReplicaPriority(&map, map.myself, sent);
    gossipWrite(&bytes, &map, &rules, MESSAGE_PING, nodes[9], is_short);
    assert_int_equal(messageRead(strSlice(&bytes), &m, NULL), OK);
    messageReadExtensions(&m, &e);
    assert_int_equal(e.unknown_type, -1);
    gossipReadExtensions(&map, nodes[1], &m, NULL, NOW_MS);
    assert_int_equal(nodes[1]->replica_priority, e.replica_priority);
    strFree(&bytes);
    return e.replica_priority;
}

static void the_priority_is_told_to_those_that_understand_it(void **state) {
    clusterMapSetFlags(&map, nodes[9], NODE_HAS_EXTENSIONS, 0);
    assert_int_equal(toldPriority(false, 7), 0);
    nodes[9]->takes_priority = true;
    assert_int_equal(toldPriority(false, 7), 7);
    assert_int_equal(toldPriority(true, INT32_MAX), INT32_MAX);
    assert_int_equal(toldPriority(true, 0), 0);
}

static void the_short_form_tells_what_others_may_not_know(void **state) {
    assert_int_equal(tellsOf(true), 0x1fe);
    nodes[3]->pong_ms = nodes[4]->pong_ms = nodes[5]->pong_ms = nodes[6]->pong_ms = NOW_MS - 3000;
    nodes[4]->moved_ms = NOW_MS;
    clusterMapSetFlags(&map, nodes[5], NODE_FAILED, 0);
    clusterMapSetFlags(&map, nodes[6], NODE_MAYBE_FAILED, 0);
    assert_int_equal(tellsOf(true), 0x1fe & ~(1u << 3));
}

static void the_full_form_tells_of_nodes_that_were_silent_for_long(void **state) {
    for (int i = 1; i < NODES; i++) nodes[i]->pong_ms = 0;
    assert_int_equal(tellsOf(false), 0x1fe);
}

static void a_node_that_may_have_failed_is_in_every_message(void **state) {
    rules.percent = 0; /* the fewest: three others */
    clusterMapSetFlags(&map, nodes[7], NODE_MAYBE_FAILED, 0);
    for (int i = 0; i < 100; i++) {
        unsigned told = tellsOf(i & 1);
        assert_true(told & 1u << 7);
        assert_int_equal(__builtin_popcount(told), 4);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int test_gossip(void) {
    const struct CMUnitTest tests[] = {
        T(the_priority_is_told_to_those_that_understand_it),
        T(the_short_form_tells_what_others_may_not_know),
        T(the_full_form_tells_of_nodes_that_were_silent_for_long),
        T(a_node_that_may_have_failed_is_in_every_message),
    };
    return cmocka_run_group_tests_name("gossip", tests, NULL, NULL);
}
