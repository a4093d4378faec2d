/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Primitives of the RDB format (rdb_reader.h). Invariant: bytes [at, end) of the buffer were read
 * from the source and not consumed; those before `summed` are in the checksum. */
#include "format/rdb_reader.h"

#include <lzf.h>
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "format/rdb_format.h"

enum {
    /* A string is extended as its bytes arrive; a wrong length costs at most this much memory. */
    STRING_STEP = 4 * 1024 * 1024,
    /* Maximal expansion of LZF: 3 bytes produce 264. */
    LZF_RATIO_MAX = 88 + 1,
};

static status sliceSourceRead(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    (void)why; /* reading memory cannot fail */
    rdbSliceSource *s = (rdbSliceSource *)source;
    *len = sizeMin(cap, s->rest.len);
    memcpy(dst, s->rest.ptr, *len);
    s->rest.ptr += *len;
    s->rest.len -= *len;
    return OK;
}

void rdbSliceSourceInit(rdbSliceSource *s, slice bytes) {
    *s = (rdbSliceSource){.source = {.read = sliceSourceRead}, .rest = bytes};
}

void rdbReaderInit(rdbReader *r, rdbSource *source, bool checksum) {
    *r = (rdbReader){.source = source, .checksum = checksum};
    r->buffer = memAlloc(RDB_READER_BUFFER);
}

void rdbReaderClear(rdbReader *r) {
    memFree(r->buffer);
    r->buffer = NULL;
    strFree(&r->text);
    strFree(&r->packed);
}

status rdbReaderFail(rdbReader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->why.text, sizeof(r->why.text), format, args);
    va_end(args);
    return ERR_SYNTAX;
}

static void sumConsumed(rdbReader *r) {
    hotCheck(r->summed <= r->at);
    hotCheck(r->at <= r->end);
    if (r->checksum) r->crc = crc64(r->crc, r->buffer + r->summed, r->at - r->summed);
    r->summed = r->at;
}

uint64_t rdbReaderChecksum(rdbReader *r) {
    hotCheck(r->summed <= r->at);
    sumConsumed(r);
    hotCheck(r->summed == r->at);
    return r->crc;
}

static status endOfSource(rdbReader *r) {
    r->short_read = true;
    return reasonSet(&r->why, ERR_IO, "Unexpected EOF reading RDB file");
}

/* Fills the empty buffer. */
static status fill(rdbReader *r) {
    hotCheck(r->at == r->end);
    sumConsumed(r);
    r->base += r->end;
    r->at = r->end = r->summed = 0;
    size_t len;
    status st = r->source->read(r->source, r->buffer, RDB_READER_BUFFER, &len, &r->why);
    if (st != OK) return st;
    if (len == 0) return endOfSource(r);
    check(len <= RDB_READER_BUFFER);
    r->end = len;
    return OK;
}

status rdbReadBytes(rdbReader *r, void *dst, size_t len) {
    hotCheck(r->at <= r->end);
    char *to = dst;
    while (unlikely(len > r->end - r->at)) {
        size_t part = r->end - r->at;
        memcpy(to, r->buffer + r->at, part);
        to += part;
        len -= part;
        r->at = r->end;
        status st = fill(r);
        if (st != OK) return st;
    }
    memcpy(to, r->buffer + r->at, len);
    r->at += len;
    return OK;
}

status rdbReadByte(rdbReader *r, uint8_t *out) {
    hotCheck(r->at <= r->end);
    if (likely(r->at < r->end)) {
        *out = (uint8_t)r->buffer[r->at++];
        return OK;
    }
    return rdbReadBytes(r, out, 1);
}

status rdbReadU32(rdbReader *r, uint32_t *out) {
    uint8_t bytes[4];
    status st = rdbReadBytes(r, bytes, sizeof(bytes));
    if (st == OK) *out = loadU32(bytes);
    return st;
}

status rdbReadU64(rdbReader *r, uint64_t *out) {
    uint8_t bytes[8];
    status st = rdbReadBytes(r, bytes, sizeof(bytes));
    if (st == OK) *out = loadU64(bytes);
    return st;
}

/* Reads a big-endian integer of `width` bytes. */
static status readBigEndian(rdbReader *r, size_t width, uint64_t *out) {
    hotCheck(width <= 8);
    uint8_t bytes[8];
    status st = rdbReadBytes(r, bytes, width);
    if (st != OK) return st;
    *out = 0;
    for (size_t i = 0; i < width; i++) *out = *out << 8 | bytes[i];
    return OK;
}

/* Reads a length, or the number of a string's encoding. */
static status readLengthOrEncoding(rdbReader *r, uint64_t *out, bool *encoded) {
    uint8_t head, low;
    *encoded = false;
    status st = rdbReadByte(r, &head);
    if (st != OK) return st;
    switch (head >> 6) {
    case RDB_LENGTH_6_BIT: *out = head; return OK;
    case RDB_LENGTH_14_BIT:
        st = rdbReadByte(r, &low);
        if (st == OK) *out = (uint64_t)(head & 63) << 8 | low;
        return st;
    case RDB_LENGTH_ENCODED:
        *encoded = true;
        *out = head & 63;
        return OK;
    default: break;
    }
    if (head == RDB_LENGTH_32_BIT_BYTE) return readBigEndian(r, 4, out);
    if (head == RDB_LENGTH_64_BIT_BYTE) return readBigEndian(r, 8, out);
    return rdbReaderFail(r, "Unknown length encoding %d in rdbLoadLen()", head >> 6);
}

