/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of slots, and parsing of CLUSTER NODES. */
#include "tools/cli/cluster_nodes.h"
#include "tools_test.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void expectSlots(const slotSet *set, const char *brackets, const char *plain) {
    str text = STR_EMPTY;
    slotSetPrint(set, &text);
    assert_string_equal(strText(&text), brackets);
    strClear(&text);
    slotSetPrintPlain(set, &text);
    assert_string_equal(strText(&text), plain);
    strFree(&text);
}

static void setsOfSlotsCountAndPrintRanges(void **state) {
    slotSet set = {0}, other = {0};
    expectSlots(&set, "", "");
    assert_int_equal(slotSetNext(&set, 0), -1);
    slotSetAdd(&set, 0);
    slotSetAdd(&set, 0);
    slotSetAdd(&set, 16383);
    assert_int_equal(set.count, 2);
    expectSlots(&set, "[0],[16383]", "0-0 16383-16383");
    assert_int_equal(slotSetNext(&set, 1), 16383);
    for (int slot = 60; slot < 70; slot++) slotSetAdd(&other, slot);
    slotSetAddAll(&set, &other);
    slotSetAddAll(&set, &other);
    assert_int_equal(set.count, 12);
    slotSetRemove(&set, 64);
    slotSetRemove(&set, 64);
    assert_int_equal(set.count, 11);
    expectSlots(&set, "[0],[60-63],[65-69],[16383]", "0-0 60-63 65-69 16383-16383");
    assert_int_equal(slotSetNext(&set, 64), 65);
}

static void addressesAreSplitAtTheLastColon(void **state) {
    static const struct {
        const char *text, *host;
        int port, bus_port;
    } valid[] = {{"127.0.0.1:7000", "127.0.0.1", 7000, 0},
                 {"h:1@2", "h", 1, 2},
                 {"::1:6379", "::1", 6379, 0},
                 {":7000", "", 7000, 0},
                 {"h:", "h", 0, 0},
                 {"h:x", "h", 0, 0},
                 {"h:1x@", "h", 1, 0}};
    static const char *const invalid[] = {"", "7000", "h@1:2"};
    str host = STR_EMPTY;
    int port = -1, bus_port = -1;
    for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
        assert_false(clusterNodeParseAddress(invalid[i], &host, &port, &bus_port));
    assert_int_equal(port, -1);
    for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++) {
        assert_true(clusterNodeParseAddress(valid[i].text, &host, &port, &bus_port));
        assert_string_equal(strText(&host), valid[i].host);
        assert_int_equal(port, valid[i].port);
        assert_int_equal(bus_port, valid[i].bus_port);
    }
    strFree(&host);
}

static void parsesSlotsAndOpenSlotsOfALine(void **state) {
    bool is_myself;
    clusterNode *node = clusterNodeNew("", 0, 0);
    assert_true(clusterNodeParseLine(
        SLICE(ID_A " 10.0.0.1:7000@17000,name,shard-id=x myself,master - 0 0 "
                   "18446744073709551615 connected 0-5 7 [8->-" ID_B "] [9-<-" ID_B "]"),
        node, &is_myself));
    assert_true(is_myself);
    assert_string_equal(node->id, ID_A);
    assert_string_equal(strText(&node->host), "10.0.0.1");
    assert_int_equal(node->port, 7000);
    assert_int_equal(node->bus_port, 17000);
    assert_string_equal(strText(&node->flags), "master");
    assert_true(node->epoch == UINT64_MAX);
    assert_false(node->is_replica);
    assert_true(node->has_address);
    expectSlots(&node->slots, "[0-5],[7]", "0-5 7-7");
    assert_int_equal(node->migrating.count, 1);
    assert_int_equal(node->migrating.list[0].slot, 8);
    assert_string_equal(node->migrating.list[0].peer, ID_B);
    assert_int_equal(node->importing.count, 1);
    assert_int_equal(node->importing.list[0].slot, 9);
    clusterNodeFree(node);
    node = clusterNodeNew("", 0, 0);
    assert_true(clusterNodeParseLine(
        SLICE(ID_B " :0@0 slave,fail,noaddr " ID_A " 1 2 3 disconnected"), node, &is_myself));
    assert_false(is_myself);
    assert_true(node->is_replica);
    assert_false(node->has_address);
    assert_string_equal(node->primary, ID_A);
    clusterNodeFree(node);
}

static void refusesDamagedLines(void **state) {
    static const char *const lines[] = {
        "",
        "x",
        ID_A,
        ID_A " 1:1@1 master - 0 0 1",
        "a 1:1@1 master - 0 0 1 connected",
        ID_A "a 1:1@1 master - 0 0 1 connected",
        ID_A " 1 master - 0 0 1 connected",
        ID_A " 1:1@1 master -- 0 0 1 connected",
        ID_A " 1:1@1 master - 0 0 x connected",
        ID_A " 1:1@1 master - 0 0 1 connected 16384",
        ID_A " 1:1@1 master - 0 0 1 connected 5-3",
        ID_A " 1:1@1 master - 0 0 1 connected 5-",
        ID_A " 1:1@1 master - 0 0 1 connected -5",
        ID_A " 1:1@1 master - 0 0 1 connected [",
        ID_A " 1:1@1 master - 0 0 1 connected [5->-" ID_A,
        ID_A " 1:1@1 master - 0 0 1 connected [->-" ID_A "]",
        ID_A " 1:1@1 master - 0 0 1 connected [5-=-" ID_A "]",
        ID_A " 1:1@1 master - 0 0 1 connected [16384->-" ID_A "]",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        bool is_myself;
        clusterNode *node = clusterNodeNew("", 0, 0);
        if (clusterNodeParseLine(sliceOf(lines[i]), node, &is_myself))
            fail_msg("accepted: %s", lines[i]);
        clusterNodeFree(node);
    }
}

