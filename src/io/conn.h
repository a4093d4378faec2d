/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: a connected byte stream over a descriptor, independent of its transport (TCP, Unix socket,
 * TLS). It is embedded in its owner; the event loop reports readiness with two callbacks. One
 * thread at a time owns it. */
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

/* In this order; no data can be read or written before CONN_OPEN. */
typedef enum connState {
    CONN_NONE,
    CONN_CONNECTING,
    CONN_HANDSHAKING,
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
    void (*shutdown)(conn *c);
    void (*close)(conn *c);
    /* The following may be NULL; plain sockets do not need them. */
    /* Advances the handshake. OK: the stream is open; ERR_AGAIN: call again when the descriptor is
     * ready for *wants, LOOP_READ or LOOP_WRITE; else it has failed, with last_errno set. */
    status (*handshake)(conn *c, int *wants);
    /* True if decoded bytes have not been read. A read() that leaves such bytes must call
     * connNotePending(). */
    bool (*has_pending)(const conn *c);
    /* Why it FAILED. NULL: the text of last_errno. */
    const char *(*error_text)(const conn *c);
} connType;

/* Additional state of connections with a handshake. */
typedef struct connSecure connSecure;

extern const connType connTcp;
extern const connType connUnix;

struct conn {
    const connType *type;
    loop *loop;
    connProc *on_read;
    connProc *on_write;
    connSecure *secure; /* NULL for types without a handshake */
    int fd;             /* -1 when closed */
    int last_errno;
    uint8_t state; /* connState */
    uint8_t flags; /* for the transport */
    bool unread;   /* detached: the transport has left bytes behind */
    bool priority; /* connSetPriority() */
    /* For the owner, not used here: three bytes that fit. */
    uint8_t notes, thread, in_thread;
};

/* Initialises a connection with an accepted (`state` CONN_OPEN) or connecting descriptor. If its
 * type has a handshake, it starts as soon as the descriptor is ready, even without callbacks. The
 * first callback is called when the connection becomes OPEN or FAILED (with last_errno). The
 * process must ignore SIGPIPE. */
void connInit(conn *c, const connType *type, loop *l, int fd, connState state);
/* Sets or, with NULL, removes the callback for readability or writability. */
status connOnRead(conn *c, connProc *proc) MUST_USE;
status connOnWrite(conn *c, connProc *proc) MUST_USE;
/* On: the loop serves it before others while it is watched (loopSetPriority()). */
void connSetPriority(conn *c, bool on);
/* The state of the transport (a TLS session), NULL until set; for types with a handshake. */
void *connTransport(const conn *c);
void connSetTransport(conn *c, void *transport);
/* Requests a call of on_read in the next turn even if the descriptor is not readable: for
 * has_pending(). */
void connNotePending(conn *c);
/* Puts a type above that of an open connection: its functions are called from now on, and use those
 * of connBelow(). `close` frees the state, and calls that of the type below. */
void connPushType(conn *c, const connType *type, void *state);
const connType *connBelow(const conn *c);
void *connPushed(const conn *c);
/* Limits on handshakes of all connections: how long one may take (ms; 0: any time), and how many
 * steps are made in one turn of a loop (0: any number), so that many new clients do not delay the
 * others. Must be called before threads start. */
void connLimitHandshakes(int64_t timeout_ms, int steps_per_turn);
/* For each step of the handshake `lend` is called: true if it has lent the connection to another
 * thread, which makes the step; else the step is made here. For a connection whose handshake has
 * not begun. */
typedef bool connLendProc(conn *c);
void connOnHandshake(conn *c, connLendProc *lend);
/* Called by `lend` before another thread may call connStepHandshake(), once; until
 * connReturnHandshake() the owner of the loop does nothing with the connection. */
void connLendHandshake(conn *c);
/* One step: a result of connType.handshake. ANY_THREAD. */
status connStepHandshake(conn *c, int *wants);
/* With the result of the step. Calls a callback if the handshake has ended, which may free `c`. */
void connReturnHandshake(conn *c, status st, int wants);
/* Takes an open connection without callbacks out of its loop: another thread may then own it and
 * use its transport. Until connAttach() callbacks are noted, but not called. */
void connDetach(conn *c);
/* Adds it to a loop; callbacks that were noted are called from now on. */
status connAttach(conn *c, loop *l) MUST_USE;
/* Waits without the loop until the connection is ready for `direction`, LOOP_READ or LOOP_WRITE, or
 * has failed, at most `ms` (-1: any time). The next read or write tells which. ERR_IO: it cannot
 * wait. */
status connWait(const conn *c, int direction, int ms);
/* Why the connection has FAILED, or its last call; borrowed until the next call. */
const char *connErrorText(const conn *c);
/* Removes the connection from the loop and closes the descriptor; may be called twice. */
void connClose(conn *c);
/* While forked processes have copies of all descriptors, closing one does not end the connection:
 * connClose() shuts it down first, unless it has FAILED. */
void connSetCopied(bool copied);
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
