/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Building and accessing keyspace objects (layout: object.h). All functions are O(size of the
 * object). Main thread only. */
#include "store/object.h"

#include "base/base.h"
#include "base/number.h"
#include "store/compressed.h"
#include "store/hash_record.h"
#include "store/saving_value.h"
#include "store/slab.h"
#include "store/type.h"

static int expireForm(int64_t expire_ms) {
    if (expire_ms == OBJECT_NO_EXPIRE) return EXPIRE_NONE;
    return expire_ms >= 0 && expire_ms < EXPIRE_SHORT_MAX ? EXPIRE_SHORT : EXPIRE_WIDE;
}

static size_t expireBytes(int form) {
    return form == EXPIRE_NONE ? 0 : form == EXPIRE_SHORT ? 6 : 8;
}

char *objectWriteLength(char *at, size_t len) {
    unsigned char *p = (unsigned char *)at;
    if (len < 128) {
        p[0] = (unsigned char)len;
        return at + 1;
    }
    if (len < 16384) {
        p[0] = (unsigned char)(len >> 8 | 128);
        p[1] = (unsigned char)len;
        return at + 2;
    }
    p[0] = OBJECT_LENGTH_LARGE;
    storeU64(p + 1, len);
    return at + 9;
}

static void writeExpire(char *at, int form, int64_t expire_ms) {
    hotCheck(form == EXPIRE_NONE || form == EXPIRE_SHORT || form == EXPIRE_WIDE);
    uint64_t bits = (uint64_t)expire_ms;
    if (form != EXPIRE_NONE) memcpy(at, &bits, expireBytes(form));
}

static const uint8_t int_bytes[8] = {
    [FORM_INT1] = 1, [FORM_INT2] = 2, [FORM_INT3] = 3, [FORM_INT4] = 4, [FORM_INT8] = 8};

static valueForm intForm(int64_t value) {
    if (value >= INT8_MIN && value <= INT8_MAX) return FORM_INT1;
    if (value >= INT16_MIN && value <= INT16_MAX) return FORM_INT2;
    if (value >= -(1 << 23) && value < 1 << 23) return FORM_INT3;
    if (value >= INT32_MIN && value <= INT32_MAX) return FORM_INT4;
    return FORM_INT8;
}

/* Loads and stores with the full size of the value, so that a load right after a store is
 * forwarded. */
static inline int64_t loadInt(const char *at, valueForm form) {
    switch (form) {
    case FORM_INT1: return (int8_t)*at;
    case FORM_INT2: return (int16_t)loadU16(at);
    case FORM_INT3:
        return (int32_t)((uint32_t)loadU16(at) << 8 | (uint32_t)(uint8_t)at[2] << 24) >> 8;
    case FORM_INT4: return (int32_t)loadU32(at);
    default: hotCheck(form == FORM_INT8); return (int64_t)loadU64(at);
    }
}

static inline void storeInt(char *at, valueForm form, int64_t value) {
    switch (form) {
    case FORM_INT1: *at = (char)value; break;
    case FORM_INT2: storeU16(at, (uint16_t)value); break;
    case FORM_INT3:
        storeU16(at, (uint16_t)value);
        at[2] = (char)(value >> 16);
        break;
    case FORM_INT4: storeU32(at, (uint32_t)value); break;
    default: hotCheck(form == FORM_INT8); storeU64(at, (uint64_t)value);
    }
}

/* Allocates an object with `value_bytes` after the key and writes everything except the value.
 * Returns the address of the value. */
static robj *build(slice key, int64_t expire_ms, uint32_t access, valueType type, valueForm form,
                   size_t value_bytes, char **value_at) {
    hotCheck(type < TYPE_COUNT);
    hotCheck(value_bytes > 0);
    int expire_form = expireForm(expire_ms);
    size_t size = 4 + expireBytes(expire_form) + objectLengthBytes(key.len) + key.len + value_bytes;
    robj *o = slabAlloc(size);
    storeU32(o, (uint32_t)type | (uint32_t)expire_form << 3 | (uint32_t)form << 5 | access << 8);
    char *at = (char *)o + 4;
    writeExpire(at, expire_form, expire_ms);
    at = objectWriteLength(at + expireBytes(expire_form), key.len);
    bytesCopy(at, key.ptr, key.len);
    *value_at = at + key.len;
    return o;
}

