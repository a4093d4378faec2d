/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listpack: a sequence of strings and integers in contiguous bytes, which can be traversed in both
 * directions. This is also the format on disk:
 *
 *   [total bytes: 4] [number of entries: 2; 65535: unknown] [entry]... [0xff]        little-endian
 *   entry: [header: encoding, and length or number] [string, or rest of the number] [length of
 *   these two, 1 to 5 bytes, read backwards]
 *
 * Text that is a 64-bit integer in canonical form is always stored as an integer. A position in a
 * listpack is a pointer to an entry, valid until the next change. A step takes O(1), a search
 * O(bytes). ANY_THREAD that owns the bytes. */
#ifndef DS_LISTPACK_H
#define DS_LISTPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/number.h"
#include "base/slice.h"
#include "ds/pack_buffer.h"

enum {
    LISTPACK_HEADER = 6,
    LISTPACK_EMPTY_SIZE = 7,
    LISTPACK_COUNT_UNKNOWN = 65535,
    LISTPACK_SHORT_TEXT = 0x80, /* headers from here on: text of 0 to 63 bytes */
    LISTPACK_END = 0xff,
};
/* Maximum size of a listpack: owners call listpackCanGrow(). */
#define LISTPACK_SIZE_MAX ((size_t)1 << 30)

/* Content of an entry. */
typedef struct listpackItem {
    const char *ptr; /* NULL for an integer */
    size_t len;
    int64_t number;
} listpackItem;

/* ---- building ---- */

/* How `text` is stored. */
listpackItem listpackItemOf(slice text);
static inline listpackItem listpackItemInt(int64_t number) {
    return (listpackItem){.number = number};
}
/* Size of an entry with this item. */
size_t listpackItemSize(const listpackItem *item);
/* Writes an empty listpack, LISTPACK_EMPTY_SIZE bytes. */
void listpackInit(uint8_t *at);
/* An empty listpack in a block of its own; the caller frees it with memFree(). */
uint8_t *listpackNew(void);

/* ---- the whole listpack ---- */

/* Total size in bytes. */
static inline size_t listpackSize(const uint8_t *lp) { return loadU32(lp); }
/* Number of entries; above 65,534 they are counted. */
size_t listpackCount(const uint8_t *lp);
/* False if the listpack would become too large with `more` bytes. */
static inline bool listpackCanGrow(const uint8_t *lp, size_t more) {
    return more <= LISTPACK_SIZE_MAX && listpackSize(lp) + more <= LISTPACK_SIZE_MAX;
}

/* ---- traversal ---- */

/* NULL if there is none. */
const uint8_t *listpackFirst(const uint8_t *lp);
const uint8_t *listpackLast(const uint8_t *lp);
const uint8_t *listpackNext(const uint8_t *lp, const uint8_t *at);
const uint8_t *listpackPrev(const uint8_t *lp, const uint8_t *at);
/* Entry `index` from the front, or from the end if negative (-1 is the last); NULL if there is
 * none. Traverses from the nearer end. */
const uint8_t *listpackSeek(const uint8_t *lp, int64_t index);
/* listpackRead() for entries other than short text; returns the position of the next entry. */
const uint8_t *listpackReadOther(const uint8_t *at, listpackItem *out);
/* Reads the entry, whose content is borrowed, and returns the position after it, NULL at the end.
 * Short text, the most frequent content, needs no call. */
static inline const uint8_t *listpackRead(const uint8_t *at, listpackItem *out) {
    uint8_t head = *at;
    if (likely(head >= LISTPACK_SHORT_TEXT) && likely(head < LISTPACK_SHORT_TEXT + 64)) {
        *out = (listpackItem){.ptr = (const char *)at + 1, .len = head & 63};
        at += out->len + 2;
    } else {
        at = listpackReadOther(at, out);
    }
    return *at == LISTPACK_END ? NULL : at;
}
/* The entry's content; borrowed. */
static inline listpackItem listpackGet(const uint8_t *at) {
    listpackItem item;
    (void)listpackRead(at, &item); /* the next entry is not needed */
    return item;
}
/* listpackEntrySize() of other entries than short text. */
size_t listpackOtherEntrySize(const uint8_t *at);
/* Size of the whole entry in bytes. */
static inline size_t listpackEntrySize(const uint8_t *at) {
    uint8_t head = *at;
    if (unlikely(head < LISTPACK_SHORT_TEXT || head >= LISTPACK_SHORT_TEXT + 64))
        return listpackOtherEntrySize(at);
    return (size_t)(head & 63) + 2;
}
/* The item as text; digits are written to `digits` (NUMBER_TEXT_MAX). */
static inline slice listpackText(const listpackItem *item, char *digits) {
    if (likely(item->ptr != NULL)) return sliceMake(item->ptr, item->len);
    return sliceMake(digits, numberPrintInt(digits, item->number));
}
/* listpackText() of the entry. */
static inline slice listpackGetText(const uint8_t *at, char *digits) {
    listpackItem item = listpackGet(at);
    return listpackText(&item, digits);
}
/* True if two items have the same text. */
bool listpackItemEquals(const listpackItem *a, const listpackItem *b);
/* True if the entry has the text of the item. */
bool listpackEquals(const uint8_t *at, const listpackItem *item);
/* The first entry equal to `item` from `at` on (NULL: from the front), skipping `skip` entries
 * after each one examined. NULL if there is none. */
const uint8_t *listpackFind(const uint8_t *lp, const uint8_t *at, const listpackItem *item,
                            unsigned skip);

/* ---- parts of an entry ---- */

/* For callers that store entries without their trailing length: its head and content, up to
 * LISTPACK_BODY_EXTRA bytes more than the text. */
