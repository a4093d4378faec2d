/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of ds/ordered.h. Private to ordered*.c. */
#ifndef DS_ORDERED_PRIVATE_H
#define DS_ORDERED_PRIVATE_H

#include "base/base.h"
#include "ds/ordered.h"

/* Nodes are blocks of at most 1 and 2 KB. */
enum {
#ifdef HOSTILE_BUILD
    LEAF_MAX = 8,
    INNER_MAX = 8,
#else
    LEAF_MAX = 124,
    INNER_MAX = 63,
#endif
    LEVELS_MAX = 32,
    TAG_SHIFT = 48,
    TAG_MAX = 65535,
};
#define ENTRY_MASK ((UINT64_C(1) << TAG_SHIFT) - 1)

/* Entries in order. A word is an entry and a 16-bit tag that increases with the rank, as determined
 * by `base` and `shift`: the order of entries with different tags is known without reading them. */
typedef struct leafNode {
    struct leafNode *prev, *next;
    uint64_t base;
    uint16_t count, cap;
    uint8_t shift;
    bool stale; /* some ranks are outside the range of the tags */
    uint64_t word[];
} leafNode;
_Static_assert(sizeof(leafNode) == 32, "the header of a leaf is half a cache line");

/* The record of one child of an inner node, which stores the fields in four arrays. */
typedef struct childRecord {
    uint64_t rank; /* of the first entry below */
    void *first;   /* that entry */
    void *node;
    uint64_t count; /* of entries below */
} childRecord;

typedef struct innerNode {
    uint32_t count, cap;
    uint64_t fields[]; /* cap ranks, cap firsts, cap nodes, cap counts */
} innerNode;

static inline uint64_t *innerRanks(const innerNode *n) {
    return ((innerNode *)(uintptr_t)n)->fields;
}
static inline void **innerFirsts(const innerNode *n) { return (void **)(innerRanks(n) + n->cap); }
static inline void **innerNodes(const innerNode *n) {
    return (void **)(innerRanks(n) + (size_t)2 * n->cap);
}
static inline uint64_t *innerCounts(const innerNode *n) {
    return innerRanks(n) + (size_t)3 * n->cap;
}

static inline void *wordEntryOf(uint64_t word) { return (void *)(uintptr_t)(word & ENTRY_MASK); }
static inline unsigned wordTag(uint64_t word) { return (unsigned)(word >> TAG_SHIFT); }
static inline uint64_t makeWord(unsigned tag, const void *entry) {
    return (uint64_t)tag << TAG_SHIFT | (uintptr_t)entry;
}

static inline unsigned leafTag(const leafNode *l, uint64_t rank) {
    if (rank < l->base) return 0;
    uint64_t scaled = (rank - l->base) >> l->shift;
    return scaled > TAG_MAX ? TAG_MAX : (unsigned)scaled;
}

/* ---- nodes (ordered_node.c) ---- */

/* All functions update x->bytes. Those that return a node may have moved it. */
leafNode *leafNew(orderedIndex *x, size_t cap_min);
innerNode *innerNew(orderedIndex *x, size_t cap_min);
void nodeFree(orderedIndex *x, void *node);
/* Resizes a leaf for `count` words; updates the links of its neighbours. */
leafNode *leafFit(orderedIndex *x, leafNode *l, size_t count);
/* Links a new leaf after another one. */
void leafLinkAfter(leafNode *l, leafNode *previous);
void leafUnlink(leafNode *l);
/* Recomputes the tags. */
void leafScale(leafNode *l, const orderedType *type);
/* Recomputes the tags if that distinguishes more entries. */
void leafScaleIfCoarse(leafNode *l, const orderedType *type);
childRecord leafRecord(const leafNode *l, const orderedType *type);
childRecord innerRecord(const innerNode *n);
/* Inserts a child at index `at`. */
innerNode *innerInsert(orderedIndex *x, innerNode *n, unsigned at, const childRecord *child);
void innerSet(innerNode *n, unsigned at, const childRecord *child);
void innerRemove(innerNode *n, unsigned at);
/* Appends the children from `from` on of another node. */
innerNode *innerTake(orderedIndex *x, innerNode *n, innerNode *other, unsigned from);

#endif