size_t objectTextSize(slice key, size_t len, int64_t expire_ms) {
    return 4 + expireBytes(expireForm(expire_ms)) + objectLengthBytes(key.len) + key.len +
           objectLengthBytes(len) + len;
}

/* An object with embedded text; its bytes are to be written to *text. */
static robj *buildText(slice key, size_t len, int64_t expire_ms, uint32_t access, valueForm form,
                       char **text) {
    hotCheck(form <= FORM_EMBED_RAW);
    char *at;
    robj *o = build(key, expire_ms, access, TYPE_STRING, form, objectLengthBytes(len) + len, &at);
    *text = objectWriteLength(at, len);
    return o;
}

_Static_assert(OBJECT_EMBED_MAX >= SLAB_SIZE_MAX, "text gains by all classes of the slab");

/* True if `len` bytes of text take at most as much memory in an object of `size` bytes as in a
 * blob. Mostly they do: the classes of the slab are 2 to 6 % apart, those of the allocator up to 25
 * %. But a blob may just fit its class. */
static NO_INLINE bool embedsLong(size_t len, size_t size) {
    hotCheck(size > len);
    if (size > OBJECT_EMBED_MAX) return false;
    size_t with_pointer = size - objectLengthBytes(len) - len + sizeof(uint64_t);
    return slabClassSize(size) <= slabClassSize(with_pointer) + blobGoodSize(len);
}

robj *objectNewString(slice key, slice value, int64_t expire_ms, uint32_t access, stringKeep keep) {
    int64_t number;
    if (keep == KEEP_BEST && numberMayBeInt(value) && numberParseInt(value, &number))
        return objectNewInt(key, number, expire_ms, access);
    size_t size = objectTextSize(key, value.len, expire_ms);
    if (likely(size <= OBJECT_EMBED_ALWAYS) || embedsLong(value.len, size)) {
        char *text;
        valueForm form = keep == KEEP_RAW ? FORM_EMBED_RAW : FORM_EMBED;
        robj *o = buildText(key, value.len, expire_ms, access, form, &text);
        bytesCopy(text, value.ptr, value.len);
        return o;
    }
    blob *bytes = blobNew(value.len);
    memcpy(bytes->bytes, value.ptr, value.len);
    bytes->len = value.len;
    return objectNewStringTake(key, bytes, expire_ms, access);
}

robj *objectNewInt(slice key, int64_t value, int64_t expire_ms, uint32_t access) {
    hotCheck(int_bytes[intForm(value)] <= sizeof(value));
    char *at;
    valueForm form = intForm(value);
    robj *o = build(key, expire_ms, access, TYPE_STRING, form, int_bytes[form], &at);
    storeInt(at, form, value);
    return o;
}

robj *objectNewRaw(slice key, size_t len, int64_t expire_ms, uint32_t access, char **text) {
    return buildText(key, len, expire_ms, access, FORM_EMBED_RAW, text);
}

robj *objectNewStringTake(slice key, blob *take, int64_t expire_ms, uint32_t access) {
    char *at;
    robj *o = build(key, expire_ms, access, TYPE_STRING, FORM_POINTER, sizeof(uint64_t), &at);
    storeU64(at, (uintptr_t)take);
    return o;
}

int64_t objectExpire(const robj *o) {
    size_t bytes = objectExpireBytes(o);
    if (!bytes) return OBJECT_NO_EXPIRE;
    uint64_t value = 0;
    memcpy(&value, (const char *)o + 4, bytes);
    return (int64_t)value;
}

int64_t objectInt(const robj *o) { return loadInt(objectValuePlace(o), objectForm(o)); }

slice objectText(const robj *o, char *digits) {
    hotCheck(objectType(o) == TYPE_STRING);
    valueForm form = objectForm(o);
    if (form <= FORM_EMBED_RAW)
        return likely(!objectIsCompressed(o)) ? objectEmbedded(o) : compressedText(o);
    if (form == FORM_POINTER) {
        const blob *bytes = objectPointer(o);
        return sliceMake(bytes->bytes, bytes->len);
    }
    return sliceMake(digits, numberPrintInt(digits, objectInt(o)));
}

