/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_bucket.c: turns of an imaginary event loop, in which one user always has commands to run. */
#include "account/cpu_bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

typedef struct imaginary {
    cpuBucket bucket;
    int64_t now_ns, used_ns;
    uint64_t turn, executed, others, own;
} imaginary;

static void begin(imaginary *w, int percent) {
    *w = (imaginary){.now_ns = 1000 * MS};
    cpuBucketInit(&w->bucket, percent, w->now_ns);
}

/* A turn: others run `others` commands of 10 us, then the user as many of `length_ns` as it may. */
static void turn(imaginary *w, int others, int64_t length_ns) {
    w->turn++;
    w->now_ns += 20000; /* for polling */
    w->now_ns += others * INT64_C(10000);
    w->executed += (uint64_t)others;
    w->others += (uint64_t)others;
    while (cpuBucketAllows(&w->bucket, w->turn, w->executed, w->now_ns)) {
        bool is_free = cpuBucketIsOver(&w->bucket);
        w->now_ns += length_ns;
        w->used_ns += length_ns;
        w->executed += !is_free;
        w->own++;
        cpuBucketTake(&w->bucket, w->turn, 1, length_ns, is_free);
    }
}

static void run_for(imaginary *w, int64_t ns, int others, int64_t length_ns) {
    int64_t end_ns = w->now_ns + ns;
    while (w->now_ns < end_ns) turn(w, others, length_ns);
}

static void test_share_beside_others(void **state) {
    (void)state;
    const int percents[] = {1, 10, 25, 50, 99};
    const int64_t lengths[] = {1000, 100000, 2 * MS, 50 * MS};
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 4; k++) {
            imaginary w;
            begin(&w, percents[i]);
            run_for(&w, 20000 * MS, 1, lengths[k]);
            /* And what it had in the beginning, and one command. */
            int64_t most_ns = 20050 * MS / 100 * percents[i] + MS * percents[i] + lengths[k];
            assert_true(w.used_ns <= most_ns);
            assert_true(w.used_ns >= most_ns * 8 / 10 || percents[i] == 99);
            assert_true(w.others > 5000 || percents[i] == 99);
        }
    }
}

static void test_alone_has_all(void **state) {
    (void)state;
    imaginary w;
    begin(&w, 25);
    run_for(&w, 10000 * MS, 0, MS / 2);
    assert_true(w.used_ns > 9500 * MS);
    /* Others come: what was free costs nothing now. */
    w.used_ns = 0;
    run_for(&w, 1000 * MS, 1, MS / 2);
    assert_true(w.used_ns > 200 * MS);
    assert_true(w.used_ns < 300 * MS);
}

static void test_others_are_read_between(void **state) {
    (void)state;
    imaginary w;
    begin(&w, 50);
    run_for(&w, 500 * MS, 0, 10000);
    uint64_t before = w.own;
    turn(&w, 0, 10000);
    assert_true(w.own - before <= 100); /* a millisecond */
    before = w.own;
    turn(&w, 0, 40 * MS);
    assert_int_equal(1, w.own - before);
}

static void test_gaps_are_not_idle(void **state) {
    (void)state;
    imaginary w;
    begin(&w, 25);
    /* One command of others in each 8 ms of the time that the user does not take. */
    for (int i = 0; i < 1000; i++) {
        turn(&w, 1, 100 * MS);
        w.now_ns += 8 * MS;
    }
    assert_true(w.used_ns * 100 / (w.now_ns - 1000 * MS) <= 30);
}

static void test_debt_is_bounded(void **state) {
    (void)state;
    imaginary w;
    begin(&w, 10);
    cpuBucketTake(&w.bucket, 0, 1, INT64_C(3600) * 1000 * MS, false);
    assert_true(cpuBucketWaitNs(&w.bucket, w.now_ns) > 0);
    w.bucket.others_ns = w.now_ns;
    assert_true(cpuBucketWaitNs(&w.bucket, w.now_ns) <= CPU_IDLE_NS);
    for (int64_t ms = 0; ms < 59000; ms += 5) {
        w.executed++;
        assert_false(cpuBucketAllows(&w.bucket, 1, w.executed, w.now_ns + ms * MS));
    }
    w.executed++;
    assert_true(cpuBucketAllows(&w.bucket, 1, w.executed, w.now_ns + 61000 * MS));
}

static void test_without_limit(void **state) {
    (void)state;
    for (int percent = 0; percent <= 100; percent += 100) {
        imaginary w;
        begin(&w, percent);
        cpuBucketTake(&w.bucket, 0, 1, INT64_C(3600) * 1000 * MS, false);
        assert_true(cpuBucketAllows(&w.bucket, 0, 5, w.now_ns));
        assert_false(cpuBucketIsOver(&w.bucket));
        assert_int_equal(0, cpuBucketWaitNs(&w.bucket, w.now_ns));
    }
}

int test_cpu_bucket(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_beside_others),     cmocka_unit_test(test_alone_has_all),
        cmocka_unit_test(test_others_are_read_between), cmocka_unit_test(test_gaps_are_not_idle),
        cmocka_unit_test(test_debt_is_bounded),         cmocka_unit_test(test_without_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
