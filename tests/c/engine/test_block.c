/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/block.c, with a command that waits for a string and takes it: order, deadlines, ends. */
#include "engine_test.h"

#include <stdio.h>

#include "base/base.h"
#include "engine/block.h"
#include "engine/hot.h"

static bool waits(const session *s) { return s->flags & SESSION_BLOCKED; }

static void who_waits_longest_is_served_first(void **state) {
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

static void in_a_transaction_nobody_waits(void **state) {
    (void)state;
    session a;
    sessionOpen(&a);
    ask(&a, "multi|await k 0|exec");
    assert_replies(&a, "+OK +QUEUED *1 +denied");
    assert_false(waits(&a));
    sessionClear(&a);
}

static void deadlines_end_in_their_order(void **state) {
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
    blockTurn(&wait_ms);
    assert_int_equal(wait_ms, 1000);
    houseSetTime(HOUSE_NOW + MANY * 1000);
    blockTurn(&wait_ms);
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
    sessionClear(&a); /* takes it off the list of those who go on */
    assert_null(blockNextReleased());
}

static void a_swap_and_a_closing_session(void **state) {
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

int test_block(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_waits_longest_is_served_first, houseBuild, houseRaze),
        cmocka_unit_test_setup_teardown(in_a_transaction_nobody_waits, houseBuild, houseRaze),
        cmocka_unit_test_setup_teardown(deadlines_end_in_their_order, houseBuild, houseRaze),
        cmocka_unit_test_setup_teardown(a_wait_is_ended_from_outside, houseBuild, houseRaze),
        cmocka_unit_test_setup_teardown(a_swap_and_a_closing_session, houseBuild, houseRaze),
    };
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
