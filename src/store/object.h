/* SPDX-License-Identifier: BSD-3-Clause
 *
 * robj: one keyspace object in one allocation: header, optional expire time, key, value. No pointer when the
 * value is embedded, no terminators, no reference count: the one owner is the table slot that points here.
 *
 *   [head 4: type 3 bits, expire form 2, value form 3 | 24 bits of LRU or LFU]
 *   [expire: none, 6 or 8 bytes] [key length: 1, 2 or 9] [key]
 *   value: [length: 1, 2 or 9] [bytes]  or  1, 2, 3, 4 or 8 bytes of integer  or  8 bytes of pointer
 *
 * A small collection is packed among these bytes too, at any size; a large one lies behind the pointer.
 *
 * Lengths below 128 take one byte, those below 16,384 two (the bits 10, then 14 of the length, big end
 * first), others the byte 192 and eight more. */
#ifndef STORE_OBJECT_H
#define STORE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/blob.h"
#include "base/bytes.h"
#include "base/slice.h"
#include "ds/pack_buffer.h"

typedef struct robj robj;

typedef enum valueType {
    TYPE_STRING,
    TYPE_LIST,
    TYPE_SET,
    TYPE_ZSET,
    TYPE_HASH,
    TYPE_STREAM,
    TYPE_MODULE,
    TYPE_COUNT,
} valueType;

enum {
    OBJECT_EMBED_MAX = 1024, /* the whole object; larger values lie in a blob of their own */
    OBJECT_LRU_BITS = 24,
    OBJECT_LRU_MAX = (1 << OBJECT_LRU_BITS) - 1,
};
#define OBJECT_NO_EXPIRE INT64_C(-1)

/* How the value stands. RAW forms answer "raw" to OBJECT ENCODING whatever their size. A collection is packed
 * in the object (where text would stand; its length is the room it has, not all of it need be used), or behind
 * a pointer; never an integer. */
typedef enum valueForm {
    FORM_EMBED,
    FORM_PACKED = FORM_EMBED, /* a listpack */
    FORM_EMBED_RAW,
    FORM_PACKED_INTS = FORM_EMBED_RAW, /* an intset */
    FORM_POINTER,
    FORM_INT1,
    FORM_INT2,
    FORM_INT3,
    FORM_INT4,
    FORM_INT8,
} valueForm;

static inline uint32_t objectHead(const robj *o) { return loadU32(o); }
static inline valueType objectType(const robj *o) { return (valueType)(objectHead(o) & 7); }
static inline valueForm objectForm(const robj *o) { return (valueForm)((objectHead(o) >> 5) & 7); }
static inline bool objectIsInt(const robj *o) { return objectForm(o) >= FORM_INT1; }
static inline uint32_t objectLru(const robj *o) { return objectHead(o) >> 8; }
static inline void objectSetLru(robj *o, uint32_t lru) {
    storeU32(o, (objectHead(o) & 0xff) | lru << 8);
}

/* Bytes of the expire field: 0, 6 or 8. */
static inline size_t objectExpireBytes(const robj *o) {
    static const uint8_t bytes[4] = {0, 6, 8, 0};
    return bytes[(objectHead(o) >> 3) & 3];
}
static inline bool objectHasExpire(const robj *o) { return objectHead(o) & (3 << 3); }
/* Unix time in ms, OBJECT_NO_EXPIRE when there is none. */
int64_t objectExpire(const robj *o);

/* Reads a length field; moves *at behind it. */
static inline size_t objectReadLength(const char **at) {
    const unsigned char *p = (const unsigned char *)*at;
    if (__builtin_expect(p[0] < 128, 1)) {
        *at += 1;
        return p[0];
    }
    if (p[0] < 192) {
        *at += 2;
        return (size_t)(p[0] & 63) << 8 | p[1];
    }
    *at += 9;
    return loadU64(p + 1);
}

static inline size_t objectLengthBytes(size_t len) { return len < 128 ? 1 : len < 16384 ? 2 : 9; }
/* Writes a length field; returns where the bytes go. */
char *objectWriteLength(char *at, size_t len);

/* True from its expire time on. */
static inline bool objectIsExpired(const robj *o, int64_t now_ms) {
    return __builtin_expect(objectHasExpire(o), 0) && objectExpire(o) <= now_ms;
}

