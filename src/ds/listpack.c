/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listpacks (format: listpack.h).
 *
 * Invariant: the first 4 bytes determine the position of the final 0xff; the next 2 are the number
 * of entries, or that it is unknown; every entry ends with its own length, so that the last one can
 * be found from the end. Every change is one memmove and one call of the owner's resize. ANY_THREAD
 * that owns the bytes. */
#include "ds/listpack.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/number.h"
#include "base/random.h"

/* Encodings of entry headers: 0xxxxxxx: 7-bit number; 10 and 6 bits: length of a string; 110 and 13
 * bits: number; 1110 and 12 bits: length; and the following, with 4 bytes of length or a number of
 * 2, 3, 4 or 8 bytes. */
enum {
    HEAD_STRING32 = 0xf0,
    HEAD_INT16 = 0xf1,
    HEAD_INT24 = 0xf2,
    HEAD_INT32 = 0xf3,
    HEAD_INT64 = 0xf4,
};
enum { BACK_BYTES_MAX = 5 };

/* ---- sizes ---- */

/* Size of the length field at the end of an entry. */
static inline size_t backSize(size_t len) {
    return len < 128 ? 1 : len < 16384 ? 2 : len < 2097152 ? 3 : len < 268435456 ? 4 : 5;
}

static uint8_t *writeBack(uint8_t *at, size_t len) {
    size_t bytes = backSize(len);
    for (size_t i = bytes; i-- > 0; len >>= 7) at[i] = (uint8_t)((len & 127) | (i ? 128 : 0));
    return at + bytes;
}

/* Size of header and content, from the header; at least 5 bytes must be readable if the data is not
 * trusted. 0: invalid header. */
static inline size_t bodySize(const uint8_t *at) {
    uint8_t head = *at;
    if (head < 0x80) return 1;
    if (head < 0xc0) return 1 + (size_t)(head & 63);
    if (head < 0xe0) return 2;
    if (head < 0xf0) return 2 + ((size_t)(head & 15) << 8 | at[1]);
    switch (head) {
    case HEAD_STRING32: return 5 + (size_t)loadU32(at + 1);
    case HEAD_INT16: return 3;
    case HEAD_INT24: return 4;
    case HEAD_INT32: return 5;
    case HEAD_INT64: return 9;
    default: return 0;
    }
}

static inline size_t entrySize(const uint8_t *at) {
    size_t body = bodySize(at);
    return body + backSize(body);
}

size_t listpackOtherEntrySize(const uint8_t *at) { return entrySize(at); }

size_t listpackBackSize(size_t body) { return backSize(body); }

uint8_t *listpackWriteLongBack(uint8_t *at, size_t body) { return writeBack(at, body); }

static size_t intBodySize(int64_t v) {
    if (v >= 0 && v <= 127) return 1;
    if (v >= -4096 && v <= 4095) return 2;
    if (v >= INT16_MIN && v <= INT16_MAX) return 3;
    if (v >= -(1 << 23) && v < 1 << 23) return 4;
    if (v >= INT32_MIN && v <= INT32_MAX) return 5;
    return 9;
}

static size_t itemBodySize(const listpackItem *item) {
    if (!item->ptr) return intBodySize(item->number);
    return item->len + (item->len < 64 ? 1 : item->len < 4096 ? 2 : 5);
}

size_t listpackBodySize(const listpackItem *item) { return itemBodySize(item); }

size_t listpackItemSize(const listpackItem *item) {
    size_t body = itemBodySize(item);
    return body + backSize(body);
}

/* ---- items ---- */

listpackItem listpackItemOf(slice text) {
    listpackItem item = {.ptr = text.ptr ? text.ptr : "", .len = text.len};
    if (numberMayBeInt(text) && numberParseInt(text, &item.number)) item.ptr = NULL;
    return item;
}

