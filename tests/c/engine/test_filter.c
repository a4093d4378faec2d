/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/filter.c: what a rewritten request is for everything after the lookup. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/command.h"
#include "engine/filter.h"
#include "engine/gate_priv.h"
#include "engine/hot.h"
#include "engine/session.h"

/* Turns `swapped x` into `put x 1`, `say @drop ...` into `say ...`, and `say two` into `say 2
 * x`. */
static void rewrite(filteredRequest *f) {
    note("filter %d;", filteredCount(f));
    if (sliceIs(filteredArg(f, 0), "swapped")) {
        assert_int_equal(filteredReplace(f, 0, SLICE("put")), OK);
        assert_int_equal(filteredInsert(f, filteredCount(f), SLICE("1")), OK);
    }
    if (!sliceIs(filteredArg(f, 0), "say")) return;
    if (sliceIs(filteredArg(f, 1), "@drop")) assert_int_equal(filteredRemove(f, 1), OK);
    if (sliceIs(filteredArg(f, 1), "two")) {
        assert_int_equal(filteredReplace(f, 1, SLICE("2")), OK);
    }
}

/* The second one sees what the first one has made. */
static void shout(filteredRequest *f) {
    if (sliceIs(filteredArg(f, 0), "put")) note("sees put of %d;", filteredCount(f));
    assert_int_equal(filteredReplace(f, 99, SLICE("")), ERR_RANGE);
    assert_int_equal(filteredInsert(f, -1, SLICE("")), ERR_RANGE);
    if (filteredCount(f) == 1) assert_int_equal(filteredRemove(f, 0), ERR_RANGE);
}

static const requestFilter rewriting = {.name = "rewriting", .filter = rewrite};
static const requestFilter shouting = {.name = "shouting", .filter = shout};
static session s;

static int setUp(void **state) {
    int failed = engineTestSetUp(state);
    sessionOpen(&s);
    (void)noted();
    return failed;
}

static int tearDown(void **state) {
    requestFilterArm(&rewriting, false);
    requestFilterArm(&shouting, false);
    assert_int_equal(engineHot.armed & GATE_BIT_SPECIAL, 0);
    sessionClear(&s);
    return engineTestTearDown(state);
}

static void a_request_is_looked_up_after_it_was_rewritten(void **state) {
    ask(&s, "swapped k");
    assert_replies(&s, "-ERR unknown command 'swapped', with args beginning with: 'k' ");
    requestFilterArm(&rewriting, true);
    requestFilterArm(&shouting, true);
    ask(&s, "swapped k|take k|say @drop b|say two|swapped");
    assert_replies(&s, "+OK $1 1 $1 b $1 2 -ERR wrong number of arguments for 'put' command");
    assert_noted("filter 2;sees put of 3;filter 2;filter 3;filter 2;filter 1;sees put of 2;");
    requestFilterArm(&rewriting, false);
    ask(&s, "swapped k");
    assert_replies(&s, "-ERR unknown command 'swapped', with args beginning with: 'k' ");
}

static void statistics_are_those_of_the_new_command(void **state) {
    requestFilterArm(&rewriting, true);
    const command *put = commandFind(SLICE("put"));
    ask(&s, "put a 1|swapped k|put b 1|swapped");
    assert_int_equal(put->calls, 3);
    assert_int_equal(put->rejected, 1);
    assert_int_equal(s.commands, 3);
    assert_ptr_equal(s.last_command, put);
}

static void gates_observers_and_sinks_see_the_new_form(void **state) {
    requestFilterArm(&rewriting, true);
    sinkArm(&noteSink, true);
    commandObserverArm(&noteCommandObserver, true);
    gateArm(&writesGate, true);
    ask(&s, "swapped k|say a");
    assert_noted("filter 2;writes asked of put;before put;after put;db0 put k 1;"
                 "filter 2;before say;after say;");
    verdict = GATE_REFUSED;
    ask(&s, "swapped k|say a");
    assert_noted("filter 2;writes asked of put;filter 2;before say;after say;");
    assert_replies(&s, "+OK $1 a -REFUSED by writes $1 a");
    gateArm(&writesGate, false);
    commandObserverArm(&noteCommandObserver, false);
    sinkArm(&noteSink, false);
}

static void a_transaction_queues_the_new_form_and_filters_once(void **state) {
    requestFilterArm(&rewriting, true);
    sinkArm(&noteSink, true);
    ask(&s, "multi|swapped k|say two|exec");
    assert_replies(&s, "+OK +QUEUED +QUEUED *2 +OK $1 2");
    assert_noted("filter 1;filter 2;filter 2;filter 1;db0 put k 1;");
    sinkArm(&noteSink, false);
}

static void a_blocked_request_runs_again_without_filters(void **state) {
    session other;
    sessionOpen(&other);
    requestFilterArm(&rewriting, true);
    ask(&s, "await k 0");
    (void)noted();
    ask(&other, "swapped k");
    assert_noted("filter 2;");
    assert_replies(&s, "$1 1");
    sessionClear(&other);
}

static void the_append_only_file_is_not_filtered(void **state) {
    requestFilterArm(&rewriting, true);
    sessionSetOrigin(&s, ORIGIN_AOF);
    ask(&s, "say two");
    assert_replies(&s, "$3 two");
    assert_noted("");
}

static void a_session_must_log_in_for_the_new_form(void **state) {
    requestFilterArm(&rewriting, true);
    sessionSetAuthenticated(&s, NULL, false);
    ask(&s, "swapped k");
    assert_replies(&s, "-NOAUTH Authentication required.");
    sessionSetAuthenticated(&s, NULL, true);
}

int test_filter(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_looked_up_after_it_was_rewritten),
        TEST(statistics_are_those_of_the_new_command),
        TEST(gates_observers_and_sinks_see_the_new_form),
        TEST(a_transaction_queues_the_new_form_and_filters_once),
        TEST(a_blocked_request_runs_again_without_filters),
        TEST(the_append_only_file_is_not_filtered),
        TEST(a_session_must_log_in_for_the_new_form),
    };
    return cmocka_run_group_tests_name("engine/filter", tests, NULL, NULL);
}
