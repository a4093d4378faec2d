/* SPDX-License-Identifier: BSD-3-Clause
 *
 * monitor/machine.h: votes, hello messages, detection, and a failover step by step. */
#include <stdio.h>

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

static sentinelReply voteReply(const char *leader, int64_t epoch) {
    sentinelReply r = {.kind = REPLY_ARRAY, .count = 3};
    r.items[0].kind = r.items[2].kind = REPLY_INTEGER;
    r.items[1].kind = REPLY_BULK;
    r.items[1].text = sliceOf(leader);
    r.items[2].integer = epoch;
    return r;
}

static void answerAsk(sentinelInstance *of, bool down, const char *leader, int64_t epoch) {
    sentinelReply r = voteReply(leader, epoch);
    r.items[0].integer = down;
    sentinelAskReplied(&view, of, &r, false);
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
    primary->quorum = ((int64_t)1 << 32) + 1; /* more than there will ever be */
    assert_int_equal(sentinelLeader(&view, primary, 3).len, 0);
}

static void a_vote_in_a_reply_is_of_an_id_and_an_epoch_that_can_be_right(void **state) {
    (void)state;
    answerAsk(peer, true, own_id, 3);
    answerAsk(peer, true, "not an id", 4);
    answerAsk(peer, true, own_id, -1);
    answerAsk(peer, true, own_id, INT64_MAX);
    assert_string_equal(strText(&peer->leader), own_id);
    assert_int_equal(peer->leader_epoch, 3);
}

static void hello(const char *id, const char *rest) {
    str text = STR_EMPTY;
    strAppendFormat(&text, "10.0.0.8,26379,%s,%s", id, rest);
    sentinelHello(&view, strSlice(&text), false);
    strFree(&text);
}

static void a_message_of_the_former_self_adds_no_sentinel(void **state) {
    (void)state;
    /* At the own address, of an id that was lost with the file. */
    sentinelHello(
        &view,
        SLICE("10.0.0.1,26379,4444444444444444444444444444444444444444,7,mym,10.0.0.2,6379,0"),
        false);
    assert_int_equal(primary->sentinels.count, 2);
    assert_int_equal(view.current_epoch, 0);
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

/* Its connections fail after the promotion; a newer configuration names the old primary again. */
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
    assert_true(sentinelStartFailover(&view, primary));
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

/* It is objectively down, and this Sentinel is a candidate. */
static void becomeCandidate(void) {
    settle();
    primary->flags |= INSTANCE_SDOWN;
    primary->sdown_since_ms = primary->link->ping_since_ms = view.now_ms - 60000;
    answerAsk(peer, true, "*", 0);
    tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_WAIT_START);
}

static void an_election_that_nobody_can_win_is_repeated_soon(void **state) {
    (void)state;
    becomeCandidate();
    uint64_t epoch = view.current_epoch;
    answerAsk(peer, true, peer_id, (int64_t)epoch);
    tickAfter(100); /* the third may vote for one of the two */
    assert_int_equal(primary->step, FAILOVER_WAIT_START);
    answerAsk(third, true, third_id, (int64_t)epoch);
    tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_NONE);
    assert_non_null(strstr(strText(&told), "-failover-abort-not-elected"));
    tickAfter(250);
    assert_int_equal(primary->step, FAILOVER_WAIT_START);
    assert_int_equal(view.current_epoch, epoch + 1);
    answerAsk(peer, true, own_id, (int64_t)epoch + 1);
    tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_SELECT_REPLICA);
}

static void a_leader_waits_for_the_info_of_replicas(void **state) {
    (void)state;
    becomeCandidate();
    serve(replica, "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n");
    replica->info_ms = view.now_ms - 8000; /* as old as it may be while the primary works */
    tickAfter(50);
    assert_true(replica->info_pending);
    answerAsk(peer, true, own_id, (int64_t)view.current_epoch);
    for (int i = 0; i < 4; i++) tickAfter(100);
    assert_int_equal(primary->step, FAILOVER_SELECT_REPLICA);
    serve(replica, "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n");
    tickAfter(100);
    assert_ptr_equal(primary->promoted, replica);
}

static void who_votes_for_another_before_repeating_leaves_the_failover_to_it(void **state) {
    (void)state;
    becomeCandidate();
    uint64_t epoch = view.current_epoch;
    answerAsk(peer, true, peer_id, (int64_t)epoch);
    answerAsk(third, true, third_id, (int64_t)epoch);
    tickAfter(100);
    sentinelVote(&view, primary, epoch + 1, sliceOf(peer_id));
    for (int i = 0; i < 10; i++) tickAfter(500);
    assert_int_equal(view.current_epoch, epoch + 1);
    assert_int_equal(primary->step, FAILOVER_NONE);
}

