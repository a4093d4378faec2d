/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Periodic jobs of all wings, run by the roof's cron timer. Main thread only. */
#ifndef ENGINE_TICK_H
#define ENGINE_TICK_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the jobs that are due. `turn_us` is how long a turn of jobs may take in all. */
void ticksRun(int64_t turn_us);
/* While paused ticksRun() does nothing (tests that want nothing to happen by itself). */
void ticksSetPaused(bool paused);
bool ticksArePaused(void);

#endif
