/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists (type_list.h). Encoding follows Valkey's rules: a listpack is converted when it would
 * exceed one node of a quicklist, and a quicklist with a single node that is at most half full is
 * converted back. Main thread only, except for freeing. */
#include "store/type_list.h"

#include "base/base.h"
#include "store/element.h"
#include "store/type.h"

static quicklist *quicklistOf(const robj *o) { return objectPointer(o); }

const quicklist *listQuicklist(const robj *o) { return objectIsPacked(o) ? NULL : quicklistOf(o); }

/* ------------------------------------------------------------------ creation and conversion */

robj *listNew(slice key) {
    uint8_t empty[LISTPACK_EMPTY_SIZE];
    listpackInit(empty);
    return objectNewPacked(key, TYPE_LIST, FORM_PACKED, sliceMake(empty, sizeof(empty)),
                           OBJECT_NO_EXPIRE, 0);
}

size_t listLength(const robj *o) {
    return objectIsPacked(o) ? listpackCount(objectPacked(o)) : quicklistCount(quicklistOf(o));
}

robj *listPrepare(robj *o, const slice *texts, size_t count, const listLimits *limits) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (!objectIsPacked(o)) return o;
    const uint8_t *lp = objectPacked(o);
    size_t size = listpackSize(lp), entries = listpackCount(lp), more = 0;
    for (size_t i = 0; i < count; i++) more += texts[i].len;
    if (likely(!quicklistExceeds(limits->fill, size + more, entries + count))) return o;
    quicklist *q = quicklistNew(limits->fill, limits->depth);
    if (entries) {
        uint8_t *bytes = memAlloc(size);
        memcpy(bytes, lp, size);
        quicklistTakeListpack(q, &bytes);
    }
    return objectUnpack(o, q);
}

robj *listTryPack(robj *o, const listLimits *limits) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (objectIsPacked(o)) return o;
    const uint8_t *lp = quicklistOnlyListpack(quicklistOf(o));
    if (likely(!lp)) return o;
    quicklistLimits node_limits = quicklistLimitsOf(limits->fill);
    if (listpackSize(lp) > node_limits.bytes / 2 || listpackCount(lp) > node_limits.entries / 2)
        return o;
    return objectPack(o, FORM_PACKED, sliceMake(lp, listpackSize(lp)));
}

/* ------------------------------------------------------------------ changes */

/* Adds texts to a listpack in groups. */
static robj *pushPacked(robj *o, const slice *texts, size_t count, bool front) {
    hotCheck(objectType(o) == TYPE_LIST);
    hotCheck(objectIsPacked(o));
    hotCheck(count > 0);
    enum { TOGETHER = 16 };
    listpackItem items[TOGETHER];
    objectBuffer r;
    objectBufferInit(&r, o);
    for (size_t done = 0; done < count;) {
        size_t n = sizeMin(count - done, TOGETHER);
        for (size_t i = 0; i < n; i++)
            items[front ? n - 1 - i : i] = listpackItemOf(texts[done + i]);
        if (front) {
            listpackPrepend(&r.buffer, items, n);
        } else {
            listpackAppend(&r.buffer, items, n);
        }
        done += n;
    }
    return r.o;
}

robj *listPush(robj *o, const slice *texts, size_t count, bool front) {
    hotCheck(objectType(o) == TYPE_LIST);
    hotCheck(count > 0);
    if (objectIsPacked(o)) return pushPacked(o, texts, count, front);
    quicklist *q = quicklistOf(o);
    for (size_t i = 0; i < count; i++) quicklistPush(q, texts[i], front);
    return o;
}

robj *listInsert(robj *o, size_t index, slice text, bool after) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (!objectIsPacked(o)) {
        quicklistInsert(quicklistOf(o), index, text, after);
        return o;
    }
    listpackItem item = listpackItemOf(text);
    objectBuffer r;
    objectBufferInit(&r, o);
    const uint8_t *at = listpackSeek(r.buffer.bytes, (int64_t)index);
    check(at != NULL);
    if (after) at = listpackNext(r.buffer.bytes, at);
    (void)listpackInsert(&r.buffer, at, &item, 1); /* the position is known */
    return r.o;
}

robj *listSet(robj *o, size_t index, slice text) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (!objectIsPacked(o)) {
        quicklistSet(quicklistOf(o), index, text);
        return o;
    }
    listpackItem item = listpackItemOf(text);
    objectBuffer r;
    objectBufferInit(&r, o);
    const uint8_t *at = listpackSeek(r.buffer.bytes, (int64_t)index);
    check(at != NULL);
    (void)listpackReplace(&r.buffer, at, &item); /* the position is known */
    return r.o;
}

