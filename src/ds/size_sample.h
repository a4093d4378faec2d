/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sum of the sizes of many items that are added, change and are removed, with bounded memory:
 * threshold sampling. Up to some 32,000 items the sum is exact; beyond, it is an estimate without
 * bias, with a standard deviation of at most 1/128 of the largest sum so far. An item is known by a
 * hash; the sum depends only on the items' present sizes, so errors do not accumulate. Not
 * thread-safe. */
#ifndef DS_SIZE_SAMPLE_H
#define DS_SIZE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sizeSampleItem {
    uint64_t hash;
    uint64_t size; /* 0: an unused place */
    uint32_t group;
} sizeSampleItem;

/* All zero: an empty sample. Fields are private. */
typedef struct sizeSample {
    sizeSampleItem *items;
    size_t cap, count;
    unsigned shift; /* the threshold is 1 << shift */
    uint64_t sum;
} sizeSample;

void sizeSampleClear(sizeSample *s);
/* An item has `size` now; 0: it was removed. `hash` must be a good 64-bit hash of the item within
 * its group (a database). Cost: one cache miss, amortised. */
void sizeSampleSet(sizeSample *s, uint32_t group, uint64_t hash, uint64_t size);
/* Removes all items of a group. Cost: a walk over the sample. */
void sizeSampleRemoveGroup(sizeSample *s, uint32_t group);
static inline uint64_t sizeSampleSum(const sizeSample *s) { return s->sum; }
/* Memory in bytes, at most 1.5 MB. */
size_t sizeSampleBytes(const sizeSample *s);
/* Visits the sampled items: returns the next one from the place `*at` (0 at first) on and moves
 * `*at` behind it; false at the end. If the sample is changed between calls, items may be missed or
 * visited twice. */
bool sizeSampleNext(const sizeSample *s, size_t *at, sizeSampleItem *out);

#endif
