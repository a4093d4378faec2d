/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaces the reader of the network layer: feeds bytes to a request parser as resp.h requires,
 * moves and poisons its buffer between calls, takes batches of any length, returns some requests
 * unexecuted, and records the results. Shared by the C tests and the fuzzer. */
#ifndef TESTS_C_RESP_FEED_H
#define TESTS_C_RESP_FEED_H

#include <stdlib.h>
#include <string.h>

#include "resp/resp.h"

typedef struct feed {
    requestParser parser;
    requestLimits limits;
    const char *stream; /* all bytes fed so far, to compare requests' own bytes with */
    size_t fed;
    char *buf;
    size_t len, pos;
    char *log; /* "argc:len:bytes,len:bytes;" per request, the error at last */
    size_t log_len, log_cap;
    int requests;
    bool bad;
    bool random_batches; /* batches of random length, some given back */
    uint64_t random;
    size_t memory_max; /* the most requestParserMemory() said */
} feed;

static const requestLimits FEED_LIMITS = {512 * 1024 * 1024, INT32_MAX, true, false};

static uint64_t feedRandom(feed *f) {
    f->random ^= f->random << 13;
    f->random ^= f->random >> 7;
    f->random ^= f->random << 17;
    return f->random;
}

/* A new buffer of the minimum length, followed by bytes that look like more of a request. */
static void feedMove(feed *f, size_t room) {
    if (room == 0 && f->len > 4096 && feedRandom(f) % 4) return; /* moving is what costs */
    static const char trap[REQUEST_READ_SLACK] = "\r\n$1\r\nx\r\n*1\r\n$4\r\nPING\r\n\r\n\n";
    size_t drop = feedRandom(f) % 2 ? f->pos : 0;
    char *moved = malloc(f->len - drop + room + REQUEST_READ_SLACK);
    if (moved == NULL) abort();
    if (f->buf) memcpy(moved, f->buf + drop, f->len - drop);
    f->len -= drop;
    f->pos -= drop;
    memcpy(moved + f->len + room, trap, sizeof(trap));
    if (f->buf) memset(f->buf, 0xdd, f->len);
    free(f->buf);
    f->buf = moved;
}

static void feedLog(feed *f, const void *bytes, size_t len) {
    if (f->log_cap - f->log_len < len + 1) {
        f->log_cap = (f->log_len + len + 256) * 2;
        f->log = realloc(f->log, f->log_cap);
        if (f->log == NULL) abort();
    }
    if (len) memcpy(f->log + f->log_len, bytes, len);
    f->log_len += len;
    f->log[f->log_len] = 0;
}

static void feedInit(feed *f, const requestLimits *limits, uint64_t seed) {
    memset(f, 0, sizeof(*f));
    f->limits = *limits;
    f->random = seed * 2 + 1;
    feedLog(f, "", 0); /* never NULL */
    feedMove(f, 0);
}

static void feedClear(feed *f) {
    requestParserClear(&f->parser);
    free(f->buf);
    free(f->log);
}

static void feedLogNumber(feed *f, size_t n) {
    char text[24];
    char *at = text + sizeof(text);
    *--at = ':';
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    feedLog(f, at, (size_t)(text + sizeof(text) - at));
}

/* The request's own bytes, large blocks put back into their gaps, must be those of the stream. */
static void feedCheckRaw(const feed *f, const request *r) {
    size_t end = f->fed - (f->len - r->raw_end), at = 0, total = r->raw.len;
    if (r->raw.len == 0) return;
    for (int i = 0; i < r->large_count; i++) total += r->large[i].bytes->len;
    check(total <= end);
    const char *stream = f->stream + end - total;
    for (int i = 0; i < r->large_count; i++) {
        const requestLarge *l = &r->large[i];
        check(l->gap_at >= at);
        check(memcmp(stream, r->raw.ptr + at, l->gap_at - at) == 0);
        stream += l->gap_at - at;
        at = l->gap_at;
        check(memcmp(stream, l->bytes->bytes, l->bytes->len) == 0);
        stream += l->bytes->len;
        check(r->argv[l->arg].ptr == l->bytes->bytes);
        check(r->argv[l->arg].len == l->bytes->len);
    }
    check(memcmp(stream, r->raw.ptr + at, r->raw.len - at) == 0);
}

