/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for modules: the event loop of the server that has loaded them. */
#ifndef VALKEY_ADAPTERS_VALKEYMODULEAPI_H
#define VALKEY_ADAPTERS_VALKEYMODULEAPI_H

#include <valkeymodule.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

/* Everything happens in the main thread. */
typedef struct valkeyModuleEvents {
    valkeyAsyncContext *context;
    ValkeyModuleCtx *module_ctx; /* valid as long as the context */
    int fd;
    int reading, writing;
    int timer_active;
    ValkeyModuleTimerID timer_id;
} valkeyModuleEvents;

static void valkeyModuleReadEvent(int fd, void *data, int mask) {
    (void)fd;
    (void)mask;
    valkeyAsyncHandleRead(((valkeyModuleEvents *)data)->context);
}

static void valkeyModuleWriteEvent(int fd, void *data, int mask) {
    (void)fd;
    (void)mask;
    valkeyAsyncHandleWrite(((valkeyModuleEvents *)data)->context);
}

static void valkeyModuleAddRead(void *data) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    if (e->reading) return;
    e->reading = ValkeyModule_EventLoopAdd(e->fd, VALKEYMODULE_EVENTLOOP_READABLE,
                                           valkeyModuleReadEvent, e) == VALKEYMODULE_OK;
}
static void valkeyModuleDelRead(void *data) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    if (e->reading) ValkeyModule_EventLoopDel(e->fd, VALKEYMODULE_EVENTLOOP_READABLE);
    e->reading = 0;
}
static void valkeyModuleAddWrite(void *data) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    if (e->writing) return;
    e->writing = ValkeyModule_EventLoopAdd(e->fd, VALKEYMODULE_EVENTLOOP_WRITABLE,
                                           valkeyModuleWriteEvent, e) == VALKEYMODULE_OK;
}
static void valkeyModuleDelWrite(void *data) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    if (e->writing) ValkeyModule_EventLoopDel(e->fd, VALKEYMODULE_EVENTLOOP_WRITABLE);
    e->writing = 0;
}

static void valkeyModuleStopTimer(void *data) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    if (e->timer_active) ValkeyModule_StopTimer(e->module_ctx, e->timer_id, NULL);
    e->timer_active = 0;
}

static void valkeyModuleTimeout(ValkeyModuleCtx *ctx, void *data) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    (void)ctx;
    e->timer_active = 0;
    valkeyAsyncHandleTimeout(e->context);
}

static void valkeyModuleSetTimeout(void *data, struct timeval tv) {
    valkeyModuleEvents *e = (valkeyModuleEvents *)data;
    mstime_t ms = (mstime_t)tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000;
    valkeyModuleStopTimer(data);
    e->timer_id = ValkeyModule_CreateTimer(e->module_ctx, ms, valkeyModuleTimeout, e);
    e->timer_active = 1;
}

static void valkeyModuleCleanup(void *data) {
    valkeyModuleDelRead(data);
    valkeyModuleDelWrite(data);
    valkeyModuleStopTimer(data);
    vk_free(data);
}

/* VALKEY_ERR if the server does not have the functions that are needed. */
static inline int valkeyModuleCompatibilityCheck(void) {
    if (!ValkeyModule_EventLoopAdd || !ValkeyModule_EventLoopDel || !ValkeyModule_CreateTimer ||
        !ValkeyModule_StopTimer)
        return VALKEY_ERR;
    return VALKEY_OK;
}

static inline int valkeyModuleAttach(valkeyAsyncContext *ac, ValkeyModuleCtx *module_ctx) {
    valkeyModuleEvents *e;
    if (ac->ev.data) return VALKEY_ERR;
    e = (valkeyModuleEvents *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->module_ctx = module_ctx;
    e->fd = ac->c.fd;
    ac->ev.data = e;
    ac->ev.addRead = valkeyModuleAddRead;
    ac->ev.delRead = valkeyModuleDelRead;
    ac->ev.addWrite = valkeyModuleAddWrite;
    ac->ev.delWrite = valkeyModuleDelWrite;
    ac->ev.cleanup = valkeyModuleCleanup;
    ac->ev.scheduleTimer = valkeyModuleSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyModuleAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyModuleAttach(ac, (ValkeyModuleCtx *)data);
}

static inline int valkeyClusterOptionsUseModule(valkeyClusterOptions *options,
                                                ValkeyModuleCtx *module_ctx) {
    options->attach_fn = valkeyModuleAttachAdapter;
    options->attach_data = module_ctx;
    return VALKEY_OK;
}

#endif
