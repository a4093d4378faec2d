/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listpack: strings and integers one behind the other in one run of bytes, to be walked in both directions.
 * The bytes are those of the disk format:
 *
 *   [all bytes: 4] [number of entries: 2; 65535: to be counted] [entry]... [0xff]        little end first
 *   entry: [head: form, and length or number] [string, or the rest of the number] [length of these two, 1 to 5
 *   bytes, to be read backwards]
 *
 * Text that is a 64-bit integer in canonical form is kept as the integer, always. A place in a listpack is a
 * pointer to an entry, good until the next change. Walking is O(1) a step, finding O(bytes). ANY_THREAD that
 * owns the bytes. */
#ifndef DS_LISTPACK_H
#define DS_LISTPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/number.h"
#include "base/slice.h"
#include "ds/packroom.h"

enum {
    LISTPACK_HEADER = 6,
    LISTPACK_EMPTY_SIZE = 7,
    LISTPACK_COUNT_UNKNOWN = 65535,
    LISTPACK_SHORT_TEXT = 0x80, /* heads from here on: text of 0 to 63 bytes */
    LISTPACK_END = 0xff,
};
/* No listpack may grow beyond it: owners ask listpackCanGrow(). */
#define LISTPACK_SIZE_MAX ((size_t)1 << 30)

/* What an entry holds. */
typedef struct listpackItem {
    const char *ptr; /* NULL: an integer */
    size_t len;
    int64_t number;
} listpackItem;

/* ---- building ---- */

/* What `text` is stored as. */
listpackItem listpackItemOf(slice text);
static inline listpackItem listpackItemInt(int64_t number) {
    return (listpackItem){.number = number};
}
/* Bytes of an entry with it. */
size_t listpackItemSize(const listpackItem *item);
/* Writes an empty listpack, LISTPACK_EMPTY_SIZE bytes. */
void listpackInit(uint8_t *at);
/* An empty one in a block of its own; the caller frees it with memFree(). */
uint8_t *listpackNew(void);

/* ---- the whole ---- */

/* All its bytes. */
static inline size_t listpackSize(const uint8_t *lp) { return loadU32(lp); }
/* Number of entries; beyond 65,534 they are counted. */
size_t listpackCount(const uint8_t *lp);
/* False when `more` bytes would be too much for one listpack. */
static inline bool listpackCanGrow(const uint8_t *lp, size_t more) {
    return more <= LISTPACK_SIZE_MAX && listpackSize(lp) + more <= LISTPACK_SIZE_MAX;
}

/* ---- walking ---- */

/* NULL: there is none. */
const uint8_t *listpackFirst(const uint8_t *lp);
const uint8_t *listpackLast(const uint8_t *lp);
const uint8_t *listpackNext(const uint8_t *lp, const uint8_t *at);
const uint8_t *listpackPrev(const uint8_t *lp, const uint8_t *at);
/* Entry `index` from the front, or from the back when negative (-1 is the last); NULL: there is none. Walks
 * from the nearer end. */
const uint8_t *listpackSeek(const uint8_t *lp, int64_t index);
/* listpackRead() of other entries than short text; returns where the next one begins. */
const uint8_t *listpackReadOther(const uint8_t *at, listpackItem *out);
/* Reads the entry, whose content is borrowed, and returns the place behind it, NULL at the end. Short text, which is
 * what most entries are, costs no call. */
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
    (void)listpackRead(at, &item); /* what follows does not matter */
    return item;
}
/* Bytes of the whole entry. */
size_t listpackEntrySize(const uint8_t *at);
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
/* Whether two items have the same text. */
bool listpackItemEquals(const listpackItem *a, const listpackItem *b);
/* Whether the entry's text is the item's. */
bool listpackEquals(const uint8_t *at, const listpackItem *item);
/* The first entry equal to `item` from `at` on (NULL: from the front), looking at one and passing over `skip`
 * before the next. NULL: there is none. */
const uint8_t *listpackFind(const uint8_t *lp, const uint8_t *at, const listpackItem *item,
                            unsigned skip);

/* ---- parts of an entry ---- */

/* For those who keep entries without the length that ends them: its head and content, up to LISTPACK_BODY_EXTRA bytes
 * more than the text. */
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
/* Bytes of the length that ends an entry with such a body, and writes it; returns the end. */
size_t listpackBackSize(size_t body);
uint8_t *listpackWriteBack(uint8_t *at, size_t body);

/* ---- changing ---- */

/* Change the listpack that stands in `room`, and may move it. `at` lies in it; items may not. */

/* Puts `count` items before `at` (NULL: at the end). Returns the place of the first. */
const uint8_t *listpackInsert(packRoom *room, const uint8_t *at, const listpackItem *items,
                              size_t count);
void listpackAppend(packRoom *room, const listpackItem *items, size_t count);
void listpackPrepend(packRoom *room, const listpackItem *items, size_t count);
/* Puts `item` in the place of the entry; returns where it stands. */
const uint8_t *listpackReplace(packRoom *room, const uint8_t *at, const listpackItem *item);
/* Takes out `count` entries from `at` on; as many as there are. Returns the entry behind, or NULL. */
const uint8_t *listpackDelete(packRoom *room, const uint8_t *at, size_t count);
/* The same by index, negative ones from the end; nothing when there is no such entry. */
void listpackDeleteRange(packRoom *room, int64_t index, size_t count);
/* Takes out `places_count` groups of `width` entries each, which begin at `places`, in order. */
void listpackDeleteMany(packRoom *room, const uint8_t *const *places, size_t places_count,
                        unsigned width);
/* Puts all entries of `other` behind (or before) those in `room`. */
void listpackMerge(packRoom *room, const uint8_t *other, bool before);

/* ---- random entries ---- */

/* Gets a group: the place of its first entry. False ends the walk. */
typedef bool listpackPickProc(void *arg, const uint8_t *at);
/* A random group of `width` entries, each with the same chance; NULL when empty. O(bytes). */
const uint8_t *listpackRandom(const uint8_t *lp, unsigned width);
/* Visits `want` groups (or all, if there are fewer), no group twice, each choice with the same chance, in the
 * order they stand in. O(bytes). */
void listpackRandomUnique(const uint8_t *lp, unsigned width, size_t want, listpackPickProc *pick,
                          void *arg);

/* Where each group of `width` entries begins, for those who choose themselves; `out` has room for all. */
void listpackPlaces(const uint8_t *lp, unsigned width, const uint8_t **out);

/* ---- bytes of strangers ---- */

/* Asked for each entry by listpackIsSound(); `index` of it. False refuses the listpack. */
typedef bool listpackEntryProc(void *arg, const uint8_t *at, size_t index);
/* Whether `size` bytes are a listpack that can be walked. Shallow (`deep` false): only its frame. Deep: every
 * entry lies within it and can be walked both ways, and there are as many as it says; `proc` may be NULL. */
bool listpackIsSound(const void *bytes, size_t size, bool deep, listpackEntryProc *proc, void *arg);

#endif
