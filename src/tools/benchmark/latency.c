/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Latencies in an HDR histogram; see the header.
 *
 * Bucket `i` below 2^SUB_BITS counts the values i << unit_bits; above, each power of two has half
 * as many buckets of twice the width of the one before. */
#include "tools/benchmark/latency.h"

#include <math.h>
#include <string.h>

enum { HALF = 1 << (LATENCY_SUB_BITS - 1) };

void latencyInit(latency *l, int unit_bits) {
    memset(l, 0, sizeof(*l));
    l->unit_bits = unit_bits;
}

/* Number of times that the width of `value` (in units) was doubled. */
static int shiftOf(uint64_t value) {
    int bits = 64 - __builtin_clzll(value | 1);
    int shift = bits > LATENCY_SUB_BITS ? bits - LATENCY_SUB_BITS : 0;
    return shift < LATENCY_SHIFT_MAX ? shift : LATENCY_SHIFT_MAX;
}

static int indexOf(const latency *l, int64_t us) {
    uint64_t value = us > 0 ? (uint64_t)us >> l->unit_bits : 0;
    uint64_t most = ((uint64_t)1 << (LATENCY_SUB_BITS + LATENCY_SHIFT_MAX)) - 1;
    if (value > most) value = most;
    int shift = shiftOf(value);
    return shift * HALF + (int)(value >> shift);
}

static int shiftOfIndex(int index) { return index < 2 * HALF ? 0 : index / HALF - 1; }

static int64_t lowestOfIndex(const latency *l, int index) {
    int shift = shiftOfIndex(index);
    return (int64_t)(index - shift * HALF) << (shift + l->unit_bits);
}

static int64_t widthOfIndex(const latency *l, int index) {
    return (int64_t)1 << (shiftOfIndex(index) + l->unit_bits);
}

void latencyRecord(latency *l, int64_t us, uint64_t count) {
    l->counts[indexOf(l, us)] += count;
    l->total += count;
}

void latencyAdd(latency *l, const latency *other) {
    for (int i = 0; i < LATENCY_BUCKETS; i++) l->counts[i] += other->counts[i];
    l->total += other->total;
}

int64_t latencyHighest(const latency *l, int64_t us) {
    int index = indexOf(l, us);
    return lowestOfIndex(l, index) + widthOfIndex(l, index) - 1;
}

void latencyWalkInit(latencyWalk *w, const latency *l) { *w = (latencyWalk){.of = l, .index = -1}; }

bool latencyWalkNext(latencyWalk *w) {
    const latency *l = w->of;
    if (w->cumulative == l->total) return false;
    do w->index++;
    while (l->counts[w->index] == 0);
    w->count = l->counts[w->index];
    w->cumulative += w->count;
    w->highest = lowestOfIndex(l, w->index) + widthOfIndex(l, w->index) - 1;
    return true;
}

int64_t latencyMin(const latency *l) {
    latencyWalk w;
    latencyWalkInit(&w, l);
    return latencyWalkNext(&w) ? lowestOfIndex(l, w.index) : 0;
}

int64_t latencyMax(const latency *l) {
    latencyWalk w;
    latencyWalkInit(&w, l);
    while (latencyWalkNext(&w)) {}
    return w.highest;
}

double latencyMean(const latency *l) {
    latencyWalk w;
    double sum = 0;
    latencyWalkInit(&w, l);
    while (latencyWalkNext(&w))
        sum += (double)w.count *
               ((double)lowestOfIndex(l, w.index) + (double)(widthOfIndex(l, w.index) >> 1));
    return l->total ? sum / (double)l->total : 0;
}

int64_t latencyPercentile(const latency *l, double percent) {
    latencyWalk w;
    uint64_t rank = (uint64_t)(percent / 100 * (double)l->total + 0.5);
    if (rank < 1) rank = 1;
    latencyWalkInit(&w, l);
    while (latencyWalkNext(&w)) {
        if (w.cumulative >= rank) break;
    }
    return w.highest;
}
