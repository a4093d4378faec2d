/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed values (compressed.h): making, reading and freeing them, and the memory for texts
 * that are expanded for one command.
 *
 * Invariants: a compressed object is embedded and not smaller than its header, key and the two
 * numbers; `all` counts every one that has not been passed to compressedForget(), once. */
#include "store/compressed.h"

#include "base/base.h"
#include "base/clock.h"
#include "ds/intset.h"
#include "ds/listpack.h"
#include "store/compressed_part.h"
#include "store/dictionary.h"
#include "store/hash_record.h"
#include "store/slab.h"
#include "store/type_string.h"

enum {
    SCRATCH_BLOCK = 64 * 1024, /* kept between commands */
    SLACK = 64,                /* the library needs more room than it uses */
};

/* Memory beyond the first block. */
struct compressedParts {
    compressedParts *next;
    size_t size;
    char bytes[];
};

static struct {
    char *block; /* NULL until it is needed */
    size_t used;
    compressedParts *parts;
    compressedParts **own;  /* compressedUseParts(); NULL: none */
    const uint64_t *serial; /* compressedSetSerial() */
    uint64_t of;            /* the serial for which the memory is used */
    unsigned kept;          /* compressedKeep() */
} scratch;

static compressedReport all;
static uint64_t make_ticks, expand_ticks;

/* ------------------------------------------------------------------ reading */

compressedValue compressedRead(const robj *o) {
    hotCheck(objectIsCompressed(o));
    slice bytes = objectEmbedded(o);
    const char *at = bytes.ptr + 1;
    size_t number = objectReadLength(&at);
    compressedValue v = {.dictionary = (uint8_t)*bytes.ptr, .raw = number & 1, .len = number >> 1};
    hotCheck(v.len <= COMPRESSED_TEXT_MAX);
    if (objectType(o) != TYPE_STRING) v.count = objectReadLength(&at);
    v.packed = sliceMake(at, bytes.len - (size_t)(at - bytes.ptr));
    return v;
}

static void expand(const compressedValue *v, char *out) {
    bool expanded = dictionaryExpand(v->dictionary, v->packed, out, v->len);
    check(expanded);
}

void compressedExpand(const robj *o, char *out) {
    compressedValue v = compressedRead(o);
    expand(&v, out);
}

static bool isShaped(valueType type, const compressedValue *v) {
    return type == TYPE_HASH && v->raw;
}

static bool isInts(valueType type, const compressedValue *v) { return type == TYPE_SET && v->raw; }

size_t compressedLength(const robj *o) {
    hotCheck(objectType(o) != TYPE_STRING);
    compressedValue v = compressedRead(o);
    if (isShaped(objectType(o), &v)) return shapeById((unsigned)v.count)->count;
    return objectType(o) == TYPE_ZSET || objectType(o) == TYPE_HASH ? v.count / 2 : v.count;
}

unsigned compressedShape(const robj *o) {
    hotCheck(objectIsCompressed(o));
    if (objectType(o) != TYPE_HASH) return 0;
    compressedValue v = compressedRead(o);
    return v.raw ? (unsigned)v.count : 0;
}

/* ------------------------------------------------------------------ texts of collections */

/* Bytes of the plain value. */
static size_t plainBytes(valueType type, const compressedValue *v) {
    if (type == TYPE_STRING) return v->len;
    if (isShaped(type, v)) return RECORD_HEAD + v->len;
    return v->len + (isInts(type, v) ? INTSET_HEADER : LISTPACK_EMPTY_SIZE);
}

/* Writes the plain value, of plainBytes(). */
static void writeValue(valueType type, const compressedValue *v, uint8_t *at) {
    if (type == TYPE_STRING) {
        expand(v, (char *)at);
    } else if (isShaped(type, v)) {
        storeU16(at, (uint16_t)v->count);
        expand(v, (char *)at + RECORD_HEAD);
    } else if (isInts(type, v)) {
        storeU32(at, (uint32_t)(v->len / v->count));
        storeU32(at + 4, (uint32_t)v->count);
        expand(v, (char *)at + INTSET_HEADER);
        hotCheck(intsetSize(at) == plainBytes(type, v));
    } else {
        expand(v, (char *)at + LISTPACK_HEADER);
        listpackFinish(at, at + LISTPACK_HEADER + v->len, v->count);
    }
}

