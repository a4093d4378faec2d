/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/histogram. */
#include "base_test.h"

#include "base/histogram.h"
#include "base/random.h"

static void test_steps_cover_all_values_in_order(void **state) {
    (void)state;
    testSeed(__func__);
    assert_int_equal(histogramIndex(-5), histogramIndex(0));
    assert_int_equal(histogramIndex(INT64_MAX), histogramIndex(HISTOGRAM_MAX));
    for (int round = 0; round < 100000; round++) {
        int64_t value = (int64_t)(randomNext() >> (34 + randomUniform(30)));
        if (value > HISTOGRAM_MAX) value = HISTOGRAM_MAX;
        int index = histogramIndex(value);
        assert_in_range(index, 0, HISTOGRAM_BUCKETS - 1);
        int64_t highest = histogramHighest(index);
        assert_true(highest >= value);
        assert_int_equal(histogramIndex(highest), index);
        if (highest < HISTOGRAM_MAX) assert_int_equal(histogramIndex(highest + 1), index + 1);
        /* Two significant digits. */
        assert_true(highest - value <= value / 100);
    }
}

static void test_percentiles(void **state) {
    (void)state;
    static histogram h;
    memset(&h, 0, sizeof(h));
    assert_int_equal(histogramPercentile(&h, 50), 0);
    for (int64_t value = 1; value <= 100; value++) histogramRecord(&h, value, 1);
    assert_int_equal(h.total, 100);
    assert_int_equal(histogramPercentile(&h, 50), 50);
    assert_int_equal(histogramPercentile(&h, 99), 99);
    assert_int_equal(histogramPercentile(&h, 100), 100);
    assert_int_equal(histogramCountUpTo(&h, 10), 10);
    assert_int_equal(histogramCountUpTo(&h, 1000), 100);
    histogramRecord(&h, 200, 300);
    assert_int_equal(h.total, 400);
    assert_int_equal(histogramPercentile(&h, 50), 200);
    assert_int_equal(histogramPercentile(&h, 25), 100);
}

int test_histogram(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_cover_all_values_in_order),
        cmocka_unit_test(test_percentiles),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
