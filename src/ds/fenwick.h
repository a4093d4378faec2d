/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fenwick tree: an array of counts with O(log n) prefix sums and search by rank. 8 bytes per count.
 * Not thread-safe: one owner at a time. */
#ifndef DS_FENWICK_H
#define DS_FENWICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fenwick {
    uint64_t *node; /* partial sums; see fenwick.c */
    size_t count;
    uint64_t total; /* sum of all counts */
} fenwick;

/* Initialises `count` counts with zero. */
void fenwickInit(fenwick *f, size_t count);
void fenwickClear(fenwick *f);
/* Adds `delta` to count `index`; a count must not become negative. */
void fenwickAdd(fenwick *f, size_t index, int64_t delta);
/* Sum of the counts before `index`, which may be `count`. */
uint64_t fenwickSumBefore(const fenwick *f, size_t index);
/* Count `index` itself. */
uint64_t fenwickGet(const fenwick *f, size_t index);
/* The index whose count contains item number `rank` (0..total-1) if all items are numbered in
 * order. If `rest` is not NULL, *rest is set to the item's number within that count. */
size_t fenwickFind(const fenwick *f, uint64_t rank, uint64_t *rest);
/* The first index at or after `index` with a non-zero count, or `count` if there is none. */
size_t fenwickNext(const fenwick *f, size_t index);
/* Moves the counts to denser pages (memMoveIfSparse()); true if they were moved. */
bool fenwickCompact(fenwick *f);
/* Memory of the tree in bytes. */
size_t fenwickBytes(const fenwick *f);

#endif
