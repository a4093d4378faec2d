/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of large collections: small blocks in a slab store of their own, each with one reference, from the
 * collection it belongs to. They carry no size: whoever frees one can tell. Main thread, but for
 * elementFree() with a valueFreer that says otherwise. */
#ifndef STORE_ELEMENT_H
#define STORE_ELEMENT_H

#include <stddef.h>

#include "ds/hashtable.h"
#include "store/slab.h"
#include "store/type.h"

static inline void *elementAlloc(size_t size) { return slabAllocFrom(slabElements(), size); }
/* `size` is what was asked for, or another of the same class. `by` NULL: here and now. */
void elementFree(void *element, size_t size, valueFreer *by);
/* True when nothing need be done for an element but forget it, so that its size need not be known. */
static inline bool elementGoesWithStore(const void *element, const valueFreer *by) {
    return by->whole && slabOwns(by->whole, element);
}
/* Where an element of this size is better placed: there now, the old block is gone, and the caller's reference
 * must follow. NULL: it stays. Counts. */
void *elementMove(void *element, size_t size, compaction *by);
/* The same for a block of memAlloc(), in a compaction that moves such blocks. */
void *elementMoveBlock(void *block, compaction *by);
/* One more element was looked at. */
static inline void elementSeen(compaction *by) { by->fields -= by->fields > 0; }
/* Moves one element and says where it is now; NULL when it stays. */
typedef void *elementMoverProc(void *element, compaction *by);
/* typeOps.compact_value() of a value that is a table's body and nothing else. */
uint64_t elementsCompact(void **body, const hashtableType *type, elementMoverProc *move,
                         uint64_t cursor, compaction *by);
/* Whether an element may be written in place: not while a forked child shares its page. The hostile build
 * moves it at every change. */
bool elementMayStay(void);

#endif
