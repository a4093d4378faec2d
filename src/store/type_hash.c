/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hashes (type_hash.h). Those with a shape: hash_record.h.
 *
 * In an object with a table, the pointer is the table's handle; its elements: hash_element.h.
 *
 * Main thread only, except for freeing. */
#include "store/type_hash.h"

#include "base/base.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "base/random.h"
#include "ds/hashtable_inline.h"
#include "ds/listpack.h"
#include "store/element.h"
#include "store/hash_element.h"
#include "store/hash_record.h"
#include "store/random_elements.h"
#include "store/saving_value.h"

/* ------------------------------------------------------------------ elements of a table */

const char *elementLargeEnd(const char *at) {
    if (isReference(at)) return at + REFERENCE_BYTES;
    if (isCompressedPart(at)) {
        compressedPart part = partAt(at);
        return part.packed.ptr + part.packed.len;
    }
    size_t len = objectReadLength(&at);
    return at + len;
}

slice elementExpand(const compressedPart *part, str *into) {
    if (!into) return compressedPartText(part);
    strClear(into);
    char *text = strReserve(into, part->len);
    compressedPartExpand(part, text);
    return sliceMake(text, part->len);
}

/* The value at this place, if its length takes 9 bytes or it is no plain one; `into` as for
 * elementExpand(). */
