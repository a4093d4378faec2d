/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Primitives of the RDB format (rdb_writer.h). Invariant: bytes [0, used) of the buffer have not
 * been sent to the sink; `crc` covers those sent. */
#include "format/rdb_writer.h"

#include <lzf.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "format/rdb_format.h"

enum {
    INT_TEXT_MAX = 11, /* "-2147483648" */
    FUTILE_MAX = 8,    /* attempts that failed in a row before strings are skipped */
    UNTRIED_MAX = 64,  /* strings skipped after one more failure */
    COMPRESS_GAIN_MIN = 4,
};

static status strSinkWrite(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    (void)why; /* writing memory cannot fail */
    strAppend(((rdbStrSink *)sink)->out, bytes, len);
    return OK;
}

void rdbStrSinkInit(rdbStrSink *s, str *out) {
    *s = (rdbStrSink){.sink = {.write = strSinkWrite}, .out = out};
}

void rdbWriterInit(rdbWriter *w, rdbSink *sink, bool checksum, bool compress) {
    *w = (rdbWriter){.sink = sink, .checksum = checksum, .compress = compress};
    w->buffer = memAlloc(RDB_WRITER_BUFFER);
    w->owns_buffer = true;
}

void rdbWriterInitBorrowed(rdbWriter *w, rdbSink *sink, char *buffer) {
    *w = (rdbWriter){.sink = sink, .buffer = buffer};
}

void rdbWriterClear(rdbWriter *w) {
    if (w->owns_buffer) memFree(w->buffer);
    memFree(w->packed);
    w->buffer = w->packed = NULL;
}

static void sendOut(rdbWriter *w, const void *bytes, size_t len) {
    hotCheck(w->used <= RDB_WRITER_BUFFER);
    if (w->failed != OK || len == 0) return;
    if (w->checksum) w->crc = crc64(w->crc, bytes, len);
    w->flushed += len;
    w->failed = w->sink->write(w->sink, bytes, len, &w->why);
}

void rdbWriterFail(rdbWriter *w, const char *why) {
    if (w->failed == OK) w->failed = reasonSet(&w->why, ERR_SYNTAX, "%s", why);
}

status rdbWriterFlush(rdbWriter *w) {
    hotCheck(w->used <= RDB_WRITER_BUFFER);
    sendOut(w, w->buffer, w->used);
    w->used = 0;
    return w->failed;
}

uint64_t rdbWriterChecksum(rdbWriter *w) {
    (void)rdbWriterFlush(w); /* the failure is kept in the writer */
    return w->checksum ? w->crc : 0;
}

void rdbWriteBytes(rdbWriter *w, const void *bytes, size_t len) {
    hotCheck(w->used <= RDB_WRITER_BUFFER);
    if (unlikely(len > RDB_WRITER_BUFFER - w->used)) {
        (void)rdbWriterFlush(w); /* likewise */
        if (len >= RDB_WRITER_BUFFER / 2) {
            sendOut(w, bytes, len);
            return;
        }
    }
    memcpy(w->buffer + w->used, bytes, len);
    w->used += len;
    hotCheck(w->used <= RDB_WRITER_BUFFER);
}

void rdbWriteBlobBytes(rdbWriter *w, blob *bytes) {
    hotCheck(!w->checksum || !w->sink->lend);
    if (w->sink->lend && w->sink->lend(w->sink, w, bytes)) return;
    rdbWriteBytes(w, bytes->bytes, bytes->len);
}

void rdbWriteByte(rdbWriter *w, uint8_t byte) { rdbWriteBytes(w, &byte, 1); }

void rdbWriteU64(rdbWriter *w, uint64_t v) {
    uint8_t bytes[8];
    storeU64(bytes, v);
    rdbWriteBytes(w, bytes, sizeof(bytes));
}

void rdbWriteDouble(rdbWriter *w, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    rdbWriteU64(w, bits);
}

