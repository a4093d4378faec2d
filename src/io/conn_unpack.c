/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A type of connections above another one, which decompresses what is read (conn_unpack.h).
 *
 * Invariant: bytes [at, end) of the buffer were received and are not decompressed. Up to the end of
 * the head, or of what turned out not to be one, received bytes are in `head` instead. */
#include "io/conn_unpack.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"

#ifdef HOSTILE_BUILD
enum { BUFFER_BYTES = 3 };
#else
enum { BUFFER_BYTES = 32 * 1024 };
#endif

typedef enum unpackStep { UNPACK_HEAD, UNPACK_PLAIN, UNPACK_FRAME, UNPACK_FAILED } unpackStep;

typedef struct unpacker {
    connUnpackProc *count;
    unpackStep step;
    compressCodec codec;
    decompressor *frame;
    bool is_full; /* the last step has filled its output, so there may be more */
    char head[COMPRESS_HEAD_LEN];
    size_t head_len, head_at; /* `head_at`: read already, of a head that is none */
    str received;             /* given at the start */
    size_t at, end;
    reason why;
    char buffer[BUFFER_BYTES];
} unpacker;

static status failUnpack(unpacker *u, const char *what, const char *detail) {
    u->step = UNPACK_FAILED;
    return reasonSet(&u->why, ERR_SYNTAX, "%s%s%s", what, *detail ? ": " : "", detail);
}

/* Fills the empty buffer. Returns what a read of the type below returns. */
static ssize_t fillBuffer(conn *c, unpacker *u) {
    hotCheck(u->at == u->end);
    ssize_t n;
    if (u->received.len) {
        n = (ssize_t)sizeMin(u->received.len, sizeof(u->buffer));
        memcpy(u->buffer, u->received.ptr, (size_t)n);
        memmove(u->received.ptr, u->received.ptr + n, u->received.len - (size_t)n);
        strCut(&u->received, u->received.len - (size_t)n);
    } else {
        n = connBelow(c)->read(c, u->buffer, sizeof(u->buffer));
        if (n > 0) u->count((size_t)n, 0, 0);
    }
    u->at = 0;
    u->end = n > 0 ? (size_t)n : 0;
    return n;
}

/* The bytes of the head so far are one, or the begin of one. */
static bool mayBeHead(const unpacker *u) {
    return memcmp(u->head, "VCS", sizeMin(u->head_len, COMPRESS_SIGNATURE_LEN)) == 0;
}

/* Moves bytes of the buffer to the head, until it is known what follows. */
static status readHead(unpacker *u) {
    while (u->step == UNPACK_HEAD && u->at < u->end) {
        u->head[u->head_len++] = u->buffer[u->at++];
        if (!mayBeHead(u)) {
            u->step = UNPACK_PLAIN;
            u->codec = COMPRESS_NONE;
        } else if (u->head_len == COMPRESS_HEAD_LEN) {
            reason detail;
            u->codec = compressHeadParse(u->head, COMPRESS_STREAM);
            if (u->codec == COMPRESS_NONE)
                return failUnpack(u, "Invalid or unsupported replication stream envelope", "");
            if (decompressorNew(u->codec, false, &u->frame, &detail) != OK)
                return failUnpack(u, "Unsupported replication stream envelope", detail.text);
            u->step = UNPACK_FRAME;
        }
    }
    return OK;
}

static status readFrame(unpacker *u, char *dst, size_t cap, size_t *got) {
    reason detail;
    bool done = false;
    size_t in = u->end - u->at;
    *got = cap;
    if (decompressorStep(u->frame, u->buffer + u->at, &in, dst, got, &done, &detail) != OK) {
        *got = 0;
        return failUnpack(u, "Corrupt compressed replication stream", detail.text);
    }
    u->at += in;
    u->is_full = *got == cap;
    if (done) return failUnpack(u, "The compressed replication stream has ended", "");
    return OK;
}