static void a_candidate_that_hears_of_nobody_does_not_use_up_epochs(void **state) {
    (void)state;
    becomeCandidate();
    sentinelLinkClosed(&view, peer->link, false, true);
    sentinelLinkClosed(&view, third->link, false, true);
    for (int i = 0; i < 9; i++) tickAfter(1000);
    assert_int_equal(view.current_epoch, 1);
}

static void a_coordinated_failover_needs_a_replica_that_is_linked(void **state) {
    (void)state;
    settle();
    replica->link_up = false;
    assert_int_equal(sentinelOrderFailover(&view, primary, true), ERR_NOT_FOUND);
    assert_int_equal(primary->flags, 0);
    assert_int_equal(view.current_epoch, 0);
    replica->link_up = true;
    assert_int_equal(sentinelOrderFailover(&view, primary, true), OK);
    assert_true(primary->flags & INSTANCE_COORDINATED);
}

static void an_epoch_that_cannot_be_saved_is_not_begun(void **state) {
    (void)state;
    settle();
    save_fails = true;
    assert_int_equal(sentinelOrderFailover(&view, primary, false), ERR_IO);
    assert_int_equal(view.current_epoch, 0);
    assert_int_equal(primary->flags, 0);
    save_fails = false;
    assert_int_equal(sentinelOrderFailover(&view, primary, false), OK);
    assert_int_equal(view.current_epoch, 1);
    assert_non_null(strstr(strText(&sent), "26379: SENTINEL is-master-down-by-addr 10.0.0.2 6379 1 "
                                           "1111111111111111111111111111111111111111;"));
}

static const char as_primary[] = "role:master\r\n";

static void what_a_dead_leader_has_promoted_is_not_turned_back_but_finished(void **state) {
    (void)state;
    settle();
    sentinelVote(&view, primary, 1, sliceOf(peer_id));
    tickAfter(500);
    sentinelInfo(&view, replica, sliceOf(as_primary));
    assert_true(sentinelIsUnfinished(&view, replica));
    for (int i = 0; i < 9; i++) {
        tickAfter(500);
        serve(primary, as_primary); /* it works, perhaps again */
        serve(replica, as_primary);
        serve(peer, "");
        serve(third, "");
        if (primary->step == FAILOVER_WAIT_START) break;
    }
    assert_int_equal(primary->step, FAILOVER_WAIT_START);
    assert_int_equal(view.current_epoch, 2);
    assert_null(strstr(strText(&told), "+convert-to-slave"));
    answerAsk(third, false, own_id, 2);
    for (int i = 0; i < 3; i++) tickAfter(100);
    assert_ptr_equal(primary->promoted, replica);
    sentinelInfo(&view, replica, sliceOf(as_primary));
    tickAfter(100);
    assert_int_equal(primary->addr.port, 6380);
    assert_int_equal(primary->config_epoch, 2);
}

/* Seconds in which both servers say that they are primaries, and others what they have voted. */
static void bothArePrimaries(int seconds, const char *leader, int64_t epoch) {
    for (int i = 0; i < seconds; i++) {
        tickAfter(1000);
        serve(primary, as_primary);
        serve(replica, as_primary);
        sentinelInstance *const peers[] = {peer, third};
        for (size_t at = 0; at < COUNT_OF(peers); at++) {
            sentinelLink *l = peers[at]->link;
            while (l->pending_count) {
                sentinelReply r = {.kind = REPLY_STATUS, .text = SLICE("PONG")};
                if (l->pending[0].kind == PENDING_VOTE) r = voteReply(leader, epoch);
                assert_true(sentinelReplied(&view, l, &r));
            }
        }
    }
}

static bool isTurnedBack(void) { return strstr(strText(&told), "+convert-to-slave") != NULL; }

static void a_replica_that_nobody_has_promoted_is_turned_back(void **state) {
    (void)state;
    settle();
    tickAfter(500);
    sentinelInfo(&view, replica, sliceOf(as_primary));
    bothArePrimaries(12, "*", 0);
    assert_non_null(strstr(strText(&sent), "26379: SENTINEL is-master-down-by-addr 10.0.0.2 6379 0 "
                                           "1111111111111111111111111111111111111111;"));
    assert_true(isTurnedBack());
    assert_int_equal(view.current_epoch, 0);
}

static void a_replica_is_not_turned_back_if_others_may_have_elected_a_leader(void **state) {
    (void)state;
    settle();
    primary->failover_timeout_ms = 10000;
    tickAfter(500);
    sentinelInfo(&view, replica, sliceOf(as_primary));
    bothArePrimaries(18, "*", 1); /* after a restart a vote has no name */
    assert_false(isTurnedBack());
    bothArePrimaries(20, "*", 1);
    assert_true(isTurnedBack()); /* a leader had two timeouts to tell of it */
}

