/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Evaluation of histograms. O(buckets) per call; not used on a hot path. */
#include "base/histogram.h"

#include "base/assert.h"

_Static_assert(HISTOGRAM_MAX < 1 << 30, "indexes fit the buckets");

int64_t histogramHighest(int index) {
    check(index >= 0);
    check(index < HISTOGRAM_BUCKETS);
    const int half = 1 << (HISTOGRAM_BITS - 1);
    int shift = index < 2 * half ? 0 : index / half - 1;
    int64_t low = (int64_t)(index - shift * half) << shift;
    return low + ((int64_t)1 << shift) - 1;
}

int64_t histogramPercentile(const histogram *h, double percent) {
    hotCheck(percent <= 100);
    if (h->total == 0) return 0;
    uint64_t want = (uint64_t)(percent / 100 * (double)h->total + 0.5);
    if (want < 1) want = 1;
    uint64_t seen = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen >= want) return histogramHighest(i);
    }
    hotCheck(seen == h->total);
    return HISTOGRAM_MAX;
}

uint64_t histogramCountUpTo(const histogram *h, int64_t value) {
    uint64_t seen = 0;
    int last = histogramIndex(value);
    for (int i = 0; i <= last; i++) seen += h->counts[i];
    hotCheck(seen <= h->total);
    return seen;
}