static uint8_t *writeInt(uint8_t *at, int64_t v) {
    uint64_t bits = (uint64_t)v;
    size_t size = intBodySize(v);
    switch (size) {
    case 1: at[0] = (uint8_t)v; break;
    case 2:
        at[0] = (uint8_t)(0xc0 | (bits >> 8 & 0x1f));
        at[1] = (uint8_t)bits;
        break;
    default: {
        static const uint8_t heads[] = {[3] = HEAD_INT16, [4] = HEAD_INT24, [5] = HEAD_INT32};
        at[0] = size == 9 ? HEAD_INT64 : heads[size];
        memcpy(at + 1, &bits, size - 1);
    }
    }
    return at + size;
}

static inline uint8_t *writeBody(uint8_t *at, const listpackItem *item) {
    if (!item->ptr) return writeInt(at, item->number);
    if (item->len < 64) {
        *at++ = (uint8_t)(0x80 | item->len);
    } else if (item->len < 4096) {
        *at++ = (uint8_t)(0xe0 | item->len >> 8);
        *at++ = (uint8_t)item->len;
    } else {
        *at++ = HEAD_STRING32;
        storeU32(at, (uint32_t)item->len);
        at += 4;
    }
    memcpy(at, item->ptr, item->len);
    return at + item->len;
}

uint8_t *listpackWriteBody(uint8_t *at, const listpackItem *item) { return writeBody(at, item); }

static uint8_t *writeItem(uint8_t *at, const listpackItem *item) {
    uint8_t *end = writeBody(at, item);
    hotCheck(bodySize(at) == (size_t)(end - at));
    return writeBack(end, (size_t)(end - at));
}

/* A signed number of `bytes` bytes. */
static int64_t loadSigned(const uint8_t *at, size_t bytes) {
    uint64_t bits = 0;
    hotCheck(bytes <= sizeof(bits));
    memcpy(&bits, at, bytes);
    unsigned above = 64 - 8 * (unsigned)bytes;
    return (int64_t)(bits << above) >> above;
}

/* The content of an entry that is not short text. */
static listpackItem otherItem(const uint8_t *at) {
    uint8_t head = *at;
    if (head < 0x80) return listpackItemInt(head);
    if (head < 0xe0) {
        uint32_t bits = (uint32_t)(head & 0x1f) << 8 | at[1];
        return listpackItemInt((int32_t)(bits << 19) >> 19);
    }
    if (head < 0xf0) {
        size_t len = (size_t)(head & 15) << 8 | at[1];
        return (listpackItem){.ptr = (const char *)at + 2, .len = len};
    }
    if (head == HEAD_STRING32)
        return (listpackItem){.ptr = (const char *)at + 5, .len = loadU32(at + 1)};
    hotCheck(head <= HEAD_INT64);
    return listpackItemInt(loadSigned(at + 1, bodySize(at) - 1));
}

const uint8_t *listpackReadOther(const uint8_t *at, listpackItem *out) {
    *out = otherItem(at);
    return at + entrySize(at);
}

const uint8_t *listpackReadOtherBody(const uint8_t *at, listpackItem *out) {
    *out = otherItem(at);
    return at + bodySize(at);
}

const uint8_t *listpackSkipOtherBody(const uint8_t *at) { return at + bodySize(at); }

bool listpackItemEquals(const listpackItem *a, const listpackItem *b) {
    if (!a->ptr && !b->ptr) return a->number == b->number;
    if (a->ptr && b->ptr) return a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0;
    const listpackItem *text = a->ptr ? a : b;
    if (text->len > NUMBER_INT_TEXT_MAX) return false;
    char digits[2][NUMBER_TEXT_MAX];
    return sliceEqual(listpackText(a, digits[0]), listpackText(b, digits[1]));
}

bool listpackEquals(const uint8_t *at, const listpackItem *item) {
    listpackItem own = listpackGet(at);
    return listpackItemEquals(&own, item);
}

/* ---- the whole listpack ---- */

static inline uint8_t *endOf(uint8_t *lp) { return lp + listpackSize(lp) - 1; }
static inline const uint8_t *endOfConst(const uint8_t *lp) { return lp + listpackSize(lp) - 1; }

