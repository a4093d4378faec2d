/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes replies: every type of RESP2 and RESP3, appended to an outbuf.
 *
 * A header such as "$16\r\n" with a number below 10,000 is composed in a register and stored with
 * one 8-byte store. Therefore OUTBUF_RESERVE_MAX bytes are reserved first; bytes stored after the
 * end of the header are overwritten by what follows. Nothing here allocates except through the
 * outbuf. Cost: O(bytes). */
#include "base/bytes.h"
#include "base/number.h"
#include "resp/outblock.h"

/* The longest header: type byte, number of 20 digits, CRLF. */
enum { HEAD_MAX = 1 + 20 + 2 };
_Static_assert(HEAD_MAX + NUMBER_TEXT_MAX + 2 <= OUTBUF_RESERVE_MAX, "a double fits with its head");

/* Reserves OUTBUF_RESERVE_MAX bytes; returns o->at, or NULL for a sink that takes items. */
ALWAYS_INLINE char *place(outbuf *o) {
    if (likely((size_t)(o->end - o->at) >= OUTBUF_RESERVE_MAX)) return o->at;
    return outbufReserve(o, OUTBUF_RESERVE_MAX) ? o->at : NULL;
}

/* The two decimal digits of a number below 100, the first one in the lower byte. */
ALWAYS_INLINE uint64_t twoDigits(uint32_t n) {
    hotCheck(n < 100);
    uint32_t tens = n * 103 >> 10;
    return (tens + ((n - tens * 10) << 8)) | 0x3030;
}

/* Writes the header and returns its end. May overwrite up to OUTBUF_RESERVE_MAX bytes. */
ALWAYS_INLINE char *putHead(char *at, unsigned char kind, uint64_t n) {
    if (n < 10) {
        storeU32(at, kind | (uint32_t)(n + '0') << 8 | 0x0a0d0000u);
        return at + 4;
    }
    if (n < 100) {
        storeU64(at, kind | twoDigits((uint32_t)n) << 8 | 0x0a0d000000ULL);
        return at + 5;
    }
    if (n < 10000) {
        uint32_t high = (uint32_t)n / 100;
        uint64_t digits = twoDigits(high) | twoDigits((uint32_t)n - high * 100) << 16;
        unsigned zeros = high < 10;
        digits = (digits >> 8 * zeros) << 8 | kind;
        unsigned len = 5 - zeros;
        storeU64(at, digits | 0x0a0dULL << 8 * len);
        return at + len + 2;
    }
    *at = (char)kind;
    at += 1 + numberPrintUint(at + 1, n);
    storeU16(at, 0x0a0d);
    return at + 2;
}

ALWAYS_INLINE char *putCrlf(char *at) {
    storeU16(at, 0x0a0d);
    return at + 2;
}

static void head(outbuf *o, char kind, uint64_t n) {
    hotCheck(n <= INT64_MAX);
    char *at = place(o);
    if (unlikely(at == NULL)) {
        sinkTakeHead(o, kind, n);
        return;
    }
    o->at = putHead(at, (unsigned char)kind, n);
}

/* Writes type byte, text and CRLF. CR and LF in the text become blanks, so that it stays one
 * line. */
static void line(outbuf *o, unsigned char byte, replyKind kind, slice text) {
    if (unlikely((size_t)(o->end - o->at) <= 1) && !outbufReserve(o, 2)) {
        sinkTakeLine(o, kind, text);
        return;
    }
    *o->at++ = (char)byte;
    while (text.len > 0) {
        size_t n = 0;
        while (n < text.len && text.ptr[n] != '\r' && text.ptr[n] != '\n') n++;
        outbufAppend(o, text.ptr, n);
        if (n == text.len) break;
        outbufAppend(o, " ", 1);
        text = sliceMake(text.ptr + n + 1, text.len - n - 1);
    }
    outbufAppend(o, "\r\n", 2);
}

void respStatus(outbuf *o, slice text) { line(o, '+', REPLY_STATUS, text); }

void respError(outbuf *o, slice text) { line(o, '-', REPLY_ERROR, text); }

/* All cases of respInteger(). */
static NO_INLINE void integerAny(outbuf *o, int64_t value) {
    char *at = place(o);
    if (unlikely(at == NULL)) {
        sinkTake(o, &(replyEvent){.kind = REPLY_INTEGER, .integer = value});
        return;
    }
    *at = ':';
    o->at = putCrlf(at + 1 + numberPrintInt(at + 1, value));
}

void respInteger(outbuf *o, int64_t value) {
    if (likely((uint64_t)value < 10000) && likely((size_t)(o->end - o->at) >= OUTBUF_RESERVE_MAX)) {
        o->at = putHead(o->at, ':', (uint64_t)value);
    } else {
        integerAny(o, value);
    }
}

/* Bulks that are long or cross the end of a block. */
static NO_INLINE void bulkInPieces(outbuf *o, slice bytes) {
    char *at = place(o);
    if (unlikely(at == NULL)) {
        sinkTakeText(o, REPLY_BULK, bytes);
        return;
    }
    o->at = putHead(at, '$', bytes.len);
    outbufAppend(o, bytes.ptr, bytes.len);
    outbufAppend(o, "\r\n", 2);
}

void respBulk(outbuf *o, slice bytes) {
    if (likely(bytes.len <= 64 && (size_t)(o->end - o->at) >= 64 + OUTBUF_RESERVE_MAX)) {
        char *at = putHead(o->at, '$', bytes.len);
        bytesCopyShort(at, bytes.ptr, bytes.len);
        o->at = putCrlf(at + bytes.len);
        return;
    }
    bulkInPieces(o, bytes);
}

