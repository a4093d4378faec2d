/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fenwick tree: an array of counts that answers "how many before here" and "who holds the n-th" in
 * O(log n) steps. 8 bytes per count. Not thread-safe: the owner locks or is alone. */
#ifndef DS_FENWICK_H
#define DS_FENWICK_H

#include <stddef.h>
#include <stdint.h>

typedef struct fenwick {
    uint64_t *node; /* partial sums; see fenwick.c */
    size_t count;
    uint64_t total; /* sum of all counts */
} fenwick;

/* `count` counts of zero. */
void fenwickInit(fenwick *f, size_t count);
void fenwickClear(fenwick *f);
/* Adds `delta` to count `index`; no count may fall below zero. */
void fenwickAdd(fenwick *f, size_t index, int64_t delta);
/* Sum of the counts before `index`; index may be `count`, for all. */
uint64_t fenwickSumBefore(const fenwick *f, size_t index);
/* Count `index` itself. */
uint64_t fenwickGet(const fenwick *f, size_t index);
/* The index whose count holds number `rank` (0..total-1) when all are laid end to end; `*rest`,
 * if not NULL, receives the number within that count. */
size_t fenwickFind(const fenwick *f, uint64_t rank, uint64_t *rest);
/* The first index at or after `index` whose count is not zero, or `count` when there is none. */
size_t fenwickNext(const fenwick *f, size_t index);
/* Bytes of memory behind the tree. */
size_t fenwickBytes(const fenwick *f);

#endif