static NO_INLINE slice largeValue(const char *at, str *into) {
    if (isReference(at))
        return sliceMake((const char *)(uintptr_t)loadU64(at + 1), loadU64(at + 9));
    if (isCompressedPart(at)) {
        compressedPart part = partAt(at);
        return elementExpand(&part, into);
    }
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

ALWAYS_INLINE slice valueAt(const char *at, str *into) {
    size_t len = *(const uint8_t *)at;
    if (likely(len < 128)) return sliceMake(at + 1, len);
    if (unlikely(len >= OBJECT_LENGTH_LARGE)) return largeValue(at, into);
    len = objectReadLength(&at);
    return sliceMake(at, len);
}

/* The value of an element; `into` as for elementExpand(). */
static inline slice elementValue(const void *element, str *into) {
    return valueAt(elementValuePlace(element), into);
}

/* The length of the value at this place. */
static size_t valueLength(const char *at) {
    return isCompressedPart(at) ? partAt(at).len : valueAt(at, NULL).len;
}

/* Memory for an element with so many bytes for its value; *at is their place. */
static void *newElement(slice field, size_t value_bytes, int64_t time_ms, char **at) {
    size_t head = time_ms == HASH_NO_TIME ? 0 : ELEMENT_TIME_BYTES;
    char *element = elementAlloc(head + objectLengthBytes(field.len) + field.len + value_bytes);
    if (head) {
        *(uint8_t *)element = ELEMENT_TIMED;
        storeU64(element + 1, (uint64_t)time_ms);
    }
    *at = objectWriteLength(element + head, field.len);
    bytesCopy(*at, field.ptr, field.len);
    *at += field.len;
    return element;
}

void *elementNew(slice field, slice value, int64_t time_ms) {
    char *at;
    void *element = newElement(field, objectLengthBytes(value.len) + value.len, time_ms, &at);
    at = objectWriteLength(at, value.len);
    bytesCopy(at, value.ptr, value.len);
    return element;
}

/* Its value is these bytes, which are not copied. */
static void *elementNewReference(slice field, slice value, int64_t time_ms) {
    char *at;
    void *element = newElement(field, REFERENCE_BYTES, time_ms, &at);
    *(uint8_t *)at = VALUE_REFERENCE;
    storeU64(at + 1, (uintptr_t)value.ptr);
    storeU64(at + 9, value.len);
    hotCheck(elementValue(element, NULL).ptr == value.ptr);
    return element;
}

/* An element with the same value in the same form, and another expiry time. */
static void *elementNewTimed(const void *element, int64_t time_ms) {
    const char *value = elementValuePlace(element);
    size_t bytes = (size_t)(valueEnd(value) - value);
    char *at;
    void *changed = newElement(elementField(element), bytes, time_ms, &at);
    memcpy(at, value, bytes);
    return changed;
}

static NO_INLINE void forgetPart(const char *at, valueFreer *by) {
    compressedPart part = partAt(at);
    compressedPartForget(&part, by ? by->drops : NULL);
}

void elementForget(const void *element, valueFreer *by) {
    const char *at = elementValuePlace(element);
    if (unlikely(isCompressedPart(at))) forgetPart(at, by);
}

/* The place after a value that is going to be replaced, if its length takes 9 bytes or it is no
 * plain one. A compressed one is forgotten, and the mark of its word removed. */
static NO_INLINE const char *largeEndToReplace(hashtable *t, const hashtablePosition *position,
                                               const char *at) {
    if (isCompressedPart(at)) {
        forgetPart(at, NULL);
        hashtableSetFlagsAt(t, position, hashtableFlagsAt(position) & HASHTABLE_VOLATILE);
    }
    return elementLargeEnd(at);
}

/* elementSize() of an element whose value is going to be replaced. */
ALWAYS_INLINE size_t sizeToReplace(hashtable *t, const hashtablePosition *position,
                                   const void *element, const char *at) {
    size_t len = *(const uint8_t *)at;
    const char *end;
    if (likely(len < 128)) {
        end = at + 1 + len;
    } else if (likely(len < OBJECT_LENGTH_LARGE)) {
        len = objectReadLength(&at);
        end = at + len;
    } else {
        end = largeEndToReplace(t, position, at);
    }
    return (size_t)(end - (const char *)element);
}

/* Frees an element that is in no table any more. */
static inline void dropElement(void *element) {
    elementForget(element, NULL);
    elementFree(element, NULL);
}

/* Replaces the value of an element: returns the element, or a new one after freeing it. */
static void *elementSetValue(hashtable *t, const hashtablePosition *position, void *element,
                             slice value) {
    const char *place = elementValuePlace(element);
    size_t head = (size_t)(place - (const char *)element);
    size_t old_size = sizeToReplace(t, position, element, place);
    size_t size = head + objectLengthBytes(value.len) + value.len;
    if (likely(slabSameClass(old_size, size)) && elementMayStay()) {
        memcpy(objectWriteLength((char *)element + head, value.len), value.ptr, value.len);
        return element;
    }
    char *changed = elementAlloc(size);
    memcpy(changed, element, head);
    memcpy(objectWriteLength(changed + head, value.len), value.ptr, value.len);
    elementFree(element, NULL);
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

const hashtableType hashFieldsType = {.hash_of = elementHash, .match = elementHasField};

/* The table's body may have moved. */
static inline void putTable(robj *o, const hashtable *t) { putValue(o, t->body); }

/* ------------------------------------------------------------------ reading */

robj *hashNew(slice key) {
    uint8_t empty[LISTPACK_EMPTY_SIZE];
    listpackInit(empty);
    return objectNewPacked(key, TYPE_HASH, FORM_PACKED, sliceMake(empty, sizeof(empty)),
                           OBJECT_NO_EXPIRE, 0);
}

robj *hashNewLarge(slice key, size_t count) {
    hashtable t = {NULL};
    hashtableReserve(&t, &hashFieldsType, sizeMax(count, 1));
    return objectNewPointer(key, TYPE_HASH, t.body, OBJECT_NO_EXPIRE, 0);
}

size_t hashLength(const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o))
        return objectIsShaped(o) ? recordShape(o)->count : listpackCount(objectPacked(o)) / 2;
    hashtable t = hashTableOf(o);
    return hashtableCount(&t);
}

/* The position of a field in a listpack, NULL if missing. */
static inline const uint8_t *findPacked(const uint8_t *lp, slice field) {
    listpackItem item = listpackItemOf(field);
    return listpackFind(lp, NULL, &item, 1);
}

/* True if a packed hash has the field. */
static bool packedHas(const robj *o, slice field) {
    if (objectIsShaped(o)) return shapeFind(recordShape(o), field) >= 0;
    return findPacked(objectPacked(o), field);
}

static NO_INLINE slice readLarge(const robj *o, const void *element, storeLook look) {
    const char *at = elementValuePlace(element);
    slice value = largeValue(at, NULL);
    if (isCompressedPart(at)) hashNoteRead(o, (void *)(uintptr_t)element, look);
    return value;
}

/* The value of an element for a lookup. */
ALWAYS_INLINE slice valueToRead(const robj *o, const void *element, storeLook look) {
    const char *at = elementValuePlace(element);
    size_t len = *(const uint8_t *)at;
    if (likely(len < 128)) return sliceMake(at + 1, len);
    if (unlikely(len >= OBJECT_LENGTH_LARGE)) return readLarge(o, element, look);
    len = objectReadLength(&at);
    return sliceMake(at, len);
}