status rdbReadLength(rdbReader *r, uint64_t *out) {
    bool encoded;
    status st = readLengthOrEncoding(r, out, &encoded);
    if (st != OK || !encoded) return st;
    return rdbReaderFail(r, "Unexpected string encoding %d in place of a length", (int)*out);
}

/* Reads `len` bytes into `out`, which is extended as they arrive. */
static status readPlain(rdbReader *r, uint64_t len, str *out) {
    strClear(out);
    while (len > 0) {
        size_t step = (size_t)(len < STRING_STEP ? len : STRING_STEP);
        strReserve(out, step);
        status st = rdbReadBytes(r, out->ptr + out->len, step);
        if (st != OK) return st;
        out->len += step;
        len -= step;
    }
    return OK;
}

static status readCompressed(rdbReader *r, str *out) {
    uint64_t packed_len = 0, len = 0;
    status st = rdbReadLength(r, &packed_len);
    if (st == OK) st = rdbReadLength(r, &len);
    if (st != OK) return st;
    /* lzf_decompress() reads the first byte without a look at the length. */
    if (packed_len == 0 || packed_len > UINT32_MAX || len == 0 || len > UINT32_MAX ||
        len / LZF_RATIO_MAX > packed_len)
        return rdbReaderFail(r, "Invalid LZF compressed string");
    st = readPlain(r, packed_len, &r->packed);
    if (st != OK) return st;
    strClear(out);
    strReserve(out, (size_t)len);
    unsigned got = lzf_decompress(r->packed.ptr, (unsigned)packed_len, out->ptr, (unsigned)len);
    if (got != len) return rdbReaderFail(r, "Invalid LZF compressed string");
    out->len = (size_t)len;
    return OK;
}

/* Reads a signed integer of `width` bytes as decimal text. */
static status readEncodedInt(rdbReader *r, size_t width, str *out) {
    hotCheck(width == 1 || width == 2 || width == 4);
    uint8_t bytes[4] = {0};
    status st = rdbReadBytes(r, bytes, width);
    if (st != OK) return st;
    unsigned unused = (unsigned)(32 - 8 * width);
    int64_t v = (int32_t)(loadU32(bytes) << unused) >> unused;
    char digits[NUMBER_TEXT_MAX];
    strClear(out);
    strAppend(out, digits, numberPrintInt(digits, v));
    return OK;
}

status rdbReadStringInto(rdbReader *r, str *out) {
    uint64_t len = 0;
    bool encoded;
    status st = readLengthOrEncoding(r, &len, &encoded);
    if (st != OK) return st;
    if (!encoded) return readPlain(r, len, out);
    switch (len) {
    case RDB_STRING_INT8: return readEncodedInt(r, 1, out);
    case RDB_STRING_INT16: return readEncodedInt(r, 2, out);
    case RDB_STRING_INT32: return readEncodedInt(r, 4, out);
    case RDB_STRING_LZF: return readCompressed(r, out);
    default: return rdbReaderFail(r, "Unknown RDB string encoding type %d", (int)len);
    }
}

status rdbReadString(rdbReader *r, slice *out) {
    hotCheck(r->at <= r->end);
    /* A plain string that is completely in the buffer is not copied. */
    if (r->at < r->end) {
        uint8_t head = (uint8_t)r->buffer[r->at];
        if (head >> 6 == RDB_LENGTH_6_BIT && head < r->end - r->at) {
            *out = sliceMake(r->buffer + r->at + 1, head);
            r->at += 1 + (size_t)head;
            return OK;
        }
    }
    status st = rdbReadStringInto(r, &r->text);
    if (st == OK) *out = strSlice(&r->text);
    return st;
}

status rdbReadDouble(rdbReader *r, double *out) {
    uint64_t bits;
    status st = rdbReadU64(r, &bits);
    if (st == OK) memcpy(out, &bits, sizeof(bits));
    return st;
}

status rdbReadDoubleText(rdbReader *r, double *out) {
    enum { TEXT_NAN = 253, TEXT_INFINITY = 254, TEXT_MINUS_INFINITY = 255 };
    uint8_t len;
    char text[256];
    status st = rdbReadByte(r, &len);
    if (st != OK) return st;
    switch (len) {
    case TEXT_NAN: *out = NAN; return OK;
    case TEXT_INFINITY: *out = INFINITY; return OK;
    case TEXT_MINUS_INFINITY: *out = -INFINITY; return OK;
    default: break;
    }
    st = rdbReadBytes(r, text, len);
    if (st != OK) return st;
    if (!numberParseDouble(sliceMake(text, len), out))
        return rdbReaderFail(r, "Invalid score '%.*s' in a sorted set", (int)len, text);
    return OK;
}
