/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The request parser compared with itself. It reads a stream at once, and again in random pieces:
 * in batches of random length, some of them returned, from a buffer that moves and is poisoned
 * between calls. Both must give the same requests and the same error, and each request's raw bytes
 * must equal those of the stream.
 *
 * Input: a byte of flags, then the stream. Bytes from 0x80 on are expanded to longer pieces, so
 * that a short input reaches arguments with blocks of their own. Best built with -DHOSTILE_BUILD
 * -DREQUEST_INLINE_MAX=100, which lowers the limits so that short inputs exceed them. */
#include <stdio.h>

/* Code that is not under test is excluded from coverage. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)
#endif
#include "../c/resp/feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAM_MAX = 120 * 1024 };
static char stream[STREAM_MAX];
static size_t stream_len;

static void put(const char *bytes, size_t len) {
    if (len > STREAM_MAX - stream_len) len = STREAM_MAX - stream_len;
    memcpy(stream + stream_len, bytes, len);
    stream_len += len;
}

static void fill(char byte, size_t len) {
    if (len > STREAM_MAX - stream_len) len = STREAM_MAX - stream_len;
    memset(stream + stream_len, byte, len);
    stream_len += len;
}

#define TEXT(text) put(text, sizeof(text) - 1)

static void putNumber(char kind, int number) {
    char text[24];
    put(text, (size_t)snprintf(text, sizeof(text), "%c%d\r\n", kind, number));
}

static void putPiece(uint8_t code) {
    const bool long_lines = REQUEST_INLINE_MAX <= 4096;
    switch (code) {
    case 0x80: TEXT("\r\n"); break;
    case 0x81: TEXT("*1\r\n$4\r\nPING\r\n"); break;
    case 0x82: TEXT("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n"); break;
    case 0x83: TEXT("$1\r\nx\r\n"); break;
    case 0x84: /* enough to be remembered */
        for (int i = 0; i <= REQUEST_KEEP_ARGS; i++) TEXT("$1\r\ny\r\n");
        break;
    case 0x85: putNumber('*', REQUEST_KEEP_ARGS + 1); break;
    case 0x86: putNumber('*', REQUEST_POOL_SLICES + 1); break;
    case 0x87: /* more than the pool holds */
        for (int i = 0; i <= REQUEST_POOL_SLICES; i++) TEXT("$1\r\nz\r\n");
        break;
    case 0x88: putNumber('$', REQUEST_LARGE_ARG); break;
    case 0x89: fill('v', REQUEST_LARGE_ARG); break;
    case 0x8a: putNumber('$', REQUEST_LARGE_ARG * 5 / 4); break;
    case 0x8b: fill('w', REQUEST_LARGE_ARG * 5 / 4); break;
    case 0x8c: fill('u', REQUEST_LARGE_ARG / 8); break;
    case 0x8d:
        if (long_lines) fill('1', REQUEST_INLINE_MAX - 6);
        break;
    case 0x8e:
        if (long_lines) fill(0, REQUEST_INLINE_MAX - 6);
        break;
    case 0x8f: TEXT("$536870912\r\n"); break;
    case 0x90: TEXT("*2147483647\r\n"); break;
    case 0x91: TEXT("GET \"a b\" 'c' d\r\n"); break;
    default: put((const char *)&code, 1);
    }
}

/* A line that is too long is refused as soon as that many bytes without an end have arrived, which
 * can be earlier with pieces. The requests before it must be equal even then. */
static bool tooBig(const feed *f) {
    static const char *const endings[] = {"too big inline request", "too big mbulk count string",
                                          "too big bulk count string"};
    for (int i = 0; i < 3; i++) {
        size_t len = strlen(endings[i]);
        if (f->log_len < len) continue;
        if (f->bad && memcmp(f->log + f->log_len - len, endings[i], len) == 0) return true;
    }
    return false;
}

/* Reads a number of the transcript and the ':' behind it. */
static size_t logNumber(const feed *f, size_t *at) {
    size_t n = 0;
    while (f->log[*at] != ':') n = n * 10 + (size_t)(f->log[(*at)++] - '0');
    ++*at;
    return n;
}

/* Offset of the end of the first `count` requests in the transcript. */
static size_t requestsEnd(const feed *f, int count) {
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        for (size_t args = logNumber(f, &at); args > 0; args--) {
            size_t len = logNumber(f, &at);
            at += len + 1;
        }
        at++;
    }
    return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    uint8_t flags = data[0];
    requestLimits limits = FEED_LIMITS;
    limits.authenticated = flags & 1;
    if (flags & 2) limits.bulk_max = 17000;
    if (flags & 4) limits.multibulk_max = 50;
    limits.trusted = flags & 32;
    stream_len = 0;
    uint64_t seed = 14695981039346656037ULL;
    for (size_t i = 1; i < size; i++) {
        seed = (seed ^ data[i]) * 1099511628211ULL;
        if (flags & 8 && data[i] >= 0x80) {
            putPiece(data[i]);
        } else {
            put((const char *)&data[i], 1);
        }
    }
    feed whole, pieces;
    feedInit(&whole, &limits, seed);
    feedBytes(&whole, stream, stream_len);
    feedInit(&pieces, &limits, seed);
    pieces.random_batches = flags & 16;
    static const size_t piece_max[] = {1, 7, 40, 300, 5000, 17000, 40000, 100000};
    size_t most = piece_max[(flags >> 5) % 8];
    if (most < stream_len / 8) most = stream_len / 8;
    feedPieces(&pieces, stream, stream_len, most);
    if (tooBig(&whole) || tooBig(&pieces)) {
        /* Only requests that both have read can be compared. */
        int common = whole.requests < pieces.requests ? whole.requests : pieces.requests;
        whole.log_len = requestsEnd(&whole, common);
        pieces.log_len = requestsEnd(&pieces, common);
    } else {
        check(whole.bad == pieces.bad);
    }
    check(whole.log_len == pieces.log_len);
    check(memcmp(whole.log, pieces.log, whole.log_len) == 0);
    feedClear(&whole);
    feedClear(&pieces);
    return 0;
}

#ifdef __clang__
#pragma clang attribute pop
#endif