bool hashGet(const robj *o, slice field, storeLook look, char *digits, slice *value) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) {
        if (objectIsShaped(o)) return recordGet(o, field, digits, value);
        const uint8_t *lp = objectPacked(o), *at = findPacked(lp, field);
        if (at) *value = listpackGetText(listpackNext(lp, at), digits);
        return at != NULL;
    }
    hashtable t = hashTableOf(o);
    const void *element = hashtableInlineFind(&t, &hashFieldsType, elementNameHash(field),
                                              elementHasField, field.ptr, field.len);
    if (!element || elementIsExpired(element, look)) return false;
    *value = valueToRead(o, element, look);
    return true;
}

static void *findElement(const hashtable *t, slice field) {
    return hashtableInlineFind(t, &hashFieldsType, elementNameHash(field), elementHasField,
                               field.ptr, field.len);
}

bool hashValueLength(const robj *o, slice field, storeLook look, size_t *len) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) {
        char digits[NUMBER_TEXT_MAX];
        slice value;
        bool found = hashGet(o, field, look, digits, &value);
        if (found) *len = value.len;
        return found;
    }
    hashtable t = hashTableOf(o);
    const void *element = findElement(&t, field);
    if (!element || elementIsExpired(element, look)) return false;
    *len = valueLength(elementValuePlace(element));
    return true;
}

int64_t hashTime(const robj *o, slice field, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) return packedHas(o, field) ? HASH_NO_TIME : HASH_NO_FIELD;
    hashtable t = hashTableOf(o);
    const void *element = findElement(&t, field);
    return !element || elementIsExpired(element, look) ? HASH_NO_FIELD : elementTime(element);
}

uint64_t hashTimedCount(const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) return 0;
    hashtable t = hashTableOf(o);
    return hashtableVolatileCount(&t);
}

/* ------------------------------------------------------------------ changes */

/* Converts a packed hash to a table with space for `count` fields. */
static robj *toTable(robj *o, size_t count) {
    hotCheck(objectIsPacked(o));
    hotCheck(objectType(o) == TYPE_HASH);
    const shape *s = objectIsShaped(o) ? recordShape(o) : NULL;
    hashtable t = {NULL};
    hashtableReserve(&t, &hashFieldsType, count);
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNext(&it, &pair)) {
        uint64_t hash = hashBytes(pair.field.ptr, pair.field.len);
        hashtableInsert(&t, &hashFieldsType, hash, elementNew(pair.field, pair.value, HASH_NO_TIME),
                        0);
    }
    hashIteratorClear(&it);
    o = objectUnpack(o, t.body);
    if (s) shapeRelease(s);
    return o;
}

robj *hashPrepare(robj *o, const slice *words, size_t count, const packLimits *limits) {
    hotCheck(objectType(o) == TYPE_HASH);
    hotCheck(count % 2 == 0);
    if (!objectIsPacked(o)) return o;
    size_t bytes = 0;
    bool fits = count / 2 <= limits->entries;
    for (size_t i = 0; i < count && fits; i++) {
        fits = words[i].len <= limits->bytes;
        bytes += words[i].len;
    }
    if (likely(fits) && (objectIsShaped(o) || listpackCanGrow(objectPacked(o), bytes))) return o;
    return toTable(o, hashLength(o) + count / 2);
}

robj *hashNewShaped(slice key, const uint8_t *lp) { return recordOfListpack(key, lp); }

robj *hashFindShape(robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (!objectIsPacked(o) || objectIsShaped(o)) return o;
    robj *record = recordOfListpack(objectKey(o), objectPacked(o));
    if (!record) return o;
    objectFree(o);
    return record;
}

unsigned hashShapeNumber(const robj *o) { return recordShapeNumber(o); }

slice hashListpack(const robj *o) {
    hotCheck(objectIsPacked(o));
    if (objectIsShaped(o)) return recordListpack(o);
    return sliceMake(objectPacked(o), listpackSize(objectPacked(o)));
}

