/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histogram of sizes (size_histogram.h). */
#include "tools/size_histogram.h"

#include <string.h>

#include "base/alloc.h"

enum { BITS = 11 }; /* 2^11 steps distinguish three digits */

static uint32_t indexOf(uint64_t size) {
    int bits = 64 - __builtin_clzll(size | 1);
    int shift = bits > BITS ? bits - BITS : 0;
    return ((uint32_t)shift << (BITS - 1)) + (uint32_t)(size >> shift);
}

static uint64_t highestAt(uint32_t index) {
    uint32_t half = 1u << (BITS - 1);
    if (index < 2 * half) return index;
    uint32_t shift = index / half - 1;
    uint64_t step = index - shift * half;
    return ((step + 1) << shift) - 1;
}

void sizeHistogramRecord(sizeHistogram *h, uint64_t size) {
    uint32_t at = indexOf(size);
    if (at >= h->len) {
        uint32_t len = at + 1;
        h->counts = memRealloc(h->counts, len * sizeof(*h->counts));
        memset(h->counts + h->len, 0, (len - h->len) * sizeof(*h->counts));
        h->len = len;
    }
    h->counts[at]++;
    h->total++;
    h->sum += size;
    if (size > h->max) h->max = size;
}

uint64_t sizeHistogramPercentile(const sizeHistogram *h, double percent) {
    uint64_t wanted = (uint64_t)(percent / 100 * (double)h->total + 0.5), seen = 0;
    if (wanted == 0) wanted = 1;
    for (uint32_t i = 0; i < h->len; i++) {
        seen += h->counts[i];
        if (seen >= wanted) return highestAt(i);
    }
    return 0;
}

void sizeHistogramFree(sizeHistogram *h) {
    memFree(h->counts);
    *h = (sizeHistogram){0};
}
