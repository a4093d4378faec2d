/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sorting of keys (key_sort.h). ANY_THREAD. */
#define _GNU_SOURCE /* for qsort_r() */
#include "ds/key_sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fiber.h"

enum {
    BYTES = 8,
    VALUES = 256,
    COMPARISON_SORT_MAX = 100, /* fewer keys are sorted faster by comparison */
    CHUNK = 1024,              /* keys between two points of a fiber, ... */
    POINTS = 64,               /* ... which take as long as so many elements */
};

/* Radix sort by `order`, from the lowest byte; stable. */
static void sortByOrder(sortKey *keys, size_t count) {
    hotCheck(count > 1);
    size_t ends[BYTES][VALUES] = {{0}};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < BYTES; k++) ends[k][keys[i].order >> 8 * k & 255]++;
        if (i % CHUNK == CHUNK - 1) (void)fiberPoint(POINTS); /* half sorted keys are of no use */
    }
    sortKey *from = keys, *spare = memNewArray(sortKey, count), *to = spare;
    for (size_t k = 0; k < BYTES; k++) {
        if (ends[k][keys[0].order >> 8 * k & 255] == count)
            continue; /* all keys have the same byte */
        size_t place = 0;
        for (size_t value = 0; value < VALUES; value++) {
            size_t some = ends[k][value];
            ends[k][value] = place;
            place += some;
        }
        for (size_t i = 0; i < count; i++) {
            to[ends[k][from[i].order >> 8 * k & 255]++] = from[i];
            if (i % CHUNK == CHUNK - 1) (void)fiberPoint(POINTS);
        }
        sortKey *kept = from;
        from = to;
        to = kept;
    }
    for (size_t i = 0; from != keys && i < count; i += CHUNK) {
        memcpy(keys + i, from + i, (count - i < CHUNK ? count - i : CHUNK) * sizeof(*keys));
        (void)fiberPoint(POINTS);
    }
    memFree(spare);
}

void keySort(sortKey *keys, size_t count, keyCompareProc *compare, void *context) {
    if (count < COMPARISON_SORT_MAX) {
        if (count > 1) qsort_r(keys, count, sizeof(*keys), compare, context);
        return;
    }
    sortByOrder(keys, count);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && keys[end].order == keys[i].order;) end++;
        if (end - i > 1) qsort_r(keys + i, end - i, sizeof(*keys), compare, context);
        if (i / CHUNK != end / CHUNK) (void)fiberPoint(POINTS);
    }
}
