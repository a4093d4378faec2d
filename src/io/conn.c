/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections: life cycle and readiness. Transferring bytes is up to the connType.
 *
 * Invariant: the loop watches the descriptor for reading if and only if on_read is set, and for writing if
 * and only if on_write is set. A callback may close the connection and free the structure that contains it:
 * nothing is accessed after it returns. One thread at a time owns a connection. */
#include "io/conn.h"

#include <errno.h>

#include "base/assert.h"
#include "io/net_addr.h"

void connInit(conn *c, const connType *type, loop *l, int fd, connState state) {
    check(fd >= 0);
    *c = (conn){.type = type, .loop = l, .fd = fd, .state = (uint8_t)state};
}

/* A connect has finished, successfully or not. */
static void finishConnect(conn *c) {
    int error = netSocketError(c->fd);
    c->last_errno = error;
    c->state = error ? CONN_FAILED : CONN_OPEN;
}

static void readableProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask;
    conn *c = arg;
    if (c->state == CONN_CONNECTING) finishConnect(c);
    c->on_read(c);
}

static void writableProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask;
    conn *c = arg;
    if (c->state == CONN_CONNECTING) finishConnect(c);
    c->on_write(c);
}

/* For one direction: starts or stops watching if that changes. */
static status watch(conn *c, int direction, connProc **slot, connProc *proc, loopFdProc *ready) {
    if (c->fd < 0) return proc ? ERR_IO : OK;
    if (proc && !*slot) {
        status st = loopWatch(c->loop, c->fd, direction, ready, c);
        if (st != OK) {
            c->last_errno = errno;
            return st;
        }
    }
    if (!proc && *slot) loopUnwatch(c->loop, c->fd, direction);
    *slot = proc;
    return OK;
}

status connOnRead(conn *c, connProc *proc) {
    return watch(c, LOOP_READ, &c->on_read, proc, readableProc);
}

status connOnWrite(conn *c, connProc *proc) {
    return watch(c, LOOP_WRITE, &c->on_write, proc, writableProc);
}

void connClose(conn *c) {
    if (c->fd < 0) return;
    if (c->on_read || c->on_write) loopUnwatch(c->loop, c->fd, LOOP_READ | LOOP_WRITE);
    c->on_read = NULL;
    c->on_write = NULL;
    c->type->close(c);
    c->fd = -1;
    c->state = CONN_CLOSED;
}
