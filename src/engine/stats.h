/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of the engine: commands, errors, latencies, rates. Main thread only. */
#ifndef ENGINE_STATS_H
#define ENGINE_STATS_H

#include <stdint.h>

#include "base/slice.h"

/* Counts an error reply with that code ("ERR", "WRONGTYPE"). */
void statsCountError(slice code);
/* The same for a code that a script has made up: only a limited number of these is listed. */
void statsCountScriptError(slice code);
/* Counts an error of a command that was expected to succeed: from our primary or the AOF. */
void statsCountUnexpectedError(void);
/* CONFIG RESETSTAT: resets the counters of all features. */
void statsReset(void);

/* Time of the turns of the main loop without their sleeps, in us; of finished turns, and never
 * reset. */
void statsAddBusy(uint64_t us);
uint64_t statsBusyUs(void);

/* A rate over the last 1.5 seconds, sampled by the cron. */
typedef struct rate {
    uint64_t last_count;
    int64_t last_us;
    uint64_t samples[16];
    int next;
} rate;
/* Samples the current value of an increasing counter. */
void rateSample(rate *r, uint64_t count, int64_t now_us);
/* Mean of the samples, per second. */
uint64_t ratePerSecond(const rate *r);

#endif
