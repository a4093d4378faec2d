/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists as values of keyspace objects: a small one is a listpack in the object, a large one a
 * quicklist behind the pointer.
 *
 * A change may replace the object: functions take the object returned by dbFind() or listNew() and
 * return the resulting one, which the caller must pass to dbPlace() immediately. A list is never
 * stored empty. Indexes count from 0. Texts passed must not point into the object; returned ones
 * are borrowed until it changes. Main thread only. */
#ifndef STORE_TYPE_LIST_H
#define STORE_TYPE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "ds/listpack.h"
#include "ds/quicklist.h"
#include "store/object.h"

/* list-max-listpack-size and list-compress-depth; a quicklist keeps the values it was created
 * with. */
typedef struct listLimits {
    int fill, depth;
} listLimits;

/* An empty list for a missing key. */
robj *listNew(slice key) MUST_USE;
size_t listLength(const robj *o);
/* Converts a listpack that would become too large with these texts to a quicklist. Call before
 * every change that adds texts. */
robj *listPrepare(robj *o, const slice *texts, size_t count, const listLimits *limits) MUST_USE;
/* Converts a quicklist that has become small enough back to a listpack. Call after every change
 * that removes texts. */
robj *listTryPack(robj *o, const listLimits *limits) MUST_USE;

/* Appends the texts one after the other, or prepends each one. */
robj *listPush(robj *o, const slice *texts, size_t count, bool front) MUST_USE;
robj *listInsert(robj *o, size_t index, slice text, bool after) MUST_USE;
robj *listSet(robj *o, size_t index, slice text) MUST_USE;
/* Removes `count` elements from `index` on, or as many as there are. */
robj *listDelete(robj *o, size_t index, size_t count) MUST_USE;
/* Removes the first `most` elements equal to `item`, or the last ones; *removed is their number. */
robj *listDeleteEqual(robj *o, const listpackItem *item, size_t most, bool from_back,
                      size_t *removed) MUST_USE;

/* Iterates over elements. The list must not change meanwhile. Must not be copied. */
typedef struct listCursor {
    const uint8_t *lp, *at; /* private; lp is NULL for a quicklist */
    bool backwards;
    quicklistCursor nodes;
} listCursor;
/* Starts at `index`, towards the end or, if `backwards`, towards the front. */
void listCursorInit(listCursor *c, const robj *o, size_t index, bool backwards);
/* The next element, or false at the end. Its text is borrowed until the next call. */
static inline bool listNextItem(listCursor *c, listpackItem *out) {
    if (!c->lp) return quicklistNext(&c->nodes, out);
    if (!c->at) return false;
    const uint8_t *next = listpackRead(c->at, out);
    c->at = c->backwards ? listpackPrev(c->lp, c->at) : next;
    return true;
}
void listCursorClear(listCursor *c);

/* The quicklist; NULL if the list is packed. */
const quicklist *listQuicklist(const robj *o);

#endif
