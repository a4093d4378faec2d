/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections: life cycle, readiness, handshakes. Transferring bytes is up to the connType.
 *
 * Invariant: the loop watches the descriptor for what wantedEvents() returns: during a handshake
 * the direction it waits for, else reading if and only if on_read is set, and writing if and only
 * if on_write is set; a detached connection is not watched. A callback may close the connection and
 * free the structure that contains it: nothing is accessed after it returns. One thread at a time
 * owns a connection. */
#include "io/conn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "io/net_addr.h"

struct connSecure {
    void *transport;       /* of the type */
    const connType *below; /* of connPushType(), else NULL */
    void *pushed;
    int wants;                             /* direction the handshake waits for; 0: lent */
    connLendProc *lend;                    /* may make steps of the handshake elsewhere, or NULL */
    bool lent;                             /* another thread makes a step */
    bool timed_out;                        /* ... and the time has passed meanwhile */
    uint64_t timeout_timer, pending_timer; /* id + 1; 0: none */
};

static struct {
    int64_t timeout_ms;
    int steps_per_turn;
} limits;

void connLimitHandshakes(int64_t timeout_ms, int steps_per_turn) {
    limits.timeout_ms = timeout_ms;
    limits.steps_per_turn = steps_per_turn;
}

/* ------------------------------------------------------------------ watching the descriptor */

static void readableProc(loop *l, int fd, void *arg, int mask);
static void writableProc(loop *l, int fd, void *arg, int mask);

static int wantedEvents(const conn *c) {
    hotCheck(c->state != CONN_HANDSHAKING || c->secure);
    if (c->state == CONN_HANDSHAKING) return c->secure->wants;
    return (c->on_read ? LOOP_READ : 0) | (c->on_write ? LOOP_WRITE : 0);
}

static status watchOne(conn *c, int direction, int wanted, loopFdProc *proc) {
    hotCheck(direction == LOOP_READ || direction == LOOP_WRITE);
    bool watched = loopWatched(c->loop, c->fd) & direction;
    if (!!(wanted & direction) == watched) return OK;
    if (watched) {
        loopUnwatch(c->loop, c->fd, direction);
        return OK;
    }
    status st = loopWatch(c->loop, c->fd, direction, proc, c);
    if (st != OK) c->last_errno = errno;
    return st;
}

/* Sets the priority of a connection that is watched. One that is not watched gets its priority when
 * watching begins. */
static void applyPriority(const conn *c) {
    if (loopWatched(c->loop, c->fd)) loopSetPriority(c->loop, c->fd, c->priority);
}

static status watch(conn *c) {
    int wanted = wantedEvents(c);
    status st = watchOne(c, LOOP_READ, wanted, readableProc);
    if (st == OK) st = watchOne(c, LOOP_WRITE, wanted, writableProc);
    if (unlikely(c->priority)) applyPriority(c);
    return st;
}

void connSetPriority(conn *c, bool on) {
    if (c->priority == on) return;
    c->priority = on;
    if (c->fd >= 0 && c->loop) applyPriority(c);
}

static status setCallback(conn *c, connProc **slot, connProc *proc) {
    if (c->fd < 0) return proc ? ERR_IO : OK;
    if (unlikely(!c->loop)) { /* detached */
        *slot = proc;
        return OK;
    }
    connProc *before = *slot;
    *slot = proc;
    status st = watch(c);
    if (st != OK) *slot = before;
    return st;
}

status connOnRead(conn *c, connProc *proc) {
    status st = setCallback(c, &c->on_read, proc);
    if (proc && st == OK && c->state == CONN_OPEN && c->type->has_pending &&
        c->type->has_pending(c))
        connNotePending(c);
    return st;
}

status connOnWrite(conn *c, connProc *proc) { return setCallback(c, &c->on_write, proc); }

/* ------------------------------------------------------------------ handshakes */

static void stopTimer(conn *c, uint64_t *timer) {
    if (*timer) loopRemoveTimer(c->loop, *timer - 1);
    *timer = 0;
}

/* Tells the owner that the connection is OPEN or FAILED: by the callback for `direction`, or else
 * the other. */
