/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of the configuration file: what Valkey 9.1.2 wrote is read and written again; what is
 * damaged is refused with its line. */
#include "bus_test.h"

#include "base/base.h"
#include "base/log.h"

#define A "5b02a65170aa613549e484ca4baeaf32ceaf768e"
#define B "7feb9cbb0aef81244e37a42cca5efcc10ceac7f3"
#define C "0f8ad70b8567ae2f4bb3e974528eb26dd2bf029a"
#define D "304da1eae243a0e1cb04115974438530e8130fc2"
#define SHARD_A "ac4d68615128defe79e339f36faaf59e0f200e69"
#define SHARD_B "9cf6fe66800ff1701b8814f38eb7a7934ab5110d"
#define SHARD_D "b370bcd1adcafff4e340cafdcf3fc79ece78327f"

/* Written by a released node: B, of which C is a replica, gives a slot to D. */
#define LINE_B \
    B " 127.0.0.1:23101@23301,,tls-port=0,shard-id=" SHARD_B " myself,master - 0 0 4 connected " \
      "5461-10921 [6000->-" D "]\n"
#define LINE_A \
    A " 127.0.0.1:23100@23300,host-a.example,availability-zone=zone-1,client-tls-port=7002," \
      "client-tcp-port=7001,client-ipv6=fd00::1,client-ipv4=10.1.2.3,tls-port=0," \
      "nodename=node-a,shard-id=" SHARD_A " master - 0 1795566112000 6 connected 0-5460\n"
#define LINE_C \
    C " 127.0.0.1:23104@23304,,tls-port=0,shard-id=" SHARD_B " slave " B \
      " 0 1795566112000 4 connected\n"
#define LINE_D \
    D " 127.0.0.1:23102@23302,,tls-port=0,shard-id=" SHARD_D \
      " master - 0 1795566112000 5 connected 10922-16383\n"
#define VARS "vars currentEpoch 6 lastVoteEpoch 6\n"
#define WHOLE LINE_B LINE_D LINE_A LINE_C VARS

static status parse(clusterMap *m, const char *text, reason *why) {
    return clusterMapParse(m, sliceOf(text), false, 1795566112000, why);
}

static void file_of_a_released_node_is_read_and_written_unchanged(void **state) {
    clusterMap m;
    reason why;
    str again = STR_EMPTY;
    assert_int_equal(parse(&m, LINE_C LINE_A "\n" LINE_D LINE_B VARS, &why), OK);
    assert_map_valid(&m);
    clusterNode *a = clusterMapFind(&m, SLICE(A)), *c = clusterMapFind(&m, SLICE(C));
    assert_memory_equal(m.myself->id, B, NODE_ID_LEN);
    assert_ptr_equal(c->primary, m.myself);
    assert_string_equal(strText(&a->hostname), "host-a.example");
    assert_string_equal(strText(&a->human_name), "node-a");
    assert_string_equal(strText(&a->availability_zone), "zone-1");
    assert_string_equal(strText(&a->client_ipv6), "fd00::1");
    assert_int_equal(a->client_tls_port, 7002);
    assert_ptr_equal(clusterMapOpenSlot(&m, SLOT_MIGRATING, 6000), clusterMapFind(&m, SLICE(D)));
    assert_int_equal(m.slots_assigned, SLOT_COUNT);
    assert_int_equal(m.current_epoch, 6);
    assert_int_equal(m.vote_epoch, 6);
    clusterMapClear(&m);
    assert_int_equal(parse(&m, WHOLE, &why), OK);
    for (int i = 1; i < m.node_count; i++) m.nodes[i]->is_connected = true;
    clusterMapPrint(&m, false, &again);
    assert_string_equal(strText(&again), WHOLE);
    strFree(&again);
    clusterMapClear(&m);
}

/* A file of an old version: slots, and so epochs, are those of the primary. */
static void replica_is_shown_with_the_epoch_of_its_primary(void **state) {
    clusterMap m;
    reason why;
    str shown = STR_EMPTY;
    const nodeViewer viewer = {.tls = false};
    assert_int_equal(parse(&m, WHOLE, &why), OK);
    clusterNode *c = clusterMapFind(&m, SLICE(C));
    c->epoch = 2;
    clusterNodeDescribe(&shown, &m, c, &viewer);
    assert_non_null(strstr(strText(&shown), " slave " B " 0 1795566112000 4 "));
    strFree(&shown);
    clusterMapClear(&m);
}

