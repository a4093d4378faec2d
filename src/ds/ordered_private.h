/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of ds/ordered.h, for its own files. */
#ifndef DS_ORDERED_PRIVATE_H
#define DS_ORDERED_PRIVATE_H

#include "base/base.h"
#include "ds/ordered.h"

/* Nodes in blocks of 1 and 2 KB at most. */
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

/* Entries in order. A word is an entry and a tag of 16 bits, which grows with the rank as `base` and `shift` say:
 * the order of two entries with different tags is known without a look at them. */
typedef struct leafNode {
    struct leafNode *prev, *next;
    uint64_t base;
    uint16_t count, cap;
    uint8_t shift;
    bool stale; /* there are ranks beyond those for which the tags were made */
    uint64_t word[];
} leafNode;
_Static_assert(sizeof(leafNode) == 32, "the header of a leaf is half a cache line");

/* One of the children of an inner node, as a whole: nodes keep their parts in four arrays. */
typedef struct childRecord {
    uint64_t rank; /* of the first entry below */
    void *first;   /* that entry */
    void *node;
    uint64_t count; /* of entries below */
} childRecord;

typedef struct innerNode {
    uint32_t count, cap;
    uint64_t room[]; /* cap ranks, cap firsts, cap nodes, cap counts */
} innerNode;

static inline uint64_t *innerRanks(const innerNode *n) { return ((innerNode *)(uintptr_t)n)->room; }
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

/* All change x->bytes. Those that return a node may have moved it. */
leafNode *leafNew(orderedIndex *x, size_t cap_min);
innerNode *innerNew(orderedIndex *x, size_t cap_min);
void nodeFree(orderedIndex *x, void *node);
/* A leaf with room for `count` words, and not too much; neighbours learn where it is. */
leafNode *leafFit(orderedIndex *x, leafNode *l, size_t count);
/* Links a new leaf behind another. */
void leafLinkBehind(leafNode *l, leafNode *behind);
void leafUnlink(leafNode *l);
/* Makes the tags anew. */
void leafScale(leafNode *l, const orderedType *type);
/* The same if that would tell more entries apart. */
void leafScaleIfCoarse(leafNode *l, const orderedType *type);
childRecord leafRecord(const leafNode *l, const orderedType *type);
childRecord innerRecord(const innerNode *n);
/* Puts a child at place `at`. */
innerNode *innerInsert(orderedIndex *x, innerNode *n, unsigned at, const childRecord *child);
void innerSet(innerNode *n, unsigned at, const childRecord *child);
void innerRemove(innerNode *n, unsigned at);
/* Appends children `from` on of another node. */
innerNode *innerTake(orderedIndex *x, innerNode *n, innerNode *other, unsigned from);

#endif