static void notify(conn *c, int direction) {
    hotCheck(direction == LOOP_READ || direction == LOOP_WRITE);
    connProc *proc = direction == LOOP_READ ? c->on_read : c->on_write;
    if (!proc) proc = c->on_read ? c->on_read : c->on_write;
    if (proc) proc(c); /* may free `c` */
}

static void finishHandshake(conn *c, connState state) {
    stopTimer(c, &c->secure->timeout_timer);
    c->state = (uint8_t)state;
    if (watch(c) != OK) c->state = CONN_FAILED; /* last_errno is set */
}

static int64_t handshakeTimedOut(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id;
    conn *c = arg;
    c->secure->timeout_timer = 0;
    if (c->secure->lent) {
        c->secure->timed_out = true;
        return LOOP_TIMER_END;
    }
    c->last_errno = ETIMEDOUT;
    finishHandshake(c, CONN_FAILED);
    notify(c, LOOP_READ);
    return LOOP_TIMER_END;
}

/* The stream is connected: starts the handshake, if the type has one. The first step runs when the
 * loop reports the descriptor as writable, which it already is. */
static void beginStream(conn *c) {
    hotCheck(c->fd >= 0);
    c->state = CONN_OPEN;
    if (likely(!c->type->handshake)) return;
    if (!c->secure) c->secure = memNew(connSecure);
    c->state = CONN_HANDSHAKING;
    c->secure->wants = LOOP_WRITE;
    if (limits.timeout_ms > 0)
        c->secure->timeout_timer =
            1 + loopAddTimer(c->loop, limits.timeout_ms, handshakeTimedOut, c);
}

/* False if the limit of steps in this turn of the loop is reached; the descriptor remains ready. */
static bool mayStep(const conn *c) {
    hotCheck(limits.steps_per_turn >= 0);
    static __thread struct {
        const loop *in;
        uint64_t turn;
        int steps;
    } made;
    if (limits.steps_per_turn == 0) return true;
    uint64_t turn = loopTurnNumber(c->loop);
    if (made.in != c->loop || made.turn != turn) {
        made.in = c->loop;
        made.turn = turn;
        made.steps = 0;
    }
    return made.steps++ < limits.steps_per_turn;
}

/* After a step, with its result. */
static void endStep(conn *c, status st) {
    if (st == ERR_AGAIN) {
        check(c->secure->wants == LOOP_READ || c->secure->wants == LOOP_WRITE);
        if (watch(c) != OK) finishHandshake(c, CONN_FAILED);
        return;
    }
    if (st != OK && c->last_errno == 0) c->last_errno = EPROTO;
    finishHandshake(c, st == OK ? CONN_OPEN : CONN_FAILED);
}

status connStepHandshake(conn *c, int *wants) { return c->type->handshake(c, wants); }

void connOnHandshake(conn *c, connLendProc *lend) { c->secure->lend = lend; }

void connLendHandshake(conn *c) {
    check(c->state == CONN_HANDSHAKING);
    c->secure->lent = true;
    c->secure->wants = 0;
    check(watch(c) == OK); /* it only removes */
}

void connReturnHandshake(conn *c, status st, int wants) {
    hotCheck(c->secure);
    hotCheck(c->secure->lent);
    c->secure->lent = false;
    c->secure->wants = wants;
    if (c->secure->timed_out) {
        c->last_errno = ETIMEDOUT;
        finishHandshake(c, CONN_FAILED);
    } else {
        endStep(c, st);
    }
    if (c->state != CONN_HANDSHAKING) notify(c, LOOP_READ);
}

/* An event of a connection that was not open. */
static NO_INLINE void advance(conn *c, int direction) {
    hotCheck(c->state == CONN_CONNECTING || c->state == CONN_HANDSHAKING);
    if (c->state == CONN_CONNECTING) {
        c->last_errno = netSocketError(c->fd);
        if (c->last_errno) {
            c->state = CONN_FAILED;
        } else {
            beginStream(c);
        }
    }
    if (c->state == CONN_HANDSHAKING) {
        if (c->secure->lend && c->secure->lend(c)) return;
        if (mayStep(c)) endStep(c, connStepHandshake(c, &c->secure->wants));
    }
    if (c->state != CONN_HANDSHAKING) notify(c, direction);
}

