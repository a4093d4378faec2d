/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building sorted sets from unordered members (type_zset.h): they are collected in a table, or in
 * an array if they are known to be distinct, and sorted at the end. Main thread only. */
#include <stdlib.h>

#include "base/fiber.h"
#include "ds/hashtable_inline.h"
#include "ds/key_sort.h"
#include "store/zset_priv.h"

void zsetBuilderInit(zsetBuilder *b) { *b = (zsetBuilder){.longest = 0}; }

void zsetBuilderReserve(zsetBuilder *b, size_t count) {
    hashtableReserve(&b->members, &zset_members, count);
}

void *zsetBuilderAt(zsetBuilder *b, slice member, bool *created) {
    hotCheck(threadIsMain());
    hashtablePosition position;
    void *element =
        hashtableInlineFindPosition(&b->members, &zset_members, hashBytes(member.ptr, member.len),
                                    zsetElementHas, member.ptr, member.len, &position);
    *created = !element;
    if (element) return element;
    check(!b->sorted);
    check(!b->appended);
    element = zsetElementNew(member, 0);
    hashtableInsertAt(&b->members, &zset_members, &position, element, 0);
    b->longest = sizeMax(b->longest, member.len);
    return element;
}

double zsetBuilderRead(const void *place) { return zsetElementScore(place); }
void zsetBuilderWrite(void *place, double score) { zsetElementSetScore(place, score); }

void zsetBuilderAppend(zsetBuilder *b, const zsetPair *pair) {
    hotCheck(threadIsMain());
    enum { CAP_MIN = 32 };
    check(!b->sorted);
    check(hashtableCount(&b->members) == 0);
    if (b->count == b->cap) {
        b->cap = sizeMax(2 * b->cap, CAP_MIN);
        b->appended = memRealloc(b->appended, b->cap * sizeof(*b->appended));
    }
    b->appended[b->count++] = zsetElementNew(pair->member, pair->score);
    b->longest = sizeMax(b->longest, pair->member.len);
}

void zsetBuilderRemove(zsetBuilder *b, slice member) {
    void *element = hashtableDelete(&b->members, &zset_members, hashBytes(member.ptr, member.len),
                                    member.ptr, member.len);
    if (element) elementFree(element, NULL);
}

size_t zsetBuilderCount(const zsetBuilder *b) {
    return b->appended ? b->count : hashtableCount(&b->members);
}

static int compareRanked(const void *a, const void *b, void *context) {
    (void)context; /* everything is in the elements */
    const sortKey *first = a, *second = b;
    if (first->order != second->order) return first->order < second->order ? -1 : 1;
    (void)fiberPoint(1); /* many may have the same score; half sorted they are of no use */
    return orderedCompareText(zsetElementMember(first->entry), zsetElementMember(second->entry));
}

static sortKey keyOf(void *element) {
    return (sortKey){zsetScoreRank(zsetElementScore(element)), {.entry = element}};
}

/* Creates b->sorted, once. */
static void sortAll(zsetBuilder *b) {
    enum { CHUNK = 1024, CHUNK_POINTS = 32 }; /* entries that take as long as so many elements */
    if (b->sorted) return;
    size_t count = zsetBuilderCount(b), n = 0;
    sortKey *all = memNewArray(sortKey, sizeMax(count, 1));
    for (; n < b->count; n++) {
        all[n] = keyOf(b->appended[n]);
        (void)fiberPoint(1);
    }
    hashtableIterator it;
    hashtableIteratorInit(&it, &b->members, &zset_members);
    void *element;
    while ((element = hashtableIteratorNext(&it, NULL))) {
        all[n++] = keyOf(element);
        (void)fiberPoint(1); /* all are needed */
    }
    hashtableIteratorClear(&it);
    check(n == count);
    keySort(all, count, compareRanked, NULL);
    b->sorted = memNewArray(void *, sizeMax(count, 1));
    for (size_t i = 0; i < count; i++) {
        b->sorted[i] = all[i].entry;
        if (i % CHUNK == CHUNK - 1) (void)fiberPoint(CHUNK_POINTS);
    }
    memFree(all);
}