static robj *setPacked(robj *o, slice field, slice value, const packLimits *limits, bool *created) {
    hotCheck(objectIsPacked(o));
    hotCheck(objectType(o) == TYPE_HASH);
    objectBuffer r;
    objectBufferInit(&r, o);
    listpackItem pair[2] = {listpackItemOf(field), listpackItemOf(value)};
    const uint8_t *at = listpackFind(r.buffer.bytes, NULL, &pair[0], 1);
    *created = !at;
    if (at) {
        (void)listpackReplace(&r.buffer, listpackNext(r.buffer.bytes, at),
                              &pair[1]); /* the position is not needed */
    } else {
        listpackAppend(&r.buffer, pair, 2);
    }
    size_t length = listpackCount(r.buffer.bytes) / 2;
    return unlikely(length > limits->entries) ? toTable(r.o, length) : r.o;
}

/* Sets value and TTL of the element at `position`. */
static void changeElement(hashtable *t, const hashtablePosition *position, void *element,
                          slice value, int64_t time_ms) {
    void *changed;
    if (likely(elementHasTime(element) == (time_ms != HASH_NO_TIME))) {
        changed = elementSetValue(t, position, element, value);
        /* It may be modified: it is new, or modification in place is allowed. */
        if (time_ms != HASH_NO_TIME) storeU64((char *)changed + 1, (uint64_t)time_ms);
    } else {
        changed = elementNew(elementField(element), value, time_ms);
        hashtableSetFlagsAt(t, position, elementFlags(time_ms));
        dropElement(element);
    }
    if (changed != element) hashtableReplaceAt(position, &hashFieldsType, changed);
}

robj *hashSetTimed(robj *o, slice field, slice value, int64_t time_ms, storeLook look,
                   const packLimits *limits, hashOutcome *outcome) {
    hotCheck(objectType(o) == TYPE_HASH);
    *outcome = HASH_CREATED;
    if (objectIsPacked(o)) {
        bool created;
        size_t most = sizeMax(field.len, value.len);
        bool fits = time_ms < 0 && most <= limits->bytes;
        if (fits && objectIsShaped(o)) {
            if (likely(recordSetField(&o, field, value, limits, &created))) {
                if (!created) *outcome = HASH_UPDATED;
                return o;
            }
            o = recordToPacked(o);
        }
        if (fits && listpackCanGrow(objectPacked(o), most * 2)) {
            o = setPacked(o, field, value, limits, &created);
            if (!created) *outcome = HASH_UPDATED;
            return o;
        }
        o = toTable(o, hashLength(o) + 1);
    }
    hashtable t = hashTableOf(o);
    hashtablePosition position;
    uint64_t hash = elementNameHash(field);
    void *element = hashtableInlineFindPosition(&t, &hashFieldsType, hash, elementHasField,
                                                field.ptr, field.len, &position);
    bool expired = element && elementIsExpired(element, look);
    if (time_ms == HASH_KEEP_TIME)
        time_ms = element && !expired ? elementTime(element) : HASH_NO_TIME;
    if (element) {
        *outcome = expired ? HASH_REPLACED_EXPIRED : HASH_UPDATED;
        beforeElement(objectPointer(o), element);
        changeElement(&t, &position, element, value, time_ms);
    } else {
        element = elementNew(field, value, time_ms);
        hashtableInsertAt(&t, &hashFieldsType, &position, element, elementFlags(time_ms));
        elementAdded(objectPointer(o), element);
    }
    putTable(o, &t);
    return o;
}

robj *hashSetPairs(robj *o, slice key, const slice *words, size_t count, storeLook look,
                   const packLimits *limits, hashSetCounts *counts) {
    hotCheck(count >= 2);
    *counts = (hashSetCounts){0};
    if (!o) {
        o = recordOfPairs(key, words, count, limits);
        if (o) {
            counts->created = count / 2;
            return o;
        }
    }
    bool existed = o;
    if (!existed) o = hashNew(key);
    o = hashPrepare(o, words, count, limits);
    if (count > 2 && objectIsShaped(o)) counts->created = recordAddPairs(&o, words, count, limits);
    for (size_t i = 0; i < count; i += 2) {
        hashOutcome outcome;
        o = hashSetTimed(o, words[i], words[i + 1], HASH_NO_TIME, look, limits, &outcome);
        counts->created += outcome != HASH_UPDATED;
        counts->replaced_expired += outcome == HASH_REPLACED_EXPIRED;
    }
    bool may_share = existed && counts->created && objectForm(o) == FORM_PACKED;
    return may_share ? recordAgain(o) : o;
}

