/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sentinel/machine.h: votes, hello messages, detection, and a failover step by step. */
#include "sentinel_test.h"

static sentinelInstance *primary, *peer, *third, *replica;

static int setup(void **state) {
    (void)state;
    beginView();
    primary = addPrimary();
    assert_int_equal(
        sentinelAddPeer(&view, primary, SLICE("10.0.0.8"), 26379, sliceOf(peer_id), &peer), OK);
    assert_int_equal(
        sentinelAddPeer(&view, primary, SLICE("10.0.0.9"), 26379, sliceOf(third_id), &third), OK);
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.3"), 6380, &replica), OK);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    endView();
    return 0;
}

static void tickAfter(int64_t ms) {
    view.now_ms += ms;
    sentinelTick(&view);
}

/* Replies to all that is pending on the link of `i`; INFO by `info`. */
static void serve(sentinelInstance *i, const char *info) {
    sentinelLink *l = i->link;
    for (int n = l->pending_count; n > 0 && l->pending_count; n--) {
        sentinelReply r = {.kind = REPLY_STATUS, .text = SLICE("PONG")};
        if (l->pending[0].kind == PENDING_INFO)
            r = (sentinelReply){.kind = REPLY_BULK, .text = sliceOf(info)};
        assert_true(sentinelReplied(&view, l, &r));
    }
}

static void answerAsk(sentinelInstance *of, bool down, const char *leader, int64_t epoch) {
    sentinelReply r = {.kind = REPLY_ARRAY, .count = 3};
    r.items[0].kind = r.items[2].kind = REPLY_INTEGER;
    r.items[1].kind = REPLY_BULK;
    r.items[0].integer = down;
    r.items[1].text = sliceOf(leader);
    r.items[2].integer = epoch;
    sentinelAskReplied(&view, of, &r);
}

static void one_vote_is_given_in_each_epoch(void **state) {
    (void)state;
    sentinelVote(&view, primary, 5, sliceOf(peer_id));
    assert_string_equal(strText(&primary->leader), peer_id);
    assert_int_equal(view.current_epoch, 5);
    sentinelVote(&view, primary, 5, sliceOf(third_id));
    assert_string_equal(strText(&primary->leader), peer_id);
    sentinelVote(&view, primary, 4, sliceOf(third_id));
    assert_string_equal(strText(&primary->leader), peer_id);
    sentinelVote(&view, primary, 6, sliceOf(third_id));
    assert_string_equal(strText(&primary->leader), third_id);
    assert_int_equal(primary->leader_epoch, 6);
    assert_true(primary->failover_start_ms >= view.now_ms);
}

static void strangers_get_no_vote_and_change_no_epoch(void **state) {
    (void)state;
    sentinelVote(&view, primary, 9, SLICE("4444444444444444444444444444444444444444"));
    assert_int_equal(view.current_epoch, 0);
    assert_int_equal(primary->leader.len, 0);
    sentinelVote(&view, primary, SENTINEL_EPOCH_MAX + 1, sliceOf(peer_id));
    assert_int_equal(view.current_epoch, 0);
    assert_int_equal(primary->leader.len, 0);
}

static void a_vote_that_cannot_be_saved_is_not_given(void **state) {
    (void)state;
    save_fails = true;
    sentinelVote(&view, primary, 5, sliceOf(peer_id));
    assert_int_equal(primary->leader.len, 0);
    assert_int_equal(primary->leader_epoch, 0);
}

static void a_leader_needs_the_majority_of_all_and_the_quorum(void **state) {
    (void)state;
    view.current_epoch = 3;
    assert_int_equal(sentinelLeader(&view, primary, 3).len, 0); /* votes itself */
    assert_string_equal(strText(&primary->leader), own_id);
    answerAsk(peer, true, own_id, 2); /* of an old epoch */
    assert_int_equal(sentinelLeader(&view, primary, 3).len, 0);
    answerAsk(peer, true, own_id, 3);
    assert_true(sliceIs(sentinelLeader(&view, primary, 3), own_id));
    primary->quorum = 3;
    assert_int_equal(sentinelLeader(&view, primary, 3).len, 0);
}

