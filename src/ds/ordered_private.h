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
    LEAF_MAX = 164,
    INNER_MAX = 63,
#endif
    LEVELS_MAX = 32,
    TAG_MAX = 65535,
    CAP_UNIT = 4, /* keeps references aligned */
};
_Static_assert(LEAF_MAX % CAP_UNIT == 0, "leafCapFor() rounds up");

/* Entries are multiples of 4 below 2^48, referred to by 32 bits from the leaf's origin on, a
 * multiple of 4 GB. A leaf whose entries are not within 16 GB is wide: it has whole addresses. */
enum { ENTRY_BITS = 48, ENTRY_UNIT = 4, ORIGIN_SHIFT = 32, WIDE = UINT16_MAX };

/* Entries in order. The tag of an entry increases with its rank, as determined by `base` and
 * `shift`: the order of entries with different tags is known without reading them. */
typedef struct leafNode {
    struct leafNode *prev, *next;
    uint64_t base;
    uint16_t count, cap;
    uint16_t origin; /* in units of 2^ORIGIN_SHIFT, or WIDE */
    uint8_t shift;
    bool stale;     /* some ranks are outside the range of the tags */
    uint16_t tag[]; /* cap tags, then cap references of 4 or 8 bytes */
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

static inline bool leafIsWide(const leafNode *l) { return unlikely(l->origin == WIDE); }
static inline size_t leafRefBytes(uint16_t origin) {
    return origin == WIDE ? sizeof(uint64_t) : sizeof(uint32_t);
}
static inline void *leafRefs(const leafNode *l) { return (uint16_t *)(uintptr_t)l->tag + l->cap; }

/* The origin of the leaf that an entry is the first one of: others may be before it. */
static inline uint16_t originFor(const void *entry) {
    uint64_t unit = (uintptr_t)entry >> ORIGIN_SHIFT;
    return (uint16_t)(unit ? unit - 1 : 0);
}
static inline bool originReaches(uint16_t origin, const void *entry) {
    uint64_t from = (uintptr_t)entry - ((uint64_t)origin << ORIGIN_SHIFT);
    return origin == WIDE || from / ENTRY_UNIT <= UINT32_MAX;
}

static inline void *leafEntry(const leafNode *l, unsigned at) {
    if (leafIsWide(l)) return ((void **)leafRefs(l))[at];
    uint64_t from = (uint64_t)((const uint32_t *)leafRefs(l))[at] * ENTRY_UNIT;
    return (void *)(uintptr_t)(((uint64_t)l->origin << ORIGIN_SHIFT) + from);
}
/* The leaf must reach the entry. */
static inline void leafSetEntry(leafNode *l, unsigned at, const void *entry) {
    hotCheck(originReaches(l->origin, entry));
    if (leafIsWide(l)) {
        ((const void **)leafRefs(l))[at] = entry;
        return;
    }
    uint64_t from = (uintptr_t)entry - ((uint64_t)l->origin << ORIGIN_SHIFT);
    ((uint32_t *)leafRefs(l))[at] = (uint32_t)(from / ENTRY_UNIT);
}

static inline unsigned leafTag(const leafNode *l, uint64_t rank) {
    if (rank < l->base) return 0;
    uint64_t scaled = (rank - l->base) >> l->shift;
    return scaled > TAG_MAX ? TAG_MAX : (unsigned)scaled;
}

/* ---- nodes (ordered_node.c) ---- */

/* All functions update x->bytes. Those that return a node may have moved it. */
leafNode *leafNew(orderedIndex *x, size_t cap_min, uint16_t origin);
innerNode *innerNew(orderedIndex *x, size_t cap_min);
void nodeFree(orderedIndex *x, void *node);
/* Resizes a leaf for `count` entries; updates the links of its neighbours. */
leafNode *leafFit(orderedIndex *x, leafNode *l, size_t count);
/* Makes a leaf wide if it does not reach the entry. */
leafNode *leafReach(orderedIndex *x, leafNode *l, const void *entry);
/* Appends the entries from `from` on of another leaf, which remain in that, too. Their tags are
 * copied. */
leafNode *leafAppend(orderedIndex *x, leafNode *l, const leafNode *other, unsigned from);
/* Removes `count` entries. */
void leafCut(leafNode *l, unsigned at, unsigned count);
/* Inserts an entry at a position of a leaf that has space. */
leafNode *leafPut(orderedIndex *x, leafNode *l, unsigned at, uint64_t rank, const void *entry);
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
