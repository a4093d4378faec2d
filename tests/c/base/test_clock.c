/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/clock. */
#include "base_test.h"

#include <time.h>

#include "base/clock.h"

static int64_t fakeMonoNs(void) { return 1234567890123; }

static int64_t fakeWallUs(void) { return 1700000000123456; }

static void test_units_follow_the_source(void **state) {
    (void)state;
    const clockSource fake = {fakeMonoNs, fakeWallUs};
    clockSetSource(&fake);
    assert_int_equal(clockMonoNs(), 1234567890123);
    assert_int_equal(clockMonoUs(), 1234567890);
    assert_int_equal(clockMonoMs(), 1234567);
    assert_int_equal(clockWallUs(), 1700000000123456);
    assert_int_equal(clockWallMs(), 1700000000123);
    clockSetSource(NULL);
    assert_true(clockWallMs() != 1700000000123);
}

static void test_one_clock_may_be_swapped_alone(void **state) {
    (void)state;
    const clockSource wall_only = {NULL, fakeWallUs};
    clockSetSource(&wall_only);
    assert_int_equal(clockWallUs(), 1700000000123456);
    int64_t a = clockMonoNs();
    int64_t b = clockMonoNs();
    assert_true(b >= a);
    assert_true(a != 1234567890123);
    clockSetSource(NULL);
}

static void test_wall_clock_is_the_kernels(void **state) {
    (void)state;
    int64_t before = (int64_t)time(NULL);
    int64_t now = clockWallUs() / 1000000;
    int64_t after = (int64_t)time(NULL);
    /* time() may be up to a kernel tick late. */
    assert_in_range(now, before, after + 1);
}

static void test_clocks_never_go_back(void **state) {
    (void)state;
    int64_t last_ns = clockMonoNs();
    uint64_t last_ticks = clockTicks();
    for (int i = 0; i < 1000; i++) {
        int64_t ns = clockMonoNs();
        uint64_t ticks = clockTicks();
        assert_true(ns >= last_ns);
        assert_true(ticks >= last_ticks);
        last_ns = ns;
        last_ticks = ticks;
    }
}

/* An interval taken by ticks lies inside the one taken around it by the clock, but for the error of
 * a rate that was measured over 2 ms. */
static void test_ticks_agree_with_the_clock(void **state) {
    (void)state;
    clockInit();
    int64_t outer_begin = clockMonoNs();
    uint64_t ticks = clockTicks();
    while (clockMonoNs() - outer_begin < 3000000) continue;
    ticks = clockTicks() - ticks;
    int64_t outer = clockMonoNs() - outer_begin;
    int64_t ns = clockTicksToNs(ticks);
    assert_true(ns > 0);
    assert_true(ns <= outer + outer / 2);
    assert_int_equal(clockTicksToNs(0), 0);
    assert_true(clockTicksToNs(ticks * 2) >= ns * 2 - 2);
    assert_true(strlen(clockSourceName()) > 0);
#if defined(__x86_64__)
    assert_memory_equal(clockSourceName(), "X86 TSC @ ", 10);
    assert_non_null(strstr(clockSourceName(), " ticks/us"));
#endif
}

static void test_a_backward_sample_gives_no_rate(void **state) {
    (void)state;
    uint64_t rate = 5;
    assert_false(clockRateFrom(-1, 2000000, &rate)); /* the counter was behind at the end */
    assert_false(clockRateFrom(INT64_MIN, 2000000, &rate));
    assert_false(clockRateFrom(0, 2000000, &rate));
    assert_false(clockRateFrom(1000, 0, &rate));
    assert_false(clockRateFrom(INT64_MAX, 1, &rate)); /* its rate would be 0 */
    assert_int_equal(rate, 5);
    assert_true(clockRateFrom(4000000, 2000000, &rate));
    assert_int_equal(rate, (uint64_t)1 << 31);
}

static void test_sleep_lasts_for_the_given_time(void **state) {
    (void)state;
    int64_t begin_us = clockMonoUs();
    clockSleepUs(500);
    assert_true(clockMonoUs() - begin_us >= 500);
    clockSleepUs(0);
}

int test_clock(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_follow_the_source),
        cmocka_unit_test(test_one_clock_may_be_swapped_alone),
        cmocka_unit_test(test_wall_clock_is_the_kernels),
        cmocka_unit_test(test_clocks_never_go_back),
        cmocka_unit_test(test_ticks_agree_with_the_clock),
        cmocka_unit_test(test_a_backward_sample_gives_no_rate),
        cmocka_unit_test(test_sleep_lasts_for_the_given_time),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