enum { LISTPACK_BODY_EXTRA = 9 };
size_t listpackBodySize(const listpackItem *item);
/* Writes them; returns the end. */
uint8_t *listpackWriteBody(uint8_t *at, const listpackItem *item);
/* listpackReadBody() of other entries than short text. */
const uint8_t *listpackReadOtherBody(const uint8_t *at, listpackItem *out);
/* Reads them; returns the end. The content is borrowed. */
static inline const uint8_t *listpackReadBody(const uint8_t *at, listpackItem *out) {
    uint8_t head = *at;
    if (unlikely(head < LISTPACK_SHORT_TEXT || head >= LISTPACK_SHORT_TEXT + 64))
        return listpackReadOtherBody(at, out);
    *out = (listpackItem){.ptr = (const char *)at + 1, .len = head & 63};
    return at + 1 + out->len;
}
/* listpackSkipBody() of other entries than short text. */
const uint8_t *listpackSkipOtherBody(const uint8_t *at);
/* The end of a body. */
static inline const uint8_t *listpackSkipBody(const uint8_t *at) {
    uint8_t head = *at;
    if (unlikely(head < LISTPACK_SHORT_TEXT || head >= LISTPACK_SHORT_TEXT + 64))
        return listpackSkipOtherBody(at);
    return at + 1 + (head & 63);
}
/* Bytes of the length that ends an entry with such a body. */
size_t listpackBackSize(size_t body);
/* listpackWriteBack() of more than 127 bytes. */
uint8_t *listpackWriteLongBack(uint8_t *at, size_t body);
/* Writes this length; returns the end. */
static inline uint8_t *listpackWriteBack(uint8_t *at, size_t body) {
    if (unlikely(body > 127)) return listpackWriteLongBack(at, body);
    *at = (uint8_t)body;
    return at + 1;
}
/* Completes a listpack of which `count` entries were written, from lp + LISTPACK_HEADER to `end`,
 * where one byte is free. */
void listpackFinish(uint8_t *lp, uint8_t *end, size_t count);

/* ---- changes ---- */

/* These functions change the listpack in the buffer and may move it. `at` points into it; items
 * must not. */

/* Inserts `count` items before `at` (NULL: at the end). Returns the position of the first. */
const uint8_t *listpackInsert(packBuffer *buffer, const uint8_t *at, const listpackItem *items,
                              size_t count);
void listpackAppend(packBuffer *buffer, const listpackItem *items, size_t count);
void listpackPrepend(packBuffer *buffer, const listpackItem *items, size_t count);
/* Adds an entry at the front without moving the others: the listpack begins listpackItemSize()
 * bytes earlier, in memory that must be the caller's. Returns where. The item must not be in it. */
uint8_t *listpackExtendFront(uint8_t *lp, const listpackItem *item);
/* Removes the first `count` entries, which it must have, without moving the others: returns where
 * the listpack begins now. The bytes before are free. */
uint8_t *listpackTrimFront(uint8_t *lp, size_t count);
/* Replaces the entry by `item`; returns its position. */
const uint8_t *listpackReplace(packBuffer *buffer, const uint8_t *at, const listpackItem *item);
/* Removes `count` entries from `at` on, or as many as there are. Returns the next entry, or
 * NULL. */
const uint8_t *listpackDelete(packBuffer *buffer, const uint8_t *at, size_t count);
/* Removes entries by index, negative ones from the end; no effect if there is no such entry. */
void listpackDeleteRange(packBuffer *buffer, int64_t index, size_t count);
/* Removes the groups of `width` entries that begin at the given positions, which are in ascending
 * order. */
void listpackDeleteMany(packBuffer *buffer, const uint8_t *const *places, size_t places_count,
                        unsigned width);
/* Inserts all entries of `other` after (or before) those in the buffer. */
void listpackMerge(packBuffer *buffer, const uint8_t *other, bool before);

/* ---- random entries ---- */

/* Receives the position of a group. Returns false to stop. */
typedef bool listpackGroupProc(void *arg, const uint8_t *at);
/* A uniformly random group of `width` entries; NULL if empty. O(bytes). */
const uint8_t *listpackRandom(const uint8_t *lp, unsigned width);
/* Visits `want` distinct random groups (or all, if there are fewer), all combinations being equally
 * likely, in their order in the listpack. O(bytes). */
void listpackRandomUnique(const uint8_t *lp, unsigned width, size_t want, listpackGroupProc *pick,
                          void *arg);

/* Stores the positions of all groups of `width` entries in `out`, for callers that choose
 * themselves. */
void listpackPositions(const uint8_t *lp, unsigned width, const uint8_t **out);

/* ---- validation of untrusted bytes ---- */

/* Called for each entry by listpackIsValid(), with its index. Returns false to reject the
 * listpack. */
typedef bool listpackEntryProc(void *arg, const uint8_t *at, size_t index);
/* True if `size` bytes are a listpack that can be traversed. With `deep` false only the header and
 * the end are checked. With `deep` every entry is within bounds and can be traversed in both
 * directions, and the count matches; `proc` may be NULL. */
bool listpackIsValid(const void *bytes, size_t size, bool deep, listpackEntryProc *proc, void *arg);
/* Redis writes the trailing length of entries of 2^14 - 1, 2^21 - 1 and 2^28 - 1 bytes with one
 * byte more than Valkey 9 and this server. This function removes these bytes, in place; it returns
 * the new size, and the caller validates the result by listpackIsValid(). Listpacks below
 * LISTPACK_NARROW_MIN bytes have no such entry. */
enum { LISTPACK_NARROW_MIN = 16384 };
size_t listpackNarrow(uint8_t *lp, size_t size);

#endif
