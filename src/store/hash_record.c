/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records (hash_record.h). A search costs O(1) for the name and a step over each value before the
 * one that is found; a change moves the values after it. A change of the fields costs O(fields). */
#include "store/hash_record.h"

#include "base/base.h"
#include "base/fiber.h"
#include "base/random.h"
#include "ds/listpack.h"
#include "store/compressed.h"
#include "store/element.h"

static inline const uint8_t *skipValues(const uint8_t *at, unsigned count) {
    for (; count > 0; count--) at = listpackSkipBody(at);
    return at;
}

/* ------------------------------------------------------------------ building */

/* A record with `values[0]`, `values[stride]` and so on; NULL if it would be too large. */
static robj *build(slice key, const shape *s, const slice *values, unsigned stride) {
    listpackItem items[SHAPE_FIELDS_MAX];
    size_t size = RECORD_HEAD;
    for (unsigned i = 0; i < s->count; i++) {
        items[i] = listpackItemOf(values[i * stride]);
        size += listpackBodySize(&items[i]);
    }
    if (size > RECORD_SIZE_MAX) return NULL;
    uint8_t *at;
    robj *o = objectNewPackedRoom(key, TYPE_HASH, FORM_SHAPED, size, OBJECT_NO_EXPIRE, 0, &at);
    storeU16(at, s->id);
    at += RECORD_HEAD;
    for (unsigned i = 0; i < s->count; i++) at = listpackWriteBody(at, &items[i]);
    shapeRetain(s);
    return o;
}

static str buffer; /* of recordOfListpack() and recordListpack() */

/* The bytes of a record with the values of a listpack whose names are those of the shape; too
 * many, if the listpack is. Valid until the buffer is used again. */
static slice valuesOfListpack(const shape *s, const uint8_t *lp) {
    hotCheck(listpackCount(lp) == 2 * (size_t)s->count);
    strClear(&buffer);
    uint8_t *start = (uint8_t *)strReserve(&buffer, RECORD_HEAD + listpackSize(lp));
    storeU16(start, s->id);
    uint8_t *at = start + RECORD_HEAD;
    const uint8_t *from = lp + LISTPACK_HEADER;
    for (unsigned i = 0; i < s->count; i++) {
        from += listpackEntrySize(from);
        size_t len = (size_t)(listpackSkipBody(from) - from);
        bytesCopy((char *)at, (const char *)from, len);
        at += len;
        from += listpackEntrySize(from);
    }
    return sliceMake(start, (size_t)(at - start));
}

robj *recordOfPairs(slice key, const slice *words, size_t count, const packLimits *limits) {
    if (count / 2 > limits->entries) return NULL;
    for (size_t i = 0; i < count; i++) {
        if (words[i].len > limits->bytes) return NULL;
    }
    const shape *s = shapeFor(words, count / 2, 2);
    return s ? build(key, s, words + 1, 2) : NULL;
}

robj *recordOfListpack(slice key, const uint8_t *lp) {
    size_t count = listpackCount(lp) / 2;
    if (count == 0 || count > shapeLimitsNow.fields) return NULL;
    slice names[SHAPE_FIELDS_MAX];
    char digits[SHAPE_FIELDS_MAX][NUMBER_TEXT_MAX];
    const uint8_t *at = listpackFirst(lp);
    for (size_t i = 0; i < count; i++) {
        names[i] = listpackGetText(at, digits[i]);
        at = listpackNext(lp, at);
        at = listpackNext(lp, at);
    }
    const shape *s = shapeFor(names, count, 1);
    if (!s || listpackSize(lp) > RECORD_SIZE_MAX) return NULL;
    shapeRetain(s);
    return objectNewPacked(key, TYPE_HASH, FORM_SHAPED, valuesOfListpack(s, lp), OBJECT_NO_EXPIRE,
                           0);
}

/* True if the names in a listpack are those of the shape. */
static bool hasNamesOf(const uint8_t *lp, const shape *s) {
    const uint8_t *at = listpackFirst(lp);
    for (unsigned i = 0; i < s->count; i++) {
        char digits[NUMBER_TEXT_MAX];
        if (!sliceEqual(listpackGetText(at, digits), shapeName(s, i))) return false;
        at = listpackNext(lp, at);
        at = listpackNext(lp, at);
    }
    return true;
}

robj *recordAgain(robj *o) {
    hotCheck(objectForm(o) == FORM_PACKED);
    const uint8_t *lp = objectPacked(o);
    size_t count = listpackCount(lp) / 2;
    if (count == 0 || listpackSize(lp) > RECORD_SIZE_MAX) return o;
    char digits[3][NUMBER_TEXT_MAX];
    slice first = listpackGetText(listpackFirst(lp), digits[0]);
    slice middle = listpackGetText(listpackSeek(lp, (int64_t)(count & ~(size_t)1)), digits[1]);
    slice last = listpackGetText(listpackPrev(lp, listpackLast(lp)), digits[2]);
    const shape *s = shapeGuess(first, middle, last, count);
    if (!s || !hasNamesOf(lp, s)) return o;
    shapeRetain(s);
    return objectSetPacked(o, FORM_SHAPED, valuesOfListpack(s, lp));
}