static void a_candidate_that_was_not_elected_does_not_end_the_suspicion(void **state) {
    (void)state;
    settle();
    primary->failover_timeout_ms = 10000;
    sentinelVote(&view, primary, 1, sliceOf(peer_id));
    tickAfter(500);
    sentinelInfo(&view, replica, sliceOf(as_primary));
    for (int i = 0; i < 3; i++) tickAfter(1000);
    hello(peer_id, "1,mym,10.0.0.2,6379,0"); /* it lives, and knows nothing of it */
    assert_false(sentinelIsUnfinished(&view, replica));
    bothArePrimaries(12, third_id, 1);
    assert_false(isTurnedBack());
    bothArePrimaries(20, third_id, 1);
    assert_true(isTurnedBack());
    assert_int_equal(view.current_epoch, 1);
}

static void a_replica_that_was_restarted_as_a_primary_was_not_promoted(void **state) {
    (void)state;
    settle();
    sentinelInfo(&view, replica,
                 SLICE("run_id:4444444444444444444444444444444444444444\r\n"
                       "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n"));
    sentinelVote(&view, primary, 1, sliceOf(peer_id));
    tickAfter(500);
    sentinelInfo(&view, replica,
                 SLICE("run_id:5555555555555555555555555555555555555555\r\nrole:master\r\n"));
    assert_false(sentinelIsUnfinished(&view, replica));
    assert_false(sentinelIsUnsure(&view, replica));
}

/* With a password, what is published on a server names Sentinels, and changes nothing else. */
static void with_a_password_only_direct_messages_count(void **state) {
    (void)state;
    static const char stranger[] = "4444444444444444444444444444444444444444";
    needs_password = true;
    hello(peer_id, "9,mym,10.0.0.3,6380,9");
    assert_int_equal(primary->addr.port, 6379);
    assert_int_equal(view.current_epoch, 0);
    hello(stranger, "9,mym,10.0.0.3,6380,9"); /* at the address of `peer`, which stays */
    assert_int_equal(primary->sentinels.count, 2);
    assert_int_equal(primary->strangers.count, 1);
    sentinelVote(&view, primary, 1, sliceOf(stranger));
    assert_int_equal(view.current_epoch, 0);
    strClear(&sent);
    tickAfter(100);
    assert_non_null(strstr(strText(&sent), "26379: PUBLISH __sentinel__:hello"));
    sentinelHello(&view,
                  SLICE("10.0.0.7,26379,4444444444444444444444444444444444444444,9,mym,10.0.0.3,"
                        "6380,9"),
                  true);
    assert_int_equal(primary->sentinels.count, 3);
    assert_int_equal(primary->strangers.count, 0);
    assert_int_equal(primary->addr.port, 6380);
    assert_int_equal(view.current_epoch, 9);
}

static void strangers_are_few_and_are_forgotten(void **state) {
    (void)state;
    needs_password = true;
    for (int i = 0; i < 100; i++) {
        char id[SENTINEL_ID_LEN + 1];
        (void)snprintf(id, sizeof(id), "%040x", i);
        hello(id, "0,mym,10.0.0.2,6379,0");
    }
    assert_int_equal(primary->strangers.count, SENTINEL_STRANGERS_MAX);
    for (int i = 0; i < 40; i++) tickAfter(1000);
    assert_int_equal(primary->strangers.count, 0);
}

static int countOf(const char *text, const char *part) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static void a_frozen_server_is_sent_one_info(void **state) {
    (void)state;
    settle();
    primary->down_after_ms = 1000000;
    strClear(&sent);
    for (int i = 0; i < 100; i++) {
        tickAfter(500);
        serve(replica, "role:slave\r\n");
    }
    assert_int_equal(countOf(strText(&sent), "6379: INFO;"), 1);
}

static void a_refused_hello_is_not_sent_with_each_tick(void **state) {
    (void)state;
    settle();
    strClear(&sent);
    for (int i = 0; i < 40; i++) {
        tickAfter(50);
        sentinelLink *l = primary->link;
        while (l->pending_count) {
            const sentinelReply no = {.kind = REPLY_ERROR, .text = SLICE("NOPERM")};
            assert_true(sentinelReplied(&view, l, &no));
        }
    }
    assert_true(countOf(strText(&sent), "6379: PUBLISH") <= 5);
}

static void a_coordinated_failover_that_is_given_up_tells_the_primary(void **state) {
    (void)state;
    settle();
    primary->failover_timeout_ms = 3000;
    assert_int_equal(sentinelOrderFailover(&view, primary, true), OK);
    answerAsk(peer, false, own_id, 1);
    for (int i = 0; i < 3; i++) tickAfter(50);
    assert_int_equal(primary->step, FAILOVER_WAIT_PROMOTION);
    assert_non_null(strstr(strText(&sent), "6379: FAILOVER TO 10.0.0.3 6380 TIMEOUT "));
    strClear(&sent);
    for (int i = 0; i < 7; i++) tickAfter(500); /* the replica never says that it is primary */
    assert_int_equal(primary->step, FAILOVER_NONE);
    assert_non_null(strstr(strText(&sent), "6379: FAILOVER ABORT;6379: CLIENT UNPAUSE;"));
}

