/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hashes (type_hash.h). Those with a shape: hash_record.h.
 *
 * In an object with a table, the pointer is the table's handle. An element of the table is one
 * block:
 *
 *   [255, and 8 bytes of Unix time in ms, if the field has a TTL] [length] [field] [length] [value]
 *
 * Lengths are encoded as in objects (object.h) and never begin with 254 or 255. Elements with a TTL
 * are the volatile entries of the table, which serves as their index at no cost to other hashes.
 *
 * A value that is somebody else's memory (hashRefer()) is stored as [254, 8 bytes of address, 8
 * bytes of length]; only readers of values of 16 KB and more have to tell it apart.
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
#include "store/hash_record.h"
#include "store/random_elements.h"
#include "store/saving_value.h"

enum { ELEMENT_TIMED = 255, ELEMENT_TIME_BYTES = 9 };
enum { VALUE_REFERENCE = 254, REFERENCE_BYTES = 1 + 2 * sizeof(uint64_t) };

/* ------------------------------------------------------------------ elements of a table */

static inline bool elementHasTime(const void *element) {
    return unlikely(*(const uint8_t *)element == ELEMENT_TIMED);
}

static inline int64_t elementTime(const void *element) {
    if (likely(!elementHasTime(element))) return HASH_NO_TIME;
    return (int64_t)loadU64((const char *)element + 1);
}

static inline bool elementIsExpired(const void *element, storeLook look) {
    return elementHasTime(element) && lookIsPast(look, elementTime(element));
}

static inline const char *elementText(const void *element) {
    const char *at = element;
    return elementHasTime(element) ? at + ELEMENT_TIME_BYTES : at;
}

static inline slice elementField(const void *element) {
    const char *at = elementText(element);
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

static inline const char *elementValuePlace(const void *element) {
    slice field = elementField(element);
    return field.ptr + field.len;
}

static inline bool isReference(const char *at) { return *(const uint8_t *)at == VALUE_REFERENCE; }

/* The value at this place, if its length takes 9 bytes or it is a reference; the place after it. */
static NO_INLINE slice largeValue(const char *at, const char **end) {
    slice value;
    if (isReference(at)) {
        value = sliceMake((const char *)(uintptr_t)loadU64(at + 1), loadU64(at + 9));
        *end = at + REFERENCE_BYTES;
    } else {
        value.len = objectReadLength(&at);
        value.ptr = at;
        *end = at + value.len;
    }
    return value;
}

ALWAYS_INLINE slice valueAt(const char *at, const char **end) {
    size_t len = *(const uint8_t *)at;
    if (likely(len < 128)) {
        at++;
    } else if (likely(len < OBJECT_LENGTH_LARGE)) {
        len = objectReadLength(&at);
    } else {
        return largeValue(at, end);
    }
    *end = at + len;
    return sliceMake(at, len);
}

static inline slice elementValue(const void *element) {
    const char *end;
    return valueAt(elementValuePlace(element), &end);
}

static size_t elementSize(const void *element) {
    const char *end;
    (void)valueAt(elementValuePlace(element), &end); /* where it ends is asked for */
    return (size_t)(end - (const char *)element);
}

static void *elementNew(slice field, slice value, int64_t time_ms) {
    size_t head = time_ms == HASH_NO_TIME ? 0 : ELEMENT_TIME_BYTES;
    size_t size =
        head + objectLengthBytes(field.len) + field.len + objectLengthBytes(value.len) + value.len;
    char *element = elementAlloc(size);
    if (head) {
        *(uint8_t *)element = ELEMENT_TIMED;
        storeU64(element + 1, (uint64_t)time_ms);
    }
    char *at = objectWriteLength(element + head, field.len);
    bytesCopy(at, field.ptr, field.len);
    at = objectWriteLength(at + field.len, value.len);
    bytesCopy(at, value.ptr, value.len);
    return element;
}

/* Its value is these bytes, which are not copied. */
static void *elementNewReference(slice field, slice value, int64_t time_ms) {
    _Static_assert(REFERENCE_BYTES == 1 + 16, "a short length takes one byte, too");
    uint64_t parts[2] = {(uintptr_t)value.ptr, value.len};
    slice raw = sliceMake((const char *)parts, sizeof(parts));
    char *element = elementNew(field, raw, time_ms); /* a short length takes one byte, too */
    *(uint8_t *)(uintptr_t)elementValuePlace(element) = VALUE_REFERENCE;
    hotCheck(elementValue(element).ptr == value.ptr);
    return element;
}

/* An element with the same value and another expiry time. */
static void *elementNewTimed(const void *element, int64_t time_ms) {
    slice field = elementField(element), value = elementValue(element);
    return isReference(elementValuePlace(element)) ? elementNewReference(field, value, time_ms)
                                                   : elementNew(field, value, time_ms);
}

/* Replaces the value of an element: returns the element, or a new one after freeing it. */
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

static const hashtableType fields_type = {.hash_of = elementHash, .match = elementHasField};

static inline hashtable tableOf(const robj *o) { return (hashtable){objectPointer(o)}; }

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
    hashtableReserve(&t, &fields_type, sizeMax(count, 1));
    return objectNewPointer(key, TYPE_HASH, t.body, OBJECT_NO_EXPIRE, 0);
}

