/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: one connected byte stream over a descriptor, whatever carries it (TCP, Unix socket,
 * TLS). Embedded in its owner; readiness comes as two callbacks from the loop. One thread at a
 * time owns it. */
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

/* What a carrier must offer. The table of carriers is read-only and shared. */
typedef struct connType {
    const char *name; /* "tcp", "unix", "tls" */
    /* Bytes read; 0 at the peer's end; -1 with errno (EAGAIN: later). */
    ssize_t (*read)(conn *c, void *dst, size_t cap);
    ssize_t (*readv)(conn *c, const struct iovec *iov, int count);
    ssize_t (*writev)(conn *c, const struct iovec *iov, int count);
    /* Finishes what accept began (TLS handshake); `done` is called with state OPEN or FAILED. */
    status (*accept)(conn *c, connProc *done);
    void (*shutdown)(conn *c);
    void (*close)(conn *c);
    bool (*has_pending)(const conn *c); /* bytes decoded and not yet read (TLS) */
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
    uint8_t flags; /* of the carrier */
};

/* Takes over an accepted or dialled descriptor. A CONNECTING one becomes OPEN or FAILED (with
 * last_errno) right before its first callback. The process must ignore SIGPIPE. */
void connInit(conn *c, const connType *type, loop *l, int fd, connState state);
/* Sets or, with NULL, removes the procedure called when bytes can be read or written. */
status connOnRead(conn *c, connProc *proc) MUST_USE;
status connOnWrite(conn *c, connProc *proc) MUST_USE;
/* Removes it from the loop and closes the descriptor; twice is fine. */
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
