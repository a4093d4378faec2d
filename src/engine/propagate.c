/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue between commands and sinks. Invariant: the queue is empty if no unit is open. An entry either borrows the
 * bytes of the single request being run (fast, without copying) or owns one block with its slices and bytes. */
#include "engine/propagate.h"

#include "base/base.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"

enum { SPANS_MAX = 2 * 8 + 1 };

typedef struct queued {
    int db_id;
    int argc;
    const slice *argv;
    const request *request; /* borrowed, or NULL */
    void *block;            /* owns argv and its bytes, or NULL */
} queued;

static struct {
    queued *items;
    int count, cap;
    int depth;
    bool unwrapped; /* see propagateUnwrapped() */
} queue;

static queued *push(int db_id) {
    if (queue.count == queue.cap) {
        queue.cap = queue.cap ? queue.cap * 2 : 16;
        queue.items = memRealloc(queue.items, (size_t)queue.cap * sizeof(queued));
    }
    queued *q = &queue.items[queue.count++];
    *q = (queued){.db_id = db_id};
    return q;
}

void propagateCopy(int db_id, int argc, const slice *argv) {
    if (!engineHot.sinks) return;
    size_t bytes = 0;
    for (int i = 0; i < argc; i++) bytes += argv[i].len;
    queued *q = push(db_id);
    slice *copy = memAlloc((size_t)argc * sizeof(slice) + bytes);
    char *at = (char *)(copy + argc);
    for (int i = 0; i < argc; i++) {
        memcpy(at, argv[i].ptr, argv[i].len);
        copy[i] = sliceMake(at, argv[i].len);
        at += argv[i].len;
    }
    q->argc = argc;
    q->argv = copy;
    q->block = copy;
}

void propagateRequest(int db_id, const request *r, int argc, const slice *argv) {
    if (!engineHot.sinks) return;
    if (queue.depth > 1) {
        propagateCopy(db_id, argc, argv);
        return;
    }
    queued *q = push(db_id);
    q->argc = argc;
    q->argv = argv;
    q->request = r;
}

/* The spans of a request's raw bytes: its buffer, interrupted by large arguments. Returns their number, 0 if it has
 * none or too many. */
static int requestSpans(const request *r, slice spans[SPANS_MAX]) {
    if (!r || r->raw.len == 0 || r->large_count * 2 + 1 > SPANS_MAX) return 0;
    int n = 0;
    size_t from = 0;
    for (int i = 0; i < r->large_count; i++) {
        size_t at = r->large[i].gap_at;
        spans[n++] = sliceMake(r->raw.ptr + from, at - from);
        spans[n++] = r->argv[r->large[i].arg];
        from = at;
    }
    spans[n++] = sliceMake(r->raw.ptr + from, r->raw.len - from);
    return n;
}

static void handOver(const queued *q) {
    slice spans[SPANS_MAX];
    propagated p = {
        .db_id = q->db_id, .slot = -1, .argc = q->argc, .argv = q->argv, .spans = spans};
    p.span_count = requestSpans(q->request, spans);
    if (p.span_count) {
        hooksSinks(&p);
        return;
    }
    outbuf encoded;
    outbufInit(&encoded);
    respArray(&encoded, q->argc);
    for (int i = 0; i < q->argc; i++) respBulk(&encoded, q->argv[i]);
    size_t len;
    char *bytes = outbufCopy(&encoded, &len);
    outbufClear(&encoded);
    spans[0] = sliceMake(bytes, len);
    p.span_count = 1;
    hooksSinks(&p);
    memFree(bytes);
}

/* MULTI and EXEC belong to no database: a SELECT that is due follows MULTI. */
static void handOverWord(slice word) {
    queued q = {.db_id = -1, .argc = 1, .argv = &word};
    handOver(&q);
}

void propagateUnitBegin(void) { queue.depth++; }

void propagateUnitEnd(void) {
    check(queue.depth > 0);
    if (--queue.depth > 0) return;
    bool wrap = queue.count > 1 && !queue.unwrapped;
    queue.unwrapped = false;
    if (wrap) handOverWord(SLICE("MULTI"));
    for (int i = 0; i < queue.count; i++) {
        handOver(&queue.items[i]);
        memFree(queue.items[i].block);
    }
    if (wrap) handOverWord(SLICE("EXEC"));
    queue.count = 0;
}

void propagateUnwrapped(void) {
    if (queue.depth == 1) queue.unwrapped = true;
}

int propagateUnitDepth(void) { return queue.depth; }