static void hello(const char *id, const char *rest) {
    str text = STR_EMPTY;
    strAppendFormat(&text, "10.0.0.8,26379,%s,%s", id, rest);
    sentinelHello(&view, strSlice(&text));
    strFree(&text);
}

static void hello_messages_that_are_not_valid_change_nothing(void **state) {
    (void)state;
    static const char *const rests[] = {"7,mym,10.0.0.3,6380",
                                        "7,mym,10.0.0.3,6380,7,7",
                                        "7,other,10.0.0.3,6380,7",
                                        "x,mym,10.0.0.3,6380,7",
                                        "-1,mym,10.0.0.3,6380,7",
                                        "18446744073709551615,mym,10.0.0.3,6380,7",
                                        "7,mym,10.0.0.3,6380,18446744073709551615",
                                        "7,mym,10.0.0.3,,7",
                                        "",
                                        ",,,,"};
    for (size_t i = 0; i < COUNT_OF(rests); i++) hello(peer_id, rests[i]);
    hello("short", "7,mym,10.0.0.3,6380,7");
    hello(own_id, "7,mym,10.0.0.3,6380,7");
    assert_int_equal(view.current_epoch, 0);
    assert_int_equal(primary->addr.port, 6379);
    assert_int_equal(primary->sentinels.count, 2);
}

static void a_newer_configuration_is_taken_an_older_one_is_not(void **state) {
    (void)state;
    hello(peer_id, "7,mym,10.0.0.3,6380,7");
    assert_int_equal(view.current_epoch, 7);
    assert_int_equal(primary->config_epoch, 7);
    assert_int_equal(primary->addr.port, 6380);
    assert_non_null(sentinelFindReplica(primary, SLICE("10.0.0.2"), 6379));
    assert_int_equal(primary->replicas.count, 1);
    hello(peer_id, "7,mym,10.0.0.2,6379,6");
    assert_int_equal(primary->addr.port, 6380);
    hello(peer_id, "8,mym,no.such.host,6379,8"); /* without an address nothing changes */
    assert_int_equal(primary->addr.port, 6380);
    assert_int_equal(primary->config_epoch, 7);
}

/* A leader whose connections fail after the promotion learns that the others follow the old primary
 * again. */
static void a_leader_gives_up_for_a_newer_configuration(void **state) {
    (void)state;
    primary->flags |= INSTANCE_FAILOVER;
    primary->failover_epoch = primary->config_epoch = view.current_epoch = 1;
    primary->promoted = replica;
    primary->step = FAILOVER_RECONF_REPLICAS;
    hello(peer_id, "2,mym,10.0.0.2,6379,2");
    assert_int_equal(primary->step, FAILOVER_NONE);
    assert_int_equal(primary->config_epoch, 2);
    assert_int_equal(sentinelCurrentAddr(primary)->port, 6379);
    sentinelStartFailover(&view, primary);
    hello(peer_id, "9,mym,10.0.0.2,6379,9");
    assert_int_equal(primary->step, FAILOVER_NONE);
    assert_int_equal(primary->config_epoch, 9);
}

static void an_id_that_moves_replaces_its_entry(void **state) {
    (void)state;
    hello(third_id, "0,mym,10.0.0.2,6379,0"); /* at the address of `peer` */
    assert_int_equal(primary->sentinels.count, 1);
    assert_non_null(strstr(strText(&told), "+sentinel-invalid-addr"));
    assert_non_null(strstr(strText(&told), "+sentinel-address-switch"));
    assert_string_equal(sentinelFindPeer(primary, sliceOf(third_id))->addr.ip, "10.0.0.8");
}

static void a_silent_primary_is_down_and_a_jump_of_the_clock_is_not_acted_upon(void **state) {
    (void)state;
    tickAfter(50);
    tickAfter(60000);
    assert_true(view.tilt);
    assert_false(primary->flags & INSTANCE_SDOWN);
    for (int i = 0; i < 29; i++) tickAfter(1000);
    assert_false(primary->flags & INSTANCE_SDOWN);
    for (int i = 0; i < 3; i++) tickAfter(1000);
    assert_false(view.tilt);
    assert_true(primary->flags & INSTANCE_SDOWN);
}

