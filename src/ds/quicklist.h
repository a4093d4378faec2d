/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quicklist: a long list of strings, packed into listpacks that stand in a doubly linked list of nodes. A string
 * too large to be packed is a node of its own ("plain"). Nodes far from both ends may be compressed.
 *
 * Both ends are O(1), an index costs its distance from the nearer end in nodes, a change what one node costs.
 * ANY_THREAD that owns the list; the threshold of plain nodes belongs to the main thread. */
#ifndef DS_QUICKLIST_H
#define DS_QUICKLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/listpack.h"

typedef struct quicklist quicklist;
typedef struct quicklistNode quicklistNode;

enum { QUICKLIST_FILL_MAX = 32767, QUICKLIST_DEPTH_MAX = 65535 };

/* ---- how full a listpack may be ---- */

/* `fill` as list-max-listpack-size has it: entries, or -1..-5 for 4, 8, 16, 32, 64 KB. */
typedef struct quicklistRoom {
    size_t bytes, entries; /* SIZE_MAX: no limit */
} quicklistRoom;
quicklistRoom quicklistRoomOf(int fill);
/* Whether a listpack of this size is more than one node holds. */
bool quicklistExceeds(int fill, size_t bytes, size_t entries);
/* From how many bytes on a string gets a node of its own; 0: when no listpack should hold it (the default).
 * For tests. */
void quicklistSetPlainFrom(size_t bytes);

/* ---- the whole ---- */

/* `depth`: nodes at each end that are never compressed; 0: none is. Values out of range count as the nearest. */
quicklist *quicklistNew(int fill, int depth);
/* Appends the listpack in a block of memAlloc(), which has entries, as the last node, whatever its size. */
void quicklistTakeListpack(quicklist *q, uint8_t **take);
/* Appends the text as a node of its own, whatever its size. */
void quicklistAppendPlain(quicklist *q, slice text);
void quicklistFree(quicklist *q);
quicklist *quicklistCopy(const quicklist *q);
size_t quicklistCount(const quicklist *q);
/* The listpack of a list that is one node and no plain one; NULL otherwise. Borrowed. */
const uint8_t *quicklistOnlyListpack(const quicklist *q);

typedef struct quicklistStats {
    size_t nodes;
    size_t packed_bytes; /* of all nodes, uncompressed */
    int fill, depth;
} quicklistStats;
void quicklistGetStats(const quicklist *q, quicklistStats *out);
/* Bytes of memory; nodes are sampled from both ends, 0: all are looked at. */
size_t quicklistMemory(const quicklist *q, size_t samples);

/* Moves nodes and their blocks to where they lie closer (memMoveIfSparse()): of nodes with about `entries` entries from
 * the front on, or from where the last call ended when not `begin`; each block moved counts in `moved`, each that
 * stayed in `kept`. False when the end is reached; other changes of the list may come in between. Main thread. */
bool quicklistCompact(quicklist *q, bool begin, size_t entries, uint64_t *moved, uint64_t *kept);

/* ---- reading ---- */

/* A walk over the list, which may not change meanwhile. Not to be copied. */
typedef struct quicklistCursor {
    const quicklistNode *node; /* private */
    const uint8_t *lp, *at;
    uint8_t *scratch;
    bool backwards;
} quicklistCursor;
/* Begins at entry `index` (there may be none), towards the end or, `backwards`, towards the front. */
void quicklistCursorInit(quicklistCursor *at, const quicklist *q, size_t index, bool backwards);
/* The next entry, or false at the end. Text is borrowed until the next call. */
bool quicklistNext(quicklistCursor *at, listpackItem *out);
void quicklistCursorClear(quicklistCursor *at);

/* One node as it stands, for those who show or write it. */
typedef struct quicklistNodeView {
    const uint8_t *listpack; /* NULL: plain or compressed */
    size_t entries, bytes;   /* uncompressed */
    size_t block_bytes;      /* it takes, compressed or not */
    bool plain, compressed;
    slice content; /* the listpack, the text of a plain node, or either compressed by LZF; borrowed */
} quicklistNodeView;
typedef void quicklistNodeProc(void *arg, const quicklistNodeView *node);
void quicklistEachNode(const quicklist *q, quicklistNodeProc *visit, void *arg);

/* ---- changing ---- */

/* Texts may not lie in the list. Indexes count from 0 and must be there. */

void quicklistPush(quicklist *q, slice text, bool front);
void quicklistInsert(quicklist *q, size_t index, slice text, bool after);
void quicklistSet(quicklist *q, size_t index, slice text);
/* Takes out `count` entries from `index` on, or as many as there are. */
void quicklistDelete(quicklist *q, size_t index, size_t count);
/* Takes out the first `most` entries equal to `item`, or the last ones. Returns how many went. */
size_t quicklistRemove(quicklist *q, const listpackItem *item, size_t most, bool from_back);

/* NULL when sound, else what is broken. For tests. */
const char *quicklistVerify(const quicklist *q);

#endif
