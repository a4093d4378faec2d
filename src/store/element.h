/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of large collections: small blocks in a slab store of their own, each referenced only by
 * its collection. Main thread, except elementFree() with a valueFreer for another thread. */
#ifndef STORE_ELEMENT_H
#define STORE_ELEMENT_H

#include <stddef.h>

#include "ds/hashtable.h"
#include "store/slab.h"
#include "store/slab_exact.h"
#include "store/type.h"

/* The hash of a field or member as text: hashBytes(), which need not be computed for the item that
 * storeKnowItem() was called with. */
uint64_t elementNameHash(slice name);
static inline void *elementAlloc(size_t size) { return slabAllocFrom(slabElements(), size); }
/* An element whose size elementExactSize() returns, if that takes less memory than a length in it:
 * slabAllocExact(). NULL otherwise. Its address is a multiple of 4, so the table must have
 * HASHTABLE_MARK as entry mark, or of 8 if the size is one. */
static inline void *elementAllocExact(size_t size) { return slabAllocExact(slabElements(), size); }
/* 0: the element has a length. Main thread. */
static inline size_t elementExactSize(const void *element) { return slabExactSize(element); }
/* The entry of a hashtableVisitProc whose table has the mark HASHTABLE_MARK. */
static inline void *elementVisited(void *entry, unsigned flags) {
    return (char *)entry + (flags & HASHTABLE_MARK);
}
/* `by` NULL: frees immediately. */
void elementFree(void *element, valueFreer *by);
/* True if the element is freed together with its store. */
static inline bool elementGoesWithStore(const void *element, const valueFreer *by) {
    return by->whole && slabOwns(by->whole, element);
}
/* Moves an element if that reduces fragmentation, and counts it. Returns the new
 * address, which must replace the caller's reference (the old block was freed), or NULL if it was
 * not moved. */
void *elementMove(void *element, compaction *by);
/* Like elementMove() for a block of memAlloc(), if the compaction includes such blocks. */
void *elementMoveBlock(void *block, compaction *by);
/* The same for the own blocks of a table (hashtableCompact()). */
void elementMoveTable(hashtable *table, compaction *by);
/* Counts one visited element. */
static inline void elementSeen(compaction *by) { by->fields -= by->fields > 0; }
/* Moves one element and returns its new address; NULL if it was not moved. */
typedef void *elementMoverProc(void *element, compaction *by);
/* Implements typeOps.compact_value() for a value that is only a table. */
uint64_t elementsCompact(void **body, const hashtableType *type, elementMoverProc *move,
                         uint64_t cursor, compaction *by);
/* True if an element may be modified in place: not while a forked child shares its page. The
 * hostile build moves elements at every change. */
bool elementMayStay(void);

#endif
