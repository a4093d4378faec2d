/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of ds/id_tree.h, for its own files. */
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

/* Entries in order. Column c is `cap` places of `width[c]` bytes, which hold offsets from base[c]; the columns
 * follow each other in data(). */
typedef struct idLeaf {
    struct idLeaf *prev, *next;
    uint16_t count, cap;
    uint8_t columns;
    uint8_t width[ID_COLUMNS_MAX]; /* 0, 1, 2, 4 or 8 */
    uint64_t base[];
} idLeaf;
_Static_assert(sizeof(idLeaf) == 32, "the header of a leaf is half a cache line");

/* Child i holds ids from key[i] on; those below key[0] belong to child 0. */
typedef struct idInner {
    uint32_t count;
    streamId key[ID_INNER_MAX];
    void *child[ID_INNER_MAX];
} idInner;

/* An entry as a leaf sees it: ms, seq, values. */
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

/* Bytes of the leaf's block. */
size_t idLeafSize(const idLeaf *l);
void idLeafRead(const idLeaf *l, unsigned at, idRow *out);
/* The first place whose id is not below `id`; count when there is none. */
unsigned idLeafFind(const idLeaf *l, streamId id);
/* A leaf of these rows with room for at least `cap`, linked to none. */
idLeaf *idLeafNew(const idRow *rows, unsigned count, unsigned columns, unsigned cap);
/* Reads all rows; returns their number. */
unsigned idLeafReadAll(const idLeaf *l, idRow *rows);
/* Change the leaf in place; false: it has no room, or a value does not fit, and nothing was done. */
bool idLeafInsert(idLeaf *l, unsigned at, const idRow *row);
bool idLeafSet(idLeaf *l, unsigned at, const idRow *row);
void idLeafRemove(idLeaf *l, unsigned at);

#endif
