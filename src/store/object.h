/* SPDX-License-Identifier: BSD-3-Clause
 *
 * robj: one keyspace object in one allocation: header, optional expiry time, key, value. There is
 * no pointer if the value is embedded, no terminator, and no reference count: the only reference is
 * the table word.
 *
 *   [header 4: type 3 bits, form of expiry time 2, form of value 3 | mark of a snapshot 1 | 23 bits
 *   of LRU or LFU] [expiry time: none, 6 or 8 bytes] [key length: 1, 2 or 9] [key] value: [length:
 *   1, 2 or 9] [bytes]  or  1, 2, 3, 4 or 8 bytes of integer  or  8 bytes of pointer
 *
 * A small collection is packed in the object, at any size up to its limits; a large one is behind
 * the pointer. A string or small collection may be compressed (compressed.h): then the form of
 * expiry time is EXPIRE_COMPRESSED, that of the value says only whether there is a time of 6 bytes
 * (FORM_EMBED) or none (FORM_EMBED_RAW), and the value is embedded at any size. Lookups for the
 * value (dbFind(), dbFindRead()) always return plain objects.
 *
 * Lengths below 128 take one byte, those below 16,384 two (the bits 10, then 14 bits of length,
 * big-endian), others the byte 192 and eight more. */
#ifndef STORE_OBJECT_H
#define STORE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/blob.h"
#include "base/bytes.h"
#include "base/slice.h"
#include "ds/pack_buffer.h"
#include "store/look.h"
#include "store/value_type.h"

enum {
    /* Sizes of the whole object. Text is embedded up to ALWAYS, and up to MAX unless a blob takes
     * less memory; larger text is stored in a blob. */
    OBJECT_EMBED_ALWAYS = 1024,
    OBJECT_EMBED_MAX = 4368,
    OBJECT_LRU_BITS = 23, /* seconds wrap around after 97 days */
    OBJECT_LRU_MAX = (1 << OBJECT_LRU_BITS) - 1,
};
#define OBJECT_NO_EXPIRE INT64_C(-1)

/* Storage forms of the value. RAW forms are reported as "raw" by OBJECT ENCODING whatever their
 * size. A collection is packed in the object (in place of text; its length field is the capacity,
 * which need not be fully used), or behind a pointer; never an integer. */
