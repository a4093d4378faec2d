/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed strings (compressed.h): making, reading and freeing them, and the memory for texts
 * that are expanded for one command.
 *
 * Invariants: a compressed object is embedded and not smaller than its header, key and the two
 * numbers; `all` counts every one that has not been passed to compressedForget(), once. */
#include "store/compressed.h"

#include "base/base.h"
#include "base/clock.h"
#include "store/dictionary.h"
#include "store/slab.h"
#include "store/type_string.h"

enum {
    SCRATCH_BLOCK = 64 * 1024, /* kept between commands */
    SLACK = 64,                /* the library needs more room than it uses */
};

/* Memory beyond the first block. */
typedef struct scratchPart {
    struct scratchPart *next;
    char bytes[];
} scratchPart;

static struct {
    char *block; /* NULL until it is needed */
    size_t used, others;
    scratchPart *parts;
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
    v.packed = sliceMake(at, bytes.len - (size_t)(at - bytes.ptr));
    return v;
}

void compressedExpand(const robj *o, char *out) {
    compressedValue v = compressedRead(o);
    bool expanded = dictionaryExpand(v.dictionary, v.packed, out, v.len);
    check(expanded);
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
    for (scratchPart *next; scratch.parts; scratch.parts = next) {
        next = scratch.parts->next;
        memFree(scratch.parts);
    }
    scratch.used = scratch.others = 0;
    all.scratch = SCRATCH_BLOCK;
}

