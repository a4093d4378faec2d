/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients: connecting, sending batches, checking replies. Replies are parsed, counted and compared
 * with the class that their command has, but never built. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "tools/benchmark/run_priv.h"

enum { REPEATED_MAX = 256 };

static void onReadable(loop *l, int fd, void *arg, int mask);
static void onWritable(loop *l, int fd, void *arg, int mask);

/* ------------------------------------------------------------------ failures */

static void failConnection(const client *c) {
    fprintf(stderr, "Error: %s\n", c->ctx->errstr);
    exit(1);
}

static void failReply(const client *c, slice text) {
    if (c->owner->run->options->cluster) {
        fprintf(stderr, "Error from server %s: %.*s\n", targetName(&c->node->at), (int)text.len,
                text.ptr);
    } else {
        fprintf(stderr, "Error from server: %.*s\n", (int)text.len, text.ptr);
    }
    exit(1);
}

/* ------------------------------------------------------------------ sending */

static void watch(client *c, int mask, loopFdProc *proc) {
    if (loopWatch(c->owner->loop, c->ctx->fd, mask, proc, c) != OK) {
        fprintf(stderr, "Error: cannot watch a connection: %s\n", strerror(errno));
        exit(1);
    }
}

static void flush(client *c) {
    while (c->sent < c->len) {
        ssize_t n = valkeyWriteBytes(c->ctx, c->request + c->sent, c->len - c->sent);
        if (n < 0) failConnection(c);
        if (n == 0) break;
        c->sent += (size_t)n;
    }
    bool writing = c->sent < c->len;
    if (writing == c->writing) return;
    c->writing = writing;
    if (writing) {
        watch(c, LOOP_WRITE, onWritable);
    } else {
        loopUnwatch(c->owner->loop, c->ctx->fd, LOOP_WRITE);
    }
}

void clientSend(client *c, int64_t start_ns) {
    run *r = c->owner->run;
    c->phase = atomic_load_explicit(&r->phase, memory_order_relaxed);
    c->start_ns = start_ns;
    c->pending = r->batch;
    c->class_next = 0;
    batchFill(c);
    c->sent = c->prefixed ? c->prefix_len : 0;
    c->prefixed = true;
    flush(c);
}

/* True if another batch is to be sent; counts it. */
static bool claimBatch(run *r, int64_t now_ns) {
    if (atomic_load_explicit(&r->stop, memory_order_relaxed)) return false;
    if (r->options->idle) return true;
    if (atomic_load_explicit(&r->phase, memory_order_acquire) == 0) return true; /* warming up */
    if (r->options->duration_s > 0)
        return now_ns < atomic_load_explicit(&r->end_ns, memory_order_relaxed);
    return atomic_fetch_add_explicit(&r->issued, r->batch, memory_order_relaxed) <
           r->options->requests;
}

void clientNext(client *c, int64_t now_ns) {
    int64_t start_ns;
    if (!claimBatch(c->owner->run, now_ns)) {
        clientClose(c);
    } else if (paceTake(c, now_ns, &start_ns)) {
        clientSend(c, start_ns);
    }
}

static void onWritable(loop *l, int fd, void *arg, int mask) {
    (void)l;
    (void)fd;
    (void)mask;
    flush(arg);
}

/* ------------------------------------------------------------------ replies */

static bool classMatches(replyClass expected, replyKind kind) {
    switch (expected) {
    case CLASS_STATUS: return kind == REPLY_STATUS;
    case CLASS_INTEGER: return kind == REPLY_INTEGER;
    case CLASS_BULK: return kind == REPLY_BULK || kind == REPLY_NULL;
    case CLASS_AGGREGATE: return kind >= REPLY_ARRAY && kind <= REPLY_SET;
    default: return true;
    }
}

/* A reply that is an error. A slot that has moved is not one, if commands follow the slots of their
 * node. */
static void errorReply(client *c, slice text) {
    run *r = c->owner->run;
    bool moved = text.len > 6 && !memcmp(text.ptr, "MOVED ", 6);
    if (!moved || !r->load->has_tags) failReply(c, text);
    atomic_store_explicit(&r->slots_changed, true, memory_order_relaxed);
}

static void checkReply(client *c, const replyEvent *e) {
    if (e->kind == REPLY_PUSH) return;
    if (c->prefix_pending > 0) {
        if (e->kind == REPLY_ERROR) failReply(c, e->text);
        c->prefix_pending--;
        return;
    }
    if (c->pending == 0) failReply(c, SLICE("a reply that belongs to no request"));
    replyClass expected = (replyClass)c->classes[c->class_next];
    if (++c->class_next == c->class_count) c->class_next = 0;
    c->pending--;
    if (e->kind == REPLY_ERROR) {
        errorReply(c, e->text);
    } else if (!classMatches(expected, e->kind)) {
        failReply(c, SLICE("a reply of another type than that of the command"));
    }
}

/* Keeps the bytes of an incomplete reply. */
static void keepRest(client *c, const char *bytes, size_t len) {
    if (len > c->rest_cap) {
        c->rest_cap = len * 2;
        c->rest = memRealloc(c->rest, c->rest_cap);
    }
    if (len > 0) memcpy(c->rest, bytes, len);
    c->rest_len = len;
}