size_t objectSize(const robj *o) {
    const char *at = objectValuePlace(o);
    valueForm form = objectForm(o);
    if (form == FORM_POINTER) {
        at += sizeof(uint64_t);
    } else if (form >= FORM_INT1) {
        at += int_bytes[form];
    } else {
        size_t len = objectReadLength(&at);
        at += len;
    }
    return (size_t)(at - (const char *)o);
}

/* True if an object may be modified in place. While a forked child shares our pages, a new block
 * costs less than copying a page. The hostile build moves objects at every change, to detect stale
 * pointers. */
static inline bool mayStay(void) {
#ifdef HOSTILE_BUILD
    return false;
#else
    return likely(!slabAnyForked());
#endif
}

/* True if a block of the old size can hold an object of the new size in the same size class. */
static inline bool fitsInPlace(size_t old_size, size_t new_size) {
    hotCheck(old_size > 0);
    hotCheck(new_size > 0);
    if (!mayStay()) return false;
    if (new_size == old_size) return true;
    return new_size <= OBJECT_EMBED_MAX && slabSameClass(old_size, new_size);
}

static void setForm(robj *o, valueForm form) {
    storeU32(o, (objectHead(o) & ~(7u << 5)) | (uint32_t)form << 5);
}

/* Number of bytes before the value. */
static size_t headSize(const robj *o) { return (size_t)(objectValuePlace(o) - (const char *)o); }

/* All cases of objectOverwrite(). */
static NO_INLINE bool overwriteAny(robj *o, slice value) {
    hotCheck(!objectIsCompressed(o));
    if (objectType(o) != TYPE_STRING || objectForm(o) == FORM_POINTER) return false;
    int64_t number;
    if (numberMayBeInt(value) && numberParseInt(value, &number))
        return objectOverwriteInt(o, number);
    size_t head = headSize(o);
    if (!fitsInPlace(objectSize(o), head + objectLengthBytes(value.len) + value.len)) return false;
    memmove(objectWriteLength((char *)o + head, value.len), value.ptr, value.len);
    setForm(o, FORM_EMBED);
    return true;
}

bool objectOverwrite(robj *o, slice value) {
    /* Text by text of the same length: nothing but the text changes. */
    bool embeds = objectType(o) == TYPE_STRING && objectForm(o) <= FORM_EMBED_RAW;
    if (unlikely(!embeds) || numberMayBeInt(value)) return overwriteAny(o, value);
    slice text = objectEmbedded(o);
    if (text.len != value.len || !mayStay()) return overwriteAny(o, value);
    memmove((char *)(uintptr_t)text.ptr, value.ptr, value.len);
    setForm(o, FORM_EMBED);
    return true;
}

bool objectOverwriteInt(robj *o, int64_t value) {
    hotCheck(objectType(o) < TYPE_COUNT);
    valueForm old_form = objectForm(o), form = intForm(value);
    if (likely(old_form == form) && mayStay()) {
        storeInt((char *)(uintptr_t)objectValuePlace(o), form, value);
        return true;
    }
    if (objectType(o) != TYPE_STRING || old_form == FORM_POINTER) return false;
    size_t head = headSize(o);
    if (!fitsInPlace(objectSize(o), head + int_bytes[form])) return false;
    storeInt((char *)o + head, form, value);
    setForm(o, form);
    return true;
}

objectSum objectAddInt(robj *o, int64_t by) {
    valueForm form = objectForm(o);
    if (form < FORM_INT1 || !mayStay()) return (objectSum){0, false};
    char *at = (char *)(uintptr_t)objectValuePlace(o);
    int64_t sum;
    if (!numberAdd(loadInt(at, form), by, &sum) || intForm(sum) != form)
        return (objectSum){0, false};
    storeInt(at, form, sum);
    return (objectSum){sum, true};
}

char *objectStretch(robj *o, size_t len) {
    if (objectForm(o) > FORM_EMBED_RAW || objectType(o) != TYPE_STRING) return NULL;
    size_t head = headSize(o);
    if (!fitsInPlace(objectSize(o), head + objectLengthBytes(len) + len)) return NULL;
    slice text = objectText(o, NULL);
    char *at = (char *)o + head;
    memmove(at + objectLengthBytes(len), text.ptr, sizeMin(text.len, len));
    setForm(o, FORM_EMBED_RAW);
    return objectWriteLength(at, len);
}

