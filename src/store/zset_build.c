/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building sorted sets from unordered members (type_zset.h): they are collected in a table and sorted at the end.
 * Main thread only. */
#include <stdlib.h>

#include "ds/hashtable_inline.h"
#include "ds/key_sort.h"
#include "store/zset_priv.h"

void zsetBuilderInit(zsetBuilder *b) { *b = (zsetBuilder){.longest = 0}; }

void zsetBuilderReserve(zsetBuilder *b, size_t count) {
    hashtableReserve(&b->members, &zset_members, count);
}

void *zsetBuilderAt(zsetBuilder *b, slice member, bool *created) {
    hashtablePosition position;
    void *element =
        hashtableInlineFindPosition(&b->members, &zset_members, hashBytes(member.ptr, member.len),
                                    zsetElementHas, member.ptr, member.len, &position);
    *created = !element;
    if (element) return element;
    check(!b->sorted);
    element = zsetElementNew(member, 0);
    hashtableInsertAt(&b->members, &zset_members, &position, element, 0);
    b->longest = sizeMax(b->longest, member.len);
    return element;
}

double zsetBuilderRead(const void *place) { return zsetElementScore(place); }
void zsetBuilderWrite(void *place, double score) { zsetElementSetScore(place, score); }

void zsetBuilderRemove(zsetBuilder *b, slice member) {
    void *element = hashtableDelete(&b->members, &zset_members, hashBytes(member.ptr, member.len),
                                    member.ptr, member.len);
    if (element) elementFree(element, zsetElementSize(element), NULL);
}

size_t zsetBuilderCount(const zsetBuilder *b) { return hashtableCount(&b->members); }

static int compareRanked(const void *a, const void *b) {
    const sortKey *first = a, *second = b;
    if (first->order != second->order) return first->order < second->order ? -1 : 1;
    return orderedCompareText(zsetElementMember(first->entry), zsetElementMember(second->entry));
}

/* Creates b->sorted, once. */
static void sortAll(zsetBuilder *b) {
    if (b->sorted) return;
    size_t count = zsetBuilderCount(b), n = 0;
    sortKey *all = memNewArray(sortKey, sizeMax(count, 1));
    hashtableIterator it;
    hashtableIteratorInit(&it, &b->members, &zset_members);
    void *element;
    while ((element = hashtableIteratorNext(&it, NULL)))
        all[n++] = (sortKey){zset_order.rank_of(element), {.entry = element}};
    hashtableIteratorClear(&it);
    check(n == count);
    keySort(all, count, compareRanked);
    b->sorted = memNewArray(void *, sizeMax(count, 1));
    for (size_t i = 0; i < count; i++) b->sorted[i] = all[i].entry;
    memFree(all);
}

void zsetBuilderVisit(zsetBuilder *b, zsetVisitProc *visit, void *arg) {
    sortAll(b);
    size_t count = zsetBuilderCount(b);
    for (size_t i = 0; i < count; i++) {
        zsetPair pair = {zsetElementMember(b->sorted[i]), zsetElementScore(b->sorted[i])};
        visit(arg, &pair);
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
    zsetLarge *z = memNew(zsetLarge);
    z->members = b->members;
    orderedFill(&z->order, &zset_order, b->sorted, count);
    memFree(b->sorted);
    zsetBuilderInit(b);
    return objectNewPointer(key, TYPE_ZSET, z, OBJECT_NO_EXPIRE, 0);
}

static void freeBuilt(void *context, void *element, unsigned flags) {
    (void)context; /* freed immediately */
    (void)flags;   /* all entries */
    elementFree(element, zsetElementSize(element), NULL);
}

void zsetBuilderClear(zsetBuilder *b) {
    hashtableFree(&b->members, freeBuilt, NULL);
    memFree(b->sorted);
    zsetBuilderInit(b);
}
