/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for libevent 2. */
#ifndef VALKEY_ADAPTERS_LIBEVENT_H
#define VALKEY_ADAPTERS_LIBEVENT_H

#include <event2/event.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

/* Bits of `state`: the block is freed when the handler that runs returns; a handler is running. */
#define VALKEY_LIBEVENT_DELETED 0x01
#define VALKEY_LIBEVENT_ENTERED 0x02

typedef struct valkeyLibeventEvents {
    valkeyAsyncContext *context;
    struct event *ev, *timer;
    struct event_base *base;
    short flags; /* watched: EV_READ, EV_WRITE */
    short state;
} valkeyLibeventEvents;

static void valkeyLibeventDestroy(valkeyLibeventEvents *e) {
    if (e->ev) event_free(e->ev);
    if (e->timer) event_free(e->timer);
    vk_free(e);
}

static void valkeyLibeventLeave(valkeyLibeventEvents *e) {
    e->state &= (short)~VALKEY_LIBEVENT_ENTERED;
    if (e->state & VALKEY_LIBEVENT_DELETED) valkeyLibeventDestroy(e);
}

static void valkeyLibeventHandler(evutil_socket_t fd, short event, void *arg) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)arg;
    (void)fd;
    e->state |= VALKEY_LIBEVENT_ENTERED;
    /* The first may stop the second, or delete both. */
    if (event & e->flags & EV_READ) valkeyAsyncHandleRead(e->context);
    if (!(e->state & VALKEY_LIBEVENT_DELETED) && (event & e->flags & EV_WRITE))
        valkeyAsyncHandleWrite(e->context);
    valkeyLibeventLeave(e);
}

static void valkeyLibeventTimeout(evutil_socket_t fd, short event, void *arg) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)arg;
    (void)fd;
    (void)event;
    e->state |= VALKEY_LIBEVENT_ENTERED;
    valkeyAsyncHandleTimeout(e->context);
    valkeyLibeventLeave(e);
}

static void valkeyLibeventUpdate(void *data, short flag, int on) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)data;
    short flags = (short)(on ? e->flags | flag : e->flags & ~flag);
    if (flags == e->flags) return;
    e->flags = flags;
    event_del(e->ev);
    if (!flags) return;
    event_assign(e->ev, e->base, e->context->c.fd, (short)(flags | EV_PERSIST),
                 valkeyLibeventHandler, e);
    event_add(e->ev, NULL);
}

static void valkeyLibeventAddRead(void *data) { valkeyLibeventUpdate(data, EV_READ, 1); }
static void valkeyLibeventDelRead(void *data) { valkeyLibeventUpdate(data, EV_READ, 0); }
static void valkeyLibeventAddWrite(void *data) { valkeyLibeventUpdate(data, EV_WRITE, 1); }
static void valkeyLibeventDelWrite(void *data) { valkeyLibeventUpdate(data, EV_WRITE, 0); }

static void valkeyLibeventCleanup(void *data) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)data;
    event_del(e->ev);
    event_del(e->timer);
    e->flags = 0;
    if (e->state & VALKEY_LIBEVENT_ENTERED) {
        e->state |= VALKEY_LIBEVENT_DELETED;
    } else {
        valkeyLibeventDestroy(e);
    }
}

/* An event of its own: a limit of the other event would begin anew with every read and write. */
static void valkeyLibeventSetTimeout(void *data, struct timeval tv) {
    event_add(((valkeyLibeventEvents *)data)->timer, &tv);
}

static inline int valkeyLibeventAttach(valkeyAsyncContext *ac, struct event_base *base) {
    valkeyLibeventEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyLibeventEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->base = base;
    e->ev = event_new(base, ac->c.fd, EV_PERSIST | EV_READ, valkeyLibeventHandler, e);
    e->timer = event_new(base, -1, 0, valkeyLibeventTimeout, e);
    if (!e->ev || !e->timer) {
        valkeyLibeventDestroy(e);
        return VALKEY_ERR;
    }
    ac->ev.data = e;
    ac->ev.addRead = valkeyLibeventAddRead;
    ac->ev.delRead = valkeyLibeventDelRead;
    ac->ev.addWrite = valkeyLibeventAddWrite;
    ac->ev.delWrite = valkeyLibeventDelWrite;
    ac->ev.cleanup = valkeyLibeventCleanup;
    ac->ev.scheduleTimer = valkeyLibeventSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyLibeventAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyLibeventAttach(ac, (struct event_base *)data);
}

static inline int valkeyClusterOptionsUseLibevent(valkeyClusterOptions *options,
                                                  struct event_base *base) {
    options->attach_fn = valkeyLibeventAttachAdapter;
    options->attach_data = base;
    return VALKEY_OK;
}

#endif
