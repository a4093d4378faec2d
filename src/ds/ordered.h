/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ordered: an index of entries by a rank (64 bits) and, among equals, by text. It tells how many entries stand
 * before any point and finds the one at any place, in O(log n): a B+ tree whose inner nodes count.
 *
 * An entry is a pointer of the caller's, below 2^48. What its rank and text are, the caller's orderedType tells;
 * no two entries may be equal in both. It costs about 9 bytes per entry. The handle is all zero when empty.
 * Not thread-safe: one owner at a time. orderedFree() may run on another thread. */
#ifndef DS_ORDERED_H
#define DS_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct orderedIndex {
    void *root;     /* private: NULL when empty */
    uint64_t count; /* entries */
    uint64_t bytes; /* private: of all nodes */
    unsigned levels;
} orderedIndex;

typedef struct orderedType {
    uint64_t (*rank_of)(const void *entry);
    slice (*text_of)(const void *entry);
} orderedType;

/* Bytes from left to right, as unsigned; of two that begin alike the shorter one is less. */
int orderedCompareText(slice a, slice b);

/* ---- one entry ---- */

/* An entry equal to it must be absent. */
void orderedInsert(orderedIndex *x, const orderedType *type, void *entry);
/* Takes out an entry, which must be there. */
void orderedDelete(orderedIndex *x, const orderedType *type, const void *entry);
/* The entry is about to get another rank. True: it stands right, and its rank is to be changed at once. False: it
 * was taken out, to be inserted when it has its new rank. */
bool orderedMayKeep(orderedIndex *x, const orderedType *type, const void *entry, uint64_t rank);
/* An entry moved to another address, its rank and text being what they were; nothing is read at the old one. */
void orderedReplace(orderedIndex *x, const orderedType *type, const void *old, void *entry);
/* How many stand before an entry, which must be there. */
uint64_t orderedPlaceOf(const orderedIndex *x, const orderedType *type, const void *entry);

/* ---- points between entries ---- */

typedef struct orderedPoint {
    enum orderedBy { ORDERED_BY_RANK, ORDERED_BY_TEXT } by; /* the other one does not matter */
    bool after; /* behind those that are equal, else before them */
    uint64_t rank;
    slice text;
} orderedPoint;

/* How many stand before a point. By text: all ranks should be equal; else it is a place behind which the next
 * entry is not before the point. */
uint64_t orderedCountBefore(const orderedIndex *x, const orderedType *type,
                            const orderedPoint *point);

/* ---- many entries ---- */

/* A place, good until the next change. */
typedef struct orderedCursor {
    const void *leaf; /* private */
    unsigned at;
} orderedCursor;

/* Puts the cursor on entry number `index` from 0 on, which must be there; returns it. */
void *orderedSeek(const orderedIndex *x, uint64_t index, orderedCursor *cursor);
/* The entry behind, or before; NULL at the end. */
void *orderedNext(orderedCursor *cursor);
void *orderedPrev(orderedCursor *cursor);

typedef void orderedVisitProc(void *context, void *entry);
/* Takes out `count` entries from number `index` on, all of which must be there; each is given to `visit` when the
 * index does not need it any more. */
void orderedDeleteRange(orderedIndex *x, const orderedType *type, uint64_t index, uint64_t count,
                        orderedVisitProc *visit, void *context);

/* ---- the whole ---- */

/* Fills an empty index with entries that are in order. */
void orderedFill(orderedIndex *x, const orderedType *type, void *const *entries, size_t count);
/* Moves nodes to where they lie closer (memMoveIfSparse()): the leaf with entry number `index` and what leads there.
 * Counts those moved and those that stayed. Returns the number behind the leaf's last entry, 0 at the end. */
uint64_t orderedCompact(orderedIndex *x, uint64_t index, uint64_t *moved, uint64_t *kept);
/* Forgets all entries. ANY_THREAD, if no other uses the index. */
void orderedFree(orderedIndex *x);
/* Checks every invariant; NULL when sound, else what is broken. For tests. */
const char *orderedVerify(const orderedIndex *x, const orderedType *type);

#endif
