/* SPDX-License-Identifier: BSD-3-Clause
 *
 * idTree: an ordered map from stream ids to up to three 64-bit values, in little memory: a B+ tree
 * whose leaves keep each column (ms, seq, values) as offsets from the column's least value, in as
 * few bytes as the leaf's largest offset needs. Close ids and times take about 6 bytes per entry
 * with three values; an id alone takes 2 to 4.
 *
 * Finding and changing cost O(log n) plus the size of a leaf. In an empty tree all fields except
 * `values` are zero. Not thread-safe: one owner at a time; idTreeClear() may run on another
 * thread. */
#ifndef DS_ID_TREE_H
#define DS_ID_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ds/stream_id.h"

enum { ID_TREE_VALUES_MAX = 3 };

typedef struct idTree {
    void *root;     /* private: NULL when empty */
    uint64_t count; /* entries */
    size_t bytes;   /* of all nodes */
    uint8_t levels; /* private: of inner nodes */
    uint8_t values; /* of each entry: 0 to ID_TREE_VALUES_MAX; fixed while there are entries */
} idTree;

typedef struct idEntry {
    streamId id;
    uint64_t value[ID_TREE_VALUES_MAX]; /* the first tree->values are used */
} idEntry;

/* ---- one entry ---- */

/* False if there is none; *out is then unchanged. */
bool idTreeFind(const idTree *t, streamId id, idEntry *out);
/* False, and no change, if the id exists. */
bool idTreeInsert(idTree *t, const idEntry *entry);
/* Sets the values of an existing entry. */
void idTreeSet(idTree *t, const idEntry *entry);
/* False if there is none. `out`: receives the removed entry; NULL: not needed. */
bool idTreeRemove(idTree *t, streamId id, idEntry *out);

/* ---- walking ---- */

/* A position in the tree, valid until the tree changes. */
typedef struct idCursor {
    const struct idLeaf *leaf; /* private; NULL: at no entry */
    unsigned at;
} idCursor;

/* Move the cursor to the first entry at or after `id`; to the last one at or before it. False:
 * there is none. */
bool idTreeSeek(const idTree *t, streamId id, idCursor *cursor);
bool idTreeSeekBack(const idTree *t, streamId id, idCursor *cursor);
/* The entry at the cursor, which must be at one. */
void idCursorRead(const idCursor *cursor, idEntry *out);
/* To the following or preceding entry; false: there is none, and the cursor is at no entry. */
bool idCursorNext(idCursor *cursor);
bool idCursorPrev(idCursor *cursor);

/* ---- the whole ---- */

/* Defragmentation: moves the leaf with the first entry at or after *from, and the nodes on its
 * path, if the allocator has a better place (memMoveIfSparse()). Counts moved and unmoved nodes;
 * sets *from to the id after that leaf. False at the end. Main thread. */
bool idTreeCompact(idTree *t, streamId *from, uint64_t *moved, uint64_t *kept);
/* Removes all entries. ANY_THREAD that owns the tree. */
void idTreeClear(idTree *t);
/* Makes `to` a copy; its old content is overwritten, not freed. */
void idTreeCopy(idTree *to, const idTree *from);
/* Checks every invariant; NULL if all hold, else a description of the first violation. For
 * tests. */
const char *idTreeVerify(const idTree *t);

#endif