slice compressedTextOf(const robj *o) {
    hotCheck(!objectIsCompressed(o));
    valueForm form = objectForm(o);
    if (objectType(o) == TYPE_STRING) return form <= FORM_POINTER ? objectText(o, NULL) : SLICE("");
    if (objectType(o) > TYPE_HASH || form >= FORM_POINTER) return SLICE("");
    if (objectIsShaped(o)) return recordValueBytes(o);
    const uint8_t *bytes = objectPacked(o);
    if (form == FORM_PACKED_INTS)
        return sliceMake(bytes + INTSET_HEADER, intsetSize(bytes) - INTSET_HEADER);
    return sliceMake(bytes + LISTPACK_HEADER, listpackSize(bytes) - LISTPACK_EMPTY_SIZE);
}

/* The count of a plain value. */
static size_t countOf(const robj *o) {
    if (objectType(o) == TYPE_STRING) return 0;
    if (objectIsShaped(o)) return recordShapeId(o);
    const uint8_t *bytes = objectPacked(o);
    return objectForm(o) == FORM_PACKED_INTS ? intsetCount(bytes) : listpackCount(bytes);
}

/* ------------------------------------------------------------------ scratch */

void compressedSetSerial(const uint64_t *serial) { scratch.serial = serial; }

void compressedKeep(bool on) {
    hotCheck(threadIsMain());
    check(on || scratch.kept > 0);
    scratch.kept += on ? 1 : -1U;
    /* Commands that have ended meanwhile do not end the one that they interrupted. */
    if (!on && scratch.serial) scratch.of = *scratch.serial;
}

void compressedReclaim(void) {
    if (likely(scratch.used == 0) || scratch.kept) return;
    compressedFreeParts(scratch.parts);
    scratch.parts = NULL;
    scratch.used = 0;
}

void compressedUseParts(compressedParts **own) {
    check(!own || !scratch.own);
    scratch.own = own;
}

/* Frees parts up to `end`, which remains; returns it, or NULL if it is not among them. */
static compressedParts *freeUntil(compressedParts *parts, const compressedParts *end) {
    for (compressedParts *next; parts && parts != end; parts = next) {
        next = parts->next;
        all.scratch -= parts->size;
        memFree(parts);
    }
    return parts;
}

void compressedFreeParts(compressedParts *parts) { (void)freeUntil(parts, NULL); }

/* Frees what the previous command has left. */
static void freePrevious(void) {
    if (!scratch.serial || *scratch.serial == scratch.of || scratch.kept) return;
    compressedReclaim();
    scratch.of = *scratch.serial;
}

compressedMark compressedSetMark(void) {
    hotCheck(threadIsMain());
    if (unlikely(scratch.own != NULL)) return (compressedMark){.parts = *scratch.own};
    freePrevious();
    return (compressedMark){.used = scratch.used, .parts = scratch.parts};
}

void compressedFreeSince(compressedMark mark) {
    hotCheck(threadIsMain());
    compressedParts **list = scratch.own ? scratch.own : &scratch.parts;
    *list = freeUntil(*list, mark.parts);
    if (!scratch.own) scratch.used = sizeMin(scratch.used, mark.used);
}

static char *partRoom(compressedParts **list, size_t size) {
    compressedParts *part = memAlloc(sizeof(*part) + size);
    part->next = *list;
    part->size = size;
    *list = part;
    all.scratch += size;
    return part->bytes;
}

/* Memory until the end of the command. */
static char *scratchRoom(size_t size) {
    hotCheck(size > 0);
    if (unlikely(scratch.own != NULL)) return partRoom(scratch.own, size);
    freePrevious();
    if (!scratch.block) {
        scratch.block = memAlloc(SCRATCH_BLOCK);
        all.scratch += SCRATCH_BLOCK;
    }
    size = sizeRoundUp(size, sizeof(uint64_t));
    if (likely(size <= SCRATCH_BLOCK - scratch.used)) {
        scratch.used += size;
        return scratch.block + scratch.used - size;
    }
    scratch.used += scratch.used == 0; /* there is something to free */
    return partRoom(&scratch.parts, size);
}

