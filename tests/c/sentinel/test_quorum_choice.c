/* SPDX-License-Identifier: BSD-3-Clause
 *
 * monitor/quorum_choice.c: who is promoted if the servers have replication-quorum. */
#include <stdio.h>

#include "sentinel_test.h"

enum { LEASE_MS = 3000 };

/* What a replica says. */
typedef struct simpleReplica {
    sentinelInstance *of;
    int offset, priority, held_ms, quorum, caught_up, answers;
    const char *replid;
} simpleReplica;

static sentinelInstance *primary;
static simpleReplica a, b;

static int setup(void **state) {
    (void)state;
    beginView();
    view.mono_ms = 5000;
    view.periods.info = 1000;
    primary = addPrimary();
    primary->down_after_ms = 5000;
    primary->failover_timeout_ms = 10000;
    a = (simpleReplica){.offset = 100,
                        .priority = 100,
                        .quorum = 1,
                        .caught_up = 1,
                        .answers = 1,
                        .replid = "2222222222222222222222222222222222222222"};
    b = a;
    b.offset = 200;
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.3"), 6380, &a.of), OK);
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.4"), 6381, &b.of), OK);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    endView();
    return 0;
}

/* Replies to all that is pending on its link. */
static void serve(const simpleReplica *r) {
    sentinelLink *l = r->of->link;
    str info = STR_EMPTY;
    if (!r->answers) return;
    strAppendFormat(&info,
                    "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n"
                    "master_link_status:down\r\nslave_priority:%d\r\nslave_repl_offset:%d\r\n"
                    "master_replid:%s\r\n",
                    r->priority, r->offset, r->replid);
    if (r->quorum)
        strAppendFormat(&info,
                        "replication_quorum:%d\r\nreplication_quorum_read_lease:%d\r\n"
                        "replication_quorum_caught_up:%d\r\nreplication_quorum_acks_held_ms:%d\r\n",
                        r->quorum, LEASE_MS, r->caught_up, r->held_ms);
    while (l->pending_count) {
        sentinelReply reply = {.kind = REPLY_STATUS, .text = SLICE("PONG")};
        if (l->pending[0].kind == PENDING_INFO)
            reply = (sentinelReply){.kind = REPLY_BULK, .text = strSlice(&info)};
        assert_true(sentinelReplied(&view, l, &reply));
    }
    strFree(&info);
}

static void pass(int64_t ms) {
    for (int64_t until = view.now_ms + ms; view.now_ms < until;) {
        view.now_ms += 100;
        view.mono_ms += 100;
        sentinelTick(&view);
        serve(&a);
        serve(&b);
    }
}

/* All is known; then a failover is ordered. */
static void order(void) {
    pass(1500);
    strFree(&sent);
    strFree(&told);
    assert_int_equal(sentinelOrderFailover(&view, primary, false), OK);
}

static bool wasSent(const char *text) { return strstr(strText(&sent), text) != NULL; }
static bool wasTold(const char *text) { return strstr(strText(&told), text) != NULL; }

static void without_the_directive_nothing_is_asked_of_replicas(void **state) {
    (void)state;
    a.quorum = b.quorum = 0;
    a.priority = 10;
    order();
    pass(500);
    assert_ptr_equal(primary->promoted, a.of);
    assert_false(wasSent("REPLCONF"));
}

static void the_greatest_offset_of_enough_replicas_is_promoted_after_the_lease(void **state) {
    (void)state;
    a.priority = 10; /* does not count */
    order();
    pass(500);
    assert_true(wasSent("6380: REPLCONF HOLD-ACKS 20000;"));
    assert_true(wasSent("6381: REPLCONF HOLD-ACKS 20000;"));
    assert_null(primary->promoted);
    a.held_ms = b.held_ms = 19000;
    pass(LEASE_MS);
    assert_null(primary->promoted);
    assert_true(wasTold("replication-read-lease of the primary has not passed"));
    assert_false(wasSent("SLAVEOF"));
    pass(1500);
    assert_ptr_equal(primary->promoted, b.of);
    assert_true(wasSent("6381: SLAVEOF NO ONE;"));
    assert_false(wasSent("HOLD-ACKS 0;"));
}

static void a_replica_that_is_missing_is_waited_for(void **state) {
    (void)state;
    pass(1500);
    b.answers = 0;
    pass(7000);
    assert_true(b.of->flags & INSTANCE_SDOWN);
    primary->failover_timeout_ms = 60000;
    order();
    a.held_ms = 19000;
    pass(9000);
    assert_null(primary->promoted);
    assert_false(wasSent("REPLCONF")); /* the primary may work with it */
    assert_true(wasTold("+failover-wait-quorum"));
    b.answers = 1;
    b.held_ms = 19000;
    pass(LEASE_MS + 3000);
    assert_ptr_equal(primary->promoted, b.of);
}