/* Valkey's rule: key and value share an allocation of at most 128 bytes including overhead. */
static bool isEmbstrSize(size_t key_len, size_t value_len, bool expires) {
    size_t available = (key_len <= 31 ? 113 : 111) - (expires ? 8 : 0);
    return key_len + value_len <= available;
}

/* Applies the rule to a value with a TTL. If the key alone is too long with a TTL, adding a TTL
 * does not change the encoding. */
static bool isEmbstr(const robj *o, bool expires) {
    hotCheck(objectType(o) == TYPE_STRING);
    enum { KEY_BESIDE_TIME_MAX = 107 };
    size_t key_len = objectKey(o).len;
    size_t len = objectIsCompressed(o) ? compressedRead(o).len : objectText(o, NULL).len;
    return isEmbstrSize(key_len, len, expires && key_len <= KEY_BESIDE_TIME_MAX);
}

bool objectFitsWithTtl(const robj *o) { return isEmbstr(o, true); }

void objectMarkRawWithTtl(robj *o) {
    if (objectType(o) == TYPE_STRING && objectForm(o) == FORM_EMBED &&
        !isEmbstrSize(objectKey(o).len, objectText(o, NULL).len, true))
        setForm(o, FORM_EMBED_RAW);
}

robj *objectSetExpire(robj *o, int64_t expire_ms) {
    if (unlikely(objectIsCompressed(o))) return compressedSetExpire(o, expire_ms);
    int form = expireForm(expire_ms);
    if (objectType(o) == TYPE_STRING && objectForm(o) == FORM_EMBED &&
        objectHasExpire(o) != (form != EXPIRE_NONE)) {
        /* A text too long for embstr with a TTL becomes raw, and remains raw if the TTL is
         * removed. */
        if (!isEmbstr(o, true)) setForm(o, FORM_EMBED_RAW);
    }
    size_t old_head = 4 + objectExpireBytes(o), new_head = 4 + expireBytes(form);
    size_t old_size = objectSize(o), rest = old_size - old_head;
    if (old_head == new_head && mayStay()) {
        writeExpire((char *)o + 4, form, expire_ms);
        return o;
    }
    robj *moved = slabAlloc(new_head + rest);
    storeU32(moved, (objectHead(o) & ~(3u << 3)) | (uint32_t)form << 3);
    writeExpire((char *)moved + 4, form, expire_ms);
    memcpy((char *)moved + new_head, (const char *)o + old_head, rest);
    slabFree(o, old_size);
    return moved;
}

/* An object like `o` with another key and the same value, whose reference is not counted. */
static robj *rebuild(const robj *o, slice key, uint32_t access) {
    valueForm form = objectForm(o);
    if (unlikely(objectIsCompressed(o))) return compressedCopy(o, key, objectExpire(o), access);
    if (objectType(o) != TYPE_STRING) {
        const char *value = objectValuePlace(o);
        size_t bytes = objectSize(o) - (size_t)(value - (const char *)o);
        char *to;
        robj *copy = build(key, objectExpire(o), access, objectType(o), form, bytes, &to);
        memcpy(to, value, bytes);
        return copy;
    }
    if (form <= FORM_EMBED_RAW) {
        slice text = objectText(o, NULL);
        bool raw =
            form == FORM_EMBED_RAW || !isEmbstrSize(objectKey(o).len, text.len, objectHasExpire(o));
        return objectNewString(key, text, objectExpire(o), access, raw ? KEEP_RAW : KEEP_TEXT);
    }
    size_t value_bytes = form == FORM_POINTER ? sizeof(uint64_t) : int_bytes[form];
    char *at;
    robj *copy = build(key, objectExpire(o), access, objectType(o), form, value_bytes, &at);
    memcpy(at, objectValuePlace(o), value_bytes);
    return copy;
}

robj *objectRename(robj *o, slice key) {
    robj *renamed = rebuild(o, key, objectAccess(o));
    if (unlikely(objectIsCompressed(o))) compressedForget(o);
    slabFree(o, objectSize(o));
    return renamed;
}

bool objectCanCopy(const robj *o) {
    return objectForm(o) != FORM_POINTER || !typeOf(o)->can_copy ||
           typeOf(o)->can_copy(objectPointer(o));
}

