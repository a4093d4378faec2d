/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of base/fiber: order of resumes, locals that survive, fibers within fibers, many stacks. */
#include "base_test.h"

#include "base/fiber.h"

typedef struct counter {
    int count, upto;
    fiber *inner; /* resumed once in each step; NULL: none */
} counter;

static void countUp(void *arg) {
    counter *c = arg;
    int local[64];
    for (int i = 0; i < c->upto; i++) {
        local[i % 64] = i;
        c->count++;
        if (c->inner) (void)fiberResume(c->inner); /* it lasts longer */
        fiberSuspend();
        assert_int_equal(local[i % 64], i);
    }
}

static void test_a_fiber_goes_on_where_it_was(void **state) {
    counter c = {.upto = 100};
    fiber *f = fiberNew(countUp, &c);
    assert_non_null(f);
    assert_int_equal(c.count, 0);
    for (int i = 1; i <= 100; i++) {
        assert_true(fiberResume(f));
        assert_int_equal(c.count, i);
    }
    assert_false(fiberResume(f));
    fiberFree(f);
}

static void test_fibers_take_turns(void **state) {
    enum { FIBERS = 40 }; /* more than the stacks that are kept */
    counter c[FIBERS];
    fiber *f[FIBERS];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < FIBERS; i++) {
            c[i] = (counter){.upto = i};
            f[i] = fiberNew(countUp, &c[i]);
            assert_non_null(f[i]);
        }
        for (int step = 0; step < FIBERS; step++) {
            for (int i = step; i < FIBERS; i++) assert_int_equal(fiberResume(f[i]), step < i);
        }
        for (int i = 0; i < FIBERS; i++) {
            assert_int_equal(c[i].count, i);
            fiberFree(f[i]);
        }
    }
}

static void test_a_fiber_resumes_another(void **state) {
    counter inner = {.upto = 10}, outer = {.upto = 3};
    outer.inner = fiberNew(countUp, &inner);
    fiber *f = fiberNew(countUp, &outer);
    while (fiberResume(f)) assert_int_equal(inner.count, outer.count);
    assert_int_equal(inner.count, 3);
    fiberFree(f);
    while (fiberResume(outer.inner)) continue;
    assert_int_equal(inner.count, 10);
    fiberFree(outer.inner);
}

static unsigned visited;

static bool suspendAtTen(unsigned elements) {
    visited += elements;
    if (visited % 10 == 0) fiberSuspend();
    return visited >= 30;
}

static void visitMany(void *arg) {
    int *rounds = arg;
    while (!fiberPoint(2)) ++*rounds;
}

static void test_points_count_only_within_fibers(void **state) {
    int rounds = 0;
    fiberSetPoint(suspendAtTen);
    assert_false(fiberPoint(10));
    assert_int_equal(visited, 0);
    fiber *f = fiberNew(visitMany, &rounds);
    for (unsigned upto = 10; upto <= 30; upto += 10) {
        assert_true(fiberResume(f));
        assert_int_equal(visited, upto);
    }
    assert_false(fiberResume(f));
    assert_int_equal(rounds, 14);
    fiberFree(f);
    fiberSetPoint(NULL);
}

int test_fiber(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fiber_goes_on_where_it_was),
        cmocka_unit_test(test_fibers_take_turns),
        cmocka_unit_test(test_a_fiber_resumes_another),
        cmocka_unit_test(test_points_count_only_within_fibers),
    };
    return cmocka_run_group_tests_name("fiber", tests, NULL, NULL);
}