static void setCount(uint8_t *lp, size_t count) {
    storeU16(lp + 4, (uint16_t)(count < LISTPACK_COUNT_UNKNOWN ? count : LISTPACK_COUNT_UNKNOWN));
}

void listpackInit(uint8_t *at) {
    storeU32(at, LISTPACK_EMPTY_SIZE);
    setCount(at, 0);
    at[LISTPACK_HEADER] = LISTPACK_END;
}

void listpackFinish(uint8_t *lp, uint8_t *end, size_t count) {
    hotCheck(end >= lp + LISTPACK_HEADER);
    size_t size = (size_t)(end + 1 - lp);
    check(size <= LISTPACK_SIZE_MAX);
    *end = LISTPACK_END;
    storeU32(lp, (uint32_t)size);
    setCount(lp, count);
    hotCheck(endOf(lp) == end);
}

uint8_t *listpackNew(void) {
    uint8_t *lp = memAlloc(LISTPACK_EMPTY_SIZE);
    listpackInit(lp);
    return lp;
}

size_t listpackCount(const uint8_t *lp) {
    size_t count = loadU16(lp + 4);
    if (likely(count != LISTPACK_COUNT_UNKNOWN)) return count;
    count = 0;
    for (const uint8_t *at = lp + LISTPACK_HEADER; *at != LISTPACK_END; at += entrySize(at))
        count++;
    return count;
}

/* Updates the header when `more` entries are added (or removed). */
static void changeCount(uint8_t *lp, int64_t more) {
    size_t count = loadU16(lp + 4);
    if (count != LISTPACK_COUNT_UNKNOWN) {
        setCount(lp, (size_t)((int64_t)count + more));
    } else if (more < 0) {
        setCount(lp, listpackCount(lp));
    }
}

/* ---- traversal ---- */

const uint8_t *listpackFirst(const uint8_t *lp) {
    hotCheck(listpackSize(lp) >= LISTPACK_EMPTY_SIZE);
    const uint8_t *at = lp + LISTPACK_HEADER;
    return *at == LISTPACK_END ? NULL : at;
}

/* The entry that ends before `at`. */
static const uint8_t *entryBefore(const uint8_t *at) {
    hotCheck(entrySize(at) > 0);
    size_t body = 0;
    const uint8_t *back = at - 1;
    for (unsigned shift = 0;; shift += 7, back--) {
        body |= (size_t)(*back & 127) << shift;
        if (!(*back & 128)) break;
    }
    return back - body;
}

const uint8_t *listpackLast(const uint8_t *lp) { return listpackPrev(lp, endOfConst(lp)); }

const uint8_t *listpackNext(const uint8_t *lp, const uint8_t *at) {
    hotCheck(at < endOfConst(lp));
    (void)lp; /* only checked */
    at += entrySize(at);
    return *at == LISTPACK_END ? NULL : at;
}

const uint8_t *listpackPrev(const uint8_t *lp, const uint8_t *at) {
    return at == lp + LISTPACK_HEADER ? NULL : entryBefore(at);
}

const uint8_t *listpackSeek(const uint8_t *lp, int64_t index) {
    hotCheck(listpackSize(lp) >= LISTPACK_EMPTY_SIZE);
    int64_t count = loadU16(lp + 4);
    if (count != LISTPACK_COUNT_UNKNOWN) {
        if (index < 0) index += count;
        if (index < 0 || index >= count) return NULL;
        if (index > count / 2) index -= count;
    }
    const uint8_t *at;
    if (index >= 0) {
        for (at = listpackFirst(lp); at && index > 0; index--) at = listpackNext(lp, at);
    } else {
        for (at = listpackLast(lp); at && index < -1; index++) at = listpackPrev(lp, at);
    }
    return at;
}

/* Skips up to `n` entries; stops at the end. */
static inline const uint8_t *passOver(const uint8_t *at, size_t n) {
    for (; n > 0 && *at != LISTPACK_END; n--) at += entrySize(at);
    return at;
}