/* ------------------------------------------------------------------ events */

static void readableProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask;
    conn *c = arg;
    if (unlikely(c->state < CONN_OPEN)) {
        advance(c, LOOP_READ);
    } else {
        c->on_read(c);
    }
}

static void writableProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask;
    conn *c = arg;
    if (unlikely(c->state < CONN_OPEN)) {
        advance(c, LOOP_WRITE);
    } else {
        c->on_write(c);
    }
}

static int64_t readPending(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id;
    conn *c = arg;
    c->secure->pending_timer = 0;
    if (c->state == CONN_OPEN && c->on_read && c->type->has_pending(c)) c->on_read(c);
    return LOOP_TIMER_END;
}

/* ------------------------------------------------------------------ other threads */

void connDetach(conn *c) {
    check(!c->on_read);
    check(!c->on_write);
    if (c->secure) stopTimer(c, &c->secure->pending_timer);
    /* No event tells its next owner of bytes that the transport has received already. */
    c->unread = c->type->has_pending && c->type->has_pending(c);
    c->loop = NULL;
}

status connAttach(conn *c, loop *l) {
    check(!c->loop);
    c->loop = l;
    status st = watch(c);
    c->unread = false;
    if (st == OK && c->on_read && c->type->has_pending && c->type->has_pending(c))
        connNotePending(c);
    return st;
}

void connNotePending(conn *c) {
    if (!c->loop) { /* detached: its owner reads until nothing is left */
        c->unread = true;
        return;
    }
    if (!c->secure->pending_timer)
        c->secure->pending_timer = 1 + loopAddTimer(c->loop, 0, readPending, c);
}

/* ------------------------------------------------------------------ initialisation and closing */

void connInit(conn *c, const connType *type, loop *l, int fd, connState state) {
    check(fd >= 0);
    *c = (conn){.type = type, .loop = l, .fd = fd, .state = (uint8_t)state};
    if (likely(!type->handshake)) return;
    c->secure = memNew(connSecure);
    if (state != CONN_OPEN) return;
    beginStream(c);
    if (watch(c) != OK)
        finishHandshake(c, CONN_FAILED); /* registering the owner's callbacks fails, too */
}

status connWait(const conn *c, int direction, int ms) {
    hotCheck(c->fd >= 0);
    hotCheck(direction == LOOP_READ || direction == LOOP_WRITE);
    struct pollfd fd = {.fd = c->fd, .events = direction == LOOP_READ ? POLLIN : POLLOUT};
    int ready;
    do { ready = poll(&fd, 1, ms); } while (ready < 0 && errno == EINTR);
    return ready >= 0 ? OK : ERR_IO;
}

void connPushType(conn *c, const connType *type, void *state) {
    check(c->state == CONN_OPEN);
    if (!c->secure) c->secure = memNew(connSecure);
    check(!c->secure->below);
    c->secure->below = c->type;
    c->secure->pushed = state;
    c->type = type;
}

const connType *connBelow(const conn *c) { return c->secure->below; }
void *connPushed(const conn *c) { return c->secure->pushed; }

void *connTransport(const conn *c) { return c->secure->transport; }
void connSetTransport(conn *c, void *transport) { c->secure->transport = transport; }

const char *connErrorText(const conn *c) {
    return c->type->error_text && c->secure ? c->type->error_text(c) : strerror(c->last_errno);
}

static bool descriptors_are_copied;

void connSetCopied(bool copied) { descriptors_are_copied = copied; }

void connClose(conn *c) {
    if (c->fd < 0) return;
    loopUnwatch(c->loop, c->fd, LOOP_READ | LOOP_WRITE);
    c->on_read = NULL;
    c->on_write = NULL;
    if (unlikely(descriptors_are_copied) && c->state == CONN_OPEN) {
        c->type->shutdown(c);
        c->state = CONN_CLOSED; /* TLS has sent its close_notify */
    }
    c->type->close(c);
    if (c->secure) {
        stopTimer(c, &c->secure->timeout_timer);
        stopTimer(c, &c->secure->pending_timer);
        memFree(c->secure);
        c->secure = NULL;
    }
    c->fd = -1;
    c->state = CONN_CLOSED;
}
