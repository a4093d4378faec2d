/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of radix trees, private to radix_tree.c and radix_cursor.c.
 *
 *   [header: 8] [keys] [prefix] [word of a value: 8, if there is one] [word of each child: 8]
 *
 * The prefix is what all paths below have in common; a child follows one byte, its key. Up to
 * RADIX_KEYS_MAX keys are a sorted list, more are a bitmap of 256. The value is the leaf of the
 * path that ends here; its rest is empty. A word is the address of a node, or that of a leaf plus
 * 1. Invariant: a node has at least one child, and two words. */
#ifndef DS_RADIX_NODE_H
#define DS_RADIX_NODE_H

#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "ds/radix_tree.h"

enum { RADIX_KEYS_MAX = 32, RADIX_BITMAP_BYTES = 32, RADIX_CHILDREN_MAX = 256 };
enum { RADIX_HEADER = 8, RADIX_VALUE_BIT = 1 << 9, RADIX_COUNT_MASK = RADIX_VALUE_BIT - 1 };

static inline uint64_t radixWord(const char *place) { return loadU64(place); }
static inline bool radixIsLeaf(uint64_t word) { return word & 1; }
static inline void *radixLeafOf(uint64_t word) { return (void *)(uintptr_t)(word & ~UINT64_C(1)); }
static inline char *radixNodeOf(uint64_t word) { return (char *)(uintptr_t)word; }

static inline size_t radixChildren(const char *node) { return loadU16(node) & RADIX_COUNT_MASK; }
static inline bool radixHasValue(const char *node) { return loadU16(node) & RADIX_VALUE_BIT; }
static inline size_t radixKeysBytes(size_t children) {
    return children > RADIX_KEYS_MAX ? RADIX_BITMAP_BYTES : children;
}
static inline const char *radixKeys(const char *node) { return node + RADIX_HEADER; }
static inline slice radixPrefix(const char *node) {
    return sliceMake(radixKeys(node) + radixKeysBytes(radixChildren(node)),
                     (size_t)(loadU64(node) >> 16));
}
/* The place of the value's word, if there is one. */
static inline char *radixValuePlace(const char *node) {
    slice prefix = radixPrefix(node);
    return (char *)(uintptr_t)(prefix.ptr + prefix.len);
}
static inline char *radixChildPlace(const char *node, size_t index) {
    return radixValuePlace(node) + sizeof(uint64_t) * (index + radixHasValue(node));
}

/* The number of keys less than `key`; *found is true if there is a child with this one. */
static inline size_t radixRank(const char *node, uint8_t key, bool *found) {
    size_t children = radixChildren(node);
    const uint8_t *keys = (const uint8_t *)radixKeys(node);
    size_t rank = 0;
    if (likely(children <= RADIX_KEYS_MAX)) {
        while (rank < children && keys[rank] < key) rank++;
        *found = rank < children && keys[rank] == key;
        return rank;
    }
    for (unsigned i = 0; i < key / 64u; i++)
        rank += (size_t)__builtin_popcountll(loadU64(keys + i * sizeof(uint64_t)));
    uint64_t bits = loadU64(keys + key / 64u * sizeof(uint64_t));
    *found = bits >> key % 64 & 1;
    return rank + (size_t)__builtin_popcountll(bits & ((UINT64_C(1) << key % 64) - 1));
}

/* The key of a child. */
static inline uint8_t radixKeyAt(const char *node, size_t index) {
    hotCheck(index < radixChildren(node));
    const uint8_t *keys = (const uint8_t *)radixKeys(node);
    if (likely(radixChildren(node) <= RADIX_KEYS_MAX)) return keys[index];
    unsigned word = 0;
    uint64_t bits = loadU64(keys);
    for (size_t own; (own = (size_t)__builtin_popcountll(bits)) <= index; index -= own)
        bits = loadU64(keys + ++word * sizeof(uint64_t));
    while (index--) bits &= bits - 1;
    return (uint8_t)(word * 64 + (unsigned)__builtin_ctzll(bits));
}

/* The number of bytes that both begin with. */
static inline size_t radixCommon(slice a, slice b) {
    size_t max = a.len < b.len ? a.len : b.len, n = 0;
    while (n + 8 <= max && loadU64(a.ptr + n) == loadU64(b.ptr + n)) n += 8;
    while (n < max && a.ptr[n] == b.ptr[n]) n++;
    return n;
}

static inline slice radixAfter(slice s, size_t skip) {
    hotCheck(skip <= s.len);
    return sliceMake(s.ptr + skip, s.len - skip);
}

#endif
