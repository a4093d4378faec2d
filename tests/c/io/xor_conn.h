/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A minimal connection type that behaves like TLS: bytes are combined with a key; both sides do a
 * handshake in two steps first; bytes are decoded in blocks that may be larger than what a reader
 * requests. The peer of a test is a plain descriptor: xorGreet(), xorSend(), xorReceive(). */
#ifndef TESTS_C_IO_XOR_CONN_H
#define TESTS_C_IO_XOR_CONN_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "io/conn.h"

enum { XOR_KEY = 0x5a, XOR_BLOCK = 48, XOR_HELLO = 'H', XOR_READY = 'R' };

typedef struct xorState {
    int step; /* of the handshake: hello received, ready sent */
    size_t at, len;
    char decoded[XOR_BLOCK];
} xorState;

static inline void xorBytes(char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) bytes[i] = (char)(bytes[i] ^ XOR_KEY);
}

static status xorHandshake(conn *c, int *wants) {
    xorState *x = connTransport(c);
    if (!x) connSetTransport(c, x = memNew(xorState));
    char byte = 0;
    if (x->step == 0) {
        ssize_t got = recv(c->fd, &byte, 1, 0);
        if (got < 0 && errno == EAGAIN) {
            *wants = LOOP_READ;
            return ERR_AGAIN;
        }
        if (got != 1 || byte != XOR_HELLO) return ERR_SYNTAX;
        x->step = 1;
        *wants = LOOP_WRITE; /* the answer is a step of its own */
        return ERR_AGAIN;
    }
    byte = XOR_READY;
    if (send(c->fd, &byte, 1, MSG_NOSIGNAL) == 1) return OK;
    *wants = LOOP_WRITE;
    return errno == EAGAIN ? ERR_AGAIN : ERR_IO;
}

static ssize_t xorRead(conn *c, void *dst, size_t cap) {
    xorState *x = connTransport(c);
    if (c->state != CONN_OPEN) {
        errno = c->state == CONN_HANDSHAKING ? EAGAIN : c->last_errno;
        return -1;
    }
    if (x->at == x->len) {
        ssize_t got = recv(c->fd, x->decoded, sizeof(x->decoded), 0);
        if (got == 0) c->state = CONN_CLOSED;
        if (got <= 0) return got;
        xorBytes(x->decoded, (size_t)got);
        x->at = 0;
        x->len = (size_t)got;
    }
    size_t taken = sizeMin(cap, x->len - x->at);
    memcpy(dst, x->decoded + x->at, taken);
    x->at += taken;
    if (x->at < x->len) connNotePending(c);
    return (ssize_t)taken;
}

static ssize_t xorReadv(conn *c, const struct iovec *iov, int count) {
    (void)count; /* fewer bytes than there is room for are fine */
    return xorRead(c, iov[0].iov_base, iov[0].iov_len);
}

static ssize_t xorWritev(conn *c, const struct iovec *iov, int count) {
    if (c->state != CONN_OPEN) {
        errno = c->state == CONN_HANDSHAKING ? EAGAIN : EPIPE;
        return -1;
    }
    ssize_t all = 0;
    for (int i = 0; i < count; i++) {
        char block[XOR_BLOCK];
        size_t len = sizeMin(iov[i].iov_len, sizeof(block));
        memcpy(block, iov[i].iov_base, len);
        xorBytes(block, len);
        ssize_t sent = send(c->fd, block, len, MSG_NOSIGNAL);
        if (sent < 0) return all ? all : sent;
        all += sent;
        if ((size_t)sent < iov[i].iov_len) break;
    }
    return all;
}

static void xorShutdown(conn *c) { (void)shutdown(c->fd, SHUT_RDWR); }

static void xorClose(conn *c) {
    memFree(connTransport(c));
    (void)close(c->fd);
}

static bool xorHasPending(const conn *c) {
    const xorState *x = connTransport(c);
    return x && x->at < x->len;
}

static const connType xorType = {.name = "xor",
                                 .read = xorRead,
                                 .readv = xorReadv,
                                 .writev = xorWritev,
                                 .shutdown = xorShutdown,
                                 .close = xorClose,
                                 .handshake = xorHandshake,
                                 .has_pending = xorHasPending};

/* The peer's side. */
static inline bool xorGreet(int fd) {
    const char hello = XOR_HELLO;
    return send(fd, &hello, 1, MSG_NOSIGNAL) == 1;
}
static inline bool xorSend(int fd, const char *bytes, size_t len) {
    char block[256];
    if (len > sizeof(block)) return false;
    memcpy(block, bytes, len);
    xorBytes(block, len);
    return send(fd, block, len, MSG_NOSIGNAL) == (ssize_t)len;
}
static inline ssize_t xorReceive(int fd, char *bytes, size_t cap) {
    ssize_t got = recv(fd, bytes, cap, MSG_DONTWAIT);
    if (got > 0) xorBytes(bytes, (size_t)got);
    return got;
}

#endif
