/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The latency monitor: for each kind of event that took latency-monitor-threshold or longer, the last samples, at
 * most one a second. Main thread only. */
#ifndef ENGINE_LATENCY_H
#define ENGINE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { LATENCY_SAMPLES_MAX = 160 };

typedef struct latencySample {
    int64_t time_s; /* 0: none */
    int64_t ms;     /* the longest of that second */
} latencySample;

/* `next` is where the next sample goes, and where the oldest one stands when all are in use. */
typedef struct latencyEvent {
    const char *name;
    int next;
    int64_t max_ms, sum_ms, count; /* of all spikes since the event was first seen or reset */
    latencySample samples[LATENCY_SAMPLES_MAX];
} latencyEvent;

/* An event took `ms`. Below the threshold, or without one, nothing happens. `name` is a literal. */
void latencyNote(const char *name, int64_t ms);
/* The threshold in ms; 0: the monitor is off. */
int64_t latencyThreshold(void);

/* NULL: no samples of that name. */
const latencyEvent *latencyFind(slice name);
int latencyEventCount(void);
/* In order of first sight. */
const latencyEvent *latencyEventAt(int index);
/* Forgets one event, or all without a `name.ptr`. Returns how many went. */
int latencyReset(slice name);

#endif
