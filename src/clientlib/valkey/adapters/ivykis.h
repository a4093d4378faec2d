/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for ivykis; its functions act on the event loop of the calling thread. */
#ifndef VALKEY_ADAPTERS_IVYKIS_H
#define VALKEY_ADAPTERS_IVYKIS_H

#include <iv.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

typedef struct valkeyIvykisEvents {
    valkeyAsyncContext *context;
    struct iv_fd fd;
    struct iv_timer timer;
} valkeyIvykisEvents;

static void valkeyIvykisReadEvent(void *data) {
    valkeyAsyncHandleRead(((valkeyIvykisEvents *)data)->context);
}
static void valkeyIvykisWriteEvent(void *data) {
    valkeyAsyncHandleWrite(((valkeyIvykisEvents *)data)->context);
}
static void valkeyIvykisTimeout(void *data) {
    valkeyAsyncHandleTimeout(((valkeyIvykisEvents *)data)->context);
}

static void valkeyIvykisAddRead(void *data) {
    iv_fd_set_handler_in(&((valkeyIvykisEvents *)data)->fd, valkeyIvykisReadEvent);
}
static void valkeyIvykisDelRead(void *data) {
    iv_fd_set_handler_in(&((valkeyIvykisEvents *)data)->fd, NULL);
}
static void valkeyIvykisAddWrite(void *data) {
    iv_fd_set_handler_out(&((valkeyIvykisEvents *)data)->fd, valkeyIvykisWriteEvent);
}
static void valkeyIvykisDelWrite(void *data) {
    iv_fd_set_handler_out(&((valkeyIvykisEvents *)data)->fd, NULL);
}

static void valkeyIvykisSetTimeout(void *data, struct timeval tv) {
    valkeyIvykisEvents *e = (valkeyIvykisEvents *)data;
    if (iv_timer_registered(&e->timer)) iv_timer_unregister(&e->timer);
    iv_validate_now();
    e->timer.expires = iv_now;
    e->timer.expires.tv_sec += tv.tv_sec;
    e->timer.expires.tv_nsec += (long)tv.tv_usec * 1000;
    if (e->timer.expires.tv_nsec >= 1000000000) {
        e->timer.expires.tv_nsec -= 1000000000;
        e->timer.expires.tv_sec++;
    }
    iv_timer_register(&e->timer);
}

static void valkeyIvykisCleanup(void *data) {
    valkeyIvykisEvents *e = (valkeyIvykisEvents *)data;
    if (iv_timer_registered(&e->timer)) iv_timer_unregister(&e->timer);
    iv_fd_unregister(&e->fd);
    vk_free(e);
}

static inline int valkeyIvykisAttach(valkeyAsyncContext *ac) {
    valkeyIvykisEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyIvykisEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    IV_FD_INIT(&e->fd);
    e->fd.fd = ac->c.fd;
    e->fd.cookie = e;
    IV_TIMER_INIT(&e->timer);
    e->timer.cookie = e;
    e->timer.handler = valkeyIvykisTimeout;
    iv_fd_register(&e->fd);
    ac->ev.data = e;
    ac->ev.addRead = valkeyIvykisAddRead;
    ac->ev.delRead = valkeyIvykisDelRead;
    ac->ev.addWrite = valkeyIvykisAddWrite;
    ac->ev.delWrite = valkeyIvykisDelWrite;
    ac->ev.cleanup = valkeyIvykisCleanup;
    ac->ev.scheduleTimer = valkeyIvykisSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyIvykisAttachAdapter(valkeyAsyncContext *ac, void *data) {
    (void)data;
    return valkeyIvykisAttach(ac);
}

static inline int valkeyClusterOptionsUseIvykis(valkeyClusterOptions *options) {
    options->attach_fn = valkeyIvykisAttachAdapter;
    options->attach_data = NULL;
    return VALKEY_OK;
}

#endif