/* ------------------------------------------------------------------ values */

unsigned recordShapeNumber(const robj *o) {
    if (unlikely(objectIsCompressed(o))) return compressedShape(o);
    return objectIsShaped(o) ? recordShapeId(o) : 0;
}

slice recordValueBytes(const robj *o) {
    const uint8_t *values = recordValues(o);
    return sliceMake(values, (size_t)(skipValues(values, recordShape(o)->count) - values));
}

bool recordGet(const robj *o, slice field, char *digits, slice *value) {
    const uint8_t *at = objectPacked(o);
    const shape *s = shapeById(loadU16(at));
    int position = shapeFind(s, field);
    if (position < 0) return false;
    listpackItem item;
    (void)listpackReadBody(skipValues(at + RECORD_HEAD, (unsigned)position),
                           &item); /* the next one is not needed */
    *value = listpackText(&item, digits);
    return true;
}

/* Replaces a value; false, and nothing is changed, if the record would be too large. */
static bool replaceValue(robj **o, unsigned position, slice value) {
    const shape *s = recordShape(*o);
    hotCheck(position < s->count);
    const uint8_t *start = objectPacked(*o), *at = skipValues(start + RECORD_HEAD, position);
    const uint8_t *after = listpackSkipBody(at);
    listpackItem item = listpackItemOf(value);
    size_t had = (size_t)(after - at), needs = listpackBodySize(&item);
    if (likely(had == needs) && elementMayStay()) {
        (void)listpackWriteBody((uint8_t *)(uintptr_t)at, &item); /* ends where the old one did */
        return true;
    }
    const uint8_t *end = skipValues(after, s->count - position - 1);
    size_t offset = (size_t)(at - start), rest = (size_t)(end - after);
    size_t size = offset + needs + rest;
    if (size > RECORD_SIZE_MAX) return false;
    objectBuffer r;
    objectBufferInit(&r, *o);
    if (needs > had) (void)r.buffer.resize(&r.buffer, size); /* the address is in `bytes` */
    memmove(r.buffer.bytes + offset + needs, r.buffer.bytes + offset + had, rest);
    if (needs <= had) (void)r.buffer.resize(&r.buffer, size);
    (void)listpackWriteBody(r.buffer.bytes + offset, &item); /* fills the gap */
    *o = r.o;
    return true;
}

/* The record has this shape now. */
static void changeShape(uint8_t *record, const shape *from, const shape *to) {
    storeU16(record, to->id);
    shapeRetain(to);
    shapeRelease(from);
}

/* Adds values, with the shape of `to`, which has so many names more; false, and nothing is changed,
 * if the record would be too large. */
static bool addValues(robj **o, const shape *to, const slice *values, size_t count) {
    const shape *s = recordShape(*o);
    hotCheck(s->count + count == to->count);
    listpackItem items[SHAPE_FIELDS_MAX];
    const uint8_t *start = objectPacked(*o);
    size_t had = (size_t)(skipValues(start + RECORD_HEAD, s->count) - start), size = had;
    for (size_t i = 0; i < count; i++) {
        items[i] = listpackItemOf(values[i]);
        size += listpackBodySize(&items[i]);
    }
    if (size > RECORD_SIZE_MAX) return false;
    objectBuffer r;
    objectBufferInit(&r, *o);
    uint8_t *record = r.buffer.resize(&r.buffer, size), *at = record + had;
    for (size_t i = 0; i < count; i++) at = listpackWriteBody(at, &items[i]);
    changeShape(record, s, to);
    *o = r.o;
    return true;
}

/* Removes a value; `to` is the shape without its name. */
static robj *removeValue(robj *o, unsigned position, const shape *to) {
    const shape *s = recordShape(o);
    hotCheck(position < s->count);
    hotCheck(to->count == s->count - 1);
    objectBuffer r;
    objectBufferInit(&r, o);
    uint8_t *start = r.buffer.bytes;
    uint8_t *at = start + (skipValues(start + RECORD_HEAD, position) - start);
    const uint8_t *after = listpackSkipBody(at);
    size_t rest = (size_t)(skipValues(after, to->count - position) - after);
    memmove(at, after, rest);
    changeShape(start, s, to);
    (void)r.buffer.resize(&r.buffer, (size_t)(at - start) + rest); /* `r` has the object */
    return r.o;
}

/* ------------------------------------------------------------------ fields */

