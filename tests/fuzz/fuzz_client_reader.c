/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reply reader of the client library compared with itself: the same replies and the same error
 * from the whole input and from pieces that are read into its buffer. What is announced must not
 * determine what is allocated.
 *
 * Input: a byte that seeds the pieces, then the bytes from the server. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <valkey/valkey.h>

#include "base/assert.h"

/* Code that is not under test is excluded from coverage. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)
#endif

#include "compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REPLIES_MAX = 4096 };

/* Result of a run: a hash of all replies, and the end. */
typedef struct run {
    uint64_t hash;
    int replies, err;
    char errstr[128];
} run;

static void enter(run *run, const valkeyReply *r) {
    uint64_t shape[] = {(uint64_t)r->type, (uint64_t)r->integer, r->len, r->elements};
    check(r->type >= VALKEY_REPLY_STRING);
    check(r->type <= VALKEY_REPLY_VERB);
    mix(&run->hash, shape, sizeof(shape));
    mix(&run->hash, r->vtype, sizeof(r->vtype));
    mix(&run->hash, &r->dval, sizeof(r->dval));
    if (r->str) {
        check(r->str[r->len] == '\0');
        mix(&run->hash, r->str, r->len);
    }
    for (size_t i = 0; i < r->elements; i++) {
        check(r->element[i] != NULL);
        enter(run, r->element[i]);
    }
}

/* Takes the replies that are complete; false after an error. */
static bool take(run *out, valkeyReader *r) {
    void *reply;
    while (out->replies < REPLIES_MAX) {
        if (valkeyReaderGetReply(r, &reply) != VALKEY_OK) return false;
        if (!reply) break;
        enter(out, reply);
        freeReplyObject(reply);
        out->replies++;
    }
    return true;
}

static void finish(run *out, valkeyReader *r) {
    out->err = r->err;
    memcpy(out->errstr, r->errstr, sizeof(out->errstr));
    valkeyReaderFree(r);
}

static run readWhole(const uint8_t *data, size_t size) {
    run out = {.hash = 14695981039346656037ULL};
    valkeyReader *r = valkeyReaderCreate();
    check(valkeyReaderFeed(r, (const char *)data, size) == VALKEY_OK);
    take(&out, r);
    finish(&out, r);
    return out;
}

static run readPieces(const uint8_t *data, size_t size) {
    run out = {.hash = 14695981039346656037ULL};
    valkeyReader *r = valkeyReaderCreate();
    for (size_t at = 0; at < size;) {
        char *buf;
        size_t cap, piece = 1 + randomBelow(randomBelow(4) == 0 ? 4096 : 16);
        check(valkeyReaderGetReadBuf(r, &buf, &cap, 0) == VALKEY_OK);
        /* At most as much again as was received, and a buffer. */
        check(cap <= size + 64 * 1024);
        if (piece > cap) piece = cap;
        if (piece > size - at) piece = size - at;
        memcpy(buf, data + at, piece);
        valkeyReaderCommitRead(r, piece);
        at += piece;
        if (!take(&out, r)) break;
    }
    finish(&out, r);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    random_state = 0x9e3779b97f4a7c15ULL ^ data[0];
    run whole = readWhole(data + 1, size - 1), pieces = readPieces(data + 1, size - 1);
    check(whole.replies == pieces.replies);
    if (whole.replies == REPLIES_MAX) return 0; /* the rest was not looked at */
    check(whole.hash == pieces.hash);
    check(whole.err == pieces.err);
    check(strcmp(whole.errstr, pieces.errstr) == 0);
    return 0;
}

#ifdef __clang__
#pragma clang attribute pop
#endif
