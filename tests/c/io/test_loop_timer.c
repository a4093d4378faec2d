/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of the loop's timers, under a clock that the tests move by hand. */
#include "io_test.h"

#include <limits.h>

#include "base/clock.h"
#include "base/random.h"
#include "io/loop.h"

static int64_t now_us;

static int64_t fakeMonoNs(void) { return now_us * 1000; }

static loop *l;

static int openLoop(void **state) {
    (void)state;
    const clockSource fake = {fakeMonoNs, NULL};
    now_us = 1000000000;
    clockSetSource(&fake);
    l = loopNew(NULL, NULL);
    return l ? 0 : -1;
}

static int closeLoop(void **state) {
    (void)state;
    loopFree(l);
    clockSetSource(NULL);
    return 0;
}

typedef struct counter {
    int calls;
    int64_t again_ms;
    uint64_t id; /* as returned by the procedure */
} counter;

static int64_t count(loop *owner, uint64_t id, void *arg) {
    assert_ptr_equal(owner, l);
    counter *c = arg;
    c->calls++;
    c->id = id;
    return c->again_ms;
}

static void test_fires_once_when_due(void **state) {
    (void)state;
    counter c = {.again_ms = LOOP_TIMER_END};
    uint64_t id = loopAddTimer(l, 10, count, &c);
    assert_true(id != 0);
    assert_int_equal(loopTurn(l, false), 0);
    now_us += 9999;
    assert_int_equal(loopTurn(l, false), 0);
    now_us += 1;
    assert_int_equal(loopTurn(l, false), 1);
    assert_int_equal(c.calls, 1);
    assert_true(c.id == id);
    now_us += 1000000;
    assert_int_equal(loopTurn(l, false), 0);
    loopRemoveTimer(l, id); /* already removed: no effect */
}

static void test_repeats_by_what_it_returns(void **state) {
    (void)state;
    counter c = {.again_ms = 5};
    uint64_t id = loopAddTimer(l, 0, count, &c);
    assert_int_equal(loopTurn(l, false), 1);
    assert_int_equal(loopTurn(l, false), 0);
    now_us += 5000;
    assert_int_equal(loopTurn(l, false), 1);
    assert_true(c.id == id); /* keeps its id */
    /* Late by ten periods: one call, and the next a period later. */
    now_us += 50000;
    assert_int_equal(loopTurn(l, false), 1);
    assert_int_equal(loopTurn(l, false), 0);
    loopRemoveTimer(l, id);
    now_us += 50000;
    assert_int_equal(loopTurn(l, false), 0);
    assert_int_equal(c.calls, 3);
}

/* The clock does not advance meanwhile, so only the rule of one call per turn ends the turn. */
static void test_zero_delay_waits_for_the_next_turn(void **state) {
    (void)state;
    counter c = {.again_ms = 0};
    loopAddTimer(l, -7, count, &c);
    for (int turn = 1; turn <= 5; turn++) {
        loopTurn(l, false);
        now_us += 1;
        assert_int_equal(c.calls, turn);
    }
}

static counter added;

static int64_t addAnother(loop *owner, uint64_t id, void *arg) {
    (void)id, (void)arg;
    loopAddTimer(owner, 0, count, &added);
    return LOOP_TIMER_END;
}

static void test_a_timer_added_by_a_timer_waits_for_the_next_turn(void **state) {
    (void)state;
    added = (counter){.again_ms = LOOP_TIMER_END};
    loopAddTimer(l, 0, addAnother, NULL);
    assert_int_equal(loopTurn(l, false), 1);
    assert_int_equal(added.calls, 0);
    now_us += 1;
    assert_int_equal(loopTurn(l, false), 1);
    assert_int_equal(added.calls, 1);
}

typedef struct dropper {
    uint64_t victim; /* 0: itself */
    int64_t again_ms;
    int calls;
} dropper;

static int64_t drop(loop *owner, uint64_t id, void *arg) {
    dropper *d = arg;
    d->calls++;
    loopRemoveTimer(owner, d->victim ? d->victim : id);
    return d->again_ms;
}

static void test_removing_in_a_callback(void **state) {
    (void)state;
    dropper self = {.again_ms = 1};
    loopAddTimer(l, 0, drop, &self);
    assert_int_equal(loopTurn(l, false), 1);
    now_us += 10000;
    assert_int_equal(loopTurn(l, false), 0); /* though it requested more */
    assert_int_equal(self.calls, 1);

    counter other = {.again_ms = LOOP_TIMER_END};
    dropper first = {.again_ms = LOOP_TIMER_END};
    loopAddTimer(l, 1, drop, &first);
    first.victim = loopAddTimer(l, 2, count, &other);
    now_us += 5000; /* both are due in the same turn */
    assert_int_equal(loopTurn(l, false), 1);
    assert_int_equal(other.calls, 0);
}

