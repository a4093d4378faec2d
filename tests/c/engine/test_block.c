/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/block.c with a command that waits for a string and removes it: order, timeouts,
 * ends of waits. */
#include "engine_test.h"

#include <stdio.h>

#include "base/base.h"
#include "engine/timer.h"
#include "engine/block.h"
#include "engine/hot.h"
#include "engine/watch.h"
#include "store/store.h"

static bool waits(const session *s) { return s->flags & SESSION_BLOCKED; }

static void the_session_that_waits_longest_is_first(void **state) {
    (void)state;
    session a, b, c;
    sessionOpen(&a);
    sessionOpen(&b);
    sessionOpen(&c);
    ask(&a, "await k j 0");
    ask(&b, "await k k 0");
    assert_true(waits(&a));
    assert_true(waits(&b));
    assert_int_equal(blockedKeyCount(), 2);
    assert_true(blockMemory(&a) > 0);
    ask(&c, "put other x|put k 1|take k|put k 2");
    assert_replies(&c, "+OK +OK $-1 +OK");
    assert_replies(&a, "$1 1");
    assert_replies(&b, "$1 2");
    assert_int_equal(blockedKeyCount(), 0);
    assert_int_equal(engineHot.observers, 0);
    assert_ptr_equal(blockNextReleased(), &a);
    assert_ptr_equal(blockNextReleased(), &b);
    assert_null(blockNextReleased());
    sessionClear(&a);
    sessionClear(&b);
    sessionClear(&c);
}

static void commands_do_not_block_in_a_transaction(void **state) {
    (void)state;
    session a;
    sessionOpen(&a);
    ask(&a, "multi|await k 0|exec");
    assert_replies(&a, "+OK +QUEUED *1 +denied");
    assert_false(waits(&a));
    sessionClear(&a);
}

static void many_timeouts_fire_in_several_turns(void **state) {
    (void)state;
    enum { MANY = 150 };
    static session all[MANY];
    int64_t wait_ms;
    for (int i = 0; i < MANY; i++) {
        sessionOpen(&all[i]);
        ask(&all[i], "await k 1");
    }
    setTestTime(START_MS + 1000);
    int ended = 0, turns = 0;
    do {
        int before = ended;
        timersNewTurn();
        timersTurn(&wait_ms);
        for (session *s; (s = blockNextReleased()) != NULL; ended++) assert_replies(s, "+late");
        timersTurn(&wait_ms); /* again in the same turn */
        assert_null(blockNextReleased());
        assert_int_equal(wait_ms, ended < MANY ? 0 : -1);
        assert_in_range(ended - before, 1, 64);
        turns++;
    } while (ended < MANY);
    assert_int_equal(turns, 3);
    for (int i = 0; i < MANY; i++) sessionClear(&all[i]);
}

static void timeouts_fire_in_order(void **state) {
    (void)state;
    enum { MANY = 40 };
    session all[MANY];
    char request[32];
    for (int i = 0; i < MANY; i++) {
        sessionOpen(&all[i]);
        snprintf(request, sizeof(request), "await k %d", 1 + i * 7 % MANY);
        ask(&all[i], request);
        assert_true(waits(&all[i]));
    }
    sessionClear(&all[3]); /* out of the middle of the heap */
    sessionClear(&all[20]);
    int64_t wait_ms;
    timersTurn(&wait_ms);
    assert_int_equal(wait_ms, 1000);
    setTestTime(START_MS + MANY * 1000);
    timersTurn(&wait_ms);
    assert_int_equal(wait_ms, -1);
    int last = 0, ended = 0;
    for (session *s; (s = blockNextReleased()) != NULL; ended++) {
        int seconds = 1 + (int)(s - all) * 7 % MANY;
        assert_true(seconds > last);
        last = seconds;
        assert_replies(s, "+late");
    }
    assert_int_equal(ended, MANY - 2);
    assert_int_equal(blockedKeyCount(), 0);
    for (int i = 0; i < MANY; i++) {
        if (i != 3 && i != 20) sessionClear(&all[i]);
    }
}

