/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Periodic jobs of all features. A job that is overdue runs once, not several times. Main thread only. */
#include "engine/tick.h"

#include "base/base.h"
#include "engine/hooks_priv.h"

enum { JOBS_MAX = 64 };

static bool ticks_paused;

void ticksSetPaused(bool paused) { ticks_paused = paused; }

bool ticksArePaused(void) { return ticks_paused; }

void ticksRun(int64_t turn_us) {
    if (ticks_paused) return;
    static int64_t next_ms[JOBS_MAX]; /* in the order of the features' lists */
    int64_t now = clockMonoMs();
    int index = 0;
    for (int i = 0; i < hooksFeatureCount(); i++) {
        const tickJob *job = hooksFeature(i)->ticks;
        for (; job && job->run; job++, index++) {
            check(index < JOBS_MAX);
            if (job->period_ms && now < next_ms[index]) continue;
            next_ms[index] = now + job->period_ms;
            job->run(turn_us);
        }
    }
}
