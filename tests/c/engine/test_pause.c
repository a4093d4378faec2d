/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/pause.c: what is held, until when, and that nothing of it is counted. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/timer.h"
#include "engine/engine.h"
#include "engine/hot.h"
#include "engine/pause.h"
#include "engine/transaction.h"

static const command *named(const char *name) { return commandFindByFullName(sliceOf(name)); }

static void writes_are_held_and_reads_are_not(void **state) {
    session s;
    sessionOpen(&s);
    pauseBegin(PAUSE_BY_COMMAND, PAUSE_WRITES, START_MS + 100);
    uint64_t commands = engineHot.commands;
    assert_int_equal(ask(&s, "take a|put a 1|take a"), 1);
    assert_replies(&s, "$-1");
    assert_true(s.flags & SESSION_PAUSED);
    assert_int_equal(engineHot.commands, commands + 1);
    assert_int_equal(named("put")->calls, 0);
    assert_int_equal(named("put")->rejected, 0);
    assert_null(pauseNextReleased());
    pauseEnd(PAUSE_BY_COMMAND);
    assert_ptr_equal(pauseNextReleased(), &s);
    assert_null(pauseNextReleased());
    assert_false(s.flags & SESSION_PAUSED);
    assert_int_equal(ask(&s, "put a 1|take a"), 2);
    assert_replies(&s, "+OK $1 1");
    sessionClear(&s);
}

static void all_contains_everything_except_errors(void **state) {
    session s;
    sessionOpen(&s);
    pauseBegin(PAUSE_BY_COMMAND, PAUSE_ALL, START_MS + 100);
    assert_int_equal(ask(&s, "nosuch|put|say a"), 2);
    sessionClear(&s); /* a held session may end */
    pauseEnd(PAUSE_BY_COMMAND);
    assert_null(pauseNextReleased());
}

static void a_pause_never_shortens_nor_weakens_one(void **state) {
    pauseBegin(PAUSE_BY_COMMAND, PAUSE_ALL, START_MS + 100);
    pauseBegin(PAUSE_BY_COMMAND, PAUSE_WRITES, START_MS + 50);
    assert_int_equal(pauseNow(), PAUSE_ALL);
    assert_int_equal(pauseEndMs(), START_MS + 100);
    pauseBegin(PAUSE_FOR_FAILOVER, PAUSE_WRITES, START_MS + 200);
    assert_string_equal(pauseReasonName(), "failover_in_progress");
    pauseEnd(PAUSE_BY_COMMAND);
    assert_int_equal(pauseNow(), PAUSE_WRITES);
    pauseEnd(PAUSE_FOR_FAILOVER);
    assert_int_equal(pauseNow(), PAUSE_NONE);
    assert_int_equal(pauseEndMs(), 0);
    assert_string_equal(pauseReasonName(), "none");
}

static void a_pause_ends_on_timeout(void **state) {
    int64_t wait_ms;
    timersTurn(&wait_ms);
    assert_int_equal(wait_ms, -1);
    pauseBegin(PAUSE_BY_COMMAND, PAUSE_WRITES, START_MS + 100);
    timersTurn(&wait_ms);
    assert_int_equal(wait_ms, 100);
    setTestTime(START_MS + 99);
    timersTurn(&wait_ms);
    assert_int_equal(wait_ms, 1);
    setTestTime(START_MS + 100);
    timersTurn(&wait_ms);
    assert_int_equal(wait_ms, -1);
    assert_int_equal(pauseNow(), PAUSE_NONE);
}

static void a_transaction_that_writes_is_held(void **state) {
    session reader, writer;
    sessionOpen(&reader);
    sessionOpen(&writer);
    ask(&reader, "multi|take a");
    ask(&writer, "multi|put a 1");
    pauseBegin(PAUSE_BY_COMMAND, PAUSE_WRITES, START_MS + 100);
    assert_int_equal(ask(&reader, "exec"), 1);
    assert_int_equal(ask(&writer, "exec"), 0);
    pauseEnd(PAUSE_BY_COMMAND);
    assert_ptr_equal(pauseNextReleased(), &writer);
    assert_int_equal(ask(&writer, "exec"), 1);
    sessionClear(&reader);
    sessionClear(&writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)

int test_pause(void) {
    const struct CMUnitTest tests[] = {
        TEST(writes_are_held_and_reads_are_not),      TEST(all_contains_everything_except_errors),
        TEST(a_pause_never_shortens_nor_weakens_one), TEST(a_pause_ends_on_timeout),
        TEST(a_transaction_that_writes_is_held),
    };
    return cmocka_run_group_tests_name("engine/pause", tests, NULL, NULL);
}