bool recordSetField(robj **o, slice field, slice value, const packLimits *limits, bool *created) {
    const shape *s = recordShape(*o);
    int position = shapeFind(s, field);
    *created = position < 0;
    if (unlikely((size_t)s->count + *created > limits->entries)) return false;
    if (likely(position >= 0)) return replaceValue(o, (unsigned)position, value);
    const shape *next = shapeAfter(s, field);
    return next && addValues(o, next, &value, 1);
}

size_t recordAddPairs(robj **o, const slice *words, size_t count, const packLimits *limits) {
    const shape *s = recordShape(*o);
    slice names[SHAPE_FIELDS_MAX], values[SHAPE_FIELDS_MAX];
    size_t most = sizeMin(SHAPE_FIELDS_MAX, limits->entries), added = 0;
    for (size_t i = 0; i < count; i += 2) {
        if (shapeFind(s, words[i]) >= 0) continue;
        if (s->count + added >= most) return 0;
        values[added] = words[i + 1];
        names[s->count + added++] = words[i];
    }
    if (added < 2) return 0;
    for (unsigned i = 0; i < s->count; i++) names[i] = shapeName(s, i);
    const shape *next = shapeFor(names, s->count + added, 1);
    if (next && addValues(o, next, values, added)) return added;
    *o = recordToPacked(*o); /* rather than count a candidate for each of them */
    return 0;
}

bool recordDeleteField(robj **o, slice field) {
    const shape *s = recordShape(*o);
    int found = shapeFind(s, field);
    if (found < 0) return false;
    unsigned position = (unsigned)found, rest = 0;
    slice names[SHAPE_FIELDS_MAX];
    for (unsigned i = 0; i < s->count; i++) {
        if (i != position) names[rest++] = shapeName(s, i);
    }
    const shape *to = shapeFor(names, rest, 1);
    if (to) {
        *o = removeValue(*o, position, to);
        return true;
    }
    objectBuffer r;
    objectBufferInit(&r, recordToPacked(*o));
    listpackDeleteRange(&r.buffer, 2 * (int64_t)position, 2);
    *o = r.o;
    return true;
}

/* ------------------------------------------------------------------ as a listpack */

slice recordListpack(const robj *o) {
    enum { END_MAX = 5 }; /* the length after a value */
    const shape *s = recordShape(o);
    const uint8_t *from = recordValues(o);
    size_t values = (size_t)(skipValues(from, s->count) - from);
    size_t most = LISTPACK_EMPTY_SIZE + values + s->entries_size + s->count * (size_t)END_MAX;
    strClear(&buffer);
    uint8_t *lp = (uint8_t *)strReserve(&buffer, most), *at = lp + LISTPACK_HEADER;
    const uint8_t *name = s->entries;
    for (unsigned i = 0; i < s->count; i++) {
        size_t name_size = listpackEntrySize(name);
        bytesCopy((char *)at, (const char *)name, name_size);
        at += name_size;
        name += name_size;
        const uint8_t *next = listpackSkipBody(from);
        size_t len = (size_t)(next - from);
        bytesCopy((char *)at, (const char *)from, len);
        at = listpackWriteBack(at + len, len);
        from = next;
    }
    listpackFinish(lp, at, 2 * (size_t)s->count);
    return sliceMake(lp, listpackSize(lp));
}

robj *recordToPacked(robj *o) {
    const shape *s = recordShape(o);
    o = objectSetPacked(o, FORM_PACKED, recordListpack(o));
    shapeRelease(s);
    return o;
}

void recordFreeBuffer(void) { strFree(&buffer); }

/* ------------------------------------------------------------------ random pairs */

static void visitAt(const shape *s, unsigned position, const uint8_t *at, hashVisitProc *visit,
                    void *arg) {
    char digits[NUMBER_TEXT_MAX];
    listpackItem item;
    (void)listpackReadBody(at, &item); /* the next one is not needed */
    hashPair pair = {shapeName(s, position), listpackText(&item, digits)};
    visit(arg, &pair);
}

void recordRandom(const robj *o, size_t count, bool unique, hashVisitProc *visit, void *arg) {
    const shape *s = recordShape(o);
    const uint8_t *places[SHAPE_FIELDS_MAX], *at = recordValues(o);
    if (count == 1) {
        unsigned chosen = (unsigned)randomUniform(s->count);
        visitAt(s, chosen, skipValues(at, chosen), visit, arg);
        return;
    }
    for (unsigned i = 0; i < s->count; at = listpackSkipBody(at)) places[i++] = at;
    if (!unique) {
        for (; count > 0; count--) {
            unsigned chosen = (unsigned)randomUniform(s->count);
            visitAt(s, chosen, places[chosen], visit, arg);
            if (fiberPoint(1)) break;
        }
        return;
    }
    size_t wanted = sizeMin(count, s->count);
    for (unsigned i = 0; wanted > 0; i++) {
        /* Each is chosen with the probability that makes all combinations equally likely. */
        if (randomUniform(s->count - i) >= wanted) continue;
        visitAt(s, i, places[i], visit, arg);
        wanted--;
    }
}