static inline slice objectKey(const robj *o) {
    const char *at = (const char *)o + 4 + objectExpireBytes(o);
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

/* The value's place, behind the key. */
static inline const char *objectValuePlace(const robj *o) {
    slice key = objectKey(o);
    return key.ptr + key.len;
}

/* An integer value; only when objectIsInt(). */
int64_t objectInt(const robj *o);
/* The pointer of FORM_POINTER: a blob for strings, the collection for other types. */
static inline void *objectPointer(const robj *o) {
    return (void *)(uintptr_t)loadU64(objectValuePlace(o));
}
static inline void objectSetPointer(robj *o, void *pointer) {
    storeU64((char *)(uintptr_t)objectValuePlace(o), (uintptr_t)pointer);
}
/* The bytes of a string value: embedded, in its blob, or printed into `digits` (NUMBER_TEXT_MAX). Borrowed
 * until the object changes. */
slice objectText(const robj *o, char *digits);

/* How a string value is to be kept. */
typedef enum stringKeep {
    KEEP_BEST, /* as an integer when it is one in canonical form, else as text */
    KEEP_TEXT, /* as text, digits or not */
    KEEP_RAW,  /* as text that is "raw" whatever its size */
} stringKeep;

/* A new string object. Text is embedded when the whole is small enough, otherwise copied to a blob. */
robj *objectNewString(slice key, slice value, int64_t expire_ms, uint32_t lru, stringKeep keep);
/* The same; the value's bytes are those of `take`, whose reference the object keeps. */
robj *objectNewStringTake(slice key, blob *take, int64_t expire_ms, uint32_t lru);
robj *objectNewInt(slice key, int64_t value, int64_t expire_ms, uint32_t lru);
/* An object with `len` undefined bytes of raw text, embedded at any size; *text is where they stand. */
robj *objectNewRaw(slice key, size_t len, int64_t expire_ms, uint32_t lru, char **text);
/* Writes a new string value into an object in place, as KEEP_BEST would keep it, when it was not in a blob
 * and the new one fits its size class; false when not (nothing done). */
bool objectOverwrite(robj *o, slice value);
/* The same with an integer. */
bool objectOverwriteInt(robj *o, int64_t value);
/* Makes embedded text raw and `len` bytes long in place, when that fits its size class; what lies behind
 * the old end is undefined. Returns where the text stands now, NULL when nothing was done. */
char *objectStretch(robj *o, size_t len);
/* Bytes of an object with this key and `len` bytes of embedded text. */
size_t objectTextSize(slice key, size_t len, int64_t expire_ms);
/* A new object with a packed collection, `bytes` to begin with; `form` is FORM_PACKED or FORM_PACKED_INTS. */
robj *objectNewPacked(slice key, valueType type, valueForm form, slice bytes, int64_t expire_ms,
                      uint32_t lru);
/* A new object whose value is behind a pointer, which it owns from now on. */
robj *objectNewPointer(slice key, valueType type, void *value, int64_t expire_ms, uint32_t lru);
static inline bool objectIsPacked(const robj *o) { return objectForm(o) != FORM_POINTER; }
/* The packed collection. */
static inline uint8_t *objectPacked(const robj *o) {
    const char *at = objectValuePlace(o);
    (void)objectReadLength(&at); /* room, not size */
    return (uint8_t *)(uintptr_t)at;
}
/* A packed collection that is about to change: give &room to ds/listpack.h or ds/intset.h. Afterwards `o` is
 * what the object has become (the old one is gone), which goes to dbPlace() at once. */
typedef struct objectBuffer {
    packBuffer buffer;
    robj *o;
} objectBuffer;
void objectBufferInit(objectBuffer *r, robj *o);
/* The object takes another packed collection in its value's place. */
robj *objectSetPacked(robj *o, valueForm form, slice bytes) MUST_USE;
/* The object's packed value becomes one behind a pointer. */
robj *objectUnpack(robj *o, void *value) MUST_USE;
/* And back: it takes the packed value, whose bytes may lie in the one behind the pointer, which is freed. */
robj *objectPack(robj *o, valueForm form, slice bytes) MUST_USE;
/* The same object with another expire time (OBJECT_NO_EXPIRE takes it away): in place when the form allows,
 * else a new one, and the old one is freed without its value. The caller puts the result in the old one's
 * place (dbPlace()). */
robj *objectSetExpire(robj *o, int64_t expire_ms);
/* The same object under another key; the old one is gone. */
robj *objectRename(robj *o, slice key);
/* A second object with the same value and expire time. A value in a block of its own is shared. */
robj *objectCopy(const robj *o, slice key, uint32_t lru);
/* Frees the object and its value. */
void objectFree(robj *o);
/* Bytes of the object's own block. */
size_t objectSize(const robj *o);
/* Bytes the object takes, value included. Elements of a collection are sampled; 0: all are looked at. */
size_t objectMemory(const robj *o, size_t samples);
/* A text that was stored beside an expire time is raw when there was no room for it: marks it so, for the
 * time may go again. */
void objectSettleBesideTime(robj *o);
/* "int", "embstr" or "raw" by Valkey's size formula over key, value and TTL. */
const char *objectStringEncoding(const robj *o);

#endif
