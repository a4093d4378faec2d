/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Computes the rate to which writers are limited while a replica lags (lag_throttle.h).
 *
 * Invariant: while the throttle is active, the rate is not below the floor, and the floor is
 * positive. */
#include "repl/lag_throttle.h"

#include "base/base.h"

enum {
    START_PERCENT = 25, /* of the limit */
    TARGET_PERCENT = 50,
    AHEAD_S = 30,
    QUIET_PERIODS = 10,
    EXEMPT_MS = 120 * 1000,
    FLOOR_PART = 20,
};
static const double STEP = 0.05, WEIGHT = 0.2, PERIODS = 1000.0 / THROTTLE_PERIOD_MS;

void lagThrottleStop(lagThrottle *t) {
    t->is_active = false;
    t->quiet = 0;
    t->over_ms = 0;
}

static void begin(lagThrottle *t, double now) {
    hotCheck(!t->is_active);
    t->is_active = true;
    t->activations++;
    t->rate = t->produced > now ? t->produced : now;
    if (t->rate < FLOOR_PART) t->rate = FLOOR_PART;
    t->floor = t->rate / FLOOR_PART;
    hotCheck(t->floor >= 1);
    t->quiet = 0;
}

/* Above the target writers get less than the replica takes: steps of 5 % would be too slow if the
 * limit is what is written in a second or two. */
static void adjust(lagThrottle *t, bool grows, bool is_over) {
    hotCheck(t->is_active);
    hotCheck(t->floor > 0);
    double takes = t->produced - t->growth;
    t->rate *= grows ? 1 - STEP : 1 + STEP;
    if (is_over && t->rate > takes * (1 - STEP)) t->rate = takes * (1 - STEP);
    if (grows) {
        t->more++;
    } else {
        t->less++;
    }
    if (t->rate > t->floor) return;
    t->rate = t->floor;
    t->floor_periods++;
    hotCheck(t->rate > 0);
}

void lagThrottleUpdate(lagThrottle *t, size_t held, size_t limit, size_t produced, bool was_limited,
                       int64_t now_ms) {
    hotCheck(now_ms > 0);
    double change = ((double)held - (double)t->held) * PERIODS;
    t->held = held;
    t->produced += ((double)produced * PERIODS - t->produced) * WEIGHT;
    t->growth += (change - t->growth) * WEIGHT;
    if (!limit) {
        lagThrottleStop(t);
        return;
    }
    double part = (double)limit / 100, target = part * TARGET_PERCENT;
    bool grows = (double)held + t->growth * AHEAD_S > target;
    bool starts = (double)held >= part * START_PERCENT;
    if ((double)held <= target) {
        t->over_ms = 0;
    } else if (!t->over_ms) {
        t->over_ms = now_ms;
    }
    if (!t->is_active) {
        if (starts && grows) begin(t, (double)produced * PERIODS);
        return;
    }
    adjust(t, grows, (double)held > target);
    hotCheck(t->rate >= t->floor);
    t->quiet = was_limited || grows || starts ? 0 : t->quiet + 1;
    if (t->quiet >= QUIET_PERIODS) lagThrottleStop(t);
}

bool lagThrottleExempts(const lagThrottle *t, int64_t now_ms) {
    return t->is_active && t->over_ms && now_ms - t->over_ms < EXEMPT_MS;
}
