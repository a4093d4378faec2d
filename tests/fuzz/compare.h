/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For fuzzers that compare two runs over the same input: lengths of pieces that depend on nothing
 * else, and a hash of what a run has produced. */
#ifndef FUZZ_COMPARE_H
#define FUZZ_COMPARE_H

#include <stddef.h>
#include <stdint.h>

static uint64_t random_state; /* not 0 */

static size_t randomBelow(size_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % n);
}

/* FNV-1a */
static void mix(uint64_t *hash, const void *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ULL;
}

#endif