size_t hashLength(const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o))
        return objectIsShaped(o) ? recordShape(o)->count : listpackCount(objectPacked(o)) / 2;
    hashtable t = tableOf(o);
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

bool hashGet(const robj *o, slice field, storeLook look, char *digits, slice *value) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) {
        if (objectIsShaped(o)) return recordGet(o, field, digits, value);
        const uint8_t *lp = objectPacked(o), *at = findPacked(lp, field);
        if (at) *value = listpackGetText(listpackNext(lp, at), digits);
        return at != NULL;
    }
    hashtable t = tableOf(o);
    const void *element = hashtableInlineFind(&t, &fields_type, elementNameHash(field),
                                              elementHasField, field.ptr, field.len);
    if (!element || elementIsExpired(element, look)) return false;
    *value = elementValue(element);
    return true;
}

static void *findElement(const hashtable *t, slice field) {
    return hashtableInlineFind(t, &fields_type, elementNameHash(field), elementHasField, field.ptr,
                               field.len);
}

int64_t hashTime(const robj *o, slice field, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) return packedHas(o, field) ? HASH_NO_TIME : HASH_NO_FIELD;
    hashtable t = tableOf(o);
    const void *element = findElement(&t, field);
    return !element || elementIsExpired(element, look) ? HASH_NO_FIELD : elementTime(element);
}

uint64_t hashTimedCount(const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) return 0;
    hashtable t = tableOf(o);
    return hashtableVolatileCount(&t);
}

/* ------------------------------------------------------------------ changes */

