/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/measure.c, commandlog.c and latency.c: what passes a limit is kept, cut, merged
 * and forgotten. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/commandlog.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/execute.h"
#include "engine/latency.h"
#include "engine/measure.h"

static void setLimits(int64_t slow_us, int64_t request_bytes, int64_t reply_bytes,
                      int64_t max_len) {
    engineConf.commandlog_execution_slower_than = slow_us;
    engineConf.commandlog_request_larger_than = request_bytes;
    engineConf.commandlog_reply_larger_than = reply_bytes;
    engineConf.commandlog_slow_execution_max_len = max_len;
    engineConf.commandlog_large_request_max_len = max_len;
    engineConf.commandlog_large_reply_max_len = max_len;
    reason why;
    assert_int_equal(measureApply(&why), OK);
}

/* Everything off and forgotten, for the tests that follow. */
static void forget(void) {
    setLimits(-1, -1, -1, 8);
    for (int kind = 0; kind < COMMANDLOG_KINDS; kind++) commandlogClear((commandlogKind)kind);
}

static const commandlogEntry *newest(commandlogKind kind) {
    listNode *first = listFirst(commandlogOf(kind));
    assert_non_null(first);
    return LIST_OWNER(first, commandlogEntry, node);
}

static void a_limit_of_zero_logs_every_command_that_runs(void **state) {
    session s;
    sessionOpen(&s);
    setLimits(0, -1, -1, 8);
    ask(&s, "say a b|say|nosuch|fail");
    assert_int_equal(commandlogOf(COMMANDLOG_SLOW)->count, 2);
    const commandlogEntry *e = newest(COMMANDLOG_SLOW);
    assert_int_equal(e->argc, 1);
    assert_string_equal(strText(&e->argv[0]), "fail");
    assert_string_equal(strText(&e->peer), "1.2.3.4:5");
    assert_int_equal(e->time_s, START_MS / 1000);
    forget();
    ask(&s, "say a");
    assert_int_equal(commandlogOf(COMMANDLOG_SLOW)->count, 0);
    sessionClear(&s);
}

static void the_newest_are_kept(void **state) {
    session s;
    sessionOpen(&s);
    setLimits(0, -1, -1, 2);
    ask(&s, "say a|say b|say c");
    assert_int_equal(commandlogOf(COMMANDLOG_SLOW)->count, 2);
    assert_string_equal(strText(&newest(COMMANDLOG_SLOW)->argv[1]), "c");
    setLimits(0, -1, -1, 0);
    ask(&s, "say d");
    assert_string_equal(strText(&newest(COMMANDLOG_SLOW)->argv[1]), "c");
    forget();
    sessionClear(&s);
}

static void size_limits_are_exact_on_the_fast_path(void **state) {
    session s;
    sessionOpen(&s);
    /* *2 $3 say $3 abc, and $3 abc */
    const int64_t request_bytes = 4 + 9 + 9, reply_bytes = 9;
    setLimits(-1, request_bytes + 1, reply_bytes + 1, 8);
    ask(&s, "say abc");
    assert_int_equal(commandlogOf(COMMANDLOG_LARGE_REQUEST)->count, 0);
    assert_int_equal(commandlogOf(COMMANDLOG_LARGE_REPLY)->count, 0);
    setLimits(-1, request_bytes, reply_bytes, 8);
    ask(&s, "say abc");
    assert_int_equal(newest(COMMANDLOG_LARGE_REQUEST)->value, request_bytes);
    assert_int_equal(newest(COMMANDLOG_LARGE_REPLY)->value, reply_bytes);
    forget();
    sessionClear(&s);
}

static void samples_of_a_second_are_one(void **state) {
    engineConf.latency_monitor_threshold = 10;
    latencyNote("event", 9);
    assert_int_equal(latencyEventCount(), 0);
    latencyNote("event", 10);
    latencyNote("event", 30);
    latencyNote("event", 20);
    setTestTime(START_MS + 1000);
    latencyNote("event", 15);
    latencyNote("other", 11);
    assert_int_equal(latencyEventCount(), 2);
    const latencyEvent *e = latencyFind(SLICE("event"));
    assert_int_equal(e->next, 2);
    assert_int_equal(e->samples[0].ms, 30);
    assert_int_equal(e->samples[1].ms, 15);
    assert_int_equal(e->max_ms, 30);
    assert_int_equal(e->sum_ms, 75);
    assert_int_equal(e->count, 4);
    assert_null(latencyFind(SLICE("nosuch")));
    assert_int_equal(latencyReset(SLICE("nosuch")), 0);
    assert_int_equal(latencyReset(SLICE("event")), 1);
    assert_string_equal(latencyEventAt(0)->name, "other");
    assert_int_equal(latencyReset(sliceMake(NULL, 0)), 1);
    engineConf.latency_monitor_threshold = 0;
    latencyNote("event", 1000);
    assert_int_equal(latencyEventCount(), 0);
}

static void old_samples_are_overwritten(void **state) {
    engineConf.latency_monitor_threshold = 1;
    for (int i = 0; i < LATENCY_SAMPLES_MAX + 3; i++) {
        setTestTime(START_MS + (int64_t)i * 1000);
        latencyNote("event", i + 1);
    }
    const latencyEvent *e = latencyFind(SLICE("event"));
    assert_int_equal(e->next, 3);
    assert_int_equal(e->samples[2].ms, LATENCY_SAMPLES_MAX + 3);
    assert_int_equal(e->samples[3].ms, 4);
    engineConf.latency_monitor_threshold = 0;
    latencyReset(sliceMake(NULL, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)

int test_measure(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_limit_of_zero_logs_every_command_that_runs),
        TEST(the_newest_are_kept),
        TEST(size_limits_are_exact_on_the_fast_path),
        TEST(samples_of_a_second_are_one),
        TEST(old_samples_are_overwritten),
    };
    return cmocka_run_group_tests_name("engine/measure", tests, NULL, NULL);
}
