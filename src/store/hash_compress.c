/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed values in hashes that are tables (hash_element.h): compressing those of a hash in
 * slices, storing plain those that are read again, and samples for dictionaries.
 *
 * Invariant: the word of an element has HASHTABLE_MARK if and only if its value is compressed, and
 * such a value is a user of its dictionary. An element that replaces another one here has the same
 * field, value and time, so a snapshot sees the same, whichever it meets. Main thread only. */
#include "base/base.h"
#include "base/clock.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/hash_element.h"

enum { READS_MAX = 256 };

/* A compressed value that was read again. Objects and elements may have been freed since: they are
 * looked for in their tables before they are used. */
typedef struct fieldRead {
    const robj *o;
    void *element;
    uint64_t hash, field_hash;
} fieldRead;

static struct {
    fieldRead list[READS_MAX]; /* further ones are noted when they are read once more */
    unsigned count;
} reads;

/* ------------------------------------------------------------------ replacing */

/* Puts an element with the same field and time in place of another one, which is freed. */
static void replaceElement(hashtable *t, void *element, void *with, unsigned flags) {
    uint64_t hash = hashFieldsType.hash_of(with);
    check(hashtableReplace(t, &hashFieldsType, hash, element, with));
    check(hashtableSetFlags(t, hash, with, flags));
    elementForget(element, NULL);
    elementFree(element, NULL);
}

static void storePlain(hashtable *t, void *element) {
    compressedMark mark = compressedSetMark();
    compressedPart part = partAt(elementValuePlace(element));
    int64_t time_ms = elementTime(element);
    void *plain = elementNew(elementField(element), compressedPartText(&part), time_ms);
    replaceElement(t, element, plain, elementFlags(time_ms));
    compressedFreeSince(mark);
    compressedPartRestored();
}

static void *newCompressed(const void *element, const compressedPart *part) {
    size_t head = (size_t)(elementValuePlace(element) - (const char *)element);
    char *made = elementAlloc(head + partBytes(part->len, part->packed.len)), *at = made + head;
    memcpy(made, element, head);
    *(uint8_t *)at = VALUE_COMPRESSED;
    *(uint8_t *)(at + 1) = (uint8_t)part->dictionary;
    at = objectWriteLength(at + 2, part->len);
    at = objectWriteLength(at, part->packed.len);
    memcpy(at, part->packed.ptr, part->packed.len);
    compressedPartUse(part);
    hotCheck(elementSize(made) == head + partBytes(part->len, part->packed.len));
    return made;
}

/* ------------------------------------------------------------------ compressing */

typedef struct compressing {
    hashtable table;
    const hashCompression *plan;
} compressing;

/* Compresses the text of an element, if that saves enough of what a plain one takes. */
static bool compressText(compressing *c, void *element, slice text) {
    enum { LEAST = 8 }; /* of packed bytes */
    size_t head = (size_t)(elementValuePlace(element) - (const char *)element);
    size_t plain = slabClassSize(head + objectLengthBytes(text.len) + text.len);
    size_t saved = sizeMax(VALUE_SAVED_MIN, plain / VALUE_SAVED_SHARE), rest = head + saved;
    if (plain < rest + partBytes(text.len, LEAST)) return false;
    compressedPart part;
    bool gains = compressedPartMake(c->plan->dictionary, text, plain - rest, &part) &&
                 slabClassSize(head + partBytes(part.len, part.packed.len)) + saved <= plain;
    compressedPartMade(gains);
    if (!gains) return false;
    void *made = newCompressed(element, &part);
    replaceElement(&c->table, element, made, elementFlags(elementTime(element)) | HASHTABLE_MARK);
    return true;
}

/* Moves a value to the current dictionary. It counts as not read. */
static void compressAgain(compressing *c, void *element) {
    char *at = (char *)(uintptr_t)elementValuePlace(element);
    compressedPart part = partAt(at);
    *(uint8_t *)at = VALUE_COMPRESSED;
    if (part.dictionary == dictionaryId(c->plan->dictionary)) return;
    compressedMark mark = compressedSetMark();
    (void)compressText(c, element, compressedPartText(&part)); /* or the former one remains */
    compressedFreeSince(mark);
}

static void visit(void *context, void *element, unsigned flags) {
    compressing *c = context;
    if (flags & HASHTABLE_MARK) {
        compressAgain(c, element);
        return;
    }
    const char *at = elementValuePlace(element);
    hotCheck(!isCompressedPart(at));
    if (isReference(at)) return;
    size_t len = objectReadLength(&at);
    if (len >= c->plan->min && len <= COMPRESSED_TEXT_MAX)
        (void)compressText(c, element, sliceMake(at, len)); /* or it gains nothing */
}