/* Converts a packed hash to a table with space for `count` fields. */
static robj *toTable(robj *o, size_t count) {
    hotCheck(objectIsPacked(o));
    hotCheck(objectType(o) == TYPE_HASH);
    const shape *s = objectIsShaped(o) ? recordShape(o) : NULL;
    hashtable t = {NULL};
    hashtableReserve(&t, &fields_type, count);
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookAtAll());
    while (hashNext(&it, &pair)) {
        uint64_t hash = hashBytes(pair.field.ptr, pair.field.len);
        hashtableInsert(&t, &fields_type, hash, elementNew(pair.field, pair.value, HASH_NO_TIME),
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

static inline unsigned flagsFor(int64_t time_ms) {
    return time_ms == HASH_NO_TIME ? 0 : HASHTABLE_VOLATILE;
}

/* Sets value and TTL of the element at `position`. */
static void changeElement(hashtable *t, const hashtablePosition *position, void *element,
                          slice value, int64_t time_ms) {
    void *changed;
    if (likely(elementHasTime(element) == (time_ms != HASH_NO_TIME))) {
        changed = elementSetValue(element, value);
        /* It may be modified: it is new, or modification in place is allowed. */
        if (time_ms != HASH_NO_TIME) storeU64((char *)changed + 1, (uint64_t)time_ms);
    } else {
        changed = elementNew(elementField(element), value, time_ms);
        hashtableSetFlagsAt(t, position, flagsFor(time_ms));
        elementFree(element, NULL);
    }
    if (changed != element) hashtableReplaceAt(position, &fields_type, changed);
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
    hashtable t = tableOf(o);
    hashtablePosition position;
    uint64_t hash = elementNameHash(field);
    void *element = hashtableInlineFindPosition(&t, &fields_type, hash, elementHasField, field.ptr,
                                                field.len, &position);
    bool expired = element && elementIsExpired(element, look);
    if (time_ms == HASH_KEEP_TIME)
        time_ms = element && !expired ? elementTime(element) : HASH_NO_TIME;
    if (element) {
        *outcome = expired ? HASH_REPLACED_EXPIRED : HASH_UPDATED;
        beforeElement(objectPointer(o), element);
        changeElement(&t, &position, element, value, time_ms);
    } else {
        element = elementNew(field, value, time_ms);
        hashtableInsertAt(&t, &fields_type, &position, element, flagsFor(time_ms));
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
    hashtable t = tableOf(*o);
    hashtablePosition position;
    uint64_t hash = elementNameHash(field);
    void *element = hashtableInlineFindPosition(&t, &fields_type, hash, elementHasField, field.ptr,
                                                field.len, &position);
    check(element != NULL);
    beforeElement(t.body, element);
    if (elementHasTime(element) && time_ms != HASH_NO_TIME && elementMayStay()) {
        storeU64((char *)element + 1, (uint64_t)time_ms);
        return true;
    }
    void *changed = elementNewTimed(element, time_ms);
    hashtableSetFlagsAt(&t, &position, flagsFor(time_ms));
    hashtableReplaceAt(&position, &fields_type, changed);
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
    hashtable t = tableOf(*o);
    hashtablePosition position;
    void *element = hashtableInlineFindPosition(&t, &fields_type, elementNameHash(field),
                                                elementHasField, field.ptr, field.len, &position);
    check(element != NULL);
    beforeElement(t.body, element);
    hashtableReplaceAt(&position, &fields_type,
                       elementNewReference(elementField(element), value, elementTime(element)));
    elementFree(element, NULL);
    putTable(*o, &t);
    return true;
}

bool hashRefers(const robj *o, slice field, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) return false;
    hashtable t = tableOf(o);
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
    hashtable t = tableOf(*o);
    hashtablePosition position;
    void *element = hashtableInlineFindPosition(&t, &fields_type, elementNameHash(field),
                                                elementHasField, field.ptr, field.len, &position);
    if (!element || elementIsExpired(element, look)) return false;
    beforeElement(t.body, element);
    (void)hashtableDeleteAt(&t, &fields_type, &position); /* it is `element` */
    elementFree(element, NULL);
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
    it->table = tableOf(o);
    hashtableIteratorInit(&it->walk, &it->table, &fields_type);
}

/* Reads the pair at `at`; returns the position of the next one, NULL at the end. */
static inline const uint8_t *readPair(const uint8_t *at, char digits[2][NUMBER_TEXT_MAX],
                                      hashPair *out) {
    listpackItem field, value;
    const uint8_t *next = listpackRead(listpackRead(at, &field), &value);
    *out = (hashPair){listpackText(&field, digits[0]), listpackText(&value, digits[1])};
    return next;
}

static hashPair pairOf(const void *element) {
    return (hashPair){elementField(element), elementValue(element)};
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
    if (element) *out = pairOf(element);
    return element != NULL;
}

bool hashNextTimed(hashIterator *it, hashPair *out, int64_t *time_ms) {
    *time_ms = HASH_NO_TIME;
    if (it->value) return nextPacked(it, out);
    const void *element = nextElement(it);
    if (!element) return false;
    *out = pairOf(element);
    *time_ms = elementTime(element);
    return true;
}

void hashIteratorClear(hashIterator *it) {
    if (!objectIsPacked(it->o)) hashtableIteratorClear(&it->walk);
}

typedef struct visitor {
    hashVisitProc *visit;
    void *arg;
    storeLook look;
} visitor;

static void visitElement(void *context, void *element, unsigned flags) {
    (void)flags; /* all entries */
    const visitor *v = context;
    if (elementIsExpired(element, v->look)) return;
    hashPair pair = pairOf(element);
    v->visit(v->arg, &pair);
}

uint64_t hashScan(const robj *o, storeLook look, uint64_t cursor, hashVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (!objectIsPacked(o)) {
        hashtable t = tableOf(o);
        visitor v = {visit, arg, look};
        cursor &= (UINT64_C(1) << HASHTABLE_CURSOR_BITS) - 1;
        return hashtableScan(&t, &fields_type, cursor, visitElement, &v);
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
    const visitor *v = context;
    hashPair pair = pairOf(element);
    v->visit(v->arg, &pair);
    return true;
}

/* Like randomFromTable() if some fields may be expired. */
static void randomVisible(const hashtable *t, size_t count, bool unique, visitor *v) {
    const void **seen = memNewArray(const void *, hashtableCount(t)), *element;
    size_t size = 0;
    hashtableIterator it;
    hashtableIteratorInit(&it, t, &fields_type);
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
    visitor v = {visit, arg, look};
    if (objectIsShaped(o)) {
        recordRandom(o, count, unique, visit, arg);
        return;
    }
    if (objectIsPacked(o)) {
        randomFromListpack(objectPacked(o), 2, count, unique, visitPacked, &v);
        return;
    }
    hashtable t = tableOf(o);
    if (hashtableVolatileCount(&t)) {
        randomVisible(&t, count, unique, &v);
    } else {
        randomFromTable(&t, &fields_type, count, unique, visitRandom, &v);
    }
}

/* ------------------------------------------------------------------ expired fields */

uint64_t hashVisibleCount(const robj *o, storeLook look) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (!hashTimedCount(o)) return hashLength(o);
    hashIterator it;
    hashPair pair;
    uint64_t count = 0;
    hashIteratorInit(&it, o, look);
    while (hashNext(&it, &pair) && !fiberPoint(1)) count++;
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
    hashtable t = tableOf(o);
    expiredFields d = {now_ms, out};
    return hashtableScanVolatile(&t, &fields_type, cursor, collectExpired, &d);
}

void hashRemoveExpired(robj *o, const hashExpired *expired) {
    hotCheck(objectType(o) == TYPE_HASH);
    hashtable t = tableOf(o);
    for (unsigned i = 0; i < expired->count; i++) {
        void *element = expired->elements[i];
        beforeElement(objectPointer(o), element);
        check(hashtableDeleteEntry(&t, &fields_type, elementHash(element), element));
        elementFree(element, NULL);
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
    hashIteratorInit(&it, o, look);
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
    out->value = elementValue(element);
    out->time_ms = elementTime(element);
}

static uint64_t hashOfField(slice field, bool *is_text) {
    *is_text = true;
    return hashBytes(field.ptr, field.len);
}

static const valueElements fields = {
    .table_of = tableOfValue, .type = &fields_type, .read = readElement, .hash_of = hashOfField};

static void freeElement(void *context, void *element, unsigned flags) {
    (void)flags; /* all entries */
    valueFreer *by = context;
    if (!elementGoesWithStore(element, by)) elementFree(element, by);
}

static void freeLarge(void *value, valueFreer *by) {
    hashtable t = {value};
    hashtableFree(&t, freeElement, by);
}

static void *copyTable(const valuePlace *place, const valuePlace *to_place, void *value) {
    (void)place, (void)to_place; /* not needed */
    hashtable from = {value}, to = {NULL};
    hashtableReserve(&to, &fields_type, hashtableCount(&from));
    hashtableIterator it;
    hashtableIteratorInit(&it, &from, &fields_type);
    const void *element;
    unsigned flags;
    while ((element = hashtableIteratorNext(&it, &flags))) {
        /* References are not copied: their owner knows nothing of this hash. */
        void *copy = elementNew(elementField(element), elementValue(element), elementTime(element));
        hashtableInsert(&to, &fields_type, elementHash(element), copy, flags);
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
    return hashtableBytes(&t) + sampledMemory(&t, &fields_type, samples, elementMemory);
}

static void *moveElement(void *element, compaction *by) { return elementMove(element, by); }

static uint64_t compactTable(void **value, uint64_t cursor, compaction *by) {
    return elementsCompact(value, &fields_type, moveElement, cursor, by);
}

static void statsOf(const void *value, hashtableStats *out) {
    hashtable t = {(void *)(uintptr_t)value};
    hashtableStatsRead(&t, &fields_type, out);
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