slice compressedText(const robj *o) {
    compressedValue v = compressedRead(o);
    char *text = scratchRoom(v.len);
    uint64_t began = clockTicks();
    compressedExpand(o, text);
    expand_ticks += clockTicks() - began;
    return sliceMake(text, v.len);
}

/* Writes an object up to its value: header, expiry time, key. Returns the address of the value. */
static char *writeHead(robj *to, slice key, int64_t expire_ms, uint32_t low_bits, uint32_t access) {
    hotCheck(low_bits < 256);
    storeU32(to, low_bits | access << 8);
    char *at = (char *)to + 4;
    uint64_t bits = (uint64_t)expire_ms;
    size_t bytes = objectExpireBytes(to);
    hotCheck((bytes == 0) == (expire_ms == OBJECT_NO_EXPIRE));
    memcpy(at, &bits, bytes);
    at = objectWriteLength(at + bytes, key.len);
    bytesCopy(at, key.ptr, key.len);
    return at + key.len;
}

/* The size of a plain object, whose value is embedded at any size. */
static size_t plainSize(const robj *o, const compressedValue *v) {
    return objectTextSize(objectKey(o), plainBytes(objectType(o), v), objectExpire(o));
}

/* Writes a plain object like `o` to memory of plainSize(). */
static robj *writePlain(void *to, const robj *o, const compressedValue *v) {
    int64_t expire_ms = objectExpire(o);
    uint32_t time = expire_ms == OBJECT_NO_EXPIRE ? EXPIRE_NONE : EXPIRE_SHORT;
    uint32_t form = v->raw ? FORM_EMBED_RAW : FORM_EMBED;
    size_t len = plainBytes(objectType(o), v);
    char *at = writeHead(to, objectKey(o), expire_ms, objectType(o) | time << 3 | form << 5,
                         objectAccess(o));
    writeValue(objectType(o), v, (uint8_t *)objectWriteLength(at, len));
    hotCheck(objectEmbedded(to).len == len);
    return to;
}

robj *compressedShow(const robj *o) {
    hotCheck(threadIsMain());
    compressedValue v = compressedRead(o);
    char *room = scratchRoom(plainSize(o, &v));
    uint64_t began = clockTicks();
    robj *shown = writePlain(room, o, &v);
    expand_ticks += clockTicks() - began;
    all.shown++;
    return shown;
}

robj *compressedOpen(const robj *o) {
    compressedValue v = compressedRead(o);
    return writePlain(memAlloc(plainSize(o, &v)), o, &v);
}

void compressedClose(robj *plain) { memFree(plain); }

/* ------------------------------------------------------------------ making */

/* Bytes of the numbers before the packed bytes. */
static size_t numbersBytes(valueType type, const compressedValue *v) {
    size_t count = type == TYPE_STRING ? 0 : objectLengthBytes(v->count);
    return 1 + objectLengthBytes(v->len << 1 | v->raw) + count;
}

/* An object with this value. */
static robj *build(slice key, valueType type, int64_t expire_ms, uint32_t access,
                   const compressedValue *v) {
    bool timed = expire_ms != OBJECT_NO_EXPIRE;
    uint32_t form = timed ? FORM_EMBED : FORM_EMBED_RAW;
    size_t len = numbersBytes(type, v) + v->packed.len;
    size_t size = objectTextSize(key, len, expire_ms);
    robj *o = slabAlloc(size);
    char *at = writeHead(o, key, expire_ms, type | EXPIRE_COMPRESSED << 3 | form << 5, access);
    at = objectWriteLength(at, len);
    *at = (char)v->dictionary;
    at = objectWriteLength(at + 1, v->len << 1 | v->raw);
    if (type != TYPE_STRING) at = objectWriteLength(at, v->count);
    memcpy(at, v->packed.ptr, v->packed.len);
    dictionaryUse(v->dictionary);
    if (isShaped(type, v)) shapeRetain(shapeById((unsigned)v->count));
    all.values++;
    all.text_bytes += v->len;
    all.packed_bytes += len;
    hotCheck(objectSize(o) == size);
    return o;
}

