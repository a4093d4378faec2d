/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Latencies in an HDR histogram: three significant digits, from a lowest unit that is a power of
 * two microseconds. */
#ifndef TOOLS_BENCHMARK_LATENCY_H
#define TOOLS_BENCHMARK_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LATENCY_SUB_BITS = 11, /* 2048 linear steps, then half of that per power of two */
    LATENCY_SHIFT_MAX = 20,
    LATENCY_BUCKETS = (LATENCY_SHIFT_MAX + 2) << (LATENCY_SUB_BITS - 1),
    /* Resolution of the reports that have Valkey's form: 8 us. */
    LATENCY_UNIT_VALKEY = 3,
    /* 1 us. */
    LATENCY_UNIT_FINE = 0,
};

typedef struct latency {
    int unit_bits;
    uint64_t total;
    uint64_t counts[LATENCY_BUCKETS];
} latency;

void latencyInit(latency *l, int unit_bits);
void latencyRecord(latency *l, int64_t us, uint64_t count);
void latencyAdd(latency *l, const latency *other);
/* The highest value that is counted with `us`, in microseconds. */
int64_t latencyHighest(const latency *l, int64_t us);
/* In microseconds; 0 if it is empty. */
int64_t latencyMin(const latency *l);
int64_t latencyMax(const latency *l);
double latencyMean(const latency *l);
int64_t latencyPercentile(const latency *l, double percent);

/* A walk over the buckets that have counts. */
typedef struct latencyWalk {
    const latency *of;
    int index;
    int64_t highest; /* of the current bucket, in us */
    uint64_t count, cumulative;
} latencyWalk;
void latencyWalkInit(latencyWalk *w, const latency *l);
/* Moves to the next bucket that has counts; false at the end. */
bool latencyWalkNext(latencyWalk *w);

#endif
