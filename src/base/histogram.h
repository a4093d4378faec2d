/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A histogram of durations with two significant digits, as HDR histograms keep them: 128 linear steps per
 * power of two. Records in about 2 ns; values over the greatest are counted as the greatest. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_BITS = 8,         /* significant bits kept */
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

/* The greatest value that falls into the same step as `value`. */
int64_t histogramHighest(int index);
/* The value at or below which `percent` of the records lie, as the highest of its step; 0 when empty. */
int64_t histogramPercentile(const histogram *h, double percent);
/* Records at most `value`'s step. */
uint64_t histogramCountUpTo(const histogram *h, int64_t value);

#endif