static void a_coordinated_failover_ends_after_the_replies_to_its_last_orders(void **state) {
    for (int closed = 0; closed < 2; closed++) {
        if (closed) { /* the link to the old primary has ended: there is no order to wait for */
            teardown(state);
            setup(state);
        }
        settle();
        assert_int_equal(sentinelOrderFailover(&view, primary, true), OK);
        answerAsk(peer, false, own_id, 1);
        for (int i = 0; i < 3; i++) tickAfter(50);
        strClear(&sent);
        sentinelInfo(&view, replica, SLICE("role:master\r\n"));
        assert_non_null(strstr(strText(&sent), "6379: CLIENT UNPAUSE;6379: EXEC;"));
        serve(replica, "role:master\r\n");
        tickAfter(500);
        assert_int_equal(primary->step, FAILOVER_RECONF_REPLICAS);
        if (closed) {
            sentinelLinkClosed(&view, primary->link, false, false);
        } else {
            serve(primary, "role:slave\r\n");
        }
        tickAfter(10);
        assert_int_equal(primary->step, FAILOVER_NONE);
        assert_int_equal(primary->addr.port, 6380);
    }
}

static void a_replica_that_does_not_react_does_not_keep_others_waiting(void **state) {
    (void)state;
    sentinelInstance *other;
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.4"), 6381, &other), OK);
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.5"), 6382, &other), OK);
    settle();
    primary->flags |= INSTANCE_FAILOVER;
    primary->promoted = replica;
    replica->flags |= INSTANCE_PROMOTED;
    primary->step = FAILOVER_RECONF_REPLICAS;
    primary->failover_changed_ms = view.now_ms;
    strClear(&sent);
    for (int i = 0; i < 13; i++) {
        tickAfter(1000);
        SENTINEL_EACH(any, &primary->replicas) serve(any, "role:master\r\n");
    }
    assert_int_equal(countOf(strText(&sent), "6381: SLAVEOF"), 1);
    assert_int_equal(countOf(strText(&sent), "6382: SLAVEOF"), 1);
    assert_int_equal(countOf(strText(&told), "-slave-reconf-sent-timeout"), 1);
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
        TEST(a_vote_in_a_reply_is_of_an_id_and_an_epoch_that_can_be_right),
        TEST(hello_messages_that_are_not_valid_change_nothing),
        TEST(a_message_of_the_former_self_adds_no_sentinel),
        TEST(a_newer_configuration_is_taken_an_older_one_is_not),
        TEST(a_leader_gives_up_for_a_newer_configuration),
        TEST(an_id_that_moves_replaces_its_entry),
        TEST(a_silent_primary_is_down_and_a_jump_of_the_clock_is_not_acted_upon),
        TEST(refused_connections_mean_down_only_if_that_is_wanted),
        TEST(a_failover_goes_through_its_steps),
        TEST(an_election_that_nobody_can_win_is_repeated_soon),
        TEST(a_leader_waits_for_the_info_of_replicas),
        TEST(who_votes_for_another_before_repeating_leaves_the_failover_to_it),
        TEST(a_candidate_that_hears_of_nobody_does_not_use_up_epochs),
        TEST(a_coordinated_failover_needs_a_replica_that_is_linked),
        TEST(an_epoch_that_cannot_be_saved_is_not_begun),
        TEST(what_a_dead_leader_has_promoted_is_not_turned_back_but_finished),
        TEST(a_replica_that_nobody_has_promoted_is_turned_back),
        TEST(a_replica_is_not_turned_back_if_others_may_have_elected_a_leader),
        TEST(a_candidate_that_was_not_elected_does_not_end_the_suspicion),
        TEST(a_replica_that_was_restarted_as_a_primary_was_not_promoted),
        TEST(with_a_password_only_direct_messages_count),
        TEST(strangers_are_few_and_are_forgotten),
        TEST(a_frozen_server_is_sent_one_info),
        TEST(a_refused_hello_is_not_sent_with_each_tick),
        TEST(a_coordinated_failover_that_is_given_up_tells_the_primary),
        TEST(a_coordinated_failover_ends_after_the_replies_to_its_last_orders),
        TEST(a_replica_that_does_not_react_does_not_keep_others_waiting),
        TEST(renamed_commands_go_to_servers_not_to_sentinels),
        TEST(a_reply_that_was_not_asked_for_ends_the_link),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
