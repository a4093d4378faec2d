/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists as values of keyspace objects: a listpack in the object while they are small, else a quicklist behind the
 * pointer.
 *
 * A change may turn the object into another one: functions take the object that dbFind() or listNew() returned
 * and hand back what it has become, which the caller gives to dbPlace() at once. A list is never stored empty.
 * Indexes count from 0; texts given may not lie in the object, those handed out are borrowed until it changes.
 * Main thread only. */
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

/* list-max-listpack-size and list-compress-depth; a quicklist keeps those it was made with. */
typedef struct listLimits {
    int fill, depth;
} listLimits;

/* An empty list for a key that is not there. */
robj *listNew(slice key) MUST_USE;
size_t listLength(const robj *o);
/* Turns a listpack which these texts would make too large into a quicklist. Comes before each change that puts
 * texts in. */
robj *listPrepare(robj *o, const slice *texts, size_t count, const listLimits *limits) MUST_USE;
/* Turns a quicklist that has become small enough back into a listpack. Comes behind each change that takes texts
 * out. */
robj *listSettle(robj *o, const listLimits *limits) MUST_USE;

/* Adds the texts one after the other at the end, or each at the front. */
robj *listPush(robj *o, const slice *texts, size_t count, bool front) MUST_USE;
robj *listInsert(robj *o, size_t index, slice text, bool after) MUST_USE;
robj *listSet(robj *o, size_t index, slice text) MUST_USE;
/* Takes out `count` elements from `index` on; as many as there are. */
robj *listDelete(robj *o, size_t index, size_t count) MUST_USE;
/* Takes out the first `most` elements equal to `item`, or the last ones; *removed is how many went. */
robj *listDeleteEqual(robj *o, const listpackItem *item, size_t most, bool from_back,
                      size_t *removed) MUST_USE;

/* A walk over elements. The list may not change meanwhile. Not to be copied. */
typedef struct listCursor {
    const uint8_t *lp, *at; /* private; lp NULL: a quicklist */
    bool backwards;
    quicklistCursor nodes;
} listCursor;
/* Begins at `index`, towards the end or, `backwards`, towards the front. */
void listCursorInit(listCursor *c, const robj *o, size_t index, bool backwards);
/* The next element, or false at the end. Text is borrowed until the next call. */
static inline bool listNextItem(listCursor *c, listpackItem *out) {
    if (!c->lp) return quicklistNext(&c->nodes, out);
    if (!c->at) return false;
    const uint8_t *next = listpackRead(c->at, out);
    c->at = c->backwards ? listpackPrev(c->lp, c->at) : next;
    return true;
}
void listCursorClear(listCursor *c);

/* The quicklist; NULL while the list is packed. */
const quicklist *listQuicklist(const robj *o);

#endif