static void a_wait_is_ended_from_outside(void **state) {
    (void)state;
    session a;
    sessionOpen(&a);
    assert_false(blockEnd(&a, SLICE("")));
    ask(&a, "await k 0");
    assert_true(blockEnd(&a, SLICE("")));
    assert_replies(&a, "+late");
    ask(&a, "await k 0");
    assert_true(blockEnd(&a, SLICE("STOPPED for a reason")));
    assert_replies(&a, "-STOPPED for a reason");
    assert_false(blockEnd(&a, SLICE("")));
    sessionClear(&a); /* removes it from the list of released sessions */
    assert_null(blockNextReleased());
}

static void swaps_and_closing_sessions_end_watches(void **state) {
    (void)state;
    session a, b;
    sessionOpen(&a);
    sessionOpen(&b);
    ask(&a, "await k 0");
    ask(&b, "select 1|put k v|swap");
    assert_replies(&a, "$1 v");
    assert_ptr_equal(blockNextReleased(), &a);
    ask(&a, "await k 0");
    sessionCloseNow(&a);
    ask(&b, "select 0|put k w|take k");
    (void)noted();
    assert_replies(&b, "+OK +OK +OK +OK +OK $1 w");
    assert_true(waits(&a));
    sessionClear(&a);
    assert_int_equal(blockedKeyCount(), 0);
    sessionClear(&b);
}

/* ------------------------------------------------------------------ waits in general */

static void arguments_are_kept_as_they_were_rewritten(void **state) {
    (void)state;
    session a, b;
    sessionOpen(&a);
    sessionOpen(&b);
    ask(&b, "put k 5");
    ask(&a, "newer k $ 0");
    assert_true(waits(&a));
    ask(&b, "put k 4|put k 5");
    assert_true(waits(&a)); /* its own predicate says so: the command did not even run */
    assert_int_equal(commandFind(SLICE("newer"))->calls, 0);
    ask(&b, "multi|put k 9|put k 6|exec");
    assert_replies(&a, ":6");
    assert_noted("freed newer;");
    sessionClear(&a);
    sessionClear(&b);
}

static void a_wait_can_end_when_its_key_is_missing(void **state) {
    (void)state;
    const char *const ends[] = {"drop k", "flush", "swap", "put k 1 1000005|later 10|take k"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        session a, b, c;
        sessionOpen(&a);
        sessionOpen(&b);
        sessionOpen(&c);
        ask(&b, "put k 5");
        ask(&a, "newer k 7 0");
        ask(&c, "await j 0"); /* remains: it did not set when_gone */
        assert_int_equal(blockedKeyWhenGoneCount(), 1);
        ask(&b, ends[i]);
        stagesRun(STAGE_WAKE, STAGE_WAKE);
        assert_replies(&a, "-GONE it is");
        assert_noted("freed newer;");
        assert_true(waits(&c));
        assert_int_equal(blockedKeyWhenGoneCount(), 0);
        sessionClear(&a);
        sessionClear(&b);
        sessionClear(&c);
        setTestTime(START_MS);
    }
}

static void a_wait_for_an_offset_ends_on_notification(void **state) {
    (void)state;
    session a, b, c;
    int64_t wait_ms;
    sessionOpen(&a);
    sessionOpen(&b);
    sessionOpen(&c);
    ask(&a, "offset 10 0");
    ask(&b, "offset 20 5");
    ask(&c, "ack 9");
    assert_true(waits(&a));
    ask(&c, "ack 12");
    assert_replies(&a, ":12");
    assert_true(waits(&b));
    setTestTime(START_MS + 5000);
    timersTurn(&wait_ms);
    assert_replies(&b, ":12");
    assert_int_equal(wait_ms, -1);
    ask(&a, "offset 30 0");
    assert_true(blockFinish(&a));
    assert_replies(&a, "");
    stagesRun(STAGE_WAKE, STAGE_WAKE);
    assert_replies(&a, ":12");
    sessionClear(&a);
    sessionClear(&b);
    sessionClear(&c);
}

static void endIt(session *s, void *arg) {
    ++*(int *)arg;
    assert_true(blockEnd(s, SLICE("MOVED elsewhere")));
}

