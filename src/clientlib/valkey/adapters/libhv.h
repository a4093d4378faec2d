/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for libhv 1. */
#ifndef VALKEY_ADAPTERS_LIBHV_H
#define VALKEY_ADAPTERS_LIBHV_H

#include <hv/hloop.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

typedef struct valkeyLibhvEvents {
    hio_t *io;
    htimer_t *timer; /* or NULL */
} valkeyLibhvEvents;

static void valkeyLibhvHandleEvents(hio_t *io) {
    valkeyAsyncContext *ac = (valkeyAsyncContext *)hevent_userdata(io);
    int ready = hio_revents(io);
    if (ac && (ready & HV_READ)) valkeyAsyncHandleRead(ac);
    /* The context may have ended. */
    ac = (valkeyAsyncContext *)hevent_userdata(io);
    if (ac && (ready & HV_WRITE)) valkeyAsyncHandleWrite(ac);
}

static void valkeyLibhvAddRead(void *data) {
    hio_add(((valkeyLibhvEvents *)data)->io, valkeyLibhvHandleEvents, HV_READ);
}
static void valkeyLibhvDelRead(void *data) { hio_del(((valkeyLibhvEvents *)data)->io, HV_READ); }
static void valkeyLibhvAddWrite(void *data) {
    hio_add(((valkeyLibhvEvents *)data)->io, valkeyLibhvHandleEvents, HV_WRITE);
}
static void valkeyLibhvDelWrite(void *data) { hio_del(((valkeyLibhvEvents *)data)->io, HV_WRITE); }

static void valkeyLibhvTimeout(htimer_t *timer) {
    valkeyAsyncContext *ac = (valkeyAsyncContext *)hevent_userdata(timer);
    ((valkeyLibhvEvents *)ac->ev.data)->timer = NULL; /* it has ended by itself */
    valkeyAsyncHandleTimeout(ac);
}

static void valkeyLibhvStopTimer(valkeyLibhvEvents *e) {
    if (e->timer) htimer_del(e->timer);
    e->timer = NULL;
}

static void valkeyLibhvSetTimeout(void *data, struct timeval tv) {
    valkeyLibhvEvents *e = (valkeyLibhvEvents *)data;
    uint32_t ms = (uint32_t)(tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000);
    valkeyLibhvStopTimer(e);
    e->timer = htimer_add(hevent_loop(e->io), valkeyLibhvTimeout, ms, 1);
    if (e->timer) hevent_set_userdata(e->timer, hevent_userdata(e->io));
}

static void valkeyLibhvCleanup(void *data) {
    valkeyLibhvEvents *e = (valkeyLibhvEvents *)data;
    valkeyLibhvStopTimer(e);
    hio_del(e->io, HV_RDWR);
    hevent_set_userdata(e->io, NULL);
    vk_free(e);
}

static inline int valkeyLibhvAttach(valkeyAsyncContext *ac, hloop_t *loop) {
    valkeyLibhvEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyLibhvEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->io = hio_get(loop, ac->c.fd);
    if (!e->io) {
        vk_free(e);
        return VALKEY_ERR;
    }
    hevent_set_userdata(e->io, ac);
    ac->ev.data = e;
    ac->ev.addRead = valkeyLibhvAddRead;
    ac->ev.delRead = valkeyLibhvDelRead;
    ac->ev.addWrite = valkeyLibhvAddWrite;
    ac->ev.delWrite = valkeyLibhvDelWrite;
    ac->ev.cleanup = valkeyLibhvCleanup;
    ac->ev.scheduleTimer = valkeyLibhvSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyLibhvAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyLibhvAttach(ac, (hloop_t *)data);
}

static inline int valkeyClusterOptionsUseLibhv(valkeyClusterOptions *options, hloop_t *loop) {
    options->attach_fn = valkeyLibhvAttachAdapter;
    options->attach_data = loop;
    return VALKEY_OK;
}

#endif
