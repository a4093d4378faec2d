/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of ds/id_tree.h; private to its files. */
#ifndef DS_ID_TREE_PRIVATE_H
#define DS_ID_TREE_PRIVATE_H

#include "base/base.h"
#include "ds/id_tree.h"

enum {
#ifdef HOSTILE_BUILD
    ID_LEAF_MAX = 6,
    ID_INNER_MAX = 5,
#else
    ID_LEAF_MAX = 128,
    ID_INNER_MAX = 64,
#endif
    ID_COLUMNS_MAX = 2 + ID_TREE_VALUES_MAX,
    ID_LEVELS_MAX = 32,
};

/* Entries in order. Column c is an array of `cap` elements of `width[c]` bytes, offsets from
 * base[c]; the columns are consecutive in data(). */
typedef struct idLeaf {
    struct idLeaf *prev, *next;
    uint16_t count, cap;
    uint8_t columns;
    uint8_t width[ID_COLUMNS_MAX]; /* 0, 1, 2, 4 or 8 */
    uint64_t base[];
} idLeaf;
_Static_assert(sizeof(idLeaf) == 32, "the header of a leaf is half a cache line");

/* Child i has the ids from key[i] on; ids below key[0] belong to child 0. */
typedef struct idInner {
    uint32_t count;
    streamId key[ID_INNER_MAX];
    void *child[ID_INNER_MAX];
} idInner;

/* An entry as a row of columns: ms, seq, values. */
typedef struct idRow {
    uint64_t column[ID_COLUMNS_MAX];
} idRow;

static inline uint64_t idColumnLoad(const uint8_t *at, unsigned width) {
    switch (width) {
    case 0: return 0;
    case 1: return *at;
    case 2: return loadU16(at);
    case 4: return loadU32(at);
    default: return loadU64(at);
    }
}

static inline const uint8_t *idLeafData(const idLeaf *l) {
    return (const uint8_t *)(l->base + l->columns);
}

static inline streamId idLeafId(const idLeaf *l, unsigned at) {
    const uint8_t *data = idLeafData(l);
    uint64_t ms = l->base[0] + idColumnLoad(data + (size_t)at * l->width[0], l->width[0]);
    data += (size_t)l->cap * l->width[0];
    uint64_t seq = l->base[1] + idColumnLoad(data + (size_t)at * l->width[1], l->width[1]);
    return (streamId){ms, seq};
}

/* Size of the leaf's block in bytes. */
size_t idLeafSize(const idLeaf *l);
void idLeafRead(const idLeaf *l, unsigned at, idRow *out);
/* Index of the first row whose id is not below `id`; count if there is none. */
unsigned idLeafFind(const idLeaf *l, streamId id);
/* Creates an unlinked leaf with these rows and space for at least `cap`. */
idLeaf *idLeafNew(const idRow *rows, unsigned count, unsigned columns, unsigned cap);
/* Reads all rows; returns their number. */
unsigned idLeafReadAll(const idLeaf *l, idRow *rows);
/* Change the leaf in place; false, and no change, if it is full or a value does not fit its
 * column. */
bool idLeafInsert(idLeaf *l, unsigned at, const idRow *row);
bool idLeafSet(idLeaf *l, unsigned at, const idRow *row);
void idLeafRemove(idLeaf *l, unsigned at);

#endif
