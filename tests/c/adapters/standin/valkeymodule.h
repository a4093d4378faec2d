/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stand-in with the part of the interface of modules that the adapter needs. */
#ifndef STANDIN_VALKEYMODULE_H
#define STANDIN_VALKEYMODULE_H

#include "standin_loop.h"

#define VALKEYMODULE_OK 0
#define VALKEYMODULE_EVENTLOOP_READABLE 1
#define VALKEYMODULE_EVENTLOOP_WRITABLE 2

typedef struct ValkeyModuleCtx {
    int unused;
} ValkeyModuleCtx;
typedef long long mstime_t;
typedef uint64_t ValkeyModuleTimerID;
typedef void (*ValkeyModuleEventLoopFunc)(int fd, void *data, int mask);
typedef void (*ValkeyModuleTimerProc)(ValkeyModuleCtx *ctx, void *data);

static int moduleWatch(int fd, int mask, ValkeyModuleEventLoopFunc func, void *data) {
    standinWatch(fd, mask, func, data);
    return VALKEYMODULE_OK;
}
static int moduleUnwatch(int fd, int mask) {
    standinUnwatch(fd, mask);
    return VALKEYMODULE_OK;
}

static ValkeyModuleTimerProc module_timer; /* one at a time */

static void moduleExpired(long long id, void *data) {
    (void)id;
    module_timer(NULL, data);
}
static ValkeyModuleTimerID moduleAddTimer(ValkeyModuleCtx *ctx, mstime_t period,
                                          ValkeyModuleTimerProc proc, void *data) {
    (void)ctx;
    module_timer = proc;
    return (ValkeyModuleTimerID)standinAddTimer(period * 1000, moduleExpired, data);
}
static int moduleStopTimer(ValkeyModuleCtx *ctx, ValkeyModuleTimerID id, void **data) {
    (void)ctx;
    (void)data;
    standinRemoveTimer((long long)id);
    return VALKEYMODULE_OK;
}

/* Variables, which a server may leave NULL. */
static int (*ValkeyModule_EventLoopAdd)(int, int, ValkeyModuleEventLoopFunc, void *) = moduleWatch;
static int (*ValkeyModule_EventLoopDel)(int, int) = moduleUnwatch;
static ValkeyModuleTimerID (*ValkeyModule_CreateTimer)(ValkeyModuleCtx *, mstime_t,
                                                       ValkeyModuleTimerProc,
                                                       void *) = moduleAddTimer;
static int (*ValkeyModule_StopTimer)(ValkeyModuleCtx *, ValkeyModuleTimerID,
                                     void **) = moduleStopTimer;

#endif