void respBulkBlob(outbuf *o, blob *b, size_t offset, size_t len) {
    hotCheck(offset + len <= b->len);
    if (len < RESP_BORROW_MIN || unlikely(o->sink != NULL)) {
        respBulk(o, sliceMake(b->bytes + offset, len));
        return;
    }
    head(o, '$', len);
    outbufAppendBlob(o, b, offset, len);
    outbufAppend(o, "\r\n", 2);
}

void respNull(outbuf *o, int proto) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 2) {
        outbufAppend(o, "$-1\r\n", 5);
    } else {
        outbufAppend(o, "_\r\n", 3);
    }
}

void respNullArray(outbuf *o, int proto) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 2) {
        outbufAppend(o, "*-1\r\n", 5);
    } else {
        outbufAppend(o, "_\r\n", 3);
    }
}

/* Maps a RESP3 type to one that `proto` supports; 0 if nothing is to be written. */
static char kindOf(int proto, char kind, int64_t *count) {
    check(*count >= 0);
    if (proto != 2) return kind;
    if (kind == '%') *count *= 2;
    return kind == '|' ? 0 : '*';
}

static void aggregate(outbuf *o, int proto, char kind, int64_t count) {
    hotCheck(proto == 2 || proto == 3);
    kind = kindOf(proto, kind, &count);
    if (kind) head(o, kind, (uint64_t)count);
}

void respArray(outbuf *o, int64_t count) { aggregate(o, 3, '*', count); }
void respMap(outbuf *o, int proto, int64_t pairs) { aggregate(o, proto, '%', pairs); }
void respSet(outbuf *o, int proto, int64_t count) { aggregate(o, proto, '~', count); }
void respAttribute(outbuf *o, int proto, int64_t pairs) { aggregate(o, proto, '|', pairs); }
void respPush(outbuf *o, int proto, int64_t count) { aggregate(o, proto, '>', count); }

char *respRequest(int argc, const slice *argv, size_t *len) {
    outbuf encoded;
    outbufInit(&encoded);
    respArray(&encoded, argc);
    for (int i = 0; i < argc; i++) respBulk(&encoded, argv[i]);
    char *bytes = outbufCopy(&encoded, len);
    outbufClear(&encoded);
    return bytes;
}

void respDouble(outbuf *o, int proto, double value) {
    hotCheck(proto == 2 || proto == 3);
    char text[NUMBER_TEXT_MAX];
    size_t len = numberPrintDouble(text, value);
    char *at = place(o);
    if (unlikely(at == NULL)) {
        sinkTakeText(o, proto == 2 ? REPLY_BULK : REPLY_DOUBLE, sliceMake(text, len));
        return;
    }
    if (proto == 2) {
        at = putHead(at, '$', len);
    } else {
        *at++ = ',';
    }
    memcpy(at, text, len);
    o->at = putCrlf(at + len);
}

void respDoubleText(outbuf *o, int proto, slice text) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 2) {
        respBulk(o, text);
    } else {
        line(o, ',', REPLY_DOUBLE, text);
    }
}

void respBool(outbuf *o, int proto, bool value) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 2) {
        respInteger(o, value);
    } else {
        outbufAppend(o, value ? "#t\r\n" : "#f\r\n", 4);
    }
}

void respBigNumber(outbuf *o, int proto, slice digits) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 2) {
        respBulk(o, digits);
    } else {
        line(o, '(', REPLY_BIG_NUMBER, digits);
    }
}

void respVerbatim(outbuf *o, int proto, slice bytes, const char *format) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 2) {
        respBulk(o, bytes);
        return;
    }
    char *at = place(o);
    if (unlikely(at == NULL)) {
        replyEvent event = {.kind = REPLY_VERBATIM, .text = bytes, .integer = (int64_t)bytes.len};
        memcpy(event.format, format, 3);
        sinkTake(o, &event);
        return;
    }
    o->at = putHead(at, '=', bytes.len + 4);
    outbufAppend(o, format, 3);
    outbufAppend(o, ":", 1);
    outbufAppend(o, bytes.ptr, bytes.len);
    outbufAppend(o, "\r\n", 2);
}

respDeferred respDeferBegin(outbuf *o) {
    if (unlikely(o->sink != NULL)) sinkCollect(o);
    if (!outbufReserve(o, HEAD_MAX)) return (respDeferred){NULL, 0};
    respDeferred mark = {o->last, (uint32_t)(o->at - o->last->bytes)};
    o->at += HEAD_MAX;
    return mark;
}

/* Only the bytes after the mark move, to the left, so marks of enclosing containers remain valid.
 * At most one block is moved, once per container, whatever the size of the reply. */
void respDeferEnd(outbuf *o, respDeferred mark, char kind, int proto, int64_t count) {
    outblock *b = mark.block;
    if (b == NULL) return;
    char text[OUTBUF_RESERVE_MAX];
    kind = kindOf(proto, kind, &count);
    size_t len = kind ? (size_t)(putHead(text, (unsigned char)kind, (uint64_t)count) - text) : 0;
    size_t gap = HEAD_MAX - len;
    char *at = b->bytes + mark.offset;
    bool open = b == o->last && o->at != NULL;
    char *end = open ? o->at : b->bytes + b->used;
    check(end - at >= HEAD_MAX);
    memcpy(at, text, len);
    memmove(at + len, at + HEAD_MAX, (size_t)(end - at) - HEAD_MAX);
    if (open) {
        o->at -= gap;
    } else {
        b->used -= (uint32_t)gap;
        o->queued -= gap;
    }
}
