/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Throttling by the lag of replicas: a model of writers and of a replica that takes less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "repl/lag_throttle.h"

#define MB ((size_t)1 << 20)

typedef struct model {
    lagThrottle t;
    double demand, takes; /* bytes per second */
    double held, most;
    double written; /* bytes */
    int64_t now_ms;
} model;

static const size_t limit = 64 * MB;

static void run(model *m, double seconds) {
    for (int i = 0; i < (int)(seconds * 10); i++) {
        double rate = m->t.is_active && m->t.rate < m->demand ? m->t.rate : m->demand;
        double produced = rate / 10;
        m->held += produced - m->takes / 10;
        if (m->held < 0) m->held = 0;
        if (m->held > m->most) m->most = m->held;
        m->written += produced;
        m->now_ms += THROTTLE_PERIOD_MS;
        lagThrottleUpdate(&m->t, (size_t)m->held, limit, (size_t)produced, rate < m->demand,
                          m->now_ms);
    }
}

static void a_replica_that_takes_a_third_never_reaches_its_limit(void **state) {
    (void)state;
    for (double demand = 3 * MB; demand <= 300 * MB; demand *= 10) {
        model m = {.demand = demand, .takes = demand / 3, .now_ms = 1000};
        run(&m, 300);
        assert_true(m.t.is_active);
        assert_true(m.most < (double)limit);
        /* Writers get what the replica takes. */
        m.written = 0;
        run(&m, 60);
        assert_true(m.written > 60 * m.takes * 0.8);
        assert_true(m.written < 60 * m.takes * 1.2);
        assert_int_equal(m.t.activations, 1);
    }
}

static void it_ends_when_the_replica_has_caught_up(void **state) {
    (void)state;
    model m = {.demand = 30 * MB, .takes = 10 * MB, .now_ms = 1000};
    run(&m, 60);
    assert_true(m.t.is_active);
    m.takes = 100 * MB;
    run(&m, 60);
    assert_false(m.t.is_active);
    assert_int_equal(m.t.over_ms, 0);
}

static void a_short_peak_slows_nobody(void **state) {
    (void)state;
    model m = {.demand = 30 * MB, .takes = 40 * MB, .now_ms = 1000};
    run(&m, 60);
    assert_int_equal(m.t.activations, 0);
    m.held = 10 * MB; /* less than a quarter */
    run(&m, 60);
    assert_int_equal(m.t.activations, 0);
}

static void writers_keep_a_twentieth(void **state) {
    (void)state;
    model m = {.demand = 40 * MB, .takes = 0, .now_ms = 1000};
    run(&m, 20);
    assert_true(m.t.is_active);
    assert_true(m.t.rate == m.t.floor);
    assert_true(m.t.floor > m.demand / 25);
    assert_true(m.t.floor < m.demand / 15);
    assert_true(m.t.floor_periods > 0);
}

static void the_soft_limit_is_waived_for_two_minutes(void **state) {
    (void)state;
    model m = {.demand = 40 * MB, .takes = 0, .now_ms = 1000};
    run(&m, 30);
    assert_true(m.held > (double)limit / 2);
    assert_true(lagThrottleExempts(&m.t, m.now_ms));
    assert_false(lagThrottleExempts(&m.t, m.now_ms + 121000));
    lagThrottleUpdate(&m.t, 0, 0, 0, false, m.now_ms); /* no replica */
    assert_false(m.t.is_active);
    assert_false(lagThrottleExempts(&m.t, m.now_ms));
}

int test_lag_throttle(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_that_takes_a_third_never_reaches_its_limit),
        cmocka_unit_test(it_ends_when_the_replica_has_caught_up),
        cmocka_unit_test(a_short_peak_slows_nobody),
        cmocka_unit_test(writers_keep_a_twentieth),
        cmocka_unit_test(the_soft_limit_is_waived_for_two_minutes),
    };
    return cmocka_run_group_tests_name("lag throttle", tests, NULL, NULL);
}