robj *hashSet(robj *o, slice field, slice value, const packLimits *limits, bool *created) {
    hotCheck(objectType(o) == TYPE_HASH);
    hashOutcome outcome;
    o = hashSetTimed(o, field, value, HASH_NO_TIME, lookAtAll(), limits, &outcome);
    *created = outcome != HASH_UPDATED;
    return o;
}

bool hashSetTime(robj **o, slice field, int64_t time_ms, storeLook look) {
    if (hashTime(*o, field, look) == HASH_NO_FIELD) return false;
    if (objectIsPacked(*o)) {
        if (time_ms == HASH_NO_TIME) return true;
        *o = toTable(*o, hashLength(*o));
    }
    hashtable t = hashTableOf(*o);
    hashtablePosition position;
    uint64_t hash = elementNameHash(field);
    void *element = hashtableInlineFindPosition(&t, &hashFieldsType, hash, elementHasField,
                                                field.ptr, field.len, &position);
    check(element != NULL);
    beforeElement(t.body, element);
    if (elementHasTime(element) && time_ms != HASH_NO_TIME && elementMayStay()) {
        storeU64((char *)element + 1, (uint64_t)time_ms);
        return true;
    }
    void *changed = elementNewTimed(element, time_ms);
    unsigned mark = hashtableFlagsAt(&position) & HASHTABLE_MARK;
    hashtableSetFlagsAt(&t, &position, elementFlags(time_ms) | mark);
    hashtableReplaceAt(&position, &hashFieldsType, changed);
    elementFree(element, NULL);
    putTable(*o, &t);
    return true;
}

static bool references; /* there were any */

bool hashReferencesExist(void) { return references; }

bool hashRefer(robj **o, slice field, slice value, storeLook look) {
    hotCheck(objectType(*o) == TYPE_HASH);
    hotCheck(value.ptr);
    if (hashTime(*o, field, look) == HASH_NO_FIELD) return false;
    references = true;
    if (objectIsPacked(*o)) *o = toTable(*o, hashLength(*o));
    hashtable t = hashTableOf(*o);
    hashtablePosition position;
    void *element = hashtableInlineFindPosition(&t, &hashFieldsType, elementNameHash(field),
                                                elementHasField, field.ptr, field.len, &position);
    check(element != NULL);
    beforeElement(t.body, element);
    int64_t time_ms = elementTime(element);
    hashtableReplaceAt(&position, &hashFieldsType,
                       elementNewReference(elementField(element), value, time_ms));
    hashtableSetFlagsAt(&t, &position, elementFlags(time_ms));
    dropElement(element);
    putTable(*o, &t);
    return true;
}

bool hashRefers(const robj *o, slice field, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) return false;
    hashtable t = hashTableOf(o);
    const void *element = findElement(&t, field);
    return element && !elementIsExpired(element, look) && isReference(elementValuePlace(element));
}

bool hashDelete(robj **o, slice field, storeLook look) {
    hotCheck(objectType(*o) == TYPE_HASH);
    if (objectIsPacked(*o)) {
        if (objectIsShaped(*o)) return recordDeleteField(o, field);
        const uint8_t *at = findPacked(objectPacked(*o), field);
        if (!at) return false;
        objectBuffer r;
        objectBufferInit(&r, *o);
        (void)listpackDelete(&r.buffer, at, 2); /* the next entry is not needed */
        *o = recordAgain(r.o);
        return true;
    }
    hashtable t = hashTableOf(*o);
    hashtablePosition position;
    void *element = hashtableInlineFindPosition(&t, &hashFieldsType, elementNameHash(field),
                                                elementHasField, field.ptr, field.len, &position);
    if (!element || elementIsExpired(element, look)) return false;
    beforeElement(t.body, element);
    (void)hashtableDeleteAt(&t, &hashFieldsType, &position); /* it is `element` */
    dropElement(element);
    putTable(*o, &t);
    return true;
}

/* ------------------------------------------------------------------ iteration */

void hashIteratorInit(hashIterator *it, const robj *o, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    it->o = o;
    it->look = look;
    it->at = it->value = NULL;
    if (objectIsPacked(o)) {
        bool shaped = objectIsShaped(o);
        it->shape = shaped ? recordShape(o) : NULL;
        it->value = shaped ? recordValues(o) : objectPacked(o);
        it->position = 0;
        if (!shaped) it->at = listpackFirst(objectPacked(o));
        return;
    }
    it->expanded = (str){NULL, 0, 0};
    it->table = hashTableOf(o);
    hashtableIteratorInit(&it->walk, &it->table, &hashFieldsType);
}