static int endAll(int kind, int db_id, slice key, int slot) {
    int count = 0;
    blockEach(&(blockFilter){.kind = kind, .db_id = db_id, .key = key, .slot = slot}, endIt,
              &count);
    return count;
}

static void waits_are_found_by_kind_key_and_slot(void **state) {
    (void)state;
    session a, b, c;
    sessionOpen(&a);
    sessionOpen(&b);
    sessionOpen(&c);
    int slot = storeHashSlot(storeHash(SLICE("k"))), other = (slot + 1) % 16384;
    ask(&a, "await j k 0");
    ask(&b, "select 1|await j 0");
    ask(&c, "offset 100 0");
    (void)replies(&b);
    assert_int_equal(endAll(-1, 0, SLICE("x"), -1), 0);
    assert_int_equal(endAll(-1, -1, SLICE(""), other), 0);
    assert_int_equal(endAll(BLOCK_MODULE, -1, SLICE(""), -1), 0);
    assert_int_equal(endAll(-1, -1, SLICE(""), slot), 1);
    assert_replies(&a, "-MOVED elsewhere");
    assert_int_equal(endAll(BLOCK_KEYS, 1, SLICE("j"), -1), 1);
    assert_replies(&b, "-MOVED elsewhere");
    assert_int_equal(endAll(-1, -1, SLICE(""), -1), 1);
    assert_replies(&c, "-MOVED elsewhere");
    sessionClear(&a);
    sessionClear(&b);
    sessionClear(&c);
}

static void one_index_serves_watches_and_waits(void **state) {
    (void)state;
    session a, b, c;
    sessionOpen(&a);
    sessionOpen(&b);
    sessionOpen(&c);
    ask(&a, "watch k|multi");
    ask(&b, "await k 0");
    assert_int_equal(engineHot.observers, 1);
    assert_int_equal(watchedKeyCount(), 1);
    assert_int_equal(blockedKeyCount(), 1);
    ask(&c, "put k 1");
    assert_replies(&b, "$1 1");
    ask(&a, "exec");
    assert_replies(&a, "+OK +OK *-1");
    assert_int_equal(engineHot.observers, 0);
    sessionClear(&a);
    sessionClear(&b);
    sessionClear(&c);
}

static session *ends_next; /* its wait ends within the command of another one */

static void endNext(db *d, slice key, const keyEvent *event) {
    if (!ends_next || event != &eventDel) return;
    session *s = ends_next;
    ends_next = NULL;
    assert_true(blockEnd(s, SLICE("GONE with the other")));
}

static const keyObserver ending_observer = {.name = "ending", .changed = endNext};

/* The second wait ends while the first one's command runs; the third one is still checked. */
static void a_woken_command_may_end_the_next_wait(void **state) {
    session waiting[3], writer;
    for (int i = 0; i < 3; i++) {
        sessionOpen(&waiting[i]);
        ask(&waiting[i], "await k 0");
        assert_true(waits(&waiting[i]));
    }
    sessionOpen(&writer);
    keyObserverArm(&ending_observer, true);
    ends_next = &waiting[1];
    ask(&writer, "put k 1");
    assert_replies(&waiting[0], "$1 1");
    assert_replies(&waiting[1], "-GONE with the other");
    assert_true(waits(&waiting[2]));
    ask(&writer, "put k 2");
    assert_replies(&waiting[2], "$1 2");
    keyObserverArm(&ending_observer, false);
    while (blockNextReleased()) {}
    for (int i = 0; i < 3; i++) sessionClear(&waiting[i]);
    sessionClear(&writer);
}

static void endTheNextAndItself(void) {
    session *s = ends_next;
    ends_next = NULL;
    if (!s) return;
    assert_true(blockEnd(s, SLICE("GONE with the other")));
    assert_false(blockEnd(engineHot.current->who, SLICE("GONE again"))); /* it ends already */
    assert_false(blockFinish(engineHot.current->who));
}

