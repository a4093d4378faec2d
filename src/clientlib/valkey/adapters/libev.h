/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for libev 4. */
#ifndef VALKEY_ADAPTERS_LIBEV_H
#define VALKEY_ADAPTERS_LIBEV_H

#include <ev.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

typedef struct valkeyLibevEvents {
    valkeyAsyncContext *context;
    struct ev_loop *loop;
    int reading, writing;
    ev_io rev, wev;
    ev_timer timer;
} valkeyLibevEvents;

#if EV_MULTIPLICITY
#define VALKEY_LIBEV_LOOP(e) (e)->loop,
#define VALKEY_LIBEV_UNUSED() ((void)loop)
#else
#define VALKEY_LIBEV_LOOP(e)
#define VALKEY_LIBEV_UNUSED()
#endif

static void valkeyLibevReadEvent(EV_P_ ev_io *watcher, int revents) {
    VALKEY_LIBEV_UNUSED();
    (void)revents;
    valkeyAsyncHandleRead(((valkeyLibevEvents *)watcher->data)->context);
}

static void valkeyLibevWriteEvent(EV_P_ ev_io *watcher, int revents) {
    VALKEY_LIBEV_UNUSED();
    (void)revents;
    valkeyAsyncHandleWrite(((valkeyLibevEvents *)watcher->data)->context);
}

static void valkeyLibevAddRead(void *data) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)data;
    if (!e->reading) ev_io_start(VALKEY_LIBEV_LOOP(e) & e->rev);
    e->reading = 1;
}
static void valkeyLibevDelRead(void *data) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)data;
    if (e->reading) ev_io_stop(VALKEY_LIBEV_LOOP(e) & e->rev);
    e->reading = 0;
}
static void valkeyLibevAddWrite(void *data) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)data;
    if (!e->writing) ev_io_start(VALKEY_LIBEV_LOOP(e) & e->wev);
    e->writing = 1;
}
static void valkeyLibevDelWrite(void *data) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)data;
    if (e->writing) ev_io_stop(VALKEY_LIBEV_LOOP(e) & e->wev);
    e->writing = 0;
}

static void valkeyLibevStopTimer(void *data) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)data;
    ev_timer_stop(VALKEY_LIBEV_LOOP(e) & e->timer);
}

static void valkeyLibevTimeout(EV_P_ ev_timer *timer, int revents) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)timer->data;
    VALKEY_LIBEV_UNUSED();
    (void)revents;
    valkeyLibevStopTimer(e); /* once */
    valkeyAsyncHandleTimeout(e->context);
}

static void valkeyLibevCleanup(void *data) {
    valkeyLibevDelRead(data);
    valkeyLibevDelWrite(data);
    valkeyLibevStopTimer(data);
    vk_free(data);
}

static void valkeyLibevSetTimeout(void *data, struct timeval tv) {
    valkeyLibevEvents *e = (valkeyLibevEvents *)data;
    /* With repeat alone, the timer ends that long after ev_timer_again(). */
    e->timer.repeat = (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
    ev_timer_again(VALKEY_LIBEV_LOOP(e) & e->timer);
}

static inline int valkeyLibevAttach(EV_P_ valkeyAsyncContext *ac) {
    valkeyLibevEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyLibevEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
#if EV_MULTIPLICITY
    e->loop = loop;
#endif
    ev_io_init(&e->rev, valkeyLibevReadEvent, ac->c.fd, EV_READ);
    ev_io_init(&e->wev, valkeyLibevWriteEvent, ac->c.fd, EV_WRITE);
    ev_init(&e->timer, valkeyLibevTimeout);
    e->rev.data = e->wev.data = e->timer.data = e;
    ac->ev.data = e;
    ac->ev.addRead = valkeyLibevAddRead;
    ac->ev.delRead = valkeyLibevDelRead;
    ac->ev.addWrite = valkeyLibevAddWrite;
    ac->ev.delWrite = valkeyLibevDelWrite;
    ac->ev.cleanup = valkeyLibevCleanup;
    ac->ev.scheduleTimer = valkeyLibevSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyLibevAttachAdapter(valkeyAsyncContext *ac, void *data) {
#if EV_MULTIPLICITY
    return valkeyLibevAttach((struct ev_loop *)data, ac);
#else
    (void)data;
    return valkeyLibevAttach(ac);
#endif
}

static inline int valkeyClusterOptionsUseLibev(valkeyClusterOptions *options,
                                               struct ev_loop *loop) {
    options->attach_fn = valkeyLibevAttachAdapter;
    options->attach_data = loop;
    return VALKEY_OK;
}

#endif
