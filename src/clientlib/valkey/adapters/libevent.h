/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for libevent 2. */
#ifndef VALKEY_ADAPTERS_LIBEVENT_H
#define VALKEY_ADAPTERS_LIBEVENT_H

#include <event2/event.h>

#include <valkey/async.h>

typedef struct valkeyLibeventEvents {
    valkeyAsyncContext *context;
    struct event_base *base;
    struct event *event, *timer;
    short watched;         /* EV_READ, EV_WRITE */
    char running, deleted; /* in a callback; freed when that returns */
} valkeyLibeventEvents;

static void valkeyLibeventFree(valkeyLibeventEvents *e) {
    if (e->event) event_free(e->event);
    if (e->timer) event_free(e->timer);
    vk_free(e);
}

static void valkeyLibeventHandler(evutil_socket_t fd, short event, void *arg) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)arg;
    (void)fd;
    e->running = 1;
    if ((event & EV_READ) && !e->deleted && (e->watched & EV_READ))
        valkeyAsyncHandleRead(e->context);
    if ((event & EV_WRITE) && !e->deleted && (e->watched & EV_WRITE))
        valkeyAsyncHandleWrite(e->context);
    e->running = 0;
    if (e->deleted) valkeyLibeventFree(e);
}

static void valkeyLibeventTimeout(evutil_socket_t fd, short event, void *arg) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)arg;
    (void)fd;
    (void)event;
    e->running = 1;
    valkeyAsyncHandleTimeout(e->context);
    e->running = 0;
    if (e->deleted) valkeyLibeventFree(e);
}

static void valkeyLibeventSet(void *data, short flag, int on) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)data;
    short watched = (short)(on ? e->watched | flag : e->watched & ~flag);
    if (watched == e->watched) return;
    e->watched = watched;
    event_del(e->event);
    if (!watched) return;
    event_assign(e->event, e->base, e->context->c.fd, (short)(watched | EV_PERSIST),
                 valkeyLibeventHandler, e);
    event_add(e->event, NULL);
}

static void valkeyLibeventAddRead(void *data) { valkeyLibeventSet(data, EV_READ, 1); }
static void valkeyLibeventDelRead(void *data) { valkeyLibeventSet(data, EV_READ, 0); }
static void valkeyLibeventAddWrite(void *data) { valkeyLibeventSet(data, EV_WRITE, 1); }
static void valkeyLibeventDelWrite(void *data) { valkeyLibeventSet(data, EV_WRITE, 0); }

static void valkeyLibeventCleanup(void *data) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)data;
    event_del(e->event);
    event_del(e->timer);
    if (e->running) {
        e->deleted = 1;
    } else {
        valkeyLibeventFree(e);
    }
}

/* An event of its own: a limit of the other event would begin anew with every read and write. */
static void valkeyLibeventSetTimeout(void *data, struct timeval tv) {
    valkeyLibeventEvents *e = (valkeyLibeventEvents *)data;
    event_add(e->timer, &tv);
}

static inline int valkeyLibeventAttach(valkeyAsyncContext *ac, struct event_base *base) {
    valkeyLibeventEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyLibeventEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->base = base;
    e->event = event_new(base, ac->c.fd, EV_PERSIST | EV_READ, valkeyLibeventHandler, e);
    e->timer = event_new(base, -1, 0, valkeyLibeventTimeout, e);
    if (!e->event || !e->timer) {
        valkeyLibeventFree(e);
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

#endif
