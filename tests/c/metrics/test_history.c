/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of metrics/history: the figures of the last 15 minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"

static void add(int64_t commands, int64_t used, int64_t second) {
    char info[128];
    int len = snprintf(info, sizeof(info),
                       "# Stats\r\ntotal_commands_processed:%lld\r\nused_memory:%lld\r\n",
                       (long long)commands, (long long)used);
    historyAdd(sliceMake(info, (size_t)len), second * 1000, second * 1000000);
}

/* The text of an array of the JSON object. */
static void assertColumn(const char *name, const char *wanted) {
    str json = STR_EMPTY;
    char start[64];
    historyPrint(&json);
    int len = snprintf(start, sizeof(start), "\"%s\":[", name);
    const char *found = strstr(strText(&json), start);
    assert_non_null(found);
    found += len;
    const char *end = strchr(found, ']');
    assert_non_null(end);
    assert_int_equal(end - found, strlen(wanted));
    assert_memory_equal(found, wanted, strlen(wanted));
    strFree(&json);
}

static void test_nothing_is_kept_until_a_sample_is_added(void **state) {
    (void)state;
    size_t before = memUsed();
    assertColumn("commands", "");
    assertColumn("p99_us", "");
    assert_int_equal(memUsed(), before);
    add(1, 2, 3);
    assert_true(memUsed() > before);
    assert_true(memUsed() < before + 100 * 1024);
    historyFree();
    assert_int_equal(memUsed(), before);
}

static void test_counters_become_rates_and_others_stay(void **state) {
    (void)state;
    add(1000, 5000, 100);
    add(1100, 6000, 105);
    add(1110, 7000, 125);
    assertColumn("time_ms", "100000,105000,125000");
    assertColumn("commands", "null,20,0.500");
    assertColumn("used_memory", "5000,6000,7000");
    assertColumn("p50_us", "null,null,null");
    historyFree();
}

static void test_a_reset_of_statistics_gives_no_negative_rate(void **state) {
    (void)state;
    add(1000, 1, 100);
    add(50, 1, 105); /* a reset that was not told of */
    historyResetStats();
    add(60, 1, 110);
    assertColumn("commands", "null,10,12");
    historyFree();
}

static void test_two_samples_at_the_same_time_have_no_rate(void **state) {
    (void)state;
    add(1, 1, 100);
    add(2, 1, 100);
    add(7, 1, 105);
    assertColumn("commands", "null,null,1");
    historyFree();
}

static void test_the_oldest_samples_are_replaced_in_fixed_memory(void **state) {
    (void)state;
    add(0, 0, 1000);
    size_t before = memUsed();
    for (int i = 1; i < HISTORY_SAMPLES + 40; i++) add(i, i, 1000 + i);
    assert_int_equal(memUsed(), before);
    str wanted = STR_EMPTY;
    for (int i = 40; i < HISTORY_SAMPLES + 40; i++)
        strAppendFormat(&wanted, "%s%d", i > 40 ? "," : "", (1000 + i) * 1000);
    assertColumn("time_ms", strText(&wanted));
    strFree(&wanted);
    historyFree();
}

int test_history(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_kept_until_a_sample_is_added),
        cmocka_unit_test(test_counters_become_rates_and_others_stay),
        cmocka_unit_test(test_a_reset_of_statistics_gives_no_negative_rate),
        cmocka_unit_test(test_two_samples_at_the_same_time_have_no_rate),
        cmocka_unit_test(test_the_oldest_samples_are_replaced_in_fixed_memory),
    };
    return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
