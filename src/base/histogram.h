/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A histogram of durations with two significant digits, compatible with HDR histograms: 128 linear
 * steps per power of two. Recording takes about 2 ns. Values above the maximum are counted as the
 * maximum. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_BITS = 8,         /* significant bits */
    HISTOGRAM_MAX = 1000000000, /* one second, in ns */
    HISTOGRAM_BUCKETS = (30 - HISTOGRAM_BITS + 2) << (HISTOGRAM_BITS - 1),
};

typedef struct histogram histogram;
struct histogram {
    uint64_t total;
    uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline int histogramIndex(int64_t value) {
    if (value < 0) value = 0;
    if (value > HISTOGRAM_MAX) value = HISTOGRAM_MAX;
    int bits = 64 - __builtin_clzll((unsigned long long)value | 1);
    int shift = bits > HISTOGRAM_BITS ? bits - HISTOGRAM_BITS : 0;
    return (shift << (HISTOGRAM_BITS - 1)) + (int)(value >> shift);
}

static inline void histogramRecord(histogram *h, int64_t value, uint32_t count) {
    h->total += count;
    h->counts[histogramIndex(value)] += count;
}

/* The highest value that is counted in bucket `index`. */
int64_t histogramHighest(int index);
/* The value at or below which `percent` of the records are, as the highest value of its bucket; 0
 * if empty. */
int64_t histogramPercentile(const histogram *h, double percent);
/* Number of records up to and including the bucket of `value`. */
uint64_t histogramCountUpTo(const histogram *h, int64_t value);

#endif