static void refused_connections_mean_down_only_if_that_is_wanted(void **state) {
    (void)state;
    tickAfter(50);
    sentinelLinkClosed(&view, primary->link, false, true);
    sentinelLinkClosed(&view, primary->link, true, true);
    view.now_ms += 300;
    sentinelCheckSdown(&view, primary);
    assert_false(primary->flags & INSTANCE_SDOWN);
    primary->refused_after_ms = 200;
    sentinelCheckSdown(&view, primary);
    assert_true(primary->flags & INSTANCE_SDOWN);
}

/* All are connected and have replied. */
static void settle(void) {
    primary->down_after_ms = 5000;
    tickAfter(1500);
    serve(primary, "role:master\r\nslave0:ip=10.0.0.3,port=6380,state=online\r\n");
    serve(replica, "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n"
                   "master_link_status:up\r\nslave_priority:100\r\nslave_repl_offset:10\r\n");
    serve(peer, "");
    serve(third, "");
}

static void a_failover_goes_through_its_steps(void **state) {
    (void)state;
    settle();
    for (int i = 0; i < 8; i++) {
        tickAfter(1000);
        serve(replica, "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n"
                       "slave_priority:100\r\n");
        serve(peer, "");
        serve(third, "");
    }
    assert_true(primary->flags & INSTANCE_SDOWN);
    assert_false(primary->flags & INSTANCE_ODOWN);
    answerAsk(peer, true, "*", 0);
    tickAfter(100);
    assert_true(primary->flags & INSTANCE_FAILOVER);
    assert_int_equal(primary->step, FAILOVER_WAIT_START);
    serve(replica, "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n"); /* asked again */
    answerAsk(peer, true, own_id, (int64_t)view.current_epoch);
    tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_SELECT_REPLICA);
    tickAfter(100);
    assert_ptr_equal(primary->promoted, replica);
    strClear(&sent);
    tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_WAIT_PROMOTION);
    assert_non_null(strstr(strText(&sent), "6380: MULTI;6380: SLAVEOF NO ONE;6380: CONFIG REWRITE;"
                                           "6380: CLIENT KILL TYPE normal;6380: CLIENT KILL TYPE "
                                           "pubsub;6380: EXEC;"));
    sentinelInfo(&view, replica, SLICE("role:master\r\n"));
    assert_int_equal(primary->step, FAILOVER_RECONF_REPLICAS);
    assert_int_equal(primary->config_epoch, 1);
    assert_int_equal(sentinelCurrentAddr(primary)->port, 6380);
    tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_NONE);
    assert_int_equal(primary->addr.port, 6380);
    assert_int_equal(primary->flags, 0);
    assert_non_null(strstr(strText(&told), "+switch-master mym 10.0.0.2 6379 10.0.0.3 6380;"));
}

static void renamed_commands_go_to_servers_not_to_sentinels(void **state) {
    (void)state;
    sentinelRename(primary, SLICE("PING"), SLICE("PONG"));
    tickAfter(1500);
    assert_non_null(strstr(strText(&sent), "6379: PONG;"));
    assert_null(strstr(strText(&sent), "26379: PONG;"));
    assert_non_null(strstr(strText(&sent), "26379: PING;"));
}

static void a_reply_that_was_not_asked_for_ends_the_link(void **state) {
    (void)state;
    const sentinelReply r = {.kind = REPLY_STATUS, .text = SLICE("PONG")};
    assert_false(sentinelReplied(&view, primary->link, &r));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int test_machine(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_vote_is_given_in_each_epoch),
        TEST(strangers_get_no_vote_and_change_no_epoch),
        TEST(a_vote_that_cannot_be_saved_is_not_given),
        TEST(a_leader_needs_the_majority_of_all_and_the_quorum),
        TEST(hello_messages_that_are_not_valid_change_nothing),
        TEST(a_newer_configuration_is_taken_an_older_one_is_not),
        TEST(a_leader_gives_up_for_a_newer_configuration),
        TEST(an_id_that_moves_replaces_its_entry),
        TEST(a_silent_primary_is_down_and_a_jump_of_the_clock_is_not_acted_upon),
        TEST(refused_connections_mean_down_only_if_that_is_wanted),
        TEST(a_failover_goes_through_its_steps),
        TEST(renamed_commands_go_to_servers_not_to_sentinels),
        TEST(a_reply_that_was_not_asked_for_ends_the_link),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
