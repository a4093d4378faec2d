/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of hashes that are tables: one block with field, value and expiry time. Private to the
 * files of hashes.
 *
 *   [255, and 8 bytes of Unix time in ms, if the field has a TTL] [length] [field] [length] [value]
 *
 * Lengths are encoded as in objects (object.h) and never begin with a byte from 252 on. Elements
 * with a TTL are the volatile entries of the table, which serves as their index at no cost to other
 * hashes. In place of length and value there may be
 *
 *   [254] [8 bytes of address] [8 bytes of length]
 *       a value that is somebody else's memory (hashRefer())
 *   [253, or 252 if it has been read] [dictionary: 1] [length of the text] [length] [packed bytes]
 *       a compressed value (compressed_part.h), whose word in the table has HASHTABLE_MARK
 *
 * Only readers of values of 16 KB and more have to tell these apart. Main thread only, except for
 * freeing. */
#ifndef STORE_HASH_ELEMENT_H
#define STORE_HASH_ELEMENT_H

#include "base/base.h"
#include "ds/hashtable.h"
#include "store/compressed_part.h"
#include "store/element.h"
#include "store/look.h"
#include "store/object.h"
#include "store/type_hash.h"

enum { ELEMENT_TIMED = 255, ELEMENT_TIME_BYTES = 9 };
enum { VALUE_REFERENCE = 254, REFERENCE_BYTES = 1 + 2 * sizeof(uint64_t) };
enum { VALUE_COMPRESSED = 253, VALUE_COMPRESSED_READ = 252 };

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

static inline bool isCompressedPart(const char *at) {
    uint8_t first = *(const uint8_t *)at;
    return first == VALUE_COMPRESSED || first == VALUE_COMPRESSED_READ;
}

/* The compressed value at this place. */
static inline compressedPart partAt(const char *at) {
    hotCheck(isCompressedPart(at));
    compressedPart part = {.dictionary = *(const uint8_t *)(at + 1)};
    at += 2;
    part.len = objectReadLength(&at);
    part.packed.len = objectReadLength(&at);
    part.packed.ptr = at;
    return part;
}

/* Bytes that such a value takes in its element. */
static inline size_t partBytes(size_t len, size_t packed_len) {
    return 2 + objectLengthBytes(len) + objectLengthBytes(packed_len) + packed_len;
}

/* The place after a value whose length takes 9 bytes, or that is no plain one. */
const char *elementLargeEnd(const char *at);
/* Where the value at this place ends. */
static inline const char *valueEnd(const char *at) {
    size_t len = *(const uint8_t *)at;
    if (likely(len < 128)) return at + 1 + len;
    if (unlikely(len >= OBJECT_LENGTH_LARGE)) return elementLargeEnd(at);
    len = objectReadLength(&at);
    return at + len;
}

static inline size_t elementSize(const void *element) {
    return (size_t)(valueEnd(elementValuePlace(element)) - (const char *)element);
}

static inline unsigned elementFlags(int64_t time_ms) {
    return time_ms == HASH_NO_TIME ? 0 : HASHTABLE_VOLATILE;
}

/* How the tables of hashes find elements. */
extern const hashtableType hashFieldsType;

static inline hashtable hashTableOf(const robj *o) { return (hashtable){objectPointer(o)}; }

void *elementNew(slice field, slice value, int64_t time_ms);
/* The value that a compressed one stands for: valid until the end of the command, or, if `into` is
 * not NULL, in there. */
slice elementExpand(const compressedPart *part, str *into);
/* Before an element is freed: its compressed value, if it has one, uses its dictionary no longer.
 * `by` NULL: on the main thread. ANY_THREAD that owns the element. */
void elementForget(const void *element, valueFreer *by);

/* ---- hash_compress.c ---- */

/* How the values of a hash are compressed. */
typedef struct hashCompression {
    const valueDictionary *dictionary; /* the current one of the key */
    size_t min;                        /* bytes of a value */
    int64_t deadline_us;
} hashCompression;
/* Compresses long values, or moves them to the dictionary, from `cursor` on; returns the next
 * cursor, 0 at the end. Stops after the deadline. Never while a forked child lives. */
uint64_t hashCompressSome(robj *o, const hashCompression *plan, uint64_t cursor);

/* A compressed value was found by a lookup or an iteration: if it is read for the second time since
 * the hash was idle, it is stored plain after the command. */
void hashNoteRead(const robj *o, void *element, storeLook look);

#endif