bool compressedMayGain(const robj *o, int db_id, size_t min) {
    if (objectIsCompressed(o)) {
        const valueDictionary *d = dictionaryOfKey(db_id, objectKey(o));
        return d && dictionaryId(d) != compressedRead(o).dictionary;
    }
    if (objectExpireBytes(o) > 6) return false;
    size_t len = compressedTextOf(o).len;
    return len > 0 && len >= min && len <= COMPRESSED_TEXT_MAX &&
           dictionaryOfKey(db_id, objectKey(o));
}

/* Bytes of memory that the object may take, so that it saves enough of what a plain one takes. */
static size_t memoryWanted(const robj *o, const compressedValue *v) {
    size_t plain = slabClassSize(plainSize(o, v));
    size_t saved = sizeMax(VALUE_SAVED_MIN, plain / VALUE_SAVED_SHARE);
    return plain > saved ? plain - saved : 0;
}

/* Bytes of memory that the object takes with so many packed bytes. */
static size_t memoryWith(const robj *o, const compressedValue *v, size_t packed_len) {
    size_t embedded = numbersBytes(objectType(o), v) + packed_len;
    return slabClassSize(objectTextSize(objectKey(o), embedded, objectExpire(o)));
}

/* What a value is without its packed bytes. */
static compressedValue describe(const robj *o, size_t len) {
    if (objectIsCompressed(o)) return compressedRead(o);
    return (compressedValue){.raw = objectForm(o) != FORM_EMBED, .len = len, .count = countOf(o)};
}

slice compressedPack(const valueDictionary *d, slice text, size_t most) {
    hotCheck(threadIsMain());
    static char room[COMPRESSED_TEXT_MAX]; /* pages that are not used take no memory */
    check(text.len <= sizeof(room));
    size_t len = dictionaryCompress(d, text, room, sizeMin(text.len, most + SLACK));
    return len <= most ? sliceMake(room, len) : SLICE("");
}

robj *compressedMake(const robj *o, int db_id) {
    hotCheck(threadIsMain());
    const valueDictionary *d = dictionaryOfKey(db_id, objectKey(o));
    check(d != NULL);
    uint64_t began = clockTicks();
    compressedMark mark = compressedSetMark();
    slice text = objectIsCompressed(o) ? compressedText(o) : compressedTextOf(o);
    compressedValue v = describe(o, text.len);
    size_t most = memoryWanted(o, &v);
    slice packed = compressedPack(d, text, most);
    compressedFreeSince(mark);
    robj *made = NULL;
    if (packed.len && memoryWith(o, &v, packed.len) <= most) {
        v.dictionary = dictionaryId(d);
        v.packed = packed;
        made = build(objectKey(o), objectType(o), objectExpire(o), objectAccess(o), &v);
    }
    make_ticks += clockTicks() - began;
    all.made += made != NULL;
    all.futile += made == NULL;
    return made;
}

/* A plain object in a block of its own. */
static robj *newPlain(const robj *o) {
    compressedValue v = compressedRead(o);
    slice key = objectKey(o);
    if (objectType(o) == TYPE_STRING)
        return objectNewString(key, compressedText(o), objectExpire(o), objectAccess(o),
                               v.raw ? KEEP_RAW : KEEP_TEXT);
    uint8_t *at;
    robj *plain =
        objectNewPackedRoom(key, objectType(o), v.raw ? FORM_EMBED_RAW : FORM_PACKED,
                            plainBytes(objectType(o), &v), objectExpire(o), objectAccess(o), &at);
    writeValue(objectType(o), &v, at);
    if (objectIsShaped(plain)) shapeRetain(recordShape(plain));
    return plain;
}

robj *compressedPlain(robj *o) {
    hotCheck(threadIsMain());
    robj *plain = newPlain(o);
    all.restored++;
    objectFree(o);
    return plain;
}

robj *compressedCopy(const robj *o, slice key, int64_t expire_ms, uint32_t access) {
    hotCheck(threadIsMain());
    compressedValue v = compressedRead(o);
    return build(key, objectType(o), expire_ms, access, &v);
}

robj *compressedSetExpire(robj *o, int64_t expire_ms) {
    hotCheck(threadIsMain());
    bool none = expire_ms == OBJECT_NO_EXPIRE, is_string = objectType(o) == TYPE_STRING;
    if (!none && expire_ms >= EXPIRE_SHORT_MAX)
        return objectSetExpire(compressedPlain(o), expire_ms);
    compressedValue v = compressedRead(o);
    /* As for plain text: what is too long for embstr with a TTL is raw from then on. */
    if (is_string && objectHasExpire(o) == none && !objectFitsWithTtl(o)) v.raw = true;
    robj *changed = build(objectKey(o), objectType(o), expire_ms, objectAccess(o), &v);
    objectFree(o);
    return changed;
}