void zsetBuilderVisit(zsetBuilder *b, zsetVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    sortAll(b);
    size_t count = zsetBuilderCount(b);
    for (size_t i = 0; i < count; i++) {
        zsetPair pair = {zsetElementMember(b->sorted[i]), zsetElementScore(b->sorted[i])};
        visit(arg, &pair);
        if (fiberPoint(1)) break;
    }
}

static void appendPair(void *arg, const zsetPair *pair) {
    char digits[NUMBER_TEXT_MAX];
    listpackItem items[2] = {listpackItemOf(pair->member), zsetScoreItem(pair->score, digits)};
    listpackAppend(arg, items, 2);
}

/* True if all members fit in one listpack. */
static bool canPack(const zsetBuilder *b, const packLimits *limits) {
    size_t count = zsetBuilderCount(b);
    return count <= limits->entries && b->longest <= limits->bytes &&
           (count == 0 || b->longest + 2 * NUMBER_TEXT_MAX <= LISTPACK_SIZE_MAX / count);
}

/* Moves the appended elements to the table. Its size is known by now, so it need not grow. */
static void insertAppended(zsetBuilder *b) {
    enum { BATCH = 32 };
    uint64_t hashes[BATCH];
    hashtableReserve(&b->members, &zset_members, b->count);
    for (size_t i = 0; i < b->count; i += BATCH) {
        size_t n = sizeMin(b->count - i, BATCH);
        for (size_t k = 0; k < n; k++) {
            slice member = zsetElementMember(b->appended[i + k]);
            hashes[k] = hashBytes(member.ptr, member.len);
            hashtablePrefetch(&b->members, hashes[k]);
        }
        for (size_t k = 0; k < n; k++)
            hashtableInsert(&b->members, &zset_members, hashes[k], b->appended[i + k], 0);
        (void)fiberPoint((unsigned)n); /* the value is freed as a whole if nobody wants it */
    }
    memFree(b->appended);
    b->appended = NULL;
    b->count = 0;
}

robj *zsetBuilderTake(zsetBuilder *b, slice key, const packLimits *limits) {
    size_t count = zsetBuilderCount(b);
    if (count == 0) {
        zsetBuilderClear(b);
        return NULL;
    }
    sortAll(b);
    if (canPack(b, limits)) {
        packBuffer buffer = packBufferHeap(listpackNew());
        zsetBuilderVisit(b, appendPair, &buffer);
        robj *o = objectNewPacked(key, TYPE_ZSET, FORM_PACKED,
                                  sliceMake(buffer.bytes, listpackSize(buffer.bytes)),
                                  OBJECT_NO_EXPIRE, 0);
        memFree(buffer.bytes);
        zsetBuilderClear(b);
        return o;
    }
    if (b->appended) insertAppended(b);
    zsetLarge *z = memNew(zsetLarge);
    z->members = b->members;
    orderedFill(&z->order, &zset_order, b->sorted, count);
    memFree(b->sorted);
    zsetBuilderInit(b);
    return objectNewPointer(key, TYPE_ZSET, z, OBJECT_NO_EXPIRE, 0);
}

static void freeBuilt(void *context, void *element, unsigned flags) {
    (void)context; /* freed immediately */
    elementFree(elementVisited(element, flags), NULL);
    (void)fiberPoint(1); /* all are freed */
}

void zsetBuilderClear(zsetBuilder *b) {
    hotCheck(threadIsMain());
    for (size_t i = 0; i < b->count; i++) freeBuilt(NULL, b->appended[i], 0);
    memFree(b->appended);
    hashtableFree(&b->members, freeBuilt, NULL);
    memFree(b->sorted);
    zsetBuilderInit(b);
}
