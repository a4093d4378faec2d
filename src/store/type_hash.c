/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hashes (type_hash.h).
 *
 * The pointer of an object with a table is the table's handle itself. An element of the table is one block:
 *
 *   [255, and 8 bytes of Unix time in ms, if the field has a time] [length] [field] [length] [value]
 *
 * Lengths are those of objects (object.h), which never begin with 255. Main thread only, but for freeing. */
#include "store/type_hash.h"

#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable_inline.h"
#include "ds/listpack.h"
#include "store/element.h"
#include "store/pick.h"

enum { ELEMENT_TIMED = 255, ELEMENT_TIME_BYTES = 9 };

/* ------------------------------------------------------------------ elements of a table */

static inline const char *elementText(const void *element) {
    const char *at = element;
    return unlikely((uint8_t)*at == ELEMENT_TIMED) ? at + ELEMENT_TIME_BYTES : at;
}

static inline slice elementField(const void *element) {
    const char *at = elementText(element);
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

static inline slice elementValue(const void *element) {
    slice field = elementField(element);
    const char *at = field.ptr + field.len;
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

static size_t elementSize(const void *element) {
    slice value = elementValue(element);
    return (size_t)(value.ptr + value.len - (const char *)element);
}

static void *elementNew(slice field, slice value) {
    size_t size =
        objectLengthBytes(field.len) + field.len + objectLengthBytes(value.len) + value.len;
    char *element = elementAlloc(size);
    char *at = objectWriteLength(element, field.len);
    memcpy(at, field.ptr, field.len);
    at = objectWriteLength(at + field.len, value.len);
    memcpy(at, value.ptr, value.len);
    return element;
}

/* The element with another value: itself, or a new one in whose favour it was freed. */
static void *elementSetValue(void *element, slice value) {
    slice field = elementField(element);
    size_t head = (size_t)(field.ptr + field.len - (const char *)element);
    size_t old_size = elementSize(element);
    size_t size = head + objectLengthBytes(value.len) + value.len;
    if (likely(slabSameClass(old_size, size)) && elementMayStay()) {
        memcpy(objectWriteLength((char *)element + head, value.len), value.ptr, value.len);
        return element;
    }
    char *changed = elementAlloc(size);
    memcpy(changed, element, head);
    memcpy(objectWriteLength(changed + head, value.len), value.ptr, value.len);
    elementFree(element, old_size, NULL);
    return changed;
}

static uint64_t elementHash(const void *element) {
    slice field = elementField(element);
    return hashBytes(field.ptr, field.len);
}

static inline bool elementHasField(const void *element, const void *field, size_t len) {
    slice own = elementField(element);
    return own.len == len && memcmp(own.ptr, field, len) == 0;
}

static const hashtableType fields_type = {.hash_of = elementHash, .match = elementHasField};

static inline hashtable tableOf(const robj *o) { return (hashtable){objectPointer(o)}; }

/* The table may have moved. */
static inline void putTable(robj *o, const hashtable *t) {
    if (objectPointer(o) != t->body) objectSetPointer(o, t->body);
}

/* ------------------------------------------------------------------ reading */

robj *hashNew(slice key) {
    uint8_t empty[LISTPACK_EMPTY_SIZE];
    listpackInit(empty);
    return objectNewPacked(key, TYPE_HASH, FORM_PACKED, sliceMake(empty, sizeof(empty)),
                           OBJECT_NO_EXPIRE, 0);
}

size_t hashLength(const robj *o) {
    if (objectIsPacked(o)) return listpackCount(objectPacked(o)) / 2;
    hashtable t = tableOf(o);
    return hashtableCount(&t);
}

/* The place of a field in a listpack, NULL when there is none. */
static inline const uint8_t *findPacked(const uint8_t *lp, slice field) {
    listpackItem item = listpackItemOf(field);
    return listpackFind(lp, NULL, &item, 1);
}

bool hashGet(const robj *o, slice field, char *digits, slice *value) {
    if (objectIsPacked(o)) {
        const uint8_t *lp = objectPacked(o), *at = findPacked(lp, field);
        if (at) *value = listpackGetText(listpackNext(lp, at), digits);
        return at != NULL;
    }
    hashtable t = tableOf(o);
    const void *element = hashtableInlineFind(&t, hashBytes(field.ptr, field.len), elementHasField,
                                              field.ptr, field.len);
    if (element) *value = elementValue(element);
    return element != NULL;
}

/* ------------------------------------------------------------------ changing */

/* The packed hash becomes a table with room for `count` fields. */
static robj *toTable(robj *o, size_t count) {
    hashtable t = {NULL};
    hashtableReserve(&t, &fields_type, count);
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o);
    while (hashNext(&it, &pair)) {
        uint64_t hash = hashBytes(pair.field.ptr, pair.field.len);
        hashtableInsert(&t, &fields_type, hash, elementNew(pair.field, pair.value), 0);
    }
    hashIteratorClear(&it);
    return objectUnpack(o, t.body);
}

robj *hashPrepare(robj *o, const slice *words, size_t count, const packLimits *limits) {
    if (!objectIsPacked(o)) return o;
    size_t bytes = 0;
    bool fits = count / 2 <= limits->entries;
    for (size_t i = 0; i < count && fits; i++) {
        fits = words[i].len <= limits->bytes;
        bytes += words[i].len;
    }
    if (likely(fits) && listpackCanGrow(objectPacked(o), bytes)) return o;
    return toTable(o, hashLength(o) + count / 2);
}

static robj *setPacked(robj *o, slice field, slice value, const packLimits *limits, bool *created) {
    objectRoom r;
    objectRoomInit(&r, o);
    listpackItem pair[2] = {listpackItemOf(field), listpackItemOf(value)};
    const uint8_t *at = listpackFind(r.room.bytes, NULL, &pair[0], 1);
    *created = !at;
    if (at) {
        (void)listpackReplace(&r.room, listpackNext(r.room.bytes, at), &pair[1]); /* placed */
    } else {
        listpackAppend(&r.room, pair, 2);
    }
    size_t length = listpackCount(r.room.bytes) / 2;
    return unlikely(length > limits->entries) ? toTable(r.o, length) : r.o;
}

robj *hashSet(robj *o, slice field, slice value, const packLimits *limits, bool *created) {
    if (objectIsPacked(o)) {
        size_t most = sizeMax(field.len, value.len);
        if (most <= limits->bytes && listpackCanGrow(objectPacked(o), most * 2))
            return setPacked(o, field, value, limits, created);
        o = toTable(o, hashLength(o) + 1);
    }
    hashtable t = tableOf(o);
    hashtablePosition position;
    uint64_t hash = hashBytes(field.ptr, field.len);
    void *element =
        hashtableInlineFindPosition(&t, hash, elementHasField, field.ptr, field.len, &position);
    *created = !element;
    if (element) {
        void *changed = elementSetValue(element, value);
        if (changed != element) hashtableReplaceAt(&position, changed);
    } else {
        hashtableInsertAt(&t, &fields_type, &position, elementNew(field, value), 0);
        putTable(o, &t);
    }
    return o;
}

bool hashDelete(robj **o, slice field) {
    if (objectIsPacked(*o)) {
        const uint8_t *at = findPacked(objectPacked(*o), field);
        if (!at) return false;
        objectRoom r;
        objectRoomInit(&r, *o);
        (void)listpackDelete(&r.room, at, 2); /* what follows does not matter */
        *o = r.o;
        return true;
    }
    hashtable t = tableOf(*o);
    void *element =
        hashtableDelete(&t, &fields_type, hashBytes(field.ptr, field.len), field.ptr, field.len);
    if (!element) return false;
    elementFree(element, elementSize(element), NULL);
    putTable(*o, &t);
    return true;
}

/* ------------------------------------------------------------------ many pairs */

void hashIteratorInit(hashIterator *it, const robj *o) {
    it->o = o;
    if (objectIsPacked(o)) {
        it->at = listpackFirst(objectPacked(o));
        return;
    }
    it->table = tableOf(o);
    hashtableIteratorInit(&it->walk, &it->table, &fields_type);
}

static hashPair pairAt(const uint8_t *at, char digits[2][NUMBER_TEXT_MAX]) {
    slice field = listpackGetText(at, digits[0]);
    return (hashPair){field, listpackGetText(at + listpackEntrySize(at), digits[1])};
}

static hashPair pairOf(const void *element) {
    return (hashPair){elementField(element), elementValue(element)};
}

bool hashNext(hashIterator *it, hashPair *out) {
    if (objectIsPacked(it->o)) {
        if (!it->at) return false;
        const uint8_t *lp = objectPacked(it->o);
        *out = pairAt(it->at, it->digits);
        it->at = listpackNext(lp, listpackNext(lp, it->at));
        return true;
    }
    const void *element = hashtableIteratorNext(&it->walk, NULL);
    if (element) *out = pairOf(element);
    return element != NULL;
}

void hashIteratorClear(hashIterator *it) {
    if (!objectIsPacked(it->o)) hashtableIteratorClear(&it->walk);
}

typedef struct visitor {
    hashVisitProc *visit;
    void *arg;
} visitor;

static void visitElement(void *context, void *element, unsigned flags) {
    (void)flags; /* any */
    const visitor *v = context;
    hashPair pair = pairOf(element);
    v->visit(v->arg, &pair);
}

uint64_t hashScan(const robj *o, uint64_t cursor, hashVisitProc *visit, void *arg) {
    if (!objectIsPacked(o)) {
        hashtable t = tableOf(o);
        visitor v = {visit, arg};
        cursor &= (UINT64_C(1) << HASHTABLE_CURSOR_BITS) - 1;
        return hashtableScan(&t, &fields_type, cursor, visitElement, &v);
    }
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o);
    while (hashNext(&it, &pair)) visit(arg, &pair);
    hashIteratorClear(&it);
    return 0;
}

