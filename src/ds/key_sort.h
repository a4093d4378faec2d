/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorting of keys that mostly differ in their first 64 bits: radix sort in O(n), with comparisons
 * only among keys whose 64 bits are equal. ANY_THREAD. */
#ifndef DS_KEY_SORT_H
#define DS_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sortKey {
    uint64_t order;
    union { /* for the caller */
        size_t index;
        void *entry;
    };
} sortKey;

/* As for qsort_r(): compares `order` first, then what else distinguishes the keys. */
typedef int keyCompareProc(const void *a, const void *b, void *context);
void keySort(sortKey *keys, size_t count, keyCompareProc *compare, void *context);

#endif
