/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns of jobs: by user, then by client. */
#include "engine_test.h"

#include "base/base.h"
#include "engine/job_turns.h"

enum { MANY = 15, SLICE = 100 };

static const char one[] = "one", other[] = "other", third[] = "third";

/* Gives `slices` slices to whose turn it is; returns the number that `t` got. */
static int turnsOf(const jobTurn *t, int slices) {
    int count = 0;
    for (int i = 0; i < slices; i++) {
        const jobTurn *next = jobTurnNext();
        assert_non_null(next);
        count += next == t;
        jobTurnUsed(next, SLICE);
    }
    return count;
}

static void nobodyHasATurn(void **state) {
    (void)state;
    assert_null(jobTurnNext());
    jobTurn t;
    jobTurnBegin(&t, one);
    assert_ptr_equal(jobTurnNext(), &t);
    jobTurnEnd(&t);
    assert_null(jobTurnNext());
}

static void clientsOfAUserTakeTurns(void **state) {
    (void)state;
    jobTurn t[3];
    for (int i = 0; i < 3; i++) jobTurnBegin(&t[i], NULL); /* no user is one, too */
    for (int i = 0; i < 9; i++) assert_ptr_equal(jobTurnNext(), &t[i % 3]);
    for (int i = 0; i < 3; i++) jobTurnEnd(&t[i]);
}

static void usersHaveTheSameTime(void **state) {
    (void)state;
    jobTurn many[MANY], single;
    for (int i = 0; i < MANY; i++) jobTurnBegin(&many[i], one);
    jobTurnBegin(&single, other);
    assert_int_equal(turnsOf(&single, 100), 50);
    jobTurnUsed(&many[0], 10 * SLICE); /* a long slice is made up for */
    assert_int_equal(turnsOf(&single, 10), 10);
    assert_int_equal(turnsOf(&single, 100), 50);
    jobTurnEnd(&single);
    assert_int_equal(turnsOf(&many[3], MANY), 1);
    for (int i = 0; i < MANY; i++) jobTurnEnd(&many[i]);
}

static void whoComesLaterHasNoAdvantage(void **state) {
    (void)state;
    jobTurn a, b, c;
    jobTurnBegin(&a, one);
    jobTurnBegin(&b, other);
    (void)turnsOf(&a, 1000);
    jobTurnBegin(&c, third);
    assert_in_range(turnsOf(&c, 30), 10, 11);
    jobTurnEnd(&c);
    (void)turnsOf(&a, 100);
    jobTurnBegin(&c, third); /* nor who comes again */
    assert_in_range(turnsOf(&c, 30), 10, 11);
    jobTurnEnd(&a);
    jobTurnEnd(&b);
    jobTurnEnd(&c);
}

int test_job_turns(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobodyHasATurn),
        cmocka_unit_test(clientsOfAUserTakeTurns),
        cmocka_unit_test(usersHaveTheSameTime),
        cmocka_unit_test(whoComesLaterHasNoAdvantage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
