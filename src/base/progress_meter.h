/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rate and remaining time of a long operation, for INFO and for a line in the log each few seconds.
 * The unit of what is done is the caller's, times are those of clockMonoMs(). ANY_THREAD. */
#ifndef BASE_PROGRESS_METER_H
#define BASE_PROGRESS_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct progressMeter {
    int64_t began_ms, reported_ms;
} progressMeter;

/* The operation begins. */
void progressMeterBegin(progressMeter *m, int64_t now_ms);
/* True if a line is to be logged now: 5 seconds after the begin, or after the last time this
 * returned true. */
bool progressMeterIsDue(progressMeter *m, int64_t now_ms);
/* Average since the begin; 0 in the first millisecond. */
int64_t progressMeterPerSecond(const progressMeter *m, int64_t done, int64_t now_ms);
/* Seconds until `total` is done, at the average rate; -1: unknown, because the total (0 or less) or
 * the rate is. */
int64_t progressMeterSecondsLeft(const progressMeter *m, int64_t done, int64_t total,
                                 int64_t now_ms);
/* Appends "1.50G of 4.00G (37 %), 120.00M/s, about 21 seconds left", or what is known of it. The
 * unit is bytes. */
void progressMeterDescribe(const progressMeter *m, int64_t done, int64_t total, int64_t now_ms,
                           str *out);

#endif