robj *objectTryCopy(const robj *o, int from_db, slice key, int to_db, uint32_t access) {
    if (objectForm(o) != FORM_POINTER) {
        if (likely(!objectIsCompressed(o)) && objectIsShaped(o)) shapeRetain(recordShape(o));
        return rebuild(o, key, access);
    }
    if (!objectCanCopy(o)) return NULL;
    valuePlace from = {from_db, objectKey(o)}, to = {to_db, key};
    void *value = typeOf(o)->copy_value(&from, &to, objectPointer(o));
    if (!value && typeOf(o)->can_copy) return NULL; /* of others it is an empty table */
    robj *copy = rebuild(o, key, access);
    objectSetPointer(copy, value);
    return copy;
}

robj *objectCopy(const robj *o, slice key, uint32_t access) {
    robj *copy = objectTryCopy(o, -1, key, -1, access);
    check(copy != NULL); /* only modules refuse */
    return copy;
}

/* True if something counts this object, whose value is not behind a pointer, as a user: a shape or
 * a dictionary. One test for both, by the bits of type and forms. */
static inline bool hasUser(const robj *o) {
    enum { SHAPED = TYPE_HASH | FORM_SHAPED << 5, TIMED = EXPIRE_COMPRESSED << 3 };
    enum { NO_TIME = TIMED | FORM_EMBED_RAW << 5 };
    static const bool has[256] = {
        [SHAPED] = true,
        [SHAPED | EXPIRE_SHORT << 3] = true,
        [SHAPED | EXPIRE_WIDE << 3] = true,
        [TIMED | TYPE_STRING] = true,
        [TIMED | TYPE_LIST] = true,
        [TIMED | TYPE_SET] = true,
        [TIMED | TYPE_ZSET] = true,
        [TIMED | TYPE_HASH] = true,
        [NO_TIME | TYPE_STRING] = true,
        [NO_TIME | TYPE_LIST] = true,
        [NO_TIME | TYPE_SET] = true,
        [NO_TIME | TYPE_ZSET] = true,
        [NO_TIME | TYPE_HASH] = true,
    };
    return has[objectHead(o) & 255];
}

static NO_INLINE void releaseUser(const robj *o) {
    hotCheck(hasUser(o));
    if (objectIsCompressed(o)) {
        compressedForget(o);
    } else {
        shapeRelease(recordShape(o));
    }
}

void objectFree(robj *o) {
    hotCheck(threadIsMain());
    valueFreer here = {0};
    if (objectForm(o) == FORM_POINTER) {
        void *value = objectPointer(o);
        bool kept = unlikely(storeNow.saving_values) && savingValueKeep(value);
        if (likely(!kept)) typeOf(o)->free_value(value, &here);
    } else if (unlikely(hasUser(o))) {
        releaseUser(o);
    }
    slabFree(o, objectSize(o));
}

/* ------------------------------------------------------------------ collections */

enum {
    SPARE_FROM = 512, /* minimum size in bytes of a packed value that gets spare capacity */
    SPARE_SHARE = 16, /* spare capacity as a fraction of the size */
    LENGTH_BYTES_MAX = 9,
};

/* Capacity of a packed value of `size` bytes after a header of `head` bytes, using the whole
 * allocator block. */
static size_t packedCapacity(size_t head, size_t size) {
    hotCheck(size > 0);
    size_t wanted = size + (size >= SPARE_FROM ? size / SPARE_SHARE : 0);
    size_t block = slabUsableSize(head + objectLengthBytes(wanted) + wanted);
    size_t capacity = block - head - objectLengthBytes(wanted);
    /* A greater capacity may need a longer length field. */
    if (head + objectLengthBytes(capacity) + capacity > block)
        capacity = sizeMax(size, block - head - objectLengthBytes(capacity));
    return capacity;
}

static void checkCollection(valueType type, valueForm form) {
    check(type != TYPE_STRING);
    check(form <= FORM_POINTER);
}

robj *objectNewPackedRoom(slice key, valueType type, valueForm form, size_t size, int64_t expire_ms,
                          uint32_t access, uint8_t **at) {
    checkCollection(type, form);
    size_t head = 4 + expireBytes(expireForm(expire_ms)) + objectLengthBytes(key.len) + key.len;
    size_t capacity = packedCapacity(head, size);
    char *place;
    robj *o =
        build(key, expire_ms, access, type, form, objectLengthBytes(capacity) + capacity, &place);
    *at = (uint8_t *)objectWriteLength(place, capacity);
    return o;
}

