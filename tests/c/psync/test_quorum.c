/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which offsets count as confirmed, and when a primary refuses (quorum.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "psync/quorum.h"

enum { REPLICAS = 4, TIMEOUT_MS = 1000, LEASE_MS = 500 };

/* A primary with online replicas that count. */
typedef struct fixture {
    replPrimary p;
    replPeer peers[REPLICAS];
    replQuorum q;
} fixture;

static void setUp(fixture *f, int quorum, int64_t offset) {
    *f = (fixture){0};
    listInit(&f->p.peers);
    for (int i = 0; i < REPLICAS; i++) {
        f->peers[i].state = PEER_ONLINE;
        f->peers[i].capabilities = PEER_CAN_ACK_TURNS;
        listAppend(&f->p.peers, &f->peers[i].node);
    }
    const quorumSettings settings = {
        .replicas = quorum, .timeout_ms = TIMEOUT_MS, .lease_ms = LEASE_MS};
    quorumSet(&f->q, &settings, true, offset, 0);
}

static void the_nth_greatest_acknowledgement_is_confirmed(void **state) {
    (void)state;
    fixture f;
    const int64_t acked[REPLICAS] = {40, 10, 30, 20};
    const int64_t greatest[REPLICAS] = {40, 30, 20, 10};
    for (int n = 1; n <= REPLICAS; n++) {
        setUp(&f, n, 0);
        for (int i = 0; i < REPLICAS; i++) f.peers[i].acked = acked[i];
        assert_true(quorumUpdate(&f.q, &f.p, -1, 1));
        assert_int_equal(f.q.confirmed, greatest[n - 1]);
        assert_false(quorumUpdate(&f.q, &f.p, -1, 1));
    }
}

static void only_online_replicas_with_the_capability_count(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 2, 0);
    for (int i = 0; i < REPLICAS; i++) f.peers[i].acked = 100;
    f.peers[0].capabilities = 0;
    f.peers[1].state = PEER_WAITING_END;
    f.peers[2].acked = 0; /* is loading */
    assert_false(quorumUpdate(&f.q, &f.p, -1, 1));
    assert_int_equal(f.q.reachable, 1);
    assert_int_equal(f.q.confirmed, 0);
}

static void confirmed_does_not_decrease_when_a_replica_leaves(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 1, 0);
    f.peers[0].acked = 50;
    assert_true(quorumUpdate(&f.q, &f.p, -1, 1));
    f.peers[0].state = PEER_NONE;
    assert_false(quorumUpdate(&f.q, &f.p, -1, 2));
    assert_int_equal(f.q.confirmed, 50);
}

/* A node that was elected does not know so far whether another one was after it. */
static void held_nothing_is_confirmed_whatever_the_settings(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 1, 0);
    quorumHold(&f.q, true);
    f.peers[0].acked = 50;
    assert_false(quorumUpdate(&f.q, &f.p, -1, 1));
    assert_int_equal(f.q.reachable, 1);
    const quorumSettings settings = {.replicas = 2, .timeout_ms = TIMEOUT_MS};
    quorumSet(&f.q, &settings, true, 0, 2);
    f.peers[1].acked = 40;
    assert_false(quorumUpdate(&f.q, &f.p, -1, 2));
    assert_int_equal(f.q.confirmed, 0);
    quorumHold(&f.q, false);
    assert_true(quorumUpdate(&f.q, &f.p, -1, 3));
    assert_int_equal(f.q.confirmed, 40);
}

static void on_disk_the_own_file_counts_too(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 1, 0);
    f.q.settings.on_disk = true;
    f.peers[0].acked = 90;
    f.peers[0].fsynced = 60;
    assert_false(quorumUpdate(&f.q, &f.p, -1, 1));
    assert_true(quorumUpdate(&f.q, &f.p, 40, 1));
    assert_int_equal(f.q.confirmed, 40);
    assert_true(quorumUpdate(&f.q, &f.p, 80, 1));
    assert_int_equal(f.q.confirmed, 60);
}

static void it_refuses_after_the_timeout_until_replicas_have_caught_up(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 1, 0);
    f.peers[0].acked = 10;
    (void)quorumUpdate(&f.q, &f.p, -1, 1);
    quorumWrote(&f.q, 30);
    quorumProbe(&f.q, 30, 5);
    quorumTick(&f.q, 5 + TIMEOUT_MS - 1);
    assert_false(f.q.refuses);
    quorumTick(&f.q, 5 + TIMEOUT_MS);
    assert_true(f.q.refuses);
    f.peers[0].acked = 29;
    assert_true(quorumUpdate(&f.q, &f.p, -1, 2000));
    assert_true(f.q.refuses);
    f.peers[0].acked = 30;
    assert_true(quorumUpdate(&f.q, &f.p, -1, 2001));
    assert_false(f.q.refuses);
    for (int i = 0; i < REPLICAS; i++) f.peers[i].state = PEER_NONE;
    (void)quorumUpdate(&f.q, &f.p, -1, 3000);
    quorumTick(&f.q, 3000 + TIMEOUT_MS);
    assert_true(f.q.refuses);
}

static void the_lease_begins_when_its_probe_was_sent(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 1, 0);
    assert_false(quorumMayRead(&f.q, 0));
    quorumProbe(&f.q, 20, 100);
    quorumProbe(&f.q, 25, 150); /* one at a time */
    f.peers[0].acked = 19;
    (void)quorumUpdate(&f.q, &f.p, -1, 200);
    assert_false(quorumMayRead(&f.q, 200));
    f.peers[0].acked = 20;
    (void)quorumUpdate(&f.q, &f.p, -1, 300);
    assert_true(quorumMayRead(&f.q, 100 + LEASE_MS - 1));
    assert_false(quorumMayRead(&f.q, 100 + LEASE_MS));
}

static void off_nothing_is_confirmed_or_refused(void **state) {
    (void)state;
    fixture f;
    setUp(&f, 0, 0);
    f.peers[0].acked = 10;
    assert_false(quorumUpdate(&f.q, &f.p, -1, 1));
    quorumTick(&f.q, 100000);
    assert_false(f.q.refuses);
}

int test_quorum(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_greatest_acknowledgement_is_confirmed),
        cmocka_unit_test(only_online_replicas_with_the_capability_count),
        cmocka_unit_test(confirmed_does_not_decrease_when_a_replica_leaves),
        cmocka_unit_test(held_nothing_is_confirmed_whatever_the_settings),
        cmocka_unit_test(on_disk_the_own_file_counts_too),
        cmocka_unit_test(it_refuses_after_the_timeout_until_replicas_have_caught_up),
        cmocka_unit_test(the_lease_begins_when_its_probe_was_sent),
        cmocka_unit_test(off_nothing_is_confirmed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
