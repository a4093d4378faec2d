/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Periodic jobs of all features, run by the cron timer. Main thread only. */
#ifndef ENGINE_TICK_H
#define ENGINE_TICK_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the jobs that are due. `turn_us` is the time budget passed to each. */
void ticksRun(int64_t turn_us);
/* True if a job must run at its usual times even if nothing happens. */
bool ticksAreBusy(void);
/* While paused ticksRun() does nothing, for tests. */
void ticksSetPaused(bool paused);
bool ticksArePaused(void);

#endif
