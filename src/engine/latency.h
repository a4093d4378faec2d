/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The latency monitor: the most recent samples of each kind of event that took at least
 * latency-monitor-threshold, at most one per second. Main thread only. */
#ifndef ENGINE_LATENCY_H
#define ENGINE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { LATENCY_SAMPLES_MAX = 160 };

typedef struct latencySample {
    int64_t time_s; /* 0: unused */
    int64_t ms;     /* maximum within that second */
} latencySample;

/* `next` is the index of the next sample, and of the oldest one if all are in use. */
typedef struct latencyEvent {
    const char *name;
    int next;
    int64_t max_ms, sum_ms, count; /* of all spikes since the first one or the last reset */
    latencySample samples[LATENCY_SAMPLES_MAX];
} latencyEvent;

/* Records an event that took `ms`, unless that is below the threshold or the monitor is off. `name`
 * is a literal. */
void latencyNote(const char *name, int64_t ms);
/* The threshold in ms; 0: the monitor is off. */
int64_t latencyThreshold(void);

/* NULL if there are no samples with that name. */
const latencyEvent *latencyFind(slice name);
int latencyEventCount(void);
/* In the order of first occurrence. */
const latencyEvent *latencyEventAt(int index);
/* Resets one event, or all if `name.ptr` is NULL. Returns the number of events reset. */
int latencyReset(slice name);

#endif