/* Memory until the end of the command. */
static char *scratchRoom(size_t size) {
    hotCheck(size > 0);
    if (scratch.serial && *scratch.serial != scratch.of && !scratch.kept) {
        compressedReclaim();
        scratch.of = *scratch.serial;
    }
    if (!scratch.block) {
        scratch.block = memAlloc(SCRATCH_BLOCK);
        all.scratch = SCRATCH_BLOCK;
    }
    size = sizeRoundUp(size, sizeof(uint64_t));
    if (likely(size <= SCRATCH_BLOCK - scratch.used)) {
        scratch.used += size;
        return scratch.block + scratch.used - size;
    }
    scratchPart *part = memAlloc(sizeof(*part) + size);
    part->next = scratch.parts;
    scratch.parts = part;
    scratch.used += scratch.used == 0; /* there is something to free */
    all.scratch += size;
    return part->bytes;
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

robj *compressedShow(const robj *o) {
    hotCheck(threadIsMain());
    compressedValue v = compressedRead(o);
    slice key = objectKey(o);
    int64_t expire_ms = objectExpire(o);
    uint32_t time = expire_ms == OBJECT_NO_EXPIRE ? EXPIRE_NONE : EXPIRE_SHORT;
    uint32_t form = v.raw ? FORM_EMBED_RAW : FORM_EMBED;
    robj *shown = (robj *)scratchRoom(objectTextSize(key, v.len, expire_ms));
    char *at =
        writeHead(shown, key, expire_ms, TYPE_STRING | time << 3 | form << 5, objectAccess(o));
    at = objectWriteLength(at, v.len);
    uint64_t began = clockTicks();
    compressedExpand(o, at);
    expand_ticks += clockTicks() - began;
    all.shown++;
    hotCheck(objectEmbedded(shown).len == v.len);
    return shown;
}

/* ------------------------------------------------------------------ making */

/* Bytes of the embedded value, for a text of this length in so many packed bytes. */
static size_t embeddedSize(size_t text_len, bool raw, size_t packed_len) {
    return 1 + objectLengthBytes(text_len << 1 | raw) + packed_len;
}

/* An object with this value. */
static robj *build(slice key, int64_t expire_ms, uint32_t access, const compressedValue *v) {
    bool timed = expire_ms != OBJECT_NO_EXPIRE;
    uint32_t form = timed ? FORM_EMBED : FORM_EMBED_RAW;
    size_t number = v->len << 1 | v->raw, len = embeddedSize(v->len, v->raw, v->packed.len);
    size_t size = objectTextSize(key, len, expire_ms);
    robj *o = slabAlloc(size);
    char *at =
        writeHead(o, key, expire_ms, TYPE_STRING | EXPIRE_COMPRESSED << 3 | form << 5, access);
    at = objectWriteLength(at, len);
    *at = (char)v->dictionary;
    memcpy(objectWriteLength(at + 1, number), v->packed.ptr, v->packed.len);
    dictionaryUse(v->dictionary);
    all.values++;
    all.text_bytes += v->len;
    all.packed_bytes += len;
    hotCheck(objectSize(o) == size);
    return o;
}

bool compressedMayGain(const robj *o, int db_id, size_t min) {
    if (objectType(o) != TYPE_STRING) return false;
    if (objectIsCompressed(o)) {
        const valueDictionary *d = dictionaryOfKey(db_id, objectKey(o));
        return d && dictionaryId(d) != compressedRead(o).dictionary;
    }
    valueForm form = objectForm(o);
    if (form > FORM_POINTER || objectExpireBytes(o) > 6) return false;
    size_t len = objectText(o, NULL).len;
    return len >= min && len <= COMPRESSED_TEXT_MAX && dictionaryOfKey(db_id, objectKey(o));
}

/* Bytes of memory that the object may take, so that it saves enough of what a plain one takes. */
static size_t memoryWanted(const robj *o, size_t text_len) {
    size_t plain = slabClassSize(objectTextSize(objectKey(o), text_len, objectExpire(o)));
    size_t saved = sizeMax(VALUE_SAVED_MIN, plain / VALUE_SAVED_SHARE);
    return plain > saved ? plain - saved : 0;
}

/* Bytes of memory that the object takes with a value of `embedded` bytes. */
static size_t memoryWith(const robj *o, size_t embedded) {
    return slabClassSize(objectTextSize(objectKey(o), embedded, objectExpire(o)));
}

static bool isRaw(const robj *o) {
    return objectIsCompressed(o) ? compressedRead(o).raw : objectForm(o) != FORM_EMBED;
}

robj *compressedMake(const robj *o, int db_id) {
    hotCheck(threadIsMain());
    static char room[COMPRESSED_TEXT_MAX]; /* pages that are not used take no memory */
    const valueDictionary *d = dictionaryOfKey(db_id, objectKey(o));
    check(d != NULL);
    uint64_t began = clockTicks();
    slice text = objectText(o, NULL);
    check(text.len <= sizeof(room));
    bool raw = isRaw(o);
    size_t most = memoryWanted(o, text.len);
    size_t len = dictionaryCompress(d, text, room, sizeMin(text.len, most + SLACK));
    robj *made = NULL;
    if (len && memoryWith(o, embeddedSize(text.len, raw, len)) <= most) {
        compressedValue v = {.dictionary = dictionaryId(d),
                             .raw = raw,
                             .len = text.len,
                             .packed = sliceMake(room, len)};
        made = build(objectKey(o), objectExpire(o), objectAccess(o), &v);
    }
    make_ticks += clockTicks() - began;
    all.made += made != NULL;
    all.futile += made == NULL;
    return made;
}

robj *compressedPlain(robj *o) {
    hotCheck(threadIsMain());
    slice text = compressedText(o);
    robj *plain = objectNewString(objectKey(o), text, objectExpire(o), objectAccess(o),
                                  compressedRead(o).raw ? KEEP_RAW : KEEP_TEXT);
    all.restored++;
    objectFree(o);
    return plain;
}

robj *compressedCopy(const robj *o, slice key, int64_t expire_ms, uint32_t access) {
    hotCheck(threadIsMain());
    compressedValue v = compressedRead(o);
    return build(key, expire_ms, access, &v);
}

robj *compressedSetExpire(robj *o, int64_t expire_ms) {
    hotCheck(threadIsMain());
    bool none = expire_ms == OBJECT_NO_EXPIRE;
    if (!none && expire_ms >= EXPIRE_SHORT_MAX)
        return objectSetExpire(compressedPlain(o), expire_ms);
    compressedValue v = compressedRead(o);
    /* As for plain text: what is too long for embstr with a TTL is raw from then on. */
    if (objectHasExpire(o) == none && !objectFitsWithTtl(o)) v.raw = true;
    robj *changed = build(objectKey(o), expire_ms, objectAccess(o), &v);
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
}

void compressedDropsAdd(compressedDrops *drops, const robj *o) {
    compressedValue v = compressedRead(o);
    hotCheck(v.dictionary <= DICTIONARY_ID_MAX);
    if (!drops->users) drops->users = memNewArray(uint64_t, DICTIONARY_ID_MAX + 1);
    drops->users[v.dictionary]++;
    drops->values++;
    drops->text_bytes += v.len;
    drops->packed_bytes += objectEmbedded(o).len;
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

/* ------------------------------------------------------------------ reports */

void compressedGetReport(compressedReport *out) {
    *out = all;
    out->make_us = (uint64_t)clockTicksToNs(make_ticks) / 1000;
    out->expand_us = (uint64_t)clockTicksToNs(expand_ticks) / 1000;
}

void compressedResetStats(void) {
    all.made = all.futile = all.shown = all.restored = 0;
    make_ticks = expand_ticks = 0;
}
