/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two plain transports, TCP and Unix sockets, which differ only in their names. Invariant: a
 * call that transferred nothing and should not be retried leaves the connection CLOSED (by the
 * peer) or FAILED (last_errno). */
#include "io/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/sys.h"

/* Updates the state of the connection from the result of a system call. */
static ssize_t noteResult(conn *c, ssize_t result) {
    if (likely(result >= 0)) return result;
    c->last_errno = errno;
    if (errno != EAGAIN && errno != EWOULDBLOCK && c->state == CONN_OPEN) c->state = CONN_FAILED;
    return result;
}

/* Like noteResult() for reads, where 0 means that the peer has closed. */
static ssize_t noteRead(conn *c, ssize_t result, bool cap_not_zero) {
    if (unlikely(result == 0) && cap_not_zero) c->state = CONN_CLOSED;
    return noteResult(c, result);
}

static ssize_t socketRead(conn *c, void *dst, size_t cap) {
    hotCheck(c->fd >= 0);
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

static void socketShutdown(conn *c) {
    /* Fails if the peer has closed first, which has the same effect. */
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void socketClose(conn *c) {
    /* The descriptor is closed whatever close() returns; unsent bytes do not matter. */
    (void)close(c->fd);
}

#define SOCKET_TYPE(its_name) \
    { \
        .name = its_name, .read = socketRead, .readv = socketReadv, .writev = socketWritev, \
        .shutdown = socketShutdown, .close = socketClose \
    }

const connType connTcp = SOCKET_TYPE("tcp");
const connType connUnix = SOCKET_TYPE("unix");