static bool pickPacked(void *context, const uint8_t *at) {
    const visitor *v = context;
    char digits[2][NUMBER_TEXT_MAX];
    hashPair pair = pairAt(at, digits);
    v->visit(v->arg, &pair);
    return true;
}

static bool pickElement(void *context, const void *element) {
    const visitor *v = context;
    hashPair pair = pairOf(element);
    v->visit(v->arg, &pair);
    return true;
}

void hashRandom(const robj *o, size_t count, bool unique, hashVisitProc *visit, void *arg) {
    visitor v = {visit, arg};
    if (objectIsPacked(o)) {
        pickFromListpack(objectPacked(o), 2, count, unique, pickPacked, &v);
        return;
    }
    hashtable t = tableOf(o);
    pickFromTable(&t, &fields_type, count, unique, pickElement, &v);
}

/* ------------------------------------------------------------------ as one type among others */

static const char *encodingOf(const robj *o) {
    return objectIsPacked(o) ? "listpack" : "hashtable";
}

static void digestHash(const robj *o, digest *to) {
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o);
    while (hashNext(&it, &pair)) {
        digest own = {{0}};
        digestMix(&own, pair.field);
        digestMix(&own, pair.value);
        digestXor(to, &own);
    }
    hashIteratorClear(&it);
}