/* Reads the pair at `at`; returns the position of the next one, NULL at the end. */
static inline const uint8_t *readPair(const uint8_t *at, char digits[2][NUMBER_TEXT_MAX],
                                      hashPair *out) {
    listpackItem field, value;
    const uint8_t *next = listpackRead(listpackRead(at, &field), &value);
    *out = (hashPair){listpackText(&field, digits[0]), listpackText(&value, digits[1])};
    return next;
}

/* The pair of an element; `into` as for elementExpand(). */
static inline hashPair pairOf(const void *element, str *into) {
    slice field = elementField(element);
    return (hashPair){field, valueAt(field.ptr + field.len, into)};
}

static NO_INLINE slice iteratorLarge(hashIterator *it, const void *element, const char *at) {
    slice value = largeValue(at, &it->expanded);
    /* Files have all values, which tells nothing about what is used. */
    if (isCompressedPart(at) && !lookIsAtAll(it->look))
        hashNoteRead(it->o, (void *)(uintptr_t)element, it->look);
    return value;
}

/* The pair of an element for hashNext(). */
static inline hashPair iteratorPair(hashIterator *it, const void *element) {
    slice field = elementField(element);
    const char *at = field.ptr + field.len;
    size_t len = *(const uint8_t *)at;
    if (likely(len < 128)) return (hashPair){field, sliceMake(at + 1, len)};
    if (unlikely(len >= OBJECT_LENGTH_LARGE))
        return (hashPair){field, iteratorLarge(it, element, at)};
    len = objectReadLength(&at);
    return (hashPair){field, sliceMake(at, len)};
}

/* The next visible element of a table. */
static inline const void *nextElement(hashIterator *it) {
    const void *element;
    do {
        element = hashtableIteratorNext(&it->walk, NULL);
    } while (element && elementIsExpired(element, it->look));
    return element;
}

/* The next pair of a record; false at the end, and for a listpack. Not inline, so that hashNext()
 * is. */
static NO_INLINE bool nextOfRecord(hashIterator *it, hashPair *out) {
    if (!it->shape || it->position == it->shape->count) return false;
    listpackItem value;
    it->value = listpackReadBody(it->value, &value);
    *out = (hashPair){shapeName(it->shape, it->position++), listpackText(&value, it->digits[1])};
    return true;
}

/* Reads the next pair of a packed hash. */
static inline bool nextPacked(hashIterator *it, hashPair *out) {
    if (!it->at) return nextOfRecord(it, out);
    it->at = readPair(it->at, it->digits, out);
    return true;
}

bool hashNext(hashIterator *it, hashPair *out) {
    if (it->value) return nextPacked(it, out);
    const void *element = nextElement(it);
    if (element) *out = iteratorPair(it, element);
    return element != NULL;
}

bool hashNextField(hashIterator *it, slice *field) {
    if (it->value) {
        hashPair pair;
        bool more = nextPacked(it, &pair);
        if (more) *field = pair.field;
        return more;
    }
    const void *element = nextElement(it);
    if (element) *field = elementField(element);
    return element != NULL;
}

bool hashNextTimed(hashIterator *it, hashPair *out, int64_t *time_ms) {
    *time_ms = HASH_NO_TIME;
    if (it->value) return nextPacked(it, out);
    const void *element = nextElement(it);
    if (!element) return false;
    *out = iteratorPair(it, element);
    *time_ms = elementTime(element);
    return true;
}

void hashIteratorClear(hashIterator *it) {
    if (objectIsPacked(it->o)) return;
    hashtableIteratorClear(&it->walk);
    strFree(&it->expanded);
}

typedef struct visitor {
    hashVisitProc *visit;
    void *arg;
    storeLook look;
    str expanded; /* a compressed value */
} visitor;

static void visitElement(void *context, void *element, unsigned flags) {
    (void)flags; /* all entries */
    visitor *v = context;
    if (elementIsExpired(element, v->look)) return;
    hashPair pair = pairOf(element, &v->expanded);
    v->visit(v->arg, &pair);
}

