/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Periodic jobs of all features. A job that is overdue runs once, not several times. Main thread
 * only. */
#include "engine/tick.h"

#include "base/base.h"
#include "engine/hooks_priv.h"

/* When a job is due; in the order of the features' lists. */
typedef struct dueTime {
    const tickJob *job; /* another one at its place: a feature came or went */
    int64_t next_ms;
} dueTime;

static bool ticks_paused;

static struct {
    tickHzProc *draw;
    int hz;
} rate_now = {.hz = 10};

int tickHz(void) { return rate_now.hz; }

void tickSetHzProc(tickHzProc *draw) { rate_now.draw = draw; }

int tickDrawHz(void) {
    if (rate_now.draw) rate_now.hz = rate_now.draw();
    check(rate_now.hz > 0);
    return rate_now.hz;
}

void ticksSetPaused(bool paused) { ticks_paused = paused; }

bool ticksArePaused(void) { return ticks_paused; }

void ticksRun(int64_t turn_us) {
    hotCheck(threadIsMain());
    if (ticks_paused) return;
    static dueTime *due;
    static int cap;
    int64_t now = clockMonoMs();
    int index = 0;
    for (int i = 0; i < hooksFeatureCount(); i++) {
        const tickJob *job = hooksFeature(i)->ticks;
        for (; job && job->run; job++, index++) {
            if (index == cap) {
                due = memRealloc(due, (size_t)(cap + 1) * sizeof(*due));
                due[cap++] = (dueTime){NULL, 0};
            }
            if (due[index].job != job) due[index] = (dueTime){job, 0};
            if (job->period_ms && now < due[index].next_ms) continue;
            due[index].next_ms = now + job->period_ms;
            job->run(turn_us);
        }
    }
}

bool ticksAreBusy(void) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        const tickJob *job = hooksFeature(i)->ticks;
        for (; job && job->run; job++) {
            if (job->is_busy && job->is_busy()) return true;
        }
    }
    return false;
}
