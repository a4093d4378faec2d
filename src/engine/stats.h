/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of the engine: commands, errors, latencies, samples per second. Main thread only. */
#ifndef ENGINE_STATS_H
#define ENGINE_STATS_H

#include <stdint.h>

#include "base/slice.h"

/* One error reply with that code ("ERR", "WRONGTYPE"). */
void statsCountError(slice code);
/* One error of a command that was expected to succeed: from our primary or the AOF. */
void statsCountUnexpectedError(void);
/* CONFIG RESETSTAT: everything countable goes back to zero, in every wing. */
void statsReset(void);

/* A rate over the last second and a half, sampled by the cron. */
typedef struct rate {
    uint64_t last_count;
    int64_t last_us;
    uint64_t samples[16];
    int next;
} rate;
/* Takes the present value of a growing counter. */
void rateSample(rate *r, uint64_t count, int64_t now_us);
/* Mean of the samples, per second. */
uint64_t ratePerSecond(const rate *r);

#endif
