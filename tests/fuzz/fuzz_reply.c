/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reply reader compared with itself: it must produce the same events from the whole input and
 * from random pieces in a buffer that moves, and in skip mode the same heads of replies.
 *
 * Input: a byte that seeds the pieces, then the bytes from the server. */
#include <stdlib.h>
#include <string.h>

#include "resp/resp.h"

/* Code that is not under test is excluded from coverage. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)
#endif

#include "compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Result of a run: a hash of all events, and the heads of complete replies. */
enum { HEADS_MAX = 4096 };
typedef struct run {
    uint64_t hash;
    size_t events, replies;
    replyReadStatus end;
    replyKind heads[HEADS_MAX];
    int64_t counts[HEADS_MAX];
} run;

static void enter(run *r, const replyEvent *e, replyEvent *head) {
    check(e->depth >= 0);
    check(e->depth <= REPLY_DEPTH_MAX);
    uint64_t shape[] = {(uint64_t)e->kind, (uint64_t)e->depth, e->complete, (uint64_t)e->integer,
                        e->text.len};
    mix(&r->hash, shape, sizeof(shape));
    mix(&r->hash, e->text.ptr, e->text.len);
    mix(&r->hash, &e->number, sizeof(e->number));
    mix(&r->hash, e->format, sizeof(e->format));
    r->events++;
    if (e->depth == 0 && e->kind != REPLY_ATTRIBUTE) *head = *e;
    if (!e->complete) return;
    if (r->replies < HEADS_MAX) {
        r->heads[r->replies] = head->kind;
        r->counts[r->replies] = head->kind == REPLY_ERROR ? 0 : head->integer;
    }
    r->replies++;
}

static void readAll(run *r, bool skip, const char *bytes, size_t len, size_t piece_max) {
    memset(r, 0, offsetof(run, heads));
    replyReader reader;
    replyEvent e, head = {.kind = REPLY_NULL};
    replyReaderInit(&reader);
    reader.skip = skip;
    reader.bulk_max = 100000;
    size_t have = 0, taken = 0;
    r->end = REPLY_NEED_MORE;
    while (have < len && r->end == REPLY_NEED_MORE) {
        size_t n = piece_max ? randomBelow(piece_max) + 1 : len;
        have = n < len - have ? have + n : len;
        size_t there = have - taken, pos = 0;
        char *buf = malloc(there ? there : 1); /* exact size: the reader must not read beyond it */
        if (buf == NULL) abort();
        memcpy(buf, bytes + taken, there);
        while ((r->end = replyRead(&reader, buf, there, &pos, &e)) == REPLY_EVENT)
            enter(r, &e, &head);
        check(pos <= there);
        taken += pos;
        free(buf);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static run whole, pieces, skipped;
    if (size < 2) return 0;
    const char *bytes = (const char *)data + 1;
    size_t len = size - 1;
    random_state = data[0] * 2654435761ULL + len + 1;
    readAll(&whole, false, bytes, len, 0);
    readAll(&pieces, false, bytes, len, (size_t)(data[0] % 60) + 1);
    check(whole.hash == pieces.hash);
    check(whole.events == pieces.events);
    check(whole.end == pieces.end);
    readAll(&skipped, true, bytes, len, (size_t)(data[0] % 60) + 1);
    /* Skipping validates less, so it may accept more. */
    check(skipped.replies >= whole.replies);
    if (whole.end != REPLY_BAD) check(skipped.replies == whole.replies);
    size_t count = whole.replies < HEADS_MAX ? whole.replies : HEADS_MAX;
    for (size_t i = 0; i < count; i++) {
        check(skipped.heads[i] == whole.heads[i]);
        check(skipped.counts[i] == whole.counts[i]);
    }
    return 0;
}

#ifdef __clang__
#pragma clang attribute pop
#endif