typedef enum valueForm {
    FORM_EMBED,
    FORM_PACKED = FORM_EMBED, /* a listpack */
    FORM_EMBED_RAW,
    FORM_PACKED_INTS = FORM_EMBED_RAW, /* an intset */
    FORM_SHAPED = FORM_EMBED_RAW,      /* a hash whose names are in a shape: hash_record.h */
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
static inline uint32_t objectLru(const robj *o) { return objectHead(o) >> 9; }
static inline void objectSetLru(robj *o, uint32_t lru) {
    storeU32(o, (objectHead(o) & 0x1ff) | lru << 9);
}
/* Set while a snapshot is made without a fork, in objects that it must not write any more: see
 * store/saving.h. */
static inline bool objectIsMarked(const robj *o) { return objectHead(o) >> 8 & 1; }
static inline void objectSetMarked(robj *o, bool marked) {
    storeU32(o, (objectHead(o) & ~(1u << 8)) | (uint32_t)marked << 8);
}
/* LRU and mark together: an object that replaces another one inherits them. */
static inline uint32_t objectAccess(const robj *o) { return objectHead(o) >> 8; }
/* The same bits for a new object. */
static inline uint32_t objectAccessOf(uint32_t lru) { return lru << 1; }

/* Forms of the expiry time: bits 3 and 4 of the header. */
enum { EXPIRE_NONE, EXPIRE_SHORT, EXPIRE_WIDE, EXPIRE_COMPRESSED };
#define EXPIRE_SHORT_MAX (INT64_C(1) << 48)
/* Size of the expiry time: 0, 6 or 8 bytes. */
static inline size_t objectExpireBytes(const robj *o) {
    /* By the form of the expiry time and the lowest bit of the form of the value. */
    static const uint8_t bytes[8] = {[EXPIRE_SHORT] = 6,
                                     [EXPIRE_WIDE] = 8,
                                     [4 + EXPIRE_SHORT] = 6,
                                     [4 + EXPIRE_WIDE] = 8,
                                     [EXPIRE_COMPRESSED] = 6};
    return bytes[(objectHead(o) >> 3) & 7];
}
static inline bool objectHasExpire(const robj *o) { return objectExpireBytes(o); }
/* True if the value is compressed: see compressed.h. */
static inline bool objectIsCompressed(const robj *o) {
    return (objectHead(o) & (3 << 3)) == EXPIRE_COMPRESSED << 3;
}
/* True if the object has an expiry time or is compressed: the one test of lookups. */
static inline bool objectIsUnusual(const robj *o) { return objectHead(o) & (3 << 3); }
/* Unix time in ms, OBJECT_NO_EXPIRE if there is none. */
int64_t objectExpire(const robj *o);

/* The first byte of a length field that takes 9 bytes. */
enum { OBJECT_LENGTH_LARGE = 192 };
/* Reads a length field and advances *at. */
static inline size_t objectReadLength(const char **at) {
    const unsigned char *p = (const unsigned char *)*at;
    if (__builtin_expect(p[0] < 128, 1)) {
        *at += 1;
        return p[0];
    }
    if (p[0] < OBJECT_LENGTH_LARGE) {
        *at += 2;
        return (size_t)(p[0] & 63) << 8 | p[1];
    }
    *at += 9;
    return loadU64(p + 1);
}

static inline size_t objectLengthBytes(size_t len) { return len < 128 ? 1 : len < 16384 ? 2 : 9; }
/* Writes a length field; returns the address after it. */
char *objectWriteLength(char *at, size_t len);

/* True after the expiry time. */
static inline bool objectIsExpired(const robj *o, int64_t now_ms) {
    return __builtin_expect(objectIsUnusual(o), 0) && objectHasExpire(o) &&
           expiryIsPast(objectExpire(o), now_ms);
}

ALWAYS_INLINE slice objectKey(const robj *o) {
    const char *at = (const char *)o + 4 + objectExpireBytes(o);
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

/* Address of the value, after the key. */
static inline const char *objectValuePlace(const robj *o) {
    slice key = objectKey(o);
    return key.ptr + key.len;
}

/* The value of an object for which objectIsInt() is true. */
int64_t objectInt(const robj *o);
/* The pointer of FORM_POINTER: a blob for strings, a collection for other types. */
static inline void *objectPointer(const robj *o) {
    return (void *)(uintptr_t)loadU64(objectValuePlace(o));
}
static inline void objectSetPointer(robj *o, void *pointer) {
    storeU64((char *)(uintptr_t)objectValuePlace(o), (uintptr_t)pointer);
}
/* The bytes of FORM_EMBED or FORM_EMBED_RAW. */
static inline slice objectEmbedded(const robj *o) {
    const char *at = objectValuePlace(o);
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}
/* The bytes of a string value: embedded, in its blob, or printed to `digits` (NUMBER_TEXT_MAX).
 * Borrowed until the object changes; those of a compressed value until the end of the command
 * (compressedText()). */
slice objectText(const robj *o, char *digits);

/* How to store a string value. */
typedef enum stringKeep {
    KEEP_BEST, /* as an integer if it is one in canonical form, else as text */
    KEEP_TEXT, /* as text, even if it is an integer */
    KEEP_RAW,  /* as text that is reported as "raw" whatever its size */
} stringKeep;

/* A new string object. Text is embedded (see OBJECT_EMBED_MAX) or copied to a blob. `access`:
 * objectAccess() of the object that it replaces, or objectAccessOf(). */
robj *objectNewString(slice key, slice value, int64_t expire_ms, uint32_t access, stringKeep keep);
/* Like objectNewString() with the bytes of `take`, whose reference moves to the object. */
robj *objectNewStringTake(slice key, blob *take, int64_t expire_ms, uint32_t access);
robj *objectNewInt(slice key, int64_t value, int64_t expire_ms, uint32_t access);
/* An object with `len` uninitialised bytes of raw text, embedded at any size; *text is their
 * address. */
robj *objectNewRaw(slice key, size_t len, int64_t expire_ms, uint32_t access, char **text);
/* Overwrites a string value in place, stored as with KEEP_BEST, if it is not in a blob and the new
 * one fits its size class. False if nothing was done. */
bool objectOverwrite(robj *o, slice value);
/* Like objectOverwrite(), with an integer. */
bool objectOverwriteInt(robj *o, int64_t value);
typedef struct objectSum {
    int64_t value;
    bool done;
} objectSum;
/* Adds to an integer in place. Not done: it is text, or the sum overflows or has another form. */
objectSum objectAddInt(robj *o, int64_t by);
/* Makes embedded text raw and `len` bytes long in place, if that fits its size class; bytes after
 * the old end are undefined. Returns the address of the text, NULL if nothing was done. */
char *objectStretch(robj *o, size_t len);
/* Size of an object with this key and `len` bytes of embedded text. */
size_t objectTextSize(slice key, size_t len, int64_t expire_ms);
/* A new object with a packed collection, initially `bytes`; `form` is FORM_PACKED or
 * FORM_PACKED_INTS. */
robj *objectNewPacked(slice key, valueType type, valueForm form, slice bytes, int64_t expire_ms,
                      uint32_t access);
/* The same with `size` bytes that the caller writes to *at. */
robj *objectNewPackedRoom(slice key, valueType type, valueForm form, size_t size, int64_t expire_ms,
                          uint32_t access, uint8_t **at);
/* A new object with a value behind a pointer, which the object owns. */
robj *objectNewPointer(slice key, valueType type, void *value, int64_t expire_ms, uint32_t access);
/* Writes an object without key and with this value into a block of the caller's: nothing may free
 * or replace it. */
enum { OBJECT_SHELL_SIZE = 4 + 1 + 8 };
void objectInitShell(void *at, valueType type, void *value);
static inline bool objectIsPacked(const robj *o) { return objectForm(o) != FORM_POINTER; }
/* True for a hash whose fields are in a table. */
static inline bool objectIsTableOfFields(const robj *o) {
    return objectType(o) == TYPE_HASH && objectForm(o) == FORM_POINTER;
}
/* True for a packed hash without names: objectPacked() is not a listpack. Not for compressed
 * ones. */
static inline bool objectIsShaped(const robj *o) {
    hotCheck(!objectIsCompressed(o));
    return (objectHead(o) & 0xe7) == (TYPE_HASH | FORM_SHAPED << 5);
}
/* Address of the packed collection. */
static inline uint8_t *objectPacked(const robj *o) {
    hotCheck(!objectIsCompressed(o));
    const char *at = objectValuePlace(o);
    (void)objectReadLength(&at); /* the capacity */
    return (uint8_t *)(uintptr_t)at;
}
/* Access for changing a packed collection: pass &buffer to ds/listpack.h or ds/intset.h. Afterwards
 * `o` is the resulting object (the old one is invalid), which must be passed to dbPlace()
 * immediately. */
typedef struct objectBuffer {
    packBuffer buffer;
    robj *o;
} objectBuffer;
void objectBufferInit(objectBuffer *r, robj *o);
/* Replaces the packed collection. */
robj *objectSetPacked(robj *o, valueForm form, slice bytes) MUST_USE;
/* Replaces the packed collection by a value behind a pointer. */
robj *objectUnpack(robj *o, void *value) MUST_USE;
/* Replaces the value behind the pointer, which is freed, by a packed one. `bytes` may be part of
 * the old value. */
robj *objectPack(robj *o, valueForm form, slice bytes) MUST_USE;
/* Sets or removes (OBJECT_NO_EXPIRE) the expiry time: in place if the form permits, else returns a
 * new object, and the old one is freed without its value. The caller stores the result with
 * dbPlace(). */
robj *objectSetExpire(robj *o, int64_t expire_ms);
/* Returns the object with another key; the old one is invalid. */
robj *objectRename(robj *o, slice key);
/* A second object with the same value and expiry time. A value in a blob or collection is shared or
 * copied by its type. */
robj *objectCopy(const robj *o, slice key, uint32_t access);
/* The same for a type that may not be copied, or whose copy fails: returns NULL then. -1: databases
 * are unknown. */
robj *objectTryCopy(const robj *o, int from_db, slice key, int to_db, uint32_t access) MUST_USE;
bool objectCanCopy(const robj *o);
/* Frees the object and its value. */
void objectFree(robj *o);
/* Size of the object's own block. */
size_t objectSize(const robj *o);
/* Memory of the object including its value. Collections are estimated from `samples` elements; 0:
 * all. */
size_t objectMemoryAt(const robj *o, int db_id, size_t samples);
static inline size_t objectMemory(const robj *o, size_t samples) {
    return objectMemoryAt(o, -1, samples);
}
/* Text stored with an expiry time is raw if it is too long for embstr: marks it, because the expiry
 * time may be removed later. */
void objectMarkRawWithTtl(robj *o);
/* True if the text is not too long for embstr with a TTL. */
bool objectFitsWithTtl(const robj *o);
/* "int", "embstr" or "raw", according to Valkey's size formula for key, value and TTL. */
const char *objectStringEncoding(const robj *o);

#endif
