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

/* How often per second the cron runs now. */
int tickHz(void);
/* Asks for the rate once before each run; it is what `draw` returns, at least 1. Set before the
 * first run: by the server to its directive; Sentinel draws a random one each time, so that several
 * of them do not act at the same moment. */
typedef int tickHzProc(void);
void tickSetHzProc(tickHzProc *draw);
int tickDrawHz(void);

#endif
