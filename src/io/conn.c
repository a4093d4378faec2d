/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections: life and readiness. What carries the bytes is the connType's matter.
 *
 * Invariant: the loop watches the descriptor for reading exactly while on_read is set, and for
 * writing while on_write is. A callback may close the connection, and free what it is embedded
 * in: nothing is touched after it returns. One thread at a time owns a connection. */
#include "io/conn.h"

#include <errno.h>

#include "base/assert.h"
#include "io/net_addr.h"

void connInit(conn *c, const connType *type, loop *l, int fd, connState state) {
    check(fd >= 0);
    *c = (conn){.type = type, .loop = l, .fd = fd, .state = (uint8_t)state};
}

/* A dial has come to an end, good or bad. */
static void finishDial(conn *c) {
    int error = netSocketError(c->fd);
    c->last_errno = error;
    c->state = error ? CONN_FAILED : CONN_OPEN;
}

static void readableProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask;
    conn *c = arg;
    if (c->state == CONN_CONNECTING) finishDial(c);
    c->on_read(c);
}

static void writableProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask;
    conn *c = arg;
    if (c->state == CONN_CONNECTING) finishDial(c);
    c->on_write(c);
}

/* One direction: starts or stops watching if that changes. */
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
