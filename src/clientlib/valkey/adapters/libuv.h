/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for libuv 1. */
#ifndef VALKEY_ADAPTERS_LIBUV_H
#define VALKEY_ADAPTERS_LIBUV_H

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

typedef struct valkeyLibuvEvents {
    valkeyAsyncContext *context; /* NULL after cleanup */
    uv_poll_t handle;
    uv_timer_t timer;
    int events; /* watched: UV_READABLE, UV_WRITABLE */
    int open;   /* handles that are not closed yet */
} valkeyLibuvEvents;

static void valkeyLibuvPoll(uv_poll_t *handle, int status, int events) {
    valkeyLibuvEvents *e = (valkeyLibuvEvents *)handle->data;
    /* An error is found by reading and writing. */
    int ready = status != 0 ? e->events : events;
    if (e->context && (ready & UV_READABLE)) valkeyAsyncHandleRead(e->context);
    if (e->context && (ready & e->events & UV_WRITABLE)) valkeyAsyncHandleWrite(e->context);
}

static void valkeyLibuvTimeout(uv_timer_t *timer) {
    valkeyLibuvEvents *e = (valkeyLibuvEvents *)timer->data;
    if (e->context) valkeyAsyncHandleTimeout(e->context);
}

static void valkeyLibuvUpdate(void *data, int flag, int on) {
    valkeyLibuvEvents *e = (valkeyLibuvEvents *)data;
    int events = on ? e->events | flag : e->events & ~flag;
    if (events == e->events) return;
    e->events = events;
    if (events) {
        uv_poll_start(&e->handle, events, valkeyLibuvPoll);
    } else {
        uv_poll_stop(&e->handle);
    }
}

static void valkeyLibuvAddRead(void *data) { valkeyLibuvUpdate(data, UV_READABLE, 1); }
static void valkeyLibuvDelRead(void *data) { valkeyLibuvUpdate(data, UV_READABLE, 0); }
static void valkeyLibuvAddWrite(void *data) { valkeyLibuvUpdate(data, UV_WRITABLE, 1); }
static void valkeyLibuvDelWrite(void *data) { valkeyLibuvUpdate(data, UV_WRITABLE, 0); }

/* The block is freed when both handles are closed. */
static void valkeyLibuvClosed(uv_handle_t *handle) {
    valkeyLibuvEvents *e = (valkeyLibuvEvents *)handle->data;
    if (--e->open == 0) vk_free(e);
}

static void valkeyLibuvCleanup(void *data) {
    valkeyLibuvEvents *e = (valkeyLibuvEvents *)data;
    e->context = NULL;
    uv_poll_stop(&e->handle);
    uv_close((uv_handle_t *)&e->handle, valkeyLibuvClosed);
    uv_close((uv_handle_t *)&e->timer, valkeyLibuvClosed);
}

static void valkeyLibuvSetTimeout(void *data, struct timeval tv) {
    valkeyLibuvEvents *e = (valkeyLibuvEvents *)data;
    uint64_t ms = (uint64_t)tv.tv_sec * 1000 + ((uint64_t)tv.tv_usec + 999) / 1000;
    uv_update_time(e->timer.loop); /* uv_timer_start() counts from it */
    uv_timer_start(&e->timer, valkeyLibuvTimeout, ms, 0);
}

static inline int valkeyLibuvAttach(valkeyAsyncContext *ac, uv_loop_t *loop) {
    valkeyLibuvEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyLibuvEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    if (uv_poll_init(loop, &e->handle, ac->c.fd) != 0) {
        vk_free(e);
        return VALKEY_ERR;
    }
    uv_timer_init(loop, &e->timer);
    e->context = ac;
    e->handle.data = e->timer.data = e;
    e->open = 2;
    ac->ev.data = e;
    ac->ev.addRead = valkeyLibuvAddRead;
    ac->ev.delRead = valkeyLibuvDelRead;
    ac->ev.addWrite = valkeyLibuvAddWrite;
    ac->ev.delWrite = valkeyLibuvDelWrite;
    ac->ev.cleanup = valkeyLibuvCleanup;
    ac->ev.scheduleTimer = valkeyLibuvSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyLibuvAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyLibuvAttach(ac, (uv_loop_t *)data);
}

static inline int valkeyClusterOptionsUseLibuv(valkeyClusterOptions *options, uv_loop_t *loop) {
    options->attach_fn = valkeyLibuvAttachAdapter;
    options->attach_data = loop;
    return VALKEY_OK;
}

#endif
