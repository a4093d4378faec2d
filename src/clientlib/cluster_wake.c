/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A delayed call on the caller's event loop: a timer of the kernel in an asynchronous context of
 * its own, which every adapter can watch. */
#include <valkey/net.h>

#include "clientlib/cluster_priv.h"

/* `data` of the context. */
typedef struct wakeCall {
    valkeyClusterAsyncContext *acc;
    void (*proc)(valkeyClusterAsyncContext *acc);
} wakeCall;

static void onTimer(valkeyAsyncContext *ac) {
    if (!vkTimerHasExpired(ac->c.fd)) return;
    wakeCall call = *(wakeCall *)ac->data;
    valkeyAsyncFree(ac);
    call.proc(call.acc);
}

static void ignoreWritable(valkeyAsyncContext *ac) { (void)ac; }

static const valkeyContextFuncs timer_funcs = {
    .close = valkeyNetClose, .async_read = onTimer, .async_write = ignoreWritable};

valkeyAsyncContext *vkWakeStart(valkeyClusterAsyncContext *acc, int ms,
                                void (*proc)(valkeyClusterAsyncContext *acc)) {
    if (!acc->attach_fn) return NULL;
    valkeyOptions o = {.type = VALKEY_CONN_USERFD, .endpoint.fd = vkTimerOpen(ms)};
    if (o.endpoint.fd == VALKEY_INVALID_FD) return NULL;
    valkeyAsyncContext *ac = valkeyAsyncConnectWithOptions(&o);
    if (!ac) {
        vkTimerClose(o.endpoint.fd);
        return NULL;
    }
    wakeCall *call = vk_malloc(sizeof(*call));
    ac->c.funcs = &timer_funcs;
    ac->c.flags |= VALKEY_CONNECTED;
    if (!call || acc->attach_fn(ac, acc->attach_data) != VALKEY_OK) {
        vk_free(call);
        valkeyAsyncFree(ac);
        return NULL;
    }
    *call = (wakeCall){.acc = acc, .proc = proc};
    ac->data = call;
    ac->dataCleanup = vk_free;
    if (ac->ev.addRead) ac->ev.addRead(ac->ev.data);
    return ac;
}
