/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ziplists and zipmaps, the packed forms of Redis 2.x to 6.x, as listpacks (packed.h).
 *
 * Ziplist: u32 bytes, u32 offset of the last entry, u16 number of entries (65535: unknown),
 * entries, 0xff. An entry begins with the size of the one before it, in 1 byte or in 0xfe and 4
 * bytes; then an encoding byte and the content. Zipmap: u8 number of pairs (254 and 255: unknown);
 * per pair the length of the name in 1 byte or in 0xfe and 4 bytes, name, length of the value,
 * number of unused bytes, value, unused bytes; 0xff. */
#include "base/base.h"
#include "ds/listpack.h"
#include "format/packed.h"

enum {
    ZIPLIST_HEADER = 10,
    ZIPLIST_COUNT_UNKNOWN = 65535,
    ZIPLIST_END = 0xff,
    ZIPLIST_LONG_PREVIOUS = 0xfe,
    ZIPMAP_END = 0xff,
    ZIPMAP_LONG_LENGTH = 0xfe,
    ZIPMAP_COUNT_MAX = 253, /* larger: unknown */
};

/* The unread rest; `failed` is set when a read goes past the end. */
typedef struct cursor {
    const uint8_t *at, *end;
    bool failed;
} cursor;

static const uint8_t *take(cursor *c, size_t len) {
    hotCheck(c->at <= c->end);
    if (c->failed || len > (size_t)(c->end - c->at)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *bytes = c->at;
    c->at += len;
    return bytes;
}

static uint8_t takeByte(cursor *c) {
    const uint8_t *bytes = take(c, 1);
    return bytes ? *bytes : 0;
}

/* Reads a little-endian signed integer. */
static int64_t takeInt(cursor *c, size_t width) {
    hotCheck(width > 0);
    hotCheck(width <= 8);
    const uint8_t *bytes = take(c, width);
    uint64_t v = 0;
    for (size_t i = 0; bytes && i < width; i++) v |= (uint64_t)bytes[i] << (8 * i);
    unsigned unused = (unsigned)(64 - 8 * width);
    return (int64_t)(v << unused) >> unused;
}

static listpackItem takeText(cursor *c, size_t len) {
    const uint8_t *bytes = take(c, len);
    return bytes ? listpackItemOf(sliceMake((const char *)bytes, len)) : listpackItemInt(0);
}

/* Reads the content of a ziplist entry, which follows the size of the previous entry. */
static listpackItem takeEntry(cursor *c) {
    uint8_t head = takeByte(c);
    if (head >> 6 == 0) return takeText(c, head);
    if (head >> 6 == 1) return takeText(c, (size_t)(head & 63) << 8 | takeByte(c));
    if (head == 0x80) {
        const uint8_t *b = take(c, 4);
        return takeText(c,
                        b ? (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3] : 0);
    }
    switch (head) {
    case 0xc0: return listpackItemInt(takeInt(c, 2));
    case 0xd0: return listpackItemInt(takeInt(c, 4));
    case 0xe0: return listpackItemInt(takeInt(c, 8));
    case 0xf0: return listpackItemInt(takeInt(c, 3));
    case 0xfe: return listpackItemInt(takeInt(c, 1));
    default: break;
    }
    if (head >= 0xf1 && head <= 0xfd) return listpackItemInt(head - 0xf1);
    c->failed = true;
    return listpackItemInt(0);
}

/* Appends the entries between header and end mark; false when they are not valid. */
static bool readZiplist(cursor *c, const uint8_t *begin, packBuffer *out) {
    size_t tail = loadU32(begin + 4), count = loadU16(begin + 8), entries = 0, previous = 0;
    const uint8_t *last = begin + ZIPLIST_HEADER;
    while (!c->failed && c->at < c->end && *c->at != ZIPLIST_END) {
        const uint8_t *entry = c->at;
        size_t previous_size = takeByte(c);
        if (previous_size == ZIPLIST_LONG_PREVIOUS) previous_size = (uint32_t)takeInt(c, 4);
        listpackItem item = takeEntry(c);
        if (c->failed || previous_size != previous) return false;
        if (!listpackCanGrow(out->bytes, item.len + 16)) return false;
        listpackAppend(out, &item, 1);
        previous = (size_t)(c->at - entry);
        last = entry;
        entries++;
    }
    if (c->failed || takeByte(c) != ZIPLIST_END || c->failed || c->at != c->end) return false;
    return (size_t)(last - begin) == tail && (count == ZIPLIST_COUNT_UNKNOWN || count == entries);
}

static uint8_t *finish(packBuffer *out, bool valid) {
    if (valid) return out->bytes;
    memFree(out->bytes);
    return NULL;
}

uint8_t *packedFromZiplist(slice bytes) {
    const uint8_t *begin = (const uint8_t *)bytes.ptr;
    if (bytes.len < ZIPLIST_HEADER + 1 || loadU32(begin) != bytes.len) return NULL;
    cursor c = {.at = begin + ZIPLIST_HEADER, .end = begin + bytes.len};
    packBuffer out = packBufferHeap(listpackNew());
    bool valid = readZiplist(&c, begin, &out);
    return finish(&out, valid);
}

/* Reads a zipmap's length; the long form is invalid for short lengths. */
static size_t takeZipmapLength(cursor *c) {
    size_t len = takeByte(c);
    if (len < ZIPMAP_LONG_LENGTH) return len;
    if (len != ZIPMAP_LONG_LENGTH) c->failed = true;
    len = (uint32_t)takeInt(c, 4);
    if (len < ZIPMAP_LONG_LENGTH) c->failed = true;
    return len;
}

static bool readZipmap(cursor *c, size_t count, packBuffer *out) {
    size_t pairs = 0;
    while (!c->failed && c->at < c->end && *c->at != ZIPMAP_END) {
        listpackItem pair[2];
        pair[0] = takeText(c, takeZipmapLength(c));
        size_t value_len = takeZipmapLength(c), unused = takeByte(c);
        pair[1] = takeText(c, value_len);
        (void)take(c, unused); /* its failure is kept in the cursor */
        if (c->failed || !listpackCanGrow(out->bytes, pair[0].len + pair[1].len + 32)) return false;
        listpackAppend(out, pair, 2);
        pairs++;
    }
    if (c->failed || takeByte(c) != ZIPMAP_END || c->failed || c->at != c->end || pairs == 0)
        return false;
    return count > ZIPMAP_COUNT_MAX || count == pairs;
}

uint8_t *packedFromZipmap(slice bytes) {
    if (bytes.len < 2) return NULL;
    const uint8_t *begin = (const uint8_t *)bytes.ptr;
    cursor c = {.at = begin + 1, .end = begin + bytes.len};
    packBuffer out = packBufferHeap(listpackNew());
    bool valid = readZipmap(&c, *begin, &out);
    return finish(&out, valid);
}
