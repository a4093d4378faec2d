/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for ae, the event loop of Valkey and Redis; the program has ae.h. */
#ifndef VALKEY_ADAPTERS_AE_H
#define VALKEY_ADAPTERS_AE_H

#include <sys/types.h>

#include <ae.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

typedef struct valkeyAeEvents {
    valkeyAsyncContext *context;
    aeEventLoop *loop;
    int fd;
    int reading, writing;
    long long timer; /* -1: none */
} valkeyAeEvents;

static void valkeyAeReadEvent(aeEventLoop *loop, int fd, void *data, int mask) {
    (void)loop;
    (void)fd;
    (void)mask;
    valkeyAsyncHandleRead(((valkeyAeEvents *)data)->context);
}

static void valkeyAeWriteEvent(aeEventLoop *loop, int fd, void *data, int mask) {
    (void)loop;
    (void)fd;
    (void)mask;
    valkeyAsyncHandleWrite(((valkeyAeEvents *)data)->context);
}

static void valkeyAeAddRead(void *data) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    if (e->reading) return;
    e->reading = aeCreateFileEvent(e->loop, e->fd, AE_READABLE, valkeyAeReadEvent, e) == AE_OK;
}
static void valkeyAeDelRead(void *data) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    if (e->reading) aeDeleteFileEvent(e->loop, e->fd, AE_READABLE);
    e->reading = 0;
}
static void valkeyAeAddWrite(void *data) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    if (e->writing) return;
    e->writing = aeCreateFileEvent(e->loop, e->fd, AE_WRITABLE, valkeyAeWriteEvent, e) == AE_OK;
}
static void valkeyAeDelWrite(void *data) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    if (e->writing) aeDeleteFileEvent(e->loop, e->fd, AE_WRITABLE);
    e->writing = 0;
}

static int valkeyAeTimeout(aeEventLoop *loop, long long id, void *data) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    (void)loop;
    (void)id;
    e->timer = -1;
    valkeyAsyncHandleTimeout(e->context);
    return AE_NOMORE;
}

static void valkeyAeStopTimer(valkeyAeEvents *e) {
    if (e->timer >= 0) aeDeleteTimeEvent(e->loop, e->timer);
    e->timer = -1;
}

static void valkeyAeSetTimeout(void *data, struct timeval tv) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    long long ms = (long long)tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000;
    valkeyAeStopTimer(e);
    e->timer = aeCreateTimeEvent(e->loop, ms, valkeyAeTimeout, e, NULL);
}

static void valkeyAeCleanup(void *data) {
    valkeyAeEvents *e = (valkeyAeEvents *)data;
    valkeyAeDelRead(data);
    valkeyAeDelWrite(data);
    valkeyAeStopTimer(e);
    vk_free(e);
}

static inline int valkeyAeAttach(aeEventLoop *loop, valkeyAsyncContext *ac) {
    valkeyAeEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyAeEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->loop = loop;
    e->fd = ac->c.fd;
    e->timer = -1;
    ac->ev.data = e;
    ac->ev.addRead = valkeyAeAddRead;
    ac->ev.delRead = valkeyAeDelRead;
    ac->ev.addWrite = valkeyAeAddWrite;
    ac->ev.delWrite = valkeyAeDelWrite;
    ac->ev.cleanup = valkeyAeCleanup;
    ac->ev.scheduleTimer = valkeyAeSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyAeAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyAeAttach((aeEventLoop *)data, ac);
}

static inline int valkeyClusterOptionsUseAe(valkeyClusterOptions *options, aeEventLoop *loop) {
    options->attach_fn = valkeyAeAttachAdapter;
    options->attach_data = loop;
    return VALKEY_OK;
}

#endif
