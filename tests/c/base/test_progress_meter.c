/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/progress_meter: rates, remaining time, the text for the log, and when it is due. */
#include "base_test.h"

#include "base/progress_meter.h"

static void test_rate_and_time_left(void **state) {
    (void)state;
    progressMeter m;
    progressMeterBegin(&m, 1000);
    assert_int_equal(progressMeterPerSecond(&m, 500, 1000), 0);
    assert_int_equal(progressMeterSecondsLeft(&m, 500, 1000, 1000), -1);
    assert_int_equal(progressMeterPerSecond(&m, 500, 3000), 250);
    assert_int_equal(progressMeterSecondsLeft(&m, 500, 1000, 3000), 2);
    assert_int_equal(progressMeterSecondsLeft(&m, 500, 1001, 3000), 3); /* rounded up */
    assert_int_equal(progressMeterSecondsLeft(&m, 1000, 1000, 3000), 0);
    assert_int_equal(progressMeterSecondsLeft(&m, 2000, 1000, 3000), 0);
    assert_int_equal(progressMeterSecondsLeft(&m, 500, 0, 3000), -1);
    assert_int_equal(progressMeterSecondsLeft(&m, 500, -1, 3000), -1);
    assert_int_equal(progressMeterSecondsLeft(&m, 0, 1000, 3000), -1);
    /* Neither products nor sums overflow. */
    assert_int_equal(progressMeterPerSecond(&m, INT64_MAX / 4, 5000), INT64_MAX / 16 + 1);
    assert_in_range(progressMeterSecondsLeft(&m, INT64_MAX / 2, INT64_MAX, 3000), 2, 3);
}

static void test_a_line_is_due_every_five_seconds(void **state) {
    (void)state;
    progressMeter m;
    progressMeterBegin(&m, 1000);
    assert_false(progressMeterIsDue(&m, 1000));
    assert_false(progressMeterIsDue(&m, 5999));
    assert_true(progressMeterIsDue(&m, 6000));
    assert_false(progressMeterIsDue(&m, 6001));
    assert_true(progressMeterIsDue(&m, 20000));
    assert_false(progressMeterIsDue(&m, 21000));
}

static void check_text(int64_t done, int64_t total, int64_t took_ms, const char *expected) {
    progressMeter m;
    str out = strNew(SLICE("x: "));
    progressMeterBegin(&m, 1000);
    progressMeterDescribe(&m, done, total, 1000 + took_ms, &out);
    assert_string_equal(strText(&out) + 3, expected);
    strFree(&out);
}

static void test_the_text_has_what_is_known(void **state) {
    (void)state;
    const int64_t mb = 1024 * 1024;
    check_text(100 * mb, 400 * mb, 2000,
               "100.00M of 400.00M (25 %), 50.00M/s, about 6 seconds left");
    check_text(100 * mb, 0, 2000, "100.00M, 50.00M/s");
    check_text(100 * mb, -1, 2000, "100.00M, 50.00M/s");
    check_text(0, 400 * mb, 2000, "0B of 400.00M (0 %), 0B/s");
    check_text(400 * mb, 400 * mb, 2000,
               "400.00M of 400.00M (100 %), 200.00M/s, about 0 seconds left");
}

int test_progress_meter(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_and_time_left),
        cmocka_unit_test(test_a_line_is_due_every_five_seconds),
        cmocka_unit_test(test_the_text_has_what_is_known),
    };
    return cmocka_run_group_tests_name("progress_meter", tests, NULL, NULL);
}
