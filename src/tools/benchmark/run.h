/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a workload: threads with an event loop each, their clients, and the figures they collect. */
#ifndef TOOLS_BENCHMARK_RUN_H
#define TOOLS_BENCHMARK_RUN_H

#include <stdint.h>

#include "tools/benchmark/keys.h"
#include "tools/benchmark/latency.h"
#include "tools/benchmark/target.h"
#include "tools/benchmark/workload.h"

enum { RATE_SAMPLES_MAX = 4096 };

/* What a run measured. */
typedef struct runResult {
    int64_t requests;
    int64_t elapsed_ms;
    double seconds;
    latency latencies;
    double rates[RATE_SAMPLES_MAX]; /* requests per second in each interval of the progress line */
    int rate_count;
} runResult;

/* Runs until the number of requests or the time of the options is reached. Shows its progress on a
 * terminal, unless the output is CSV or `silent`. Replies with errors end the program. The caller
 * frees the result with memFree(). */
runResult *runWorkload(const benchOptions *o, const target *t, const workload *w, bool silent);
/* Opens the connections and waits forever. */
void runIdle(const benchOptions *o, const target *t);

#endif