uint64_t hashCompressSome(robj *o, const hashCompression *plan, uint64_t cursor) {
    hotCheck(objectIsTableOfFields(o));
    check(!storeNow.forked);
    compressing c = {.table = hashTableOf(o), .plan = plan};
    do {
        cursor = hashtableScan(&c.table, &hashFieldsType, cursor, visit, &c);
    } while (cursor && clockMonoUs() < plan->deadline_us);
    hotCheck(c.table.body == objectPointer(o));
    return cursor;
}

static void findCompressed(void *context, void *element, unsigned flags) {
    uint32_t *dictionary = context;
    if (flags & HASHTABLE_MARK) *dictionary = partAt(elementValuePlace(element)).dictionary;
}

uint32_t hashDictionary(const robj *o) {
    hotCheck(objectIsTableOfFields(o));
    hashtable t = hashTableOf(o);
    uint32_t dictionary = 0;
    uint64_t cursor = 0;
    do {
        cursor = hashtableScan(&t, &hashFieldsType, cursor, findCompressed, &dictionary);
    } while (cursor && !dictionary);
    return dictionary;
}

/* ------------------------------------------------------------------ values that are read */

void hashNoteRead(const robj *o, void *element, storeLook look) {
    hotCheck(threadIsMain());
    if (storeNow.plain_idle_s < 0 || storeNow.forked || !lookTouches(look)) return;
    char *at = (char *)(uintptr_t)elementValuePlace(element);
    bool again = *(uint8_t *)at == VALUE_COMPRESSED_READ || storeNow.plain_idle_s == INT64_MAX;
    *(uint8_t *)at = VALUE_COMPRESSED_READ;
    if (!again || reads.count == READS_MAX) return;
    reads.list[reads.count++] = (fieldRead){.o = o,
                                            .element = element,
                                            .hash = storeHash(objectKey(o)),
                                            .field_hash = hashFieldsType.hash_of(element)};
}

/* The database of the main keyspace that has the object; NULL: none has it any more. */
static const db *databaseOf(const fieldRead *r) {
    for (int i = 0; i < storeNow.main.count; i++) {
        const db *d = storeNow.main.dbs[i];
        if (!isHidden(d, r->hash) && kvstoreHasEntry(d->keys, slotOf(r->hash), r->hash, r->o))
            return d;
    }
    return NULL;
}

static void storePlainAgain(const fieldRead *r) {
    const db *d = databaseOf(r);
    if (!d || !mayChange(d) || readingHolds(d, r->hash) || !objectIsTableOfFields(r->o)) return;
    hashtable t = hashTableOf(r->o);
    if (!hashtableHasEntry(&t, r->field_hash, r->element)) return;
    if (isCompressedPart(elementValuePlace(r->element))) storePlain(&t, r->element);
    hotCheck(t.body == objectPointer(r->o));
}

void storePlainFields(void) {
    hotCheck(threadIsMain());
    /* During a load another keyspace may be in use. */
    if (likely(!reads.count) || storeNow.used != &storeNow.main || storeNow.unchanging) return;
    bool may = !storeNow.forked && storeNow.plain_idle_s >= 0;
    for (unsigned i = 0; may && i < reads.count; i++) storePlainAgain(&reads.list[i]);
    reads.count = 0;
}

/* ------------------------------------------------------------------ samples */

/* The length of the value at this place, if it is passed on; else 0. */
static size_t sampleLength(const hashSampling *how, const char *at) {
    if (isReference(at)) return 0;
    size_t len = isCompressedPart(at) ? partAt(at).len : objectReadLength(&at);
    return len >= how->min && len <= how->max ? len : 0;
}

void hashSampleValues(const robj *o, hashSampling *how, hashVisitProc *sample, void *arg) {
    enum { MOST = 64 };
    void *found[MOST];
    hotCheck(objectIsTableOfFields(o));
    hashtable t = hashTableOf(o);
    str expanded = STR_EMPTY;
    size_t count = hashtableSample(&t, &hashFieldsType, found, sizeMin(how->most, MOST)), bytes = 0;
    how->looked = 0;
    while (how->looked < count && bytes <= how->bytes)
        bytes += sampleLength(how, elementValuePlace(found[how->looked++]));
    for (size_t i = 0; i < how->looked; i++) {
        hashPair pair = {.field = elementField(found[i])};
        const char *at = elementValuePlace(found[i]);
        if (!sampleLength(how, at)) continue;
        if (isCompressedPart(at)) {
            compressedPart part = partAt(at);
            pair.value = elementExpand(&part, &expanded);
        } else {
            pair.value.len = objectReadLength(&at);
            pair.value.ptr = at;
        }
        sample(arg, &pair);
    }
    strFree(&expanded);
}