robj *listDelete(robj *o, size_t index, size_t count) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (!objectIsPacked(o)) {
        quicklistDelete(quicklistOf(o), index, count);
        return o;
    }
    objectBuffer r;
    objectBufferInit(&r, o);
    listpackDeleteRange(&r.buffer, (int64_t)index, count);
    return r.o;
}

/* The positions of elements equal to `item`, in order; with `from_back` they are at the end of
 * `places`, which has space for `most`. Returns the first one. */
static const uint8_t **findPositions(const uint8_t *lp, const listpackItem *item, size_t most,
                                     bool from_back, const uint8_t **places, size_t *found) {
    *found = 0;
    if (from_back) {
        const uint8_t **first = places + most;
        for (const uint8_t *at = listpackLast(lp); at && *found < most; at = listpackPrev(lp, at)) {
            if (!listpackEquals(at, item)) continue;
            *--first = at;
            ++*found;
        }
        return first;
    }
    const uint8_t *at = listpackFind(lp, NULL, item, 0);
    while (at && *found < most) {
        places[(*found)++] = at;
        at = listpackNext(lp, at);
        if (at) at = listpackFind(lp, at, item, 0);
    }
    return places;
}

robj *listDeleteEqual(robj *o, const listpackItem *item, size_t most, bool from_back,
                      size_t *removed) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (!objectIsPacked(o)) {
        *removed = quicklistRemove(quicklistOf(o), item, most, from_back);
        return o;
    }
    objectBuffer r;
    objectBufferInit(&r, o);
    most = sizeMin(most, listpackCount(r.buffer.bytes));
    const uint8_t **places = memNewArray(const uint8_t *, most);
    const uint8_t **first = findPositions(r.buffer.bytes, item, most, from_back, places, removed);
    listpackDeleteMany(&r.buffer, first, *removed, 1);
    memFree(places);
    return r.o;
}

/* ------------------------------------------------------------------ iteration */

void listCursorInit(listCursor *c, const robj *o, size_t index, bool backwards) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (objectIsPacked(o)) {
        c->lp = objectPacked(o);
        c->at = listpackSeek(c->lp, (int64_t)index);
        c->backwards = backwards;
        return;
    }
    c->lp = NULL;
    quicklistCursorInit(&c->nodes, quicklistOf(o), index, backwards);
}

void listCursorClear(listCursor *c) {
    if (!c->lp) quicklistCursorClear(&c->nodes);
}

/* ------------------------------------------------------------------ type operations */

static const char *encodingOf(const robj *o) {
    return objectIsPacked(o) ? "listpack" : "quicklist";
}

static void digestList(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id; /* the same everywhere */
    (void)look;  /* list elements do not expire */
    listCursor c;
    listpackItem item;
    char digits[NUMBER_TEXT_MAX];
    listCursorInit(&c, o, 0, false);
    while (listNextItem(&c, &item)) digestMix(to, listpackText(&item, digits));
    listCursorClear(&c);
}

static void freeList(void *value, valueFreer *by) {
    (void)by; /* nodes are not in a slab store */
    quicklistFree(value);
}

static void *copyList(const valuePlace *from, const valuePlace *to, void *value) {
    (void)from, (void)to; /* not needed */
    return quicklistCopy(value);
}

static size_t nodeCount(const valuePlace *at, const void *value) {
    (void)at; /* not needed */
    quicklistStats stats;
    quicklistGetStats(value, &stats);
    return stats.nodes;
}

static size_t listMemory(const valuePlace *at, const void *value, size_t samples) {
    (void)at; /* not needed */
    return quicklistMemory(value, samples);
}

static uint64_t compactList(void **value, uint64_t cursor, compaction *by) {
    if (!by->heap) return 0; /* nodes are not in a slab store */
    void *moved = cursor == 0 ? elementMoveBlock(*value, by) : NULL;
    if (moved) *value = moved;
    bool more = quicklistCompact(*value, cursor == 0, by->fields, &by->moved, &by->kept);
    by->fields = 0;
    return more;
}

const typeOps listOps = {
    .encoding = encodingOf,
    .length = listLength,
    .digest = digestList,
    .free_value = freeList,
    .copy_value = copyList,
    .free_effort = nodeCount,
    .value_memory = listMemory,
    .compact_value = compactList,
};