uint64_t hashScan(const robj *o, storeLook look, uint64_t cursor, hashVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (!objectIsPacked(o)) {
        hashtable t = hashTableOf(o);
        visitor v = {.visit = visit, .arg = arg, .look = look};
        cursor &= (UINT64_C(1) << HASHTABLE_CURSOR_BITS) - 1;
        cursor = hashtableScan(&t, &hashFieldsType, cursor, visitElement, &v);
        strFree(&v.expanded);
        return cursor;
    }
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, look);
    while (hashNext(&it, &pair)) visit(arg, &pair);
    hashIteratorClear(&it);
    return 0;
}

static bool visitPacked(void *context, const uint8_t *at) {
    const visitor *v = context;
    char digits[2][NUMBER_TEXT_MAX];
    hashPair pair;
    (void)readPair(at, digits, &pair); /* the next position is not needed */
    v->visit(v->arg, &pair);
    return true;
}

static bool visitRandom(void *context, const void *element) {
    visitor *v = context;
    hashPair pair = pairOf(element, &v->expanded);
    v->visit(v->arg, &pair);
    return true;
}

/* Like randomFromTable() if some fields may be expired. */
static void randomVisible(const hashtable *t, size_t count, bool unique, visitor *v) {
    const void **seen = memNewArray(const void *, hashtableCount(t)), *element;
    size_t size = 0;
    hashtableIterator it;
    hashtableIteratorInit(&it, t, &hashFieldsType);
    while ((element = hashtableIteratorNext(&it, NULL))) {
        if (!elementIsExpired(element, v->look)) seen[size++] = element;
        if (fiberPoint(1)) break;
    }
    hashtableIteratorClear(&it);
    if (unique) count = sizeMin(count, size);
    for (size_t i = 0; i < count && size > 0; i++) {
        size_t from = unique ? i : 0, chosen = from + randomUniform(size - from);
        element = seen[chosen];
        if (unique) seen[chosen] = seen[i];
        (void)visitRandom(v, element); /* always returns true */
        if (fiberPoint(1)) break;
    }
    memFree(seen);
}

void hashRandom(const robj *o, storeLook look, size_t count, bool unique, hashVisitProc *visit,
                void *arg) {
    hotCheck(objectType(o) == TYPE_HASH);
    visitor v = {.visit = visit, .arg = arg, .look = look};
    if (objectIsShaped(o)) {
        recordRandom(o, count, unique, visit, arg);
        return;
    }
    if (objectIsPacked(o)) {
        randomFromListpack(objectPacked(o), 2, count, unique, visitPacked, &v);
        return;
    }
    hashtable t = hashTableOf(o);
    if (hashtableVolatileCount(&t)) {
        randomVisible(&t, count, unique, &v);
    } else {
        randomFromTable(&t, &hashFieldsType, count, unique, visitRandom, &v);
    }
    strFree(&v.expanded);
}

/* ------------------------------------------------------------------ expired fields */

uint64_t hashVisibleCount(const robj *o, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (!hashTimedCount(o)) return hashLength(o);
    hashIterator it;
    uint64_t count = 0;
    hashIteratorInit(&it, o, look);
    while (nextElement(&it) && !fiberPoint(1)) count++; /* it is a table */
    hashIteratorClear(&it);
    return count;
}

typedef struct expiredFields {
    int64_t now_ms;
    hashExpired *out;
} expiredFields;

static void collectExpired(void *context, void *element, unsigned flags) {
    hotCheck(((const expiredFields *)context)->out->count <= HASH_EXPIRED_MAX);
    hotCheck(elementHasTime(element));
    (void)flags; /* always volatile */
    const expiredFields *d = context;
    d->out->visited++;
    if (!expiryIsPast(elementTime(element), d->now_ms) || d->out->count == HASH_EXPIRED_MAX) return;
    d->out->elements[d->out->count] = element;
    d->out->fields[d->out->count++] = elementField(element);
}

uint64_t hashFindExpired(const robj *o, uint64_t cursor, int64_t now_ms, hashExpired *out) {
    hotCheck(objectType(o) == TYPE_HASH);
    out->count = out->visited = 0;
    if (!hashTimedCount(o)) return 0;
    hashtable t = hashTableOf(o);
    expiredFields d = {now_ms, out};
    return hashtableScanVolatile(&t, &hashFieldsType, cursor, collectExpired, &d);
}