#define LINE_A ID_A " 127.0.0.1:1@1 myself,master - 0 0 1 connected 0-8191 [3->-" ID_B "]\n"
#define LINE_B ID_B " 127.0.0.1:2@2 master - 0 0 2 connected 8192-16383\n"

static void aReplyFillsTheAskedNodeAndListsTheOthers(void **state) {
    clusterNodes others = {0};
    clusterNode *self = clusterNodeNew("given-name", 7, 0);
    assert_true(clusterNodesParse(SLICE(LINE_B LINE_A), self, &others));
    assert_string_equal(strText(&self->host), "given-name");
    assert_int_equal(self->port, 7);
    assert_int_equal(self->bus_port, 1);
    assert_string_equal(self->id, ID_A);
    assert_int_equal(self->slots.count, 8192);
    assert_int_equal(self->migrating.count, 1);
    assert_int_equal(others.count, 1);
    assert_string_equal(others.list[0]->id, ID_B);
    clusterNodesClear(&others);
    clusterNodeFree(self);
}

static void aReplyWithoutOrWithTwoOwnLinesIsRefused(void **state) {
    static const char *const replies[] = {"", LINE_B, LINE_A LINE_A, LINE_A "x\n"};
    for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
        clusterNodes others = {0};
        clusterNode *self = clusterNodeNew("h", 7, 0);
        assert_false(clusterNodesParse(sliceOf(replies[i]), self, &others));
        clusterNodesClear(&others);
        clusterNodeFree(self);
    }
}

static void signaturesIgnoreOrderAndOpenSlots(void **state) {
    str a = STR_EMPTY, b = STR_EMPTY;
    assert_true(clusterNodesSignature(SLICE(LINE_A LINE_B), &a));
    assert_true(clusterNodesSignature(
        SLICE(ID_B " 127.0.0.1:2@2 myself,master - 0 0 9 connected 8192-16383\n" ID_A
                   " :1@1 master,fail - 0 0 1 disconnected 0-8191\n"),
        &b));
    assert_string_equal(strText(&a), strText(&b));
    strClear(&b);
    assert_true(clusterNodesSignature(
        SLICE(ID_B " 127.0.0.1:2@2 master - 0 0 9 connected 8192-16382\n" LINE_A), &b));
    assert_string_not_equal(strText(&a), strText(&b));
    assert_false(clusterNodesSignature(SLICE("x\n"), &b));
    strFree(&a);
    strFree(&b);
}

static void nodesAreFoundByIdAndDescribed(void **state) {
    clusterNodes nodes = {0};
    clusterNode *replica = clusterNodeNew("r", 3, 0);
    bool is_myself;
    clusterNodesAdd(&nodes, clusterNodeNew("", 0, 0));
    clusterNodesAdd(&nodes, replica);
    assert_true(clusterNodeParseLine(SLICE(ID_B " p:2@2 master - 0 0 2 connected 1-2 4"),
                                     nodes.list[0], &is_myself));
    assert_true(clusterNodeParseLine(SLICE(ID_A " r:3@3 slave " ID_B " 0 0 2 connected"), replica,
                                     &is_myself));
    clusterNodesCountReplicas(&nodes);
    assert_int_equal(nodes.list[0]->replica_count, 1);
    assert_ptr_equal(clusterNodesFindId(&nodes, ID_A), replica);
    assert_ptr_equal(clusterNodesFind(&nodes, "AAA"), replica);
    assert_null(clusterNodesFindId(&nodes, "aaa"));
    assert_null(clusterNodesFind(&nodes, "c"));
    str text = STR_EMPTY;
    clusterNodeDescribe(nodes.list[0], 0, true, &text);
    assert_string_equal(strText(&text), "M: " ID_B " p:2\n   slots:[1-2],[4] (3 slots) master\n"
                                        "   1 additional replica(s)\n");
    strClear(&text);
    clusterNodeDescribe(replica, 2, false, &text);
    assert_string_equal(strText(&text), "  S: " ID_A " r:3\n     replicates " ID_B "\n");
    strFree(&text);
    clusterNodesClear(&nodes);
}

int test_cluster_nodes(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setsOfSlotsCountAndPrintRanges),
        cmocka_unit_test(addressesAreSplitAtTheLastColon),
        cmocka_unit_test(parsesSlotsAndOpenSlotsOfALine),
        cmocka_unit_test(refusesDamagedLines),
        cmocka_unit_test(aReplyFillsTheAskedNodeAndListsTheOthers),
        cmocka_unit_test(aReplyWithoutOrWithTwoOwnLinesIsRefused),
        cmocka_unit_test(signaturesIgnoreOrderAndOpenSlots),
        cmocka_unit_test(nodesAreFoundByIdAndDescribed),
    };
    return cmocka_run_group_tests_name("cluster_nodes", tests, NULL, NULL);
}