static void two_of_three_members_suffice_if_each_write_is_on_both_replicas(void **state) {
    (void)state;
    a.quorum = b.quorum = 2;
    pass(1500);
    b.answers = 0;
    pass(7000);
    order();
    a.held_ms = 19000;
    pass(LEASE_MS + 1500);
    assert_ptr_equal(primary->promoted, a.of);
}

static void nobody_is_promoted_while_a_replica_has_not_caught_up(void **state) {
    (void)state;
    b.caught_up = 0;
    order();
    a.held_ms = b.held_ms = 19000;
    pass(9000);
    assert_null(primary->promoted);
    pass(2000);
    assert_true(wasTold("-failover-abort-quorum"));
    assert_int_equal(primary->step, FAILOVER_NONE);
}

/* The primary has begun another stream before it was lost, and one was not linked to it since. */
static void offsets_of_two_streams_are_not_compared(void **state) {
    (void)state;
    b.offset = 9000;
    b.replid = "1111111111111111111111111111111111111111";
    order();
    a.held_ms = b.held_ms = 19000;
    pass(9000);
    assert_null(primary->promoted);
    assert_false(wasSent("REPLCONF"));
    assert_true(wasTold("not enough replicas are reachable and have caught up"));
    b.replid = a.replid;
    b.offset = 90;
    pass(1500);
    assert_true(wasSent("REPLCONF HOLD-ACKS"));
}

static void one_that_must_not_be_promoted_but_has_the_most_data_is_waited_for(void **state) {
    (void)state;
    b.priority = 0;
    order();
    a.held_ms = b.held_ms = 19000;
    pass(9000);
    assert_null(primary->promoted);
    assert_true(wasTold("#replication-quorum: the replica with the most data has priority 0;"));
    pass(2000);
    assert_true(wasSent("6381: REPLCONF HOLD-ACKS 0;"));
    assert_false(wasSent("SLAVEOF"));
}

static void what_another_sentinel_has_ordered_does_not_count(void **state) {
    (void)state;
    order();
    a.held_ms = 19000;
    b.held_ms = 12000 - 2500; /* it ends before the promotion of the other may */
    pass(LEASE_MS + 3000);
    assert_null(primary->promoted);
    b.held_ms = 19000;
    pass(500);
    assert_ptr_equal(primary->promoted, b.of);
}

static void after_the_loss_of_a_link_it_is_ordered_again(void **state) {
    (void)state;
    order();
    a.held_ms = b.held_ms = 19000;
    pass(LEASE_MS);
    sentinelLinkClosed(&view, b.of->link, false, false);
    strClear(&sent);
    b.held_ms = 0; /* another process */
    pass(3000);
    assert_null(primary->promoted);
    assert_true(wasSent("6381: REPLCONF HOLD-ACKS 20000;"));
    b.held_ms = 19000;
    pass(2500);
    assert_null(primary->promoted); /* the lease begins anew */
    pass(2500);
    assert_ptr_equal(primary->promoted, b.of);
}

static void a_promotion_that_is_refused_is_given_up(void **state) {
    (void)state;
    order();
    a.held_ms = b.held_ms = 19000;
    pass(LEASE_MS + 1000);
    assert_int_equal(primary->step, FAILOVER_WAIT_PROMOTION);
    primary->failover_timeout_ms = 600000;
    strClear(&sent);
    pass(21000);
    assert_int_equal(primary->step, FAILOVER_NONE);
    assert_false(wasSent("HOLD-ACKS")); /* the order may still be executed */
}

int test_quorum_choice(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_the_directive_nothing_is_asked_of_replicas),
        TEST(the_greatest_offset_of_enough_replicas_is_promoted_after_the_lease),
        TEST(a_replica_that_is_missing_is_waited_for),
        TEST(two_of_three_members_suffice_if_each_write_is_on_both_replicas),
        TEST(nobody_is_promoted_while_a_replica_has_not_caught_up),
        TEST(offsets_of_two_streams_are_not_compared),
        TEST(one_that_must_not_be_promoted_but_has_the_most_data_is_waited_for),
        TEST(what_another_sentinel_has_ordered_does_not_count),
        TEST(after_the_loss_of_a_link_it_is_ordered_again),
        TEST(a_promotion_that_is_refused_is_given_up),
    };
    return cmocka_run_group_tests_name("quorum_choice", tests, NULL, NULL);
}
