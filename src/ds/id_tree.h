/* SPDX-License-Identifier: BSD-3-Clause
 *
 * idTree: an ordered map from stream ids to up to three 64-bit values, in little memory: a B+ tree whose leaves
 * keep each column (ms, seq, values) as offsets from the column's least value, in as few bytes as the leaf's
 * largest offset needs. Ids and times that lie close together take some 6 bytes per entry with three values, an id
 * alone 2 to 4.
 *
 * Finding and changing cost O(log n) and the size of a leaf. A tree is all zero but for `values` when empty. Not
 * thread-safe: one owner at a time; idTreeClear() may run on another thread. */
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
    uint64_t value[ID_TREE_VALUES_MAX]; /* the first tree->values of them count */
} idEntry;

/* ---- one entry ---- */

/* False: there is none; *out is as it was. */
bool idTreeFind(const idTree *t, streamId id, idEntry *out);
/* False: the id is there already, and nothing was changed. */
bool idTreeInsert(idTree *t, const idEntry *entry);
/* Sets the values of an entry, which must be there. */
void idTreeSet(idTree *t, const idEntry *entry);
/* False: there is none. `out` (NULL: unwanted) gets the entry. */
bool idTreeRemove(idTree *t, streamId id, idEntry *out);

/* ---- walking ---- */

/* A place in the tree, valid until the tree changes. */
typedef struct idCursor {
    const struct idLeaf *leaf; /* private; NULL: at no entry */
    unsigned at;
} idCursor;

/* Move the cursor to the first entry at or after `id`; to the last one at or before it. False: there is none. */
bool idTreeSeek(const idTree *t, streamId id, idCursor *cursor);
bool idTreeSeekBack(const idTree *t, streamId id, idCursor *cursor);
/* The entry at the cursor, which must be at one. */
void idCursorRead(const idCursor *cursor, idEntry *out);
/* To the following or preceding entry; false: there is none, and the cursor is at no entry. */
bool idCursorNext(idCursor *cursor);
bool idCursorPrev(idCursor *cursor);

/* ---- the whole ---- */

/* Moves nodes to where the allocator wastes less (memMoveIfSparse()): the leaf with the first entry at or after *from,
 * and what leads to it. Counts those moved and those that stayed; *from becomes the id after that leaf. False at the
 * end. Main thread. */
bool idTreeCompact(idTree *t, streamId *from, uint64_t *moved, uint64_t *kept);
/* Removes all entries. ANY_THREAD that owns the tree. */
void idTreeClear(idTree *t);
/* An equal tree into `to`, whatever was in it. */
void idTreeCopy(idTree *to, const idTree *from);
/* Checks every invariant; NULL when sound, else what is broken. For tests. */
const char *idTreeVerify(const idTree *t);

#endif
