/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for our own event loop (io/loop.h), for programs of this project; not installed. */
#ifndef CLIENTLIB_ADAPTER_LOOP_H
#define CLIENTLIB_ADAPTER_LOOP_H

#include <valkey/async.h>

#include "io/loop.h"

typedef struct valkeyLoopEvents {
    valkeyAsyncContext *context;
    loop *loop;
    uint64_t timer; /* 0: none */
} valkeyLoopEvents;

static void valkeyLoopReadable(loop *l, int fd, void *arg, int mask) {
    (void)l;
    (void)fd;
    (void)mask;
    valkeyAsyncHandleRead(((valkeyLoopEvents *)arg)->context);
}

static void valkeyLoopWritable(loop *l, int fd, void *arg, int mask) {
    (void)l;
    (void)fd;
    (void)mask;
    valkeyAsyncHandleWrite(((valkeyLoopEvents *)arg)->context);
}

static int64_t valkeyLoopTimeout(loop *l, uint64_t id, void *arg) {
    (void)l;
    (void)id;
    valkeyLoopEvents *e = (valkeyLoopEvents *)arg;
    e->timer = 0;
    valkeyAsyncHandleTimeout(e->context);
    return LOOP_TIMER_END;
}

static void valkeyLoopWatch(valkeyLoopEvents *e, int mask, loopFdProc *proc) {
    if (loopWatch(e->loop, e->context->c.fd, mask, proc, e) == OK) return;
    /* Without the event nothing would ever happen. */
    e->context->c.err = VALKEY_ERR_OOM;
}

static void valkeyLoopAddRead(void *data) { valkeyLoopWatch(data, LOOP_READ, valkeyLoopReadable); }
static void valkeyLoopAddWrite(void *data) {
    valkeyLoopWatch(data, LOOP_WRITE, valkeyLoopWritable);
}
static void valkeyLoopDelRead(void *data) {
    valkeyLoopEvents *e = data;
    loopUnwatch(e->loop, e->context->c.fd, LOOP_READ);
}
static void valkeyLoopDelWrite(void *data) {
    valkeyLoopEvents *e = data;
    loopUnwatch(e->loop, e->context->c.fd, LOOP_WRITE);
}

static void valkeyLoopStopTimer(valkeyLoopEvents *e) {
    if (e->timer) loopRemoveTimer(e->loop, e->timer);
    e->timer = 0;
}

static void valkeyLoopCleanup(void *data) {
    valkeyLoopEvents *e = data;
    loopUnwatch(e->loop, e->context->c.fd, LOOP_READ | LOOP_WRITE);
    valkeyLoopStopTimer(e);
    vk_free(e);
}

static void valkeyLoopSetTimeout(void *data, struct timeval tv) {
    valkeyLoopEvents *e = data;
    valkeyLoopStopTimer(e);
    e->timer = loopAddTimer(e->loop, (int64_t)tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000,
                            valkeyLoopTimeout, e);
}

static inline int valkeyLoopAttach(valkeyAsyncContext *ac, loop *l) {
    if (ac->ev.data) return VALKEY_ERR;
    valkeyLoopEvents *e = vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->loop = l;
    ac->ev.data = e;
    ac->ev.addRead = valkeyLoopAddRead;
    ac->ev.delRead = valkeyLoopDelRead;
    ac->ev.addWrite = valkeyLoopAddWrite;
    ac->ev.delWrite = valkeyLoopDelWrite;
    ac->ev.cleanup = valkeyLoopCleanup;
    ac->ev.scheduleTimer = valkeyLoopSetTimeout;
    return VALKEY_OK;
}

#endif