/* ------------------------------------------------------------------ freeing */

static void subtract(uint64_t values, uint64_t text_bytes, uint64_t packed_bytes) {
    check(all.values >= values);
    check(all.packed_bytes >= packed_bytes);
    all.values -= values;
    all.text_bytes -= text_bytes;
    all.packed_bytes -= packed_bytes;
}

void compressedForget(const robj *o) {
    hotCheck(threadIsMain());
    compressedValue v = compressedRead(o);
    subtract(1, v.len, objectEmbedded(o).len);
    dictionaryRelease(v.dictionary, 1);
    if (isShaped(objectType(o), &v)) shapeRelease(shapeById((unsigned)v.count));
}

static void dropsAdd(compressedDrops *drops, uint32_t dictionary, size_t len, size_t packed_len) {
    hotCheck(dictionary <= DICTIONARY_ID_MAX);
    if (!drops->users) drops->users = memNewArray(uint64_t, DICTIONARY_ID_MAX + 1);
    drops->users[dictionary]++;
    drops->values++;
    drops->text_bytes += len;
    drops->packed_bytes += packed_len;
}

void compressedDropsAdd(compressedDrops *drops, const robj *o) {
    compressedValue v = compressedRead(o);
    dropsAdd(drops, v.dictionary, v.len, objectEmbedded(o).len);
}

void compressedDropsSettle(compressedDrops *drops) {
    hotCheck(threadIsMain());
    for (uint32_t id = 1; drops->users && id <= DICTIONARY_ID_MAX; id++) {
        if (drops->users[id]) dictionaryRelease(id, drops->users[id]);
    }
    subtract(drops->values, drops->text_bytes, drops->packed_bytes);
    memFree(drops->users);
    *drops = (compressedDrops){.users = NULL};
}

/* ------------------------------------------------------------------ parts of collections */

bool compressedPartMake(const valueDictionary *d, slice text, size_t most, compressedPart *out) {
    hotCheck(threadIsMain());
    uint64_t began = clockTicks();
    slice packed = compressedPack(d, text, most);
    make_ticks += clockTicks() - began;
    *out = (compressedPart){dictionaryId(d), text.len, packed};
    return packed.len > 0;
}

void compressedPartMade(bool stored) {
    all.made += stored;
    all.futile += !stored;
}

void compressedPartRestored(void) { all.restored++; }

void compressedPartUse(const compressedPart *part) {
    hotCheck(threadIsMain());
    dictionaryUse(part->dictionary);
    all.values++;
    all.text_bytes += part->len;
    all.packed_bytes += part->packed.len;
}

void compressedPartForget(const compressedPart *part, compressedDrops *drops) {
    if (drops) {
        dropsAdd(drops, part->dictionary, part->len, part->packed.len);
        return;
    }
    hotCheck(threadIsMain());
    subtract(1, part->len, part->packed.len);
    dictionaryRelease(part->dictionary, 1);
}

void compressedPartExpand(const compressedPart *part, char *out) {
    uint64_t began = clockTicks();
    bool expanded = dictionaryExpand(part->dictionary, part->packed, out, part->len);
    check(expanded);
    expand_ticks += clockTicks() - began;
    all.shown++;
}

slice compressedPartText(const compressedPart *part) {
    hotCheck(threadIsMain());
    char *room = scratchRoom(part->len);
    compressedPartExpand(part, room);
    return sliceMake(room, part->len);
}

/* ------------------------------------------------------------------ reports */

void compressedGetReport(compressedReport *out) {
    *out = all;
    out->make_us = (uint64_t)clockTicksToNs(make_ticks) / 1000;
    out->expand_us = (uint64_t)clockTicksToNs(expand_ticks) / 1000;
}

void compressedResetStats(void) {
    all.made = all.futile = all.shown = all.restored = 0;
    make_ticks = expand_ticks = 0;
    compressedResetNodesStats();
}
