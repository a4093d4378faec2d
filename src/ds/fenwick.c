/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fenwick tree: prefix sums over an array of counts.
 *
 * Counting from 1, node i holds the sum of the (i & -i) counts that end at count i. It is stored in
 * node[i - 1], so that 16,384 counts take exactly 128 KB. Invariant: `total` is the sum of all
 * counts. Update and search take O(log n) steps. Not thread-safe. */
#include "ds/fenwick.h"

#include "base/alloc.h"
#include "base/assert.h"

/* The lowest set bit of `i`: the number of counts covered by node i. */
static size_t coveredBy(size_t i) { return i & (~i + 1); }

void fenwickInit(fenwick *f, size_t count) {
    check(count > 0);
    f->node = memNewArray(uint64_t, count);
    f->count = count;
    f->total = 0;
}

void fenwickClear(fenwick *f) {
    memFree(f->node);
    f->node = NULL;
    f->count = 0;
    f->total = 0;
}

void fenwickAdd(fenwick *f, size_t index, int64_t delta) {
    hotCheck(index < f->count);
    if (delta < 0) hotCheck(fenwickGet(f, index) >= (uint64_t)-delta);
    /* With a negative delta, unsigned wrap-around subtracts. */
    for (size_t i = index + 1; i <= f->count; i += coveredBy(i)) f->node[i - 1] += (uint64_t)delta;
    f->total += (uint64_t)delta;
    hotCheck(fenwickSumBefore(f, f->count) == f->total);
}

uint64_t fenwickSumBefore(const fenwick *f, size_t index) {
    hotCheck(index <= f->count);
    uint64_t sum = 0;
    for (size_t i = index; i > 0; i -= coveredBy(i)) sum += f->node[i - 1];
    return sum;
}

uint64_t fenwickGet(const fenwick *f, size_t index) {
    hotCheck(index < f->count);
    uint64_t sum = f->node[index];
    /* The other counts covered by node index + 1 are also covered by the nodes before it. */
    size_t start = index + 1 - coveredBy(index + 1);
    for (size_t i = index; i > start; i -= coveredBy(i)) sum -= f->node[i - 1];
    return sum;
}

size_t fenwickFind(const fenwick *f, uint64_t rank, uint64_t *rest) {
    check(rank < f->total);
    size_t before = 0;
    size_t step = (size_t)1 << (63 - __builtin_clzll((unsigned long long)f->count));
    for (; step > 0; step >>= 1) {
        size_t next = before + step;
        if (next <= f->count && f->node[next - 1] <= rank) {
            before = next;
            rank -= f->node[next - 1];
        }
    }
    hotCheck(before < f->count);
    hotCheck(rank < fenwickGet(f, before));
    if (rest) *rest = rank;
    return before;
}

size_t fenwickNext(const fenwick *f, size_t index) {
    hotCheck(f->node || f->count == 0);
    if (index >= f->count) return f->count;
    uint64_t before = fenwickSumBefore(f, index);
    return before == f->total ? f->count : fenwickFind(f, before, NULL);
}

bool fenwickCompact(fenwick *f) {
    if (!f->node) return false;
    uint64_t *moved = memMoveIfSparse(f->node);
    if (moved) f->node = moved;
    return moved != NULL;
}

size_t fenwickBytes(const fenwick *f) { return f->node ? memSizeOf(f->node) : 0; }