static void feedRun(feed *f, const request *r) {
    static volatile char seen;
    feedCheckRaw(f, r);
    /* Callers may look at a name in words of eight bytes. */
    for (int i = 0; i < r->argc; i++) {
        for (int j = 0; j < REQUEST_READ_SLACK; j++) seen = r->argv[i].ptr[j];
    }
    (void)seen; /* the sanitizer has looked on */
    check(r->argc > 0);
    feedLogNumber(f, (size_t)r->argc);
    for (int i = 0; i < r->argc; i++) {
        feedLogNumber(f, r->argv[i].len);
        feedLog(f, r->argv[i].ptr, r->argv[i].len);
        feedLog(f, ",", 1);
    }
    feedLog(f, ";", 1);
    f->requests++;
}

/* Parses and runs all requests in the buffer. */
static void feedParse(feed *f) {
    static requestBatch batch;
    requestStatus st;
    bool again;
    do {
        requestError error;
        int max =
            f->random_batches ? (int)(feedRandom(f) % REQUEST_BATCH_MAX) + 1 : REQUEST_BATCH_MAX;
        size_t start = f->pos;
        st = requestParse(&f->parser, f->buf, &f->len, &f->pos, &f->limits, &batch, max, &error);
        if (requestParserMemory(&f->parser) > f->memory_max) {
            f->memory_max = requestParserMemory(&f->parser);
        }
        int run = batch.count;
        if (f->random_batches && feedRandom(f) % 4 == 0)
            run = (int)(feedRandom(f) % ((uint64_t)run + 1));
        for (int i = 0; i < run; i++) feedRun(f, &batch.items[i]);
        for (int i = 1; i < batch.count; i++) check(batch.items[i].large_count == 0);
        again = batch.count > 0;
        if (run < batch.count) {
            requestPutBack(&f->parser, &batch.items[run]);
            f->pos = run == 0 ? start : batch.items[run - 1].raw_end;
            st = REQUEST_BATCH_FULL;
        }
        check(st != REQUEST_BATCH_FULL || again);
        requestBatchClear(&batch);
        if (st == REQUEST_BAD) {
            requestError same;
            feedLog(f, error.text, error.len);
            st = requestParse(&f->parser, f->buf, &f->len, &f->pos, &f->limits, &batch, 1, &same);
            check(st == REQUEST_BAD);
            check(batch.count == 0);
            check(same.len == error.len);
            check(memcmp(same.text, error.text, error.len) == 0);
            f->bad = true;
            return;
        }
        feedMove(f, 0);
    } while (again);
}

/* `n` more bytes arrive, of which the reader takes what it can at a time. */
static void feedBytes(feed *f, const char *bytes, size_t n) {
    f->stream = bytes - f->fed; /* the pieces of a stream are consecutive */
    while (n > 0 && !f->bad) {
        size_t cap, taken = n;
        char *tail = requestParserTail(&f->parser, &cap);
        if (tail) {
            check(cap > 0);
            taken = cap < n ? cap : n;
            memcpy(tail, bytes, taken);
            /* Like readv(): what follows the argument goes into the buffer in the same call. */
            bool both = taken == requestParserMissing(&f->parser) && feedRandom(f) % 2;
            requestParserCommit(&f->parser, taken);
            if (both) {
                feedMove(f, n - taken);
                memcpy(f->buf + f->len, bytes + taken, n - taken);
                f->len += n - taken;
                taken = n;
            }
        } else {
            feedMove(f, n);
            memcpy(f->buf + f->len, bytes, n);
            f->len += n;
        }
        f->fed += taken;
        bytes += taken;
        n -= taken;
        feedParse(f);
    }
}

/* All of `bytes` in pieces of random length, up to `piece_max`. */
static void feedPieces(feed *f, const char *bytes, size_t len, size_t piece_max) {
    size_t at = 0;
    while (at < len && !f->bad) {
        size_t n = (size_t)(feedRandom(f) % piece_max) + 1;
        if (n > len - at) n = len - at;
        feedBytes(f, bytes + at, n);
        at += n;
    }
}

#endif