static const uint8_t *findInt(const uint8_t *at, int64_t number, unsigned skip) {
    uint8_t wanted[9];
    size_t len = (size_t)(writeInt(wanted, number) - wanted);
    listpackItem item = listpackItemInt(number);
    for (; *at != LISTPACK_END; at = passOver(at, (size_t)skip + 1)) {
        if (*at == wanted[0] && memcmp(at, wanted, len) == 0) return at;
        /* We encode a number in the shortest form, others may not. */
        bool is_short = *at < 0x80 || (*at >= 0xc0 && *at < 0xe0);
        if (!is_short && listpackEquals(at, &item)) return at;
    }
    return NULL;
}

/* Names of equal length often have a common prefix, so most of them are told apart by their last
 * eight bytes, without a call. */
static inline bool endsAlike(const uint8_t *a, const char *b, size_t len) {
    if (likely(len >= 8)) return loadU64(a + len - 8) == loadU64(b + len - 8);
    return len == 0 || a[len - 1] == (uint8_t)b[len - 1];
}

static const uint8_t *findString(const uint8_t *at, const char *ptr, size_t len, unsigned skip) {
    while (*at != LISTPACK_END) {
        uint8_t head = *at;
        if (likely(head >= 0x80 && head < 0xc0)) {
            size_t own = head & 63;
            if (own == len && endsAlike(at + 1, ptr, len) && memcmp(at + 1, ptr, len) == 0)
                return at;
            at += own + 2;
        } else {
            listpackItem item = listpackGet(at);
            if (item.ptr && item.len == len && memcmp(item.ptr, ptr, len) == 0) return at;
            at += entrySize(at);
        }
        at = passOver(at, skip);
    }
    return NULL;
}

const uint8_t *listpackFind(const uint8_t *lp, const uint8_t *at, const listpackItem *item,
                            unsigned skip) {
    if (!at) at = lp + LISTPACK_HEADER;
    return item->ptr ? findString(at, item->ptr, item->len, skip) : findInt(at, item->number, skip);
}

/* ---- changes ---- */

/* Replaces `removed` bytes at offset `at` by a gap of `gap` bytes and updates the size in the
 * header. */
static uint8_t *openGap(packBuffer *buffer, size_t at, size_t removed, size_t gap) {
    uint8_t *lp = buffer->bytes;
    size_t old_size = listpackSize(lp), size = old_size - removed + gap;
    size_t tail_size = old_size - at - removed;
    check(size <= UINT32_MAX);
    if (gap > removed) lp = buffer->resize(buffer, size);
    memmove(lp + at + gap, lp + at + removed, tail_size);
    if (gap <= removed) lp = buffer->resize(buffer, size);
    storeU32(lp, (uint32_t)size);
    return lp + at;
}

const uint8_t *listpackInsert(packBuffer *buffer, const uint8_t *at, const listpackItem *items,
                              size_t count) {
    hotCheck(!at || at >= buffer->bytes + LISTPACK_HEADER);
    hotCheck(!at || at < buffer->bytes + listpackSize(buffer->bytes));
    size_t offset = at ? (size_t)(at - buffer->bytes) : listpackSize(buffer->bytes) - 1;
    size_t gap = 0;
    for (size_t i = 0; i < count; i++) gap += listpackItemSize(&items[i]);
    uint8_t *to = openGap(buffer, offset, 0, gap);
    for (size_t i = 0; i < count; i++) to = writeItem(to, &items[i]);
    changeCount(buffer->bytes, (int64_t)count);
    return buffer->bytes + offset;
}

void listpackAppend(packBuffer *buffer, const listpackItem *items, size_t count) {
    (void)listpackInsert(buffer, NULL, items, count); /* the position is known */
}

void listpackPrepend(packBuffer *buffer, const listpackItem *items, size_t count) {
    (void)listpackInsert(buffer, buffer->bytes + LISTPACK_HEADER, items,
                         count); /* the position is known */
}

/* The listpack at `old` begins at `to` now, with `more` entries; its end remains where it is. The
 * headers may overlap. */