void hashRemoveExpired(robj *o, const hashExpired *expired) {
    hotCheck(objectType(o) == TYPE_HASH);
    hashtable t = hashTableOf(o);
    for (unsigned i = 0; i < expired->count; i++) {
        void *element = expired->elements[i];
        beforeElement(objectPointer(o), element);
        check(hashtableDeleteEntry(&t, &hashFieldsType, elementHash(element), element));
        dropElement(element);
    }
    putTable(o, &t);
}

/* ------------------------------------------------------------------ type operations */

static const char *encodingOf(const robj *o) {
    return objectIsPacked(o) ? "listpack" : "hashtable";
}

static void digestHash(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id; /* the same everywhere */
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookWithoutTouch(look)); /* tells nothing about what is used */
    while (hashNext(&it, &pair)) {
        digest own = {{0}};
        digestMix(&own, pair.field);
        digestMix(&own, pair.value);
        digestAddDigest(to, &own);
    }
    hashIteratorClear(&it);
}

static hashtable tableOfValue(const void *value) { return (hashtable){(void *)(uintptr_t)value}; }

static void readElement(const void *element, valueElement *out) {
    out->name = elementField(element);
    out->value = elementValue(element, NULL);
    out->time_ms = elementTime(element);
}

static uint64_t hashOfField(slice field, bool *is_text) {
    *is_text = true;
    return hashBytes(field.ptr, field.len);
}

static const valueElements fields = {
    .table_of = tableOfValue, .type = &hashFieldsType, .read = readElement, .hash_of = hashOfField};

static void freeElement(void *context, void *element, unsigned flags) {
    valueFreer *by = context;
    if (unlikely(flags & HASHTABLE_MARK)) elementForget(element, by);
    if (!elementGoesWithStore(element, by)) elementFree(element, by);
}

static void freeLarge(void *value, valueFreer *by) {
    hashtable t = {value};
    hashtableFree(&t, freeElement, by);
}

/* References are not copied: their owner knows nothing of this hash. */
static void *elementCopy(const void *element) {
    const char *at = elementValuePlace(element);
    if (unlikely(isCompressedPart(at))) {
        compressedPart part = partAt(at);
        compressedPartUse(&part);
        return elementNewTimed(element, elementTime(element));
    }
    return elementNew(elementField(element), valueAt(at, NULL), elementTime(element));
}

static void *copyTable(const valuePlace *place, const valuePlace *to_place, void *value) {
    (void)place, (void)to_place; /* not needed */
    hashtable from = {value}, to = {NULL};
    hashtableReserve(&to, &hashFieldsType, hashtableCount(&from));
    hashtableIterator it;
    hashtableIteratorInit(&it, &from, &hashFieldsType);
    const void *element;
    unsigned flags;
    while ((element = hashtableIteratorNext(&it, &flags))) {
        void *copy = elementCopy(element);
        hashtableInsert(&to, &hashFieldsType, elementHash(element), copy, flags);
        if (fiberPoint(1)) break;
    }
    hashtableIteratorClear(&it);
    return to.body;
}

static size_t tableEffort(const valuePlace *at, const void *value) {
    (void)at; /* not needed */
    hashtable t = {(void *)(uintptr_t)value};
    return hashtableCount(&t);
}

static size_t elementMemory(const void *element) { return slabClassSize(elementSize(element)); }

static size_t tableMemory(const valuePlace *at, const void *value, size_t samples) {
    (void)at; /* not needed */
    hashtable t = {(void *)(uintptr_t)value};
    return hashtableBytes(&t) + sampledMemory(&t, &hashFieldsType, samples, elementMemory);
}

static void *moveElement(void *element, compaction *by) { return elementMove(element, by); }

static uint64_t compactTable(void **value, uint64_t cursor, compaction *by) {
    return elementsCompact(value, &hashFieldsType, moveElement, cursor, by);
}

static void statsOf(const void *value, hashtableStats *out) {
    hashtable t = {(void *)(uintptr_t)value};
    hashtableStatsRead(&t, &hashFieldsType, out);
}

const typeOps hashOps = {
    .encoding = encodingOf,
    .length = hashLength,
    .digest = digestHash,
    .free_value = freeLarge,
    .copy_value = copyTable,
    .free_effort = tableEffort,
    .value_memory = tableMemory,
    .compact_value = compactTable,
    .has_elements = true,
    .elements = &fields,
    .table_stats = statsOf,
};