static void a_notified_wait_may_end_the_next_one(void **state) {
    session waiting[3], other;
    for (int i = 0; i < 3; i++) {
        sessionOpen(&waiting[i]);
        ask(&waiting[i], "offset 5 0");
        assert_true(waits(&waiting[i]));
    }
    sessionOpen(&other);
    when_acknowledged = endTheNextAndItself;
    ends_next = &waiting[1];
    ask(&other, "ack 7");
    assert_replies(&waiting[0], ":7");
    assert_replies(&waiting[1], "-GONE with the other");
    assert_replies(&waiting[2], ":7");
    while (blockNextReleased()) {}
    for (int i = 0; i < 3; i++) sessionClear(&waiting[i]);
    sessionClear(&other);
}

static void noteResume(session *who) { note("resumes, blocked %d;", who->blocked != NULL); }

/* A command that a module runs, and that may block: the reply comes later, in one unit with what
 * the module does about it; or never, if the module gives it up. */
static void an_inner_command_may_block_for_its_caller(void **state) {
    static const sessionCarrier carrier = {.resume = noteResume};
    session caller, module;
    sessionOpen(&caller);
    sessionInit(&module, &carrier, SESSION_INTERNAL);
    sessionSetOrigin(&module, ORIGIN_MODULE);
    (void)noted();
    inner_params.origin = ORIGIN_MODULE;
    ask(&caller, "inner await k 0"); /* without a session of its own it does not block */
    assert_replies(&caller, "+denied");
    inner_params.who = &module;
    ask(&caller, "inner await k 0|say later");
    assert_replies(&caller, "+OK $5 later");
    assert_false(waits(&caller));
    assert_true(waits(&module));
    sinkArm(&noteSink, true);
    ask(&caller, "put k 1");
    assert_noted("db0 put k 1;resumes, blocked 0;db0 await k 0;");
    assert_replies(&module, "$1 1");
    assert_null(blockNextReleased()); /* it is no client */
    ask(&caller, "inner await k 0");
    assert_true(waits(&module));
    blockForget(&module);
    assert_false(waits(&module));
    assert_noted("");
    assert_replies(&module, "");
    ask(&caller, "inner await k 0");
    assert_true(blockEnd(&module, SLICE("UNBLOCKED by force")));
    assert_noted("resumes, blocked 0;");
    assert_replies(&module, "-UNBLOCKED by force");
    sinkArm(&noteSink, false);
    sessionClear(&module);
    sessionClear(&caller);
}

/* As a callback of authentication does, whose command goes on when the module has decided. */
static void a_wait_of_a_module_is_ended_from_outside(void **state) {
    session a;
    sessionOpen(&a);
    assert_false(blockFinish(&a));
    ask(&a, "module");
    assert_true(waits(&a));
    assert_true(blockFinish(&a));
    blockWake();
    assert_true(waits(&a)); /* it is still not done */
    module_is_done = true;
    assert_true(blockFinish(&a));
    blockWake();
    assert_false(waits(&a));
    assert_replies(&a, "+done");
    assert_ptr_equal(blockNextReleased(), &a);
    sessionClear(&a);
}

int test_block(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, engineTestSetUp, engineTestTearDown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_session_that_waits_longest_is_first, engineTestSetUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(commands_do_not_block_in_a_transaction, engineTestSetUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(many_timeouts_fire_in_several_turns, engineTestSetUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(timeouts_fire_in_order, engineTestSetUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_wait_is_ended_from_outside, engineTestSetUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(swaps_and_closing_sessions_end_watches, engineTestSetUp,
                                        engineTestTearDown),
        TEST(arguments_are_kept_as_they_were_rewritten),
        TEST(a_wait_can_end_when_its_key_is_missing),
        TEST(a_wait_for_an_offset_ends_on_notification),
        TEST(waits_are_found_by_kind_key_and_slot),
        TEST(a_woken_command_may_end_the_next_wait),
        TEST(a_notified_wait_may_end_the_next_one),
        TEST(an_inner_command_may_block_for_its_caller),
        TEST(a_wait_of_a_module_is_ended_from_outside),
        TEST(one_index_serves_watches_and_waits),
    };
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
