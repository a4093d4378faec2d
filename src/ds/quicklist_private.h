/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private declarations of ds/quicklist.h. */
#ifndef DS_QUICKLIST_PRIVATE_H
#define DS_QUICKLIST_PRIVATE_H

#include "base/base.h"
#include "ds/quicklist.h"

struct quicklistNode {
    quicklistNode *prev, *next;
    uint8_t *bytes;      /* a listpack, or the text of a plain node; either may be compressed */
    uint64_t size : 42;  /* of the listpack or the text */
    uint64_t count : 17; /* number of entries */
    uint64_t plain : 1;
    uint64_t compressed : 1; /* `bytes` is [compressed size: 4] [compressed bytes], or coded */
    uint64_t frozen : 1;     /* `bytes` must not be changed or freed: quicklistFreeze() */
    uint64_t marked : 1;     /* see ds/node_codec.h */
    uint64_t futile : 1;     /* coding it gained nothing, and it has not changed since */
};
_Static_assert(sizeof(quicklistNode) == 32, "a node is one small block");

struct quicklist {
    quicklistNode *head, *tail;
    size_t count, nodes;
    quicklistNode *walk_next; /* where quicklistCompact() or quicklistCodeNodes() continues,
                                 whichever began later; NULL if nowhere */
    int16_t fill;
    uint16_t depth;
    uint32_t room; /* of the head, in bytes; 0 if it is plain, compressed or frozen */
};
_Static_assert(sizeof(quicklist) <= 48, "a list is one small block");

/* True if the codec has compressed the node; otherwise a compressed node is LZF. */
static inline bool quicklistIsCoded(const quicklistNode *n) {
    return n->compressed && loadU32(n->bytes) & NODE_CODED;
}
/* Bytes of a node's block that are in use. */
size_t quicklistBlockSize(const quicklistNode *n);
/* Bytes of the text that is coded. */
size_t quicklistTextSize(const quicklistNode *n);
/* Writes the content of a compressed node to `to`, n->size bytes. */
void quicklistExpandNode(const quicklistNode *n, uint8_t *to);
/* Before a node is changed: it is neither compressed nor marked afterwards. */
void quicklistOpenNode(quicklistNode *n);
/* Before a compressed or marked node is read. It may not be compressed afterwards. */
void quicklistNoteRead(quicklistNode *n);
/* quicklistRelease() of a compressed or frozen node. */
void quicklistReleaseUnusual(quicklistNode *n);
/* The node gives up its block, which is freed unless it is frozen. */
static inline void quicklistRelease(quicklistNode *n) {
    if (likely(!(n->frozen | n->compressed))) {
        memFree(n->bytes);
    } else {
        quicklistReleaseUnusual(n);
    }
}
/* The listpack of the head moves to the start of its block. */
void quicklistCloseRoom(quicklist *q);
/* Describes a node that had the block `bytes`; a coded one is expanded to *scratch, a block that is
 * allocated for it. */
quicklistNodeView quicklistViewOf(const quicklistNode *n, uint8_t **scratch);

#endif
