/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of keys by type and by prefix, estimated from a sample, for MEMORY EXPLAIN and the
 * status page. A key costs 1 to 2 us, whatever its size. Main thread only. */
#ifndef STORE_MEMORY_SAMPLE_H
#define STORE_MEMORY_SAMPLE_H

#include <stdint.h>

enum { MEMORY_GROUPS_MAX = 200, MEMORY_GROUP_NAME_MAX = 40 };

/* A group of sampled keys. */
typedef struct memoryGroup {
    char name[MEMORY_GROUP_NAME_MAX + 1];
    uint64_t keys;
    double bytes, bytes_squared; /* sums over the sample */
} memoryGroup;

typedef struct memoryGroups {
    memoryGroup list[MEMORY_GROUPS_MAX + 1]; /* the last one collects keys that do not fit */
    int count;
} memoryGroups;

typedef struct memorySample {
    memoryGroups kinds;    /* by type and encoding */
    memoryGroups prefixes; /* up to the first separator; printable */
    uint64_t seen, timed;  /* keys in the sample; those with an expiry time */
    double bytes;          /* of the sample */
} memorySample;

/* Adds about `samples` keys of all databases, or all if there are fewer, to `out`, which the caller
 * has set to zero (some 25 KB). */
void memorySampleRead(uint64_t samples, memorySample *out);
/* Sorts by bytes, largest first; returns the number of groups, the one of all others included. */
int memoryGroupsSort(memoryGroups *groups);

#endif
