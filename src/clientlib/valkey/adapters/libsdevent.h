/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for sd-event, the event loop of systemd. */
#ifndef VALKEY_ADAPTERS_LIBSDEVENT_H
#define VALKEY_ADAPTERS_LIBSDEVENT_H

#include <sys/epoll.h>

#include <systemd/sd-event.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

/* Bits of `state`: the block is freed when the handler that runs returns; a handler is running. */
#define VALKEY_LIBSDEVENT_DELETED 0x01
#define VALKEY_LIBSDEVENT_ENTERED 0x02

typedef struct valkeyLibsdeventEvents {
    valkeyAsyncContext *context;
    struct sd_event *event;
    struct sd_event_source *fdSource;
    struct sd_event_source *timerSource;
    int fd;
    short flags; /* watched: EPOLLIN, EPOLLOUT */
    short state;
} valkeyLibsdeventEvents;

static void valkeyLibsdeventDestroy(valkeyLibsdeventEvents *e) {
    e->fdSource = sd_event_source_disable_unref(e->fdSource);
    e->timerSource = sd_event_source_disable_unref(e->timerSource);
    sd_event_unref(e->event);
    vk_free(e);
}

static void valkeyLibsdeventLeave(valkeyLibsdeventEvents *e) {
    e->state &= (short)~VALKEY_LIBSDEVENT_ENTERED;
    if (e->state & VALKEY_LIBSDEVENT_DELETED) valkeyLibsdeventDestroy(e);
}

static int valkeyLibsdeventHandler(sd_event_source *source, int fd, uint32_t event, void *data) {
    valkeyLibsdeventEvents *e = (valkeyLibsdeventEvents *)data;
    (void)source;
    (void)fd;
    /* An error is found by reading or writing. */
    if (event & (EPOLLERR | EPOLLHUP)) event = EPOLLIN | EPOLLOUT;
    e->state |= VALKEY_LIBSDEVENT_ENTERED;
    if (event & (uint32_t)e->flags & EPOLLIN) valkeyAsyncHandleRead(e->context);
    if (!(e->state & VALKEY_LIBSDEVENT_DELETED) && (event & (uint32_t)e->flags & EPOLLOUT))
        valkeyAsyncHandleWrite(e->context);
    valkeyLibsdeventLeave(e);
    return 0;
}

static int valkeyLibsdeventTimeoutHandler(sd_event_source *source, uint64_t usec, void *data) {
    valkeyLibsdeventEvents *e = (valkeyLibsdeventEvents *)data;
    (void)source;
    (void)usec;
    e->state |= VALKEY_LIBSDEVENT_ENTERED;
    valkeyAsyncHandleTimeout(e->context);
    valkeyLibsdeventLeave(e);
    return 0;
}

static void valkeyLibsdeventUpdate(void *data, short flag, int on) {
    valkeyLibsdeventEvents *e = (valkeyLibsdeventEvents *)data;
    short flags = (short)(on ? e->flags | flag : e->flags & ~flag);
    if (flags == e->flags || (e->state & VALKEY_LIBSDEVENT_DELETED)) return;
    e->flags = flags;
    sd_event_source_set_io_events(e->fdSource, (uint32_t)flags);
    /* Errors would be reported even if nothing is watched. */
    sd_event_source_set_enabled(e->fdSource, flags ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void valkeyLibsdeventAddRead(void *data) { valkeyLibsdeventUpdate(data, EPOLLIN, 1); }
static void valkeyLibsdeventDelRead(void *data) { valkeyLibsdeventUpdate(data, EPOLLIN, 0); }
static void valkeyLibsdeventAddWrite(void *data) { valkeyLibsdeventUpdate(data, EPOLLOUT, 1); }
static void valkeyLibsdeventDelWrite(void *data) { valkeyLibsdeventUpdate(data, EPOLLOUT, 0); }

static void valkeyLibsdeventCleanup(void *data) {
    valkeyLibsdeventEvents *e = (valkeyLibsdeventEvents *)data;
    if (!(e->state & VALKEY_LIBSDEVENT_ENTERED)) {
        valkeyLibsdeventDestroy(e);
        return;
    }
    /* The descriptor is closed before the handler returns. */
    e->fdSource = sd_event_source_disable_unref(e->fdSource);
    e->timerSource = sd_event_source_disable_unref(e->timerSource);
    e->state |= VALKEY_LIBSDEVENT_DELETED;
}

static void valkeyLibsdeventSetTimeout(void *data, struct timeval tv) {
    valkeyLibsdeventEvents *e = (valkeyLibsdeventEvents *)data;
    uint64_t now, usec = (uint64_t)tv.tv_sec * 1000000 + (uint64_t)tv.tv_usec;
    if (sd_event_now(e->event, CLOCK_MONOTONIC, &now) < 0) return;
    if (e->timerSource) {
        sd_event_source_set_time(e->timerSource, now + usec);
        sd_event_source_set_enabled(e->timerSource, SD_EVENT_ONESHOT);
    } else {
        sd_event_add_time(e->event, &e->timerSource, CLOCK_MONOTONIC, now + usec, 1000,
                          valkeyLibsdeventTimeoutHandler, e);
    }
}

static inline int valkeyLibsdeventAttach(valkeyAsyncContext *ac, struct sd_event *event) {
    valkeyLibsdeventEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyLibsdeventEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->event = sd_event_ref(event);
    e->fd = ac->c.fd;
    if (sd_event_add_io(event, &e->fdSource, e->fd, 0, valkeyLibsdeventHandler, e) < 0) {
        valkeyLibsdeventDestroy(e);
        return VALKEY_ERR;
    }
    sd_event_source_set_enabled(e->fdSource, SD_EVENT_OFF);
    ac->ev.data = e;
    ac->ev.addRead = valkeyLibsdeventAddRead;
    ac->ev.delRead = valkeyLibsdeventDelRead;
    ac->ev.addWrite = valkeyLibsdeventAddWrite;
    ac->ev.delWrite = valkeyLibsdeventDelWrite;
    ac->ev.cleanup = valkeyLibsdeventCleanup;
    ac->ev.scheduleTimer = valkeyLibsdeventSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyLibsdeventAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyLibsdeventAttach(ac, (struct sd_event *)data);
}

static inline int valkeyClusterOptionsUseLibsdevent(valkeyClusterOptions *options,
                                                    struct sd_event *event) {
    options->attach_fn = valkeyLibsdeventAttachAdapter;
    options->attach_data = event;
    return VALKEY_OK;
}

#endif