static void freeElement(void *context, void *element, unsigned flags) {
    (void)flags; /* every element goes */
    valueFreer *by = context;
    if (!elementGoesWithStore(element, by)) elementFree(element, elementSize(element), by);
}

static void freeTable(void *value, valueFreer *by) {
    hashtable t = {value};
    hashtableFree(&t, freeElement, by);
}

static void *copyTable(void *value) {
    hashtable from = {value}, to = {NULL};
    hashtableReserve(&to, &fields_type, hashtableCount(&from));
    hashtableIterator it;
    hashtableIteratorInit(&it, &from, &fields_type);
    const void *element;
    unsigned flags;
    while ((element = hashtableIteratorNext(&it, &flags))) {
        size_t size = elementSize(element);
        void *copy = elementAlloc(size);
        memcpy(copy, element, size);
        hashtableInsert(&to, &fields_type, elementHash(element), copy, flags);
    }
    hashtableIteratorClear(&it);
    return to.body;
}

static size_t tableEffort(const void *value) {
    hashtable t = {(void *)(uintptr_t)value};
    return hashtableCount(&t);
}

static size_t elementMemory(const void *element) { return slabClassSize(elementSize(element)); }

static size_t tableMemory(const void *value, size_t samples) {
    hashtable t = {(void *)(uintptr_t)value};
    return hashtableBytes(&t) + pickedMemory(&t, &fields_type, samples, elementMemory);
}

static void moveElement(void *context, void *element, unsigned flags) {
    (void)flags; /* they stay */
    void *moved = elementMove(element, elementSize(element));
    if (moved) check(hashtableReplace(context, elementHash(moved), element, moved));
}

static uint64_t compactTable(void *value, uint64_t cursor) {
    hashtable t = {value};
    cursor = hashtableScan(&t, &fields_type, cursor, moveElement, &t);
    check(t.body == value);
    return cursor;
}

static size_t savedHash(const robj *o) {
    if (objectIsPacked(o)) {
        size_t size = listpackSize(objectPacked(o));
        return size + savedLengthSize(size);
    }
    hashIterator it;
    hashPair pair;
    size_t size = savedLengthSize(hashLength(o));
    hashIteratorInit(&it, o);
    while (hashNext(&it, &pair)) size += savedTextSize(pair.field) + savedTextSize(pair.value);
    hashIteratorClear(&it);
    return size;
}

static void statsOf(const void *value, hashtableStats *out) {
    hashtable t = {(void *)(uintptr_t)value};
    hashtableStatsRead(&t, &fields_type, out);
}

const typeOps hashOps = {
    .encoding = encodingOf,
    .length = hashLength,
    .digest = digestHash,
    .free_value = freeTable,
    .copy_value = copyTable,
    .free_effort = tableEffort,
    .value_memory = tableMemory,
    .compact_value = compactTable,
    .saved_size = savedHash,
    .table_stats = statsOf,
};
