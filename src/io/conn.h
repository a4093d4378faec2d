/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: a connected byte stream over a descriptor, independent of its transport (TCP, Unix socket, TLS). It
 * is embedded in its owner; the event loop reports readiness with two callbacks. One thread at a time owns
 * it. */
#ifndef IO_CONN_H
#define IO_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/loop.h"

typedef struct conn conn;
typedef void connProc(conn *c);

typedef enum connState {
    CONN_NONE,
    CONN_ACCEPTING,
    CONN_CONNECTING,
    CONN_OPEN,
    CONN_CLOSED,
    CONN_FAILED
} connState;

/* Functions of a transport. The tables are read-only and shared. */
typedef struct connType {
    const char *name; /* "tcp", "unix", "tls" */
    /* Returns bytes read; 0 if the peer has closed; -1 with errno (EAGAIN: try later). */
    ssize_t (*read)(conn *c, void *dst, size_t cap);
    ssize_t (*readv)(conn *c, const struct iovec *iov, int count);
    ssize_t (*writev)(conn *c, const struct iovec *iov, int count);
    /* Completes an accepted connection (TLS handshake); `done` is called in state OPEN or FAILED. */
    status (*accept)(conn *c, connProc *done);
    void (*shutdown)(conn *c);
    void (*close)(conn *c);
    bool (*has_pending)(const conn *c); /* decoded bytes that were not read yet (TLS) */
} connType;

extern const connType connTcp;
extern const connType connUnix;

struct conn {
    const connType *type;
    loop *loop;
    connProc *on_read;
    connProc *on_write;
    int fd; /* -1 when closed */
    int last_errno;
    uint8_t state; /* connState */
    uint8_t flags; /* for the transport */
};

/* Initialises a connection with an accepted or connecting descriptor. CONNECTING becomes OPEN or FAILED (with
 * last_errno) just before the first callback. The process must ignore SIGPIPE. */
void connInit(conn *c, const connType *type, loop *l, int fd, connState state);
/* Sets or, with NULL, removes the callback for readability or writability. */
status connOnRead(conn *c, connProc *proc) MUST_USE;
status connOnWrite(conn *c, connProc *proc) MUST_USE;
/* Removes the connection from the loop and closes the descriptor; may be called twice. */
void connClose(conn *c);
static inline ssize_t connRead(conn *c, void *dst, size_t cap) {
    return c->type->read(c, dst, cap);
}
static inline ssize_t connReadv(conn *c, const struct iovec *iov, int n) {
    return c->type->readv(c, iov, n);
}
static inline ssize_t connWritev(conn *c, const struct iovec *iov, int n) {
    return c->type->writev(c, iov, n);
}

#endif
