/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How many connections may be accepted at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/accept_pause.h"

/* The number accepted in `ms`, with a turn in each of them. */
static int acceptedIn(acceptRate *r, int64_t per_second, int64_t *now_ms, int64_t ms) {
    int count = 0;
    for (int64_t end_ms = *now_ms + ms; *now_ms < end_ms; ++*now_ms) {
        int most = acceptRateAllows(r, per_second, 10, *now_ms);
        for (int i = 0; i < most; i++) acceptRateTake(r, per_second);
        count += most;
    }
    return count;
}

static void a_rate_is_kept_over_time(void **state) {
    (void)state;
    static const int rates[] = {1, 3, 7, 100, 999, 5000};
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        acceptRate r = {0};
        int64_t now_ms = 1000000, first_ms = now_ms;
        (void)acceptedIn(&r, rates[i], &now_ms, 1000); /* what was saved up to now */
        assert_in_range(acceptedIn(&r, rates[i], &now_ms, 10000), 10 * rates[i] - 1,
                        10 * rates[i] + 1);
        assert_int_equal(now_ms - first_ms, 11000);
    }
}

static void silence_saves_a_tenth_of_a_second(void **state) {
    (void)state;
    acceptRate r = {0};
    assert_int_equal(acceptRateAllows(&r, 500, 1000, 5000), 50);
    assert_int_equal(acceptRateAllows(&r, 500, 1000, 1000000000), 50);
    for (int i = 0; i < 50; i++) acceptRateTake(&r, 500);
    assert_int_equal(acceptRateAllows(&r, 500, 1000, 1000000000), 0);
    assert_int_equal(acceptRateAllows(&r, 500, 1000, 1000000002), 1);
    /* The clock was set back. */
    assert_int_equal(acceptRateAllows(&r, 500, 1000, 10), 50);
}

static void without_a_rate_all_may_come(void **state) {
    (void)state;
    acceptRate r = {0};
    assert_int_equal(acceptRateAllows(&r, 0, 10, 5000), 10);
    acceptRateTake(&r, 0);
    assert_int_equal(acceptRateAllows(&r, 0, 10, 5000), 10);
}

int test_accept(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_is_kept_over_time),
        cmocka_unit_test(silence_saves_a_tenth_of_a_second),
        cmocka_unit_test(without_a_rate_all_may_come),
    };
    return cmocka_run_group_tests_name("accept", tests, NULL, NULL);
}