static void moveHeader(uint8_t *to, const uint8_t *old, int64_t more) {
    size_t size = (size_t)(old + listpackSize(old) - to);
    uint16_t count = loadU16(old + 4);
    check(size <= UINT32_MAX);
    storeU32(to, (uint32_t)size);
    storeU16(to + 4, count);
    changeCount(to, more);
}

uint8_t *listpackExtendFront(uint8_t *lp, const listpackItem *item) {
    size_t gap = listpackItemSize(item);
    moveHeader(lp - gap, lp, 1);
    (void)writeItem(lp - gap + LISTPACK_HEADER, item); /* fills the gap */
    return lp - gap;
}

uint8_t *listpackTrimFront(uint8_t *lp, size_t count) {
    hotCheck(listpackSize(lp) > LISTPACK_EMPTY_SIZE || count == 0);
    uint8_t *to = lp + (passOver(lp + LISTPACK_HEADER, count) - lp) - LISTPACK_HEADER;
    moveHeader(to, lp, -(int64_t)count);
    return to;
}

const uint8_t *listpackReplace(packBuffer *buffer, const uint8_t *at, const listpackItem *item) {
    hotCheck(at >= buffer->bytes + LISTPACK_HEADER);
    hotCheck(*at != LISTPACK_END);
    size_t offset = (size_t)(at - buffer->bytes);
    uint8_t *to = openGap(buffer, offset, entrySize(at), listpackItemSize(item));
    (void)writeItem(to, item); /* fills the gap */
    return buffer->bytes + offset;
}

const uint8_t *listpackDelete(packBuffer *buffer, const uint8_t *at, size_t count) {
    hotCheck(at >= buffer->bytes + LISTPACK_HEADER);
    hotCheck(at < buffer->bytes + listpackSize(buffer->bytes));
    const uint8_t *end = at;
    size_t found = 0;
    for (; found < count && *end != LISTPACK_END; found++) end += entrySize(end);
    const uint8_t *next = openGap(buffer, (size_t)(at - buffer->bytes), (size_t)(end - at), 0);
    changeCount(buffer->bytes, -(int64_t)found);
    return *next == LISTPACK_END ? NULL : next;
}

void listpackDeleteRange(packBuffer *buffer, int64_t index, size_t count) {
    const uint8_t *at = count ? listpackSeek(buffer->bytes, index) : NULL;
    if (at) (void)listpackDelete(buffer, at, count); /* the next entry is not needed */
}

void listpackDeleteMany(packBuffer *buffer, const uint8_t *const *places, size_t places_count,
                        unsigned width) {
    if (!places_count) return;
    uint8_t *lp = buffer->bytes, *to = lp + (places[0] - lp);
    const uint8_t *end = endOf(lp);
    size_t removed = 0;
    for (size_t i = 0; i < places_count; i++) {
        const uint8_t *from = places[i];
        for (unsigned k = 0; k < width && *from != LISTPACK_END; k++, removed++)
            from += entrySize(from);
        const uint8_t *until = i + 1 < places_count ? places[i + 1] : end + 1;
        check(until >= from);
        memmove(to, from, (size_t)(until - from));
        to += until - from;
    }
    storeU32(lp, (uint32_t)(to - lp));
    (void)buffer->resize(buffer, (size_t)(to - lp)); /* the address is in `bytes` */
    changeCount(buffer->bytes, -(int64_t)removed);
}

void listpackMerge(packBuffer *buffer, const uint8_t *other, bool before) {
    size_t bytes = listpackSize(other) - LISTPACK_EMPTY_SIZE, count = listpackCount(other);
    size_t at = before ? LISTPACK_HEADER : listpackSize(buffer->bytes) - 1;
    memcpy(openGap(buffer, at, 0, bytes), other + LISTPACK_HEADER, bytes);
    changeCount(buffer->bytes, (int64_t)count);
}

/* ---- random entries ---- */