static void what_a_restart_must_not_end_is_in_the_file(void **state) {
    static const char *const vars[] = {
        "vars currentEpoch 6 lastVoteEpoch 6 heldFor " A " heldEpoch 5\n",
        "vars currentEpoch 6 lastVoteEpoch 6 pausedFor " C " pausedEpoch 6\n",
        "vars currentEpoch 6 lastVoteEpoch 6 forgotten " SHARD_A "," SHARD_D "\n",
    };
    for (size_t i = 0; i < COUNT_OF(vars); i++) {
        clusterMap m;
        reason why;
        str text = STR_EMPTY, again = STR_EMPTY;
        strAppendFormat(&text, "%s%s", LINE_B LINE_D LINE_A LINE_C, vars[i]);
        assert_int_equal(parse(&m, strText(&text), &why), OK);
        if (i < 2) {
            assert_memory_equal(i ? m.paused_for : m.held_for, i ? C : A, NODE_ID_LEN);
            assert_int_equal(i ? m.paused_epoch : m.held_epoch, 5 + i);
        } else {
            assert_true(clusterMapWasForgotten(&m, SLICE(SHARD_D)));
            assert_false(clusterMapIsForbidden(&m, SLICE(SHARD_D), 1795566112000));
        }
        for (int k = 1; k < m.node_count; k++) m.nodes[k]->is_connected = true;
        clusterMapPrint(&m, false, &again);
        assert_string_equal(strText(&again), strText(&text));
        m.changed = 0;
        clusterMapSetHold(&m, NULL, 0);
        clusterMapSetPause(&m, NULL, 0);
        assert_int_equal(m.changed & CLUSTER_MAP_SYNC, i < 2 ? CLUSTER_MAP_SYNC : 0);
        clusterMapForbidNone(&m);
        strClear(&again);
        clusterMapPrint(&m, false, &again);
        assert_string_equal(strText(&again), WHOLE);
        strFree(&again);
        strFree(&text);
        clusterMapClear(&m);
    }
}

static void older_forms_are_read(void **state) {
    clusterMap m;
    reason why;
    assert_int_equal(parse(&m,
                           B " 127.0.0.1:6379 myself,primary - 0 0 9 connected 1 3-5\n" C
                             " :0@0 replica,fail " B " 0 5 2 disconnected\n"
                             "vars foo bar currentEpoch 3\n",
                           &why),
                     OK);
    assert_int_equal(m.myself->bus_port, 16379);
    assert_int_equal(m.current_epoch, 9); /* the greatest */
    assert_int_equal(m.myself->slot_count, 4);
    clusterNode *c = clusterMapFind(&m, SLICE(C));
    assert_int_equal(c->flags, NODE_REPLICA | NODE_FAILED);
    assert_memory_equal(c->shard_id, m.myself->shard_id, NODE_ID_LEN);
    clusterMapClear(&m);
}

static void with_tls_cluster_the_first_port_is_that_of_tls(void **state) {
    clusterMap m;
    reason why;
    str again = STR_EMPTY;
    const char *text = B " 127.0.0.1:6380@16379,,tcp-port=6379,shard-id=" SHARD_B
                         " myself,master - 0 0 9 connected\nvars currentEpoch 9 lastVoteEpoch 0\n";
    assert_int_equal(clusterMapParse(&m, sliceOf(text), true, 1, &why), OK);
    assert_int_equal(clusterNodePort(m.myself, true), 6380);
    assert_int_equal(clusterNodePort(m.myself, false), 6379);
    clusterMapPrint(&m, true, &again);
    assert_string_equal(strText(&again), text);
    strFree(&again);
    clusterMapClear(&m);
}

static void replica_gets_the_shard_of_its_primary(void **state) {
    clusterMap m;
    reason why;
    assert_int_equal(
        parse(&m, LINE_B C " 127.0.0.1:1@2,,shard-id=" SHARD_A " slave " B " 0 0 4 connected\n",
              &why),
        OK);
    assert_memory_equal(clusterMapFind(&m, SLICE(C))->shard_id, SHARD_B, NODE_ID_LEN);
    clusterMapClear(&m);
}

static void unknown_primary_is_not_a_node(void **state) {
    clusterMap m;
    reason why;
    assert_int_equal(parse(&m, B " :1@2 myself,slave " D " 0 0 4 connected\n", &why), OK);
    assert_int_equal(m.node_count, 1);
    assert_null(m.myself->primary);
    assert_true(m.myself->flags & NODE_REPLICA);
    clusterMapClear(&m);
}