void rdbWriteLength(rdbWriter *w, uint64_t len) {
    uint8_t bytes[9];
    size_t n;
    if (len < 64) {
        bytes[0] = (uint8_t)len;
        n = 1;
    } else if (len < 16384) {
        bytes[0] = (uint8_t)(RDB_LENGTH_14_BIT << 6 | len >> 8);
        bytes[1] = (uint8_t)len;
        n = 2;
    } else if (len <= UINT32_MAX) {
        bytes[0] = RDB_LENGTH_32_BIT_BYTE;
        for (int i = 0; i < 4; i++) bytes[1 + i] = (uint8_t)(len >> (24 - 8 * i));
        n = 5;
    } else {
        bytes[0] = RDB_LENGTH_64_BIT_BYTE;
        for (int i = 0; i < 8; i++) bytes[1 + i] = (uint8_t)(len >> (56 - 8 * i));
        n = 9;
    }
    rdbWriteBytes(w, bytes, n);
}

/* Writes an integer in its encoding; false if it does not fit 32 bits. */
static bool writeEncodedInt(rdbWriter *w, int64_t v) {
    uint8_t bytes[5];
    size_t width;
    uint8_t encoding;
    if (v >= INT8_MIN && v <= INT8_MAX) {
        encoding = RDB_STRING_INT8;
        width = 1;
    } else if (v >= INT16_MIN && v <= INT16_MAX) {
        encoding = RDB_STRING_INT16;
        width = 2;
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        encoding = RDB_STRING_INT32;
        width = 4;
    } else {
        return false;
    }
    bytes[0] = (uint8_t)(RDB_LENGTH_ENCODED << 6 | encoding);
    for (size_t i = 0; i < width; i++) bytes[1 + i] = (uint8_t)((uint64_t)v >> (8 * i));
    rdbWriteBytes(w, bytes, 1 + width);
    return true;
}

void rdbWriteCompressed(rdbWriter *w, slice packed, size_t len) {
    rdbWriteByte(w, RDB_LENGTH_ENCODED << 6 | RDB_STRING_LZF);
    rdbWriteLength(w, packed.len);
    rdbWriteLength(w, len);
    rdbWriteBytes(w, packed.ptr, packed.len);
}

/* Notes the result of an attempt on a string of this class. Most of the time of saving
 * incompressible data would go into attempts. */
static void noteAttempt(rdbWriter *w, int class, bool shorter) {
    if (shorter) {
        w->futile[class] = 0;
    } else if (w->futile[class] < FUTILE_MAX) {
        w->futile[class]++;
    } else {
        w->untried[class] = UNTRIED_MAX;
    }
}

/* Writes the text compressed; false if that would not save enough. */
static bool writeCompressed(rdbWriter *w, slice text) {
    if (text.len > UINT32_MAX) return false; /* liblzf counts in 32 bits */
    int class = 31 - __builtin_clz((unsigned)text.len);
    if (w->untried[class]) {
        w->untried[class]--;
        return false;
    }
    size_t most = text.len - COMPRESS_GAIN_MIN;
    if (w->packed_cap < most) {
        memFree(w->packed);
        w->packed_cap = sizeMax(most, 4096);
        w->packed = memTryAlloc(w->packed_cap);
        if (!w->packed) {
            w->packed_cap = 0;
            return false; /* written plain instead */
        }
    }
    unsigned len = lzf_compress(text.ptr, (unsigned)text.len, w->packed, (unsigned)most);
    noteAttempt(w, class, len != 0);
    if (len == 0) return false;
    rdbWriteCompressed(w, sliceMake(w->packed, len), text.len);
    return true;
}

void rdbWriteString(rdbWriter *w, slice text) {
    int64_t number;
    if (text.len <= INT_TEXT_MAX && numberParseInt(text, &number) && writeEncodedInt(w, number))
        return;
    if (text.len > RDB_STRING_PLAIN_MAX) {
        if (w->sink->string && w->sink->string(w->sink, w, text)) return;
        if (w->compress && writeCompressed(w, text)) return;
    }
    rdbWriteLength(w, text.len);
    rdbWriteBytes(w, text.ptr, text.len);
}

void rdbWriteShared(rdbWriter *w, blob *text) {
    if (w->sink->shared && w->sink->shared(w->sink, w, text)) return;
    rdbWriteString(w, sliceMake(text->bytes, text->len));
}

void rdbWriteIntString(rdbWriter *w, int64_t v) {
    if (writeEncodedInt(w, v)) return;
    char digits[NUMBER_TEXT_MAX];
    size_t len = numberPrintInt(digits, v);
    rdbWriteLength(w, len);
    rdbWriteBytes(w, digits, len);
}
