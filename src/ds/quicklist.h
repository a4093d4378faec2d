/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quicklist: a long list of strings, packed in listpacks that form a doubly linked list of nodes. A
 * string too large to be packed is a node of its own ("plain"). Nodes far from both ends may be
 * compressed, at once (`depth`) or when they are not used (quicklistCodeNodes()).
 *
 * Access to the ends takes O(1), to an index O(nodes from the nearer end); a change costs the size
 * of one node. ANY_THREAD that owns the list; the threshold for plain nodes belongs to the main
 * thread. */
#ifndef DS_QUICKLIST_H
#define DS_QUICKLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/listpack.h"
#include "ds/node_codec.h"

typedef struct quicklist quicklist;
typedef struct quicklistNode quicklistNode;

enum { QUICKLIST_FILL_MAX = 32767, QUICKLIST_DEPTH_MAX = 65535 };

/* ---- limits of a listpack ---- */

/* `fill` as in list-max-listpack-size: number of entries, or -1..-5 for 4, 8, 16, 32, 64 KB. */
typedef struct quicklistLimits {
    size_t bytes, entries; /* SIZE_MAX: no limit */
} quicklistLimits;
quicklistLimits quicklistLimitsOf(int fill);
/* True if a listpack of this size exceeds the limits of one node. */
bool quicklistExceeds(int fill, size_t bytes, size_t entries);
/* Minimum size in bytes of a string that gets a node of its own; 0: if it does not fit in a
 * listpack (default). For tests. */
void quicklistSetPlainFrom(size_t bytes);

/* ---- the whole list ---- */

/* `depth`: number of nodes at each end that are not compressed; 0 disables compression. Values out
 * of range are clamped. */
quicklist *quicklistNew(int fill, int depth);
/* Takes ownership of a non-empty listpack in a block of memAlloc(), which becomes the last node,
 * whatever its size. */
void quicklistTakeListpack(quicklist *q, uint8_t **take);
/* Appends the text as a node of its own, whatever its size. */
void quicklistAppendPlain(quicklist *q, slice text);
void quicklistFree(quicklist *q);
quicklist *quicklistCopy(const quicklist *q);
size_t quicklistCount(const quicklist *q);
size_t quicklistNodes(const quicklist *q);
/* The listpack of a list that consists of one node which is not plain; else NULL. Borrowed. */
const uint8_t *quicklistOnlyListpack(const quicklist *q);

typedef struct quicklistStats {
    size_t nodes;
    size_t packed_bytes; /* of all nodes, uncompressed */
    size_t coded;        /* nodes that the codec has compressed */
    int fill, depth;
} quicklistStats;
void quicklistGetStats(const quicklist *q, quicklistStats *out);
/* Memory in bytes; estimated from the first `samples` nodes, 0: all nodes. */
size_t quicklistMemory(const quicklist *q, size_t samples);

/* Moves nodes and their blocks to denser pages (memMoveIfSparse()), for nodes with about `entries`
 * entries in total: from the front if `begin`, else continuing after the last call. Adds to the
 * numbers of blocks moved and kept. False at the end; the list may change between calls. Main
 * thread. */
bool quicklistCompact(quicklist *q, bool begin, size_t entries, uint64_t *moved, uint64_t *kept);

/* Visits nodes and codes those that are not used (ds/node_codec.h), from the front if `begin`, else
 * continuing after the last call; some may be left out if quicklistCompact() was called meanwhile.
 * Neither the ends are coded nor frozen nodes. False at the end; the list may change between
 * calls. */
bool quicklistCodeNodes(quicklist *q, bool begin, const nodeVisit *v);
/* Nodes that are no ends, so quicklistCodeNodes() may code them. */
size_t quicklistNodesBetween(const quicklist *q);
/* The texts of `most` of them as they are coded, after `skip` ones from one end; there must be so
 * many. */
void quicklistSample(const quicklist *q, size_t skip, bool backwards, size_t most,
                     nodeTextProc *visit, void *arg);

/* ---- reading ---- */

/* Iterates over the list, which must not change meanwhile; nor may its nodes be coded. Must not be
 * copied. */
typedef struct quicklistCursor {
    const quicklistNode *node; /* private */
    const uint8_t *lp, *at;
    uint8_t *scratch;
    bool backwards;
} quicklistCursor;
/* Starts at entry `index` (which may not exist), towards the end or, if `backwards`, towards the
 * front. */
void quicklistCursorInit(quicklistCursor *at, const quicklist *q, size_t index, bool backwards);
/* The next entry, or false at the end. Its text is borrowed until the next call. */
bool quicklistNext(quicklistCursor *at, listpackItem *out);
void quicklistCursorClear(quicklistCursor *at);

/* Description of a node, for display or serialization. */
typedef struct quicklistNodeView {
    const uint8_t *listpack; /* NULL if plain or compressed by LZF; of a coded node expanded */
    size_t entries, bytes;   /* uncompressed */
    size_t block_bytes;      /* block size, compressed or not */
    bool plain, compressed;  /* by LZF */
    /* The listpack, the text of a plain node, or either compressed by LZF; borrowed. */
    slice content;
} quicklistNodeView;
typedef void quicklistNodeProc(void *arg, const quicklistNodeView *node);
void quicklistEachNode(const quicklist *q, quicklistNodeProc *visit, void *arg);

/* ---- the content of one moment ---- */

/* The nodes of a list as they were at the call, readable in order while the list changes, is moved
 * or freed. Main thread: until quicklistThaw() the list, too, is changed and freed by that thread
 * only, and it must not be frozen again. The blocks of nodes are not copied: a change of a node
 * copies its block first, some microseconds. O(nodes). */
typedef struct quicklistFrozen quicklistFrozen;
quicklistFrozen *quicklistFreeze(quicklist *q);
size_t quicklistFrozenNodes(const quicklistFrozen *f);
/* The next node, borrowed until the next call; false at the end. Nodes that were read are given
 * back. */
bool quicklistFrozenNext(quicklistFrozen *f, quicklistNodeView *out);
/* At any time. */
void quicklistThaw(quicklistFrozen *f);
/* Memory of blocks of frozen nodes that no list uses any more, in bytes. */
size_t quicklistFrozenBytes(void);

/* ---- changes ---- */

/* Texts must not be part of the list. Indexes count from 0 and must exist. */

void quicklistPush(quicklist *q, slice text, bool front);
void quicklistInsert(quicklist *q, size_t index, slice text, bool after);
void quicklistSet(quicklist *q, size_t index, slice text);
/* Removes `count` entries from `index` on, or as many as there are. */
void quicklistDelete(quicklist *q, size_t index, size_t count);
/* Removes the first `most` entries equal to `item`, or the last ones. Returns the number
 * removed. */
size_t quicklistRemove(quicklist *q, const listpackItem *item, size_t most, bool from_back);

/* NULL if valid, else a description of the violation. For tests. */
const char *quicklistVerify(const quicklist *q);

#endif