const uint8_t *listpackRandom(const uint8_t *lp, unsigned width) {
    size_t groups = listpackCount(lp) / width;
    return groups ? listpackSeek(lp, (int64_t)(randomUniform(groups) * width)) : NULL;
}

void listpackPositions(const uint8_t *lp, unsigned width, const uint8_t **out) {
    const uint8_t *at = lp + LISTPACK_HEADER;
    for (size_t i = 0; *at != LISTPACK_END; i++, at = passOver(at, width)) out[i] = at;
}

void listpackRandomUnique(const uint8_t *lp, unsigned width, size_t want, listpackGroupProc *pick,
                          void *arg) {
    hotCheck(listpackCount(lp) % width == 0);
    size_t left = listpackCount(lp) / width;
    want = sizeMin(want, left);
    for (const uint8_t *at = lp + LISTPACK_HEADER; want > 0; left--) {
        /* Each group is chosen with the probability that makes all combinations equally likely. */
        if (randomUniform(left) < want) {
            if (!pick(arg, at)) return;
            want--;
        }
        at = passOver(at, width);
    }
}

/* ---- validation of untrusted bytes ---- */

/* Size of header and content at `at`, if the complete entry ends before `end`; else 0. */
static size_t validBody(const uint8_t *at, const uint8_t *end) {
    hotCheck(at < end);
    size_t left = (size_t)(end - at);
    uint8_t head = *at;
    size_t head_size = head >= 0xf0 ? (head == HEAD_STRING32 ? 5 : 1) : head >= 0xe0 ? 2 : 1;
    if (left < head_size) return 0;
    size_t body = bodySize(at);
    if (body == 0 || body > left) return 0;
    return left - body >= backSize(body) ? body : 0;
}

/* True if the trailing length of an entry with this body has one byte more than backSize(). */
static bool isWide(const uint8_t *at, const uint8_t *end, size_t body) {
    hotCheck(at + body < end);
    if (body != 16383 && body != 2097151 && body != 268435455) return false;
    static const uint8_t wide[] = {0, 0xff, 0xff, 0xff, 0xff};
    size_t bytes = backSize(body) + 1;
    return (size_t)(end - at) - body >= bytes && memcmp(at + body, wide, bytes) == 0;
}

size_t listpackNarrow(uint8_t *lp, size_t size) {
    if (size < LISTPACK_NARROW_MIN || !listpackIsValid(lp, size, false, NULL, NULL)) return size;
    const uint8_t *end = endOfConst(lp), *at = lp + LISTPACK_HEADER;
    uint8_t *to = lp + LISTPACK_HEADER;
    while (at != end) {
        size_t body = validBody(at, end);
        if (!body) return 0;
        bool wide = isWide(at, end, body);
        size_t kept = wide ? body : body + backSize(body);
        if (to != at) memmove(to, at, kept);
        at += kept + (wide ? backSize(body) + 1 : 0);
        to = wide ? writeBack(to + body, body) : to + kept;
    }
    *to++ = LISTPACK_END;
    storeU32(lp, (uint32_t)(to - lp));
    return (size_t)(to - lp);
}

bool listpackIsValid(const void *bytes, size_t size, bool deep, listpackEntryProc *proc,
                     void *arg) {
    const uint8_t *lp = bytes;
    if (size < LISTPACK_EMPTY_SIZE || listpackSize(lp) != size) return false;
    const uint8_t *end = endOfConst(lp);
    if (*end != LISTPACK_END) return false;
    if (!deep) return true;
    size_t count = 0;
    for (const uint8_t *at = lp + LISTPACK_HEADER; at != end; count++) {
        size_t body = validBody(at, end);
        if (!body) return false;
        uint8_t back[BACK_BYTES_MAX];
        size_t back_size = (size_t)(writeBack(back, body) - back);
        if (memcmp(at + body, back, back_size) != 0) return false;
        if (proc && !proc(arg, at, count)) return false;
        at += body + back_size;
    }
    size_t stored_count = loadU16(lp + 4);
    return stored_count == LISTPACK_COUNT_UNKNOWN || stored_count == count;
}