static void damaged_lines_are_named(void **state) {
    static const char *const lines[] = {
        "x",
        A,
        A " 127.0.0.1:1@2 master",
        A " 127.0.0.1:1@2 master - 0 0 5\n",
        A " 127.0.0.1:1@2 master - 0 0 5 maybe",
        A " 127.0.0.1:1@2 master,king - 0 0 5 connected",
        A " 127.0.0.1:1@2 master,slave - 0 0 5 connected",
        A " 127.0.0.1@2 master - 0 0 5 connected",
        A " 127.0.0.1:99999@2 master - 0 0 5 connected",
        A " 127.0.0.1:60000 master - 0 0 5 connected",
        A " 127.0.0.1:1@2,,size=3 master - 0 0 5 connected",
        A " 127.0.0.1:1@2,a_b master - 0 0 5 connected",
        A " 127.0.0.1:1@2,,client-ipv4=fd00::1 master - 0 0 5 connected",
        A " 127.0.0.1:1@2,,shard-id=x master - 0 0 5 connected",
        A " 127.0.0.1:1@2,,replica-priority=-1 master - 0 0 5 connected",
        A " 127.0.0.1:1@2,,replica-priority=2147483648 master - 0 0 5 connected",
        A " 127.0.0.1:1@2 master " B " 0 0 5 connected",
        A " 127.0.0.1:1@2 slave " A " 0 0 5 connected",
        A " 127.0.0.1:1@2 slave z 0 0 5 connected",
        A " 127.0.0.1:1@2 master - 0 0 -1 connected",
        A " 127.0.0.1:1@2 master - 0 0 1 connected 16384",
        A " 127.0.0.1:1@2 master - 0 0 1 connected 7-6",
        A " 127.0.0.1:1@2 master - 0 0 1 connected [5->-" B "]",
        B " 127.0.0.1:1@2 master - 0 0 1 connected",
        "Z" B " 127.0.0.1:1@2 master - 0 0 1 connected",
        "vars currentEpoch x",
        "vars currentEpoch",
        "vars currentEpoch 6 heldFor " A " heldEpoch 7",
        "vars currentEpoch 6 pausedFor x pausedEpoch 6",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        clusterMap m;
        reason why;
        str text = STR_EMPTY;
        strAppendFormat(&text, "%s\n%s\n%s", LINE_B, lines[i], VARS);
        assert_int_equal(parse(&m, strText(&text), &why), ERR_SYNTAX);
        assert_non_null(strstr(why.text, "(line 3)"));
        assert_null(m.nodes);
        strFree(&text);
    }
    clusterMap m;
    reason why;
    assert_int_equal(parse(&m, LINE_A VARS, &why), ERR_SYNTAX);
    assert_string_equal(why.text, "no line with the flag 'myself'");
    assert_int_equal(parse(&m, LINE_B LINE_B, &why), ERR_SYNTAX);
    assert_int_equal(parse(&m, LINE_B LINE_A LINE_A, &why), ERR_SYNTAX);
}

/* Whatever the damage is: an error, or a map that keeps its invariants. */
static void every_truncation_and_every_changed_byte(void **state) {
    static const char changes[] = {0, ' ', '\n', ',', '-', '9', 'z', '[', (char)0xff};
    size_t accepted = 0;
    str text = STR_EMPTY;
    logSetLevel(LOG_NOTHING);
    for (size_t at = 0; at < sizeof(WHOLE) - 1; at++) {
        for (size_t i = 0; i <= COUNT_OF(changes); i++) {
            clusterMap m;
            reason why;
            strClear(&text);
            strAppendText(&text, WHOLE);
            if (i == COUNT_OF(changes)) {
                strCut(&text, at);
            } else {
                text.ptr[at] = changes[i];
            }
            if (clusterMapParse(&m, strSlice(&text), false, 1, &why) != OK) continue;
            accepted++;
            if (accepted % 8 == 0) assert_map_valid(&m);
            clusterMapClear(&m);
        }
    }
    logSetLevel(LOG_NOTICE);
    assert_true(accepted > 0);
    strFree(&text);
}

int test_map_file(void);
int test_map_file(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_of_a_released_node_is_read_and_written_unchanged),
        cmocka_unit_test(replica_is_shown_with_the_epoch_of_its_primary),
        cmocka_unit_test(what_a_restart_must_not_end_is_in_the_file),
        cmocka_unit_test(older_forms_are_read),
        cmocka_unit_test(with_tls_cluster_the_first_port_is_that_of_tls),
        cmocka_unit_test(replica_gets_the_shard_of_its_primary),
        cmocka_unit_test(unknown_primary_is_not_a_node),
        cmocka_unit_test(damaged_lines_are_named),
        cmocka_unit_test(every_truncation_and_every_changed_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