/* Checks the replies in the worker's buffer. A reply with the same bytes as the one before needs no
 * parsing. */
static void parse(client *c, size_t len) {
    const char *buf = c->owner->buffer;
    size_t pos = 0, last_at = 0, last_len = 0;
    replyEvent e;
    for (;;) {
        if (last_len > 0 && len - pos >= last_len && !memcmp(buf + pos, buf + last_at, last_len)) {
            pos += last_len;
            checkReply(c, &e);
            continue;
        }
        size_t from = pos;
        replyReadStatus st =
            pos < len ? replyRead(&c->reader, buf, len, &pos, &e) : REPLY_NEED_MORE;
        if (st == REPLY_NEED_MORE) break;
        if (st == REPLY_BAD) {
            fprintf(stderr, "Error: Protocol error: %s\n", c->reader.error);
            exit(1);
        }
        /* The first one of a read may have begun in the read before. */
        last_len = from > 0 && pos - from <= REPEATED_MAX ? pos - from : 0;
        last_at = from;
        checkReply(c, &e);
    }
    keepRest(c, buf + pos, len - pos);
}

/* Counts the replies that came with one read. */
static void record(client *c, int replies, int64_t now_ns) {
    worker *w = c->owner;
    if (replies == 0 || c->phase != atomic_load_explicit(&w->run->phase, memory_order_relaxed))
        return;
    int64_t us = (now_ns - c->start_ns) / 1000;
    if (us < 0) us = 0;
    if (c->phase == 1) latencyRecord(&w->latencies, us, (uint64_t)replies);
    atomic_fetch_add_explicit(&w->finished, replies, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->latency_us, us * replies, memory_order_relaxed);
}

static void disconnect(client *c) {
    loopUnwatch(c->owner->loop, c->ctx->fd, LOOP_READ | LOOP_WRITE);
    valkeyFree(c->ctx);
    c->ctx = NULL;
}

/* All replies of the batch have come. */
static void batchDone(client *c, int64_t now_ns) {
    if (c->owner->run->options->keep_alive) {
        clientNext(c, now_ns);
        return;
    }
    const run *r = c->owner->run;
    bool counted =
        r->options->duration_s == 0 && atomic_load_explicit(&r->phase, memory_order_relaxed) == 1;
    if (counted && atomic_load_explicit(&r->issued, memory_order_relaxed) >= r->options->requests) {
        clientClose(c);
        return;
    }
    disconnect(c);
    clientOpen(c);
}

static void onReadable(loop *l, int fd, void *arg, int mask) {
    (void)l;
    (void)fd;
    (void)mask;
    client *c = arg;
    worker *w = c->owner;
    int before = c->pending;
    bool more;
    do {
        if (c->rest_len > READ_SIZE / 2) failReply(c, SLICE("a line that is too long"));
        size_t rest = c->rest_len;
        if (rest > 0) memcpy(w->buffer, c->rest, rest);
        ssize_t n = c->ctx->funcs->read(c->ctx, w->buffer + rest, READ_SIZE - rest);
        if (n < 0) failConnection(c);
        /* TLS may hold more that is decoded already. */
        more = n > 0 && (c->ctx->privctx || (size_t)n == READ_SIZE - rest);
        if (n > 0) parse(c, rest + (size_t)n);
    } while (more);
    if (before == c->pending) return;
    int64_t now = clockMonoNs();
    record(c, before - c->pending, now);
    if (c->pending == 0) batchDone(c, now);
}

/* ------------------------------------------------------------------ life */

/* The socket of a connection attempt is ready. */
static void onConnected(loop *l, int fd, void *arg, int mask) {
    (void)mask;
    client *c = arg;
    run *r = c->owner->run;
    if (!targetEstablish(r->options, &c->node->at, c->ctx, &c->secured)) return;
    loopUnwatch(l, fd, LOOP_WRITE);
    watch(c, LOOP_READ, onReadable);
    if (r->options->idle) {
        atomic_fetch_add_explicit(&c->owner->finished, 1, memory_order_relaxed);
        return;
    }
    clientNext(c, clockMonoNs());
}

void clientOpen(client *c) {
    const run *r = c->owner->run;
    long node = c->node - r->target->nodes;
    c->ctx = targetBegin(r->options, &c->node->at);
    replyReaderInit(&c->reader);
    c->reader.skip = true;
    c->rest_len = 0;
    c->secured = c->writing = c->prefixed = false;
    c->pending = 0;
    c->prefix_pending = r->prefix_commands[node];
    if (!c->request) {
        c->prefix_len = r->prefix_lens[node];
        c->cap = c->prefix_len + 1;
        c->request = memDup(r->prefixes[node], c->prefix_len);
        if (r->load) batchInit(c);
    }
    watch(c, LOOP_WRITE, onConnected);
}

void clientClose(client *c) {
    if (!c->ctx) return;
    disconnect(c);
    if (--c->owner->active == 0) loopStop(c->owner->loop);
}