static void test_an_old_id_does_not_remove_a_new_timer(void **state) {
    (void)state;
    counter c = {.again_ms = LOOP_TIMER_END};
    uint64_t old_id = loopAddTimer(l, 1, count, &c);
    loopRemoveTimer(l, old_id);
    uint64_t new_id = loopAddTimer(l, 1, count, &c);
    assert_true(new_id != old_id);
    loopRemoveTimer(l, old_id);
    loopRemoveTimer(l, 0);
    loopRemoveTimer(l, UINT64_MAX);
    now_us += 1000;
    assert_int_equal(loopTurn(l, false), 1);
    assert_true(c.id == new_id);
}

static int64_t nest(loop *owner, uint64_t id, void *arg) {
    (void)id;
    counter *c = arg;
    c->calls++;
    now_us += 100000;
    if (loopDepth(owner) < 3) loopTurn(owner, false);
    return 1;
}

static void test_a_running_timer_does_not_run_in_a_nested_turn(void **state) {
    (void)state;
    counter outer = {0}, inner = {.again_ms = 1};
    loopAddTimer(l, 0, nest, &outer);
    loopAddTimer(l, 50, count, &inner);
    loopTurn(l, false);
    assert_int_equal(outer.calls, 1);
    assert_int_equal(inner.calls, 1);
}

static void test_far_deadlines(void **state) {
    (void)state;
    counter c = {.again_ms = LOOP_TIMER_END};
    loopAddTimer(l, INT64_MAX, count, &c);
    loopAddTimer(l, INT64_MAX / 1000, count, &c);
    loopAddTimer(l, (int64_t)INT_MAX * 10, count, &c);
    assert_int_equal(loopTurn(l, false), 0);
    loopLimitSleep(l, 0);
    assert_int_equal(loopTurn(l, true), 0);
    assert_int_equal(c.calls, 0);
}

/* A sorted array is what the heap must agree with. */
enum { TIMERS = 200 };

typedef struct modelTimer {
    uint64_t id;
    int64_t due_us; /* -1: none */
    int64_t again_ms;
} modelTimer;

static modelTimer model[TIMERS];
static int64_t last_due_us;

static int64_t modelProc(loop *owner, uint64_t id, void *arg) {
    (void)owner;
    modelTimer *m = arg;
    assert_true(m->id == id);
    assert_true(m->due_us >= 0);
    assert_true(m->due_us <= now_us);
    assert_true(m->due_us >= last_due_us); /* in order */
    last_due_us = m->due_us;
    m->due_us = m->again_ms < 0 ? -1 : now_us + m->again_ms * 1000;
    return m->again_ms;
}

static void test_random_history_against_a_model(void **state) {
    (void)state;
    testSeed(__func__);
    for (int i = 0; i < TIMERS; i++) model[i].due_us = -1;
    for (int round = 0; round < 20000; round++) {
        modelTimer *m = &model[randomUniform(TIMERS)];
        if (m->due_us < 0) {
            /* Not 0, which the loop defers to the next turn; another test covers that. */
            int64_t delay_ms = 1 + (int64_t)randomUniform(100);
            m->again_ms = (int64_t)randomUniform(40) - 20;
            if (m->again_ms <= 0) m->again_ms = LOOP_TIMER_END;
            m->due_us = now_us + delay_ms * 1000;
            m->id = loopAddTimer(l, delay_ms, modelProc, m);
        } else if (randomUniform(3) == 0) {
            loopRemoveTimer(l, m->id);
            m->due_us = -1;
        }
        if (randomUniform(4)) continue;
        now_us += (int64_t)randomUniform(5000) + 1;
        int due = 0;
        for (int i = 0; i < TIMERS; i++) due += model[i].due_us >= 0 && model[i].due_us <= now_us;
        last_due_us = 0;
        assert_int_equal(loopTurn(l, false), due);
        for (int i = 0; i < TIMERS; i++)
            assert_true(model[i].due_us < 0 || model[i].due_us > now_us);
    }
}

/* With the real clock: the turn sleeps, and ends because the timer is due. */
static void test_a_timer_ends_the_sleep(void **state) {
    (void)state;
    clockSetSource(NULL);
    counter c = {.again_ms = LOOP_TIMER_END};
    int64_t begin_us = clockMonoUs();
    loopAddTimer(l, 3, count, &c);
    while (!c.calls) loopTurn(l, true);
    assert_true(clockMonoUs() - begin_us >= 3000);
}

int test_loop_timer(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fires_once_when_due, openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_repeats_by_what_it_returns, openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_zero_delay_waits_for_the_next_turn, openLoop,
                                        closeLoop),
        cmocka_unit_test_setup_teardown(test_a_timer_added_by_a_timer_waits_for_the_next_turn,
                                        openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_removing_in_a_callback, openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_an_old_id_does_not_remove_a_new_timer, openLoop,
                                        closeLoop),
        cmocka_unit_test_setup_teardown(test_a_running_timer_does_not_run_in_a_nested_turn,
                                        openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_far_deadlines, openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_random_history_against_a_model, openLoop, closeLoop),
        cmocka_unit_test_setup_teardown(test_a_timer_ends_the_sleep, openLoop, closeLoop),
    };
    return cmocka_run_group_tests_name("loop_timer", tests, NULL, NULL);
}
