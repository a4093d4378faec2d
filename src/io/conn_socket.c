/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two plain carriers: TCP and Unix sockets. They differ in nothing but their name once a
 * descriptor is there. Invariant: a call that moved no bytes and is not to be tried again leaves
 * the connection CLOSED (peer's end) or FAILED (last_errno). */
#include "io/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/sys.h"

/* Takes note of what a call returned. */
static ssize_t noteResult(conn *c, ssize_t result) {
    if (likely(result >= 0)) return result;
    c->last_errno = errno;
    if (errno != EAGAIN && errno != EWOULDBLOCK && c->state == CONN_OPEN) c->state = CONN_FAILED;
    return result;
}

/* The same for reads, where nothing means the peer's end. */
static ssize_t noteRead(conn *c, ssize_t result, bool had_room) {
    if (unlikely(result == 0) && had_room) c->state = CONN_CLOSED;
    return noteResult(c, result);
}

static ssize_t socketRead(conn *c, void *dst, size_t cap) {
    ssize_t got;
    do {
        got = sysCallsNow()->recv(c->fd, dst, cap, 0);
    } while (unlikely(got < 0) && errno == EINTR);
    return noteRead(c, got, cap > 0);
}

static ssize_t socketReadv(conn *c, const struct iovec *iov, int count) {
    ssize_t got;
    do {
        got = sysCallsNow()->readv(c->fd, iov, count);
    } while (unlikely(got < 0) && errno == EINTR);
    return noteRead(c, got, count > 0);
}

static ssize_t socketWritev(conn *c, const struct iovec *iov, int count) {
    ssize_t sent;
    do {
        sent = count == 1
                   ? sysCallsNow()->send(c->fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL)
                   : sysCallsNow()->writev(c->fd, iov, count);
    } while (unlikely(sent < 0) && errno == EINTR);
    return noteResult(c, sent);
}

/* Nothing is left to do for a plain socket once it is accepted. */
static status socketAccept(conn *c, connProc *done) {
    check(c->state == CONN_ACCEPTING);
    c->state = CONN_OPEN;
    done(c);
    return OK;
}

static void socketShutdown(conn *c) {
    /* It fails when the peer was faster, which is what we want of it. */
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void socketClose(conn *c) {
    /* The descriptor is gone whatever close() says, and unsent bytes are not its matter. */
    (void)close(c->fd);
}

static bool socketHasPending(const conn *c) {
    (void)c;
    return false;
}

#define SOCKET_TYPE(name) \
    { \
        name, socketRead, socketReadv, socketWritev, socketAccept, socketShutdown, socketClose, \
            socketHasPending \
    }

const connType connTcp = SOCKET_TYPE("tcp");
const connType connUnix = SOCKET_TYPE("unix");