robj *objectNewPacked(slice key, valueType type, valueForm form, slice bytes, int64_t expire_ms,
                      uint32_t access) {
    uint8_t *at;
    robj *o = objectNewPackedRoom(key, type, form, bytes.len, expire_ms, access, &at);
    memcpy(at, bytes.ptr, bytes.len);
    return o;
}

robj *objectNewPointer(slice key, valueType type, void *value, int64_t expire_ms, uint32_t access) {
    checkCollection(type, FORM_POINTER);
    char *at;
    robj *o = build(key, expire_ms, access, type, FORM_POINTER, sizeof(uint64_t), &at);
    storeU64(at, (uintptr_t)value);
    return o;
}

void objectInitShell(void *at, valueType type, void *value) {
    checkCollection(type, FORM_POINTER);
    storeU32(at, (uint32_t)type | FORM_POINTER << 5);
    *((uint8_t *)at + 4) = 0; /* length of the key */
    objectSetPointer(at, value);
    hotCheck(objectSize(at) == OBJECT_SHELL_SIZE);
}

robj *objectSetPacked(robj *o, valueForm form, slice bytes) {
    check(objectIsPacked(o));
    robj *changed =
        objectNewPacked(objectKey(o), objectType(o), form, bytes, objectExpire(o), objectAccess(o));
    slabFree(o, objectSize(o));
    return changed;
}

robj *objectUnpack(robj *o, void *value) {
    check(objectIsPacked(o));
    robj *changed =
        objectNewPointer(objectKey(o), objectType(o), value, objectExpire(o), objectAccess(o));
    slabFree(o, objectSize(o));
    return changed;
}

robj *objectPack(robj *o, valueForm form, slice bytes) {
    check(!objectIsPacked(o));
    robj *changed =
        objectNewPacked(objectKey(o), objectType(o), form, bytes, objectExpire(o), objectAccess(o));
    objectFree(o);
    return changed;
}

static uint8_t *moveValue(objectBuffer *r, size_t head, const char *bytes, size_t kept,
                          size_t capacity) {
    robj *o = r->o;
    robj *moved = slabAlloc(head + objectLengthBytes(capacity) + capacity);
    memcpy(moved, o, head);
    char *to = objectWriteLength((char *)moved + head, capacity);
    memcpy(to, bytes, kept);
    slabFree(o, objectSize(o));
    r->o = moved;
    return r->buffer.bytes = (uint8_t *)to;
}

/* A shrinking value is not moved until a quarter of its capacity is unused. */
static uint8_t *resizeInObject(packBuffer *buffer, size_t size) {
    objectBuffer *r = CONTAINER_OF(buffer, objectBuffer, buffer);
    const char *at = objectValuePlace(r->o);
    size_t head = (size_t)(at - (const char *)r->o);
    size_t has = objectReadLength(&at);
    bool fits = size <= has && (has - size < LENGTH_BYTES_MAX || has - size <= has / 4);
    if (likely(fits) && mayStay()) return buffer->bytes;
    return moveValue(r, head, at, sizeMin(has, size), packedCapacity(head, size));
}

void objectBufferInit(objectBuffer *r, robj *o) {
    hotCheck(objectIsPacked(o));
    *r = (objectBuffer){.buffer = {.bytes = objectPacked(o), .resize = resizeInObject}, .o = o};
}

size_t objectMemoryAt(const robj *o, int db_id, size_t samples) {
    size_t bytes = slabClassSize(objectSize(o));
    valuePlace at = {db_id, objectKey(o)};
    if (objectForm(o) == FORM_POINTER)
        bytes += typeOf(o)->value_memory(&at, objectPointer(o), samples);
    unsigned shape = recordShapeNumber(o);
    return shape ? bytes + shapeShare(shapeById(shape)) : bytes;
}

const char *objectStringEncoding(const robj *o) {
    if (objectIsInt(o)) return "int";
    bool raw = objectIsCompressed(o) ? compressedRead(o).raw : objectForm(o) != FORM_EMBED;
    if (raw) return "raw";
    return isEmbstr(o, objectHasExpire(o)) ? "embstr" : "raw";
}