static void readPlain(unpacker *u, char *dst, size_t cap, size_t *got) {
    bool head = u->head_at < u->head_len;
    const char *from = head ? u->head + u->head_at : u->buffer + u->at;
    *got = sizeMin(cap, head ? u->head_len - u->head_at : u->end - u->at);
    memcpy(dst, from, *got);
    *(head ? &u->head_at : &u->at) += *got;
}

/* Bytes that can be read now, if any. */
static status readReady(unpacker *u, char *dst, size_t cap, size_t *got) {
    *got = 0;
    status st = u->step == UNPACK_HEAD ? readHead(u) : OK;
    if (st != OK) return st;
    if (u->step == UNPACK_PLAIN) {
        readPlain(u, dst, cap, got);
    } else if (u->step == UNPACK_FRAME && (u->at < u->end || u->is_full)) {
        return readFrame(u, dst, cap, got);
    }
    return OK;
}

static bool hasReady(const unpacker *u) {
    if (u->received.len || u->at < u->end) return true;
    return u->step == UNPACK_PLAIN ? u->head_at < u->head_len : u->is_full;
}

static ssize_t unpackRead(conn *c, void *dst, size_t cap) {
    unpacker *u = connPushed(c);
    hotCheck(cap > 0);
    size_t got = 0;
    while (u->step != UNPACK_FAILED && readReady(u, dst, cap, &got) == OK && got == 0) {
        if (u->at < u->end) continue; /* the frame has taken a part */
        ssize_t n = fillBuffer(c, u);
        if (n <= 0) return n;
    }
    if (u->step == UNPACK_FAILED && got == 0) {
        c->state = CONN_FAILED;
        errno = c->last_errno = EBADMSG;
        return -1;
    }
    u->count(0, got, u->frame ? got : 0);
    if (hasReady(u)) connNotePending(c);
    return (ssize_t)got;
}

static ssize_t unpackReadv(conn *c, const struct iovec *iov, int count) {
    (void)count; /* fewer bytes than there is room for are fine */
    return unpackRead(c, iov[0].iov_base, iov[0].iov_len);
}

static ssize_t unpackWritev(conn *c, const struct iovec *iov, int count) {
    return connBelow(c)->writev(c, iov, count);
}

static void unpackShutdown(conn *c) { connBelow(c)->shutdown(c); }

static void unpackClose(conn *c) {
    unpacker *u = connPushed(c);
    connBelow(c)->close(c);
    decompressorFree(u->frame);
    strFree(&u->received);
    memFree(u);
}

static bool unpackHasPending(const conn *c) {
    const connType *below = connBelow(c);
    return hasReady(connPushed(c)) || (below->has_pending && below->has_pending(c));
}

static const char *unpackError(const conn *c) {
    const unpacker *u = connPushed(c);
    const connType *below = connBelow(c);
    if (u->step == UNPACK_FAILED) return u->why.text;
    return below->error_text ? below->error_text(c) : strerror(c->last_errno);
}

static const connType connUnpacking = {.name = "compressed",
                                       .read = unpackRead,
                                       .readv = unpackReadv,
                                       .writev = unpackWritev,
                                       .shutdown = unpackShutdown,
                                       .close = unpackClose,
                                       .has_pending = unpackHasPending,
                                       .error_text = unpackError};

void connUnpack(conn *c, slice received, connUnpackProc *count) {
    unpacker *u = memNew(unpacker);
    u->count = count;
    u->received = strNew(received);
    connPushType(c, &connUnpacking, u);
    if (received.len && c->on_read) connNotePending(c);
}

bool connUnpacks(const conn *c) { return c->type == &connUnpacking; }

bool connUnpackCodec(const conn *c, compressCodec *codec) {
    const unpacker *u = connPushed(c);
    *codec = u->codec;
    return u->step == UNPACK_PLAIN || u->step == UNPACK_FRAME;
}
