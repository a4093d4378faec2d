/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorting of keys that are mostly told apart by 64 bits: those are sorted digit by digit, in O(n), and only keys with
 * the same ones are compared. ANY_THREAD. */
#ifndef DS_KEY_SORT_H
#define DS_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct sortKey {
    uint64_t order;
    union { /* the caller's */
        size_t index;
        void *entry;
    };
} sortKey;

/* As qsort() wants it: by `order` first, then by whatever tells keys apart. */
typedef int keyCompareProc(const void *a, const void *b);
void keySort(sortKey *keys, size_t count, keyCompareProc *compare);

#endif
