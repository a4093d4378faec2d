/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for programs without an event loop: valkeyPollTick() handles what is ready on one
 * context. */
#ifndef VALKEY_ADAPTERS_POLL_H
#define VALKEY_ADAPTERS_POLL_H

#include <errno.h>
#include <poll.h>
#include <time.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

/* Bits of the result of valkeyPollTick(). */
#define VALKEY_POLL_HANDLED_READ 1
#define VALKEY_POLL_HANDLED_WRITE 2
#define VALKEY_POLL_HANDLED_TIMEOUT 4

typedef struct valkeyPollEvents {
    valkeyAsyncContext *context;
    int fd;
    char reading, writing;
    char in_tick;    /* valkeyPollTick() is running */
    char deleted;    /* freed when that returns */
    double deadline; /* 0: none */
} valkeyPollEvents;

static double valkeyPollGetNow(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double valkeyPollTimevalToDouble(struct timeval *tv) {
    return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static void valkeyPollAddRead(void *data) { ((valkeyPollEvents *)data)->reading = 1; }
static void valkeyPollDelRead(void *data) { ((valkeyPollEvents *)data)->reading = 0; }
static void valkeyPollAddWrite(void *data) { ((valkeyPollEvents *)data)->writing = 1; }
static void valkeyPollDelWrite(void *data) { ((valkeyPollEvents *)data)->writing = 0; }

static void valkeyPollCleanup(void *data) {
    valkeyPollEvents *e = (valkeyPollEvents *)data;
    if (e->in_tick) {
        e->deleted = 1;
    } else {
        vk_free(e);
    }
}

static void valkeyPollScheduleTimer(void *data, struct timeval tv) {
    ((valkeyPollEvents *)data)->deadline = valkeyPollGetNow() + valkeyPollTimevalToDouble(&tv);
}

/* Waits up to `timeout` seconds (negative: without limit) until something is ready on the context
 * and handles it. Returns VALKEY_POLL_HANDLED_*; the context may have been freed. */
static inline int valkeyPollTick(valkeyAsyncContext *ac, double timeout) {
    valkeyPollEvents *e = (valkeyPollEvents *)ac->ev.data;
    int handled = 0, ms = timeout < 0 ? -1 : (int)(timeout * 1000 + 0.999);
    struct pollfd p;
    if (!e) return 0;
    p.fd = e->fd;
    p.events = (short)((e->reading ? POLLIN : 0) | (e->writing ? POLLOUT : 0));
    p.revents = 0;
    if (e->deadline != 0) {
        double rest = e->deadline - valkeyPollGetNow();
        int rest_ms = rest > 0 ? (int)(rest * 1000 + 0.999) : 0;
        if (ms < 0 || rest_ms < ms) ms = rest_ms;
    }
    if (p.events == 0 && e->deadline == 0) return 0;
    if (poll(&p, 1, ms) < 0) return 0;
    e->in_tick = 1;
    /* An error is found by reading or writing. */
    if (e->reading && (p.revents & (POLLIN | POLLHUP | POLLERR))) {
        valkeyAsyncHandleRead(e->context);
        handled |= VALKEY_POLL_HANDLED_READ;
    }
    if (!e->deleted && e->writing && (p.revents & (POLLOUT | POLLHUP | POLLERR))) {
        valkeyAsyncHandleWrite(e->context);
        handled |= VALKEY_POLL_HANDLED_WRITE;
    }
    if (!e->deleted && e->deadline != 0 && valkeyPollGetNow() >= e->deadline) {
        e->deadline = 0;
        valkeyAsyncHandleTimeout(e->context);
        handled |= VALKEY_POLL_HANDLED_TIMEOUT;
    }
    e->in_tick = 0;
    if (e->deleted) vk_free(e);
    return handled;
}

static inline int valkeyPollAttach(valkeyAsyncContext *ac) {
    valkeyPollEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyPollEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->fd = ac->c.fd;
    ac->ev.data = e;
    ac->ev.addRead = valkeyPollAddRead;
    ac->ev.delRead = valkeyPollDelRead;
    ac->ev.addWrite = valkeyPollAddWrite;
    ac->ev.delWrite = valkeyPollDelWrite;
    ac->ev.cleanup = valkeyPollCleanup;
    ac->ev.scheduleTimer = valkeyPollScheduleTimer;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyPollAttachAdapter(valkeyAsyncContext *ac, void *data) {
    (void)data;
    return valkeyPollAttach(ac);
}

static inline int valkeyClusterOptionsUsePoll(valkeyClusterOptions *options) {
    options->attach_fn = valkeyPollAttachAdapter;
    options->attach_data = NULL;
    return VALKEY_OK;
}

#endif
