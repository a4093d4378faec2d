/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A histogram of sizes with three significant digits over the range of 63 bits, compatible with HDR
 * histograms: 1,024 linear steps per power of two from 2,048 on. The array grows to the largest
 * size recorded. One thread. */
#ifndef TOOLS_SIZE_HISTOGRAM_H
#define TOOLS_SIZE_HISTOGRAM_H

#include <stdint.h>

typedef struct sizeHistogram {
    uint64_t *counts;
    uint32_t len;
    uint64_t total, sum, max;
} sizeHistogram;

void sizeHistogramRecord(sizeHistogram *h, uint64_t size);
/* The size at or below which `percent` of the records are, as the highest size of its step; 0 if
 * empty. */
uint64_t sizeHistogramPercentile(const sizeHistogram *h, double percent);
void sizeHistogramFree(sizeHistogram *h);

#endif
