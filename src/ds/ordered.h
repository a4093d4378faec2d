/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ordered: an index of entries ordered by rank (64 bits) and, among equal ranks, by text. It counts
 * the entries before any point and finds the entry at any index in O(log n): a B+ tree whose inner
 * nodes contain counts.
 *
 * An entry is a pointer supplied by the caller, a multiple of 4 below 2^48, whose orderedType
 * provides rank and text; no two entries may be equal in both. An entry takes 6.4 to 7.5 bytes; 4
 * more if the entries of a leaf are not within 12 GB. The handle is all zero when empty. Not
 * thread-safe: one owner at a time. orderedFree() may run on another thread. */
#ifndef DS_ORDERED_H
#define DS_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct orderedIndex {
    void *root;     /* private: NULL if empty */
    uint64_t count; /* number of entries */
    uint64_t bytes; /* private: of all nodes */
    unsigned levels;
} orderedIndex;

typedef struct orderedType {
    uint64_t (*rank_of)(const void *entry);
    slice (*text_of)(const void *entry);
} orderedType;

/* Compares bytes as unsigned numbers; a prefix is less than the longer text. */
int orderedCompareText(slice a, slice b);

/* ---- single entries ---- */

/* The index must not contain an equal entry. */
void orderedInsert(orderedIndex *x, const orderedType *type, void *entry);
/* Removes an entry, which must be present. */
void orderedDelete(orderedIndex *x, const orderedType *type, const void *entry);
/* Called before the rank of an entry changes. True: its position remains correct, and the caller
 * changes the rank. False: the entry was removed, and the caller inserts it again with its new
 * rank. */
bool orderedPrepareRank(orderedIndex *x, const orderedType *type, const void *entry, uint64_t rank);
/* Replaces the address of an entry with unchanged rank and text; the old address is not
 * accessed. */
void orderedReplace(orderedIndex *x, const orderedType *type, const void *old, void *entry);
/* The index of an entry, which must be present. */
uint64_t orderedIndexOf(const orderedIndex *x, const orderedType *type, const void *entry);

/* ---- points between entries ---- */

typedef struct orderedPoint {
    enum orderedBy { ORDERED_BY_RANK, ORDERED_BY_TEXT } by; /* the other field is ignored */
    bool after; /* after equal entries, else before them */
    uint64_t rank;
    slice text;
} orderedPoint;

/* Number of entries before a point. By text this requires that all ranks are equal; otherwise it is
 * some position whose next entry is not before the point. */
uint64_t orderedCountBefore(const orderedIndex *x, const orderedType *type,
                            const orderedPoint *point);

/* ---- iteration ---- */

/* A position, valid until the next change. */
typedef struct orderedCursor {
    const void *leaf; /* private */
    unsigned at;
} orderedCursor;

/* Moves the cursor to the entry at `index`, which must exist; returns it. */
void *orderedSeek(const orderedIndex *x, uint64_t index, orderedCursor *cursor);
/* The next or previous entry; NULL at the end. */
void *orderedNext(orderedCursor *cursor);
void *orderedPrev(orderedCursor *cursor);

/* Stores the next (`reverse`: previous) entries, at most `most`, and prefetches them; returns their
 * number, less than `most` only at the end. */
unsigned orderedReadMany(orderedCursor *cursor, bool reverse, void **out, unsigned most);

typedef void orderedVisitProc(void *context, void *entry);
/* Removes `count` entries from `index` on, which must exist; calls `visit` with each one when the
 * index no longer needs it. */
void orderedDeleteRange(orderedIndex *x, const orderedType *type, uint64_t index, uint64_t count,
                        orderedVisitProc *visit, void *context);

/* ---- the whole index ---- */

/* Fills an empty index with sorted entries. */
void orderedFill(orderedIndex *x, const orderedType *type, void *const *entries, size_t count);
/* Moves nodes to denser pages (memMoveIfSparse()): the leaf with the entry at `index` and the nodes
 * that lead to it. Adds to the numbers of blocks moved and kept. Returns the index after the last
 * entry of the leaf, 0 at the end. */
uint64_t orderedCompact(orderedIndex *x, uint64_t index, uint64_t *moved, uint64_t *kept);
/* Removes all entries and frees the nodes. ANY_THREAD, if no other thread uses the index. */
void orderedFree(orderedIndex *x);
/* Checks all invariants; NULL if valid, else a description of the violation. For tests. */
const char *orderedVerify(const orderedIndex *x, const orderedType *type);

#endif
