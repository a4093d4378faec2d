/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adapter for CFRunLoop of macOS. */
#ifndef VALKEY_ADAPTERS_MACOSX_H
#define VALKEY_ADAPTERS_MACOSX_H

#include <CoreFoundation/CoreFoundation.h>

#include <valkey/async.h>
#include <valkey/cluster.h>

typedef struct ValkeyRunLoop {
    valkeyAsyncContext *context;
    CFSocketRef socketRef;
    CFRunLoopSourceRef sourceRef;
    CFRunLoopTimerRef timerRef;
    CFRunLoopRef runLoop;
} ValkeyRunLoop;

static void freeValkeyRunLoop(ValkeyRunLoop *e) {
    if (e->timerRef) {
        CFRunLoopTimerInvalidate(e->timerRef);
        CFRelease(e->timerRef);
    }
    if (e->sourceRef) {
        CFRunLoopSourceInvalidate(e->sourceRef);
        CFRelease(e->sourceRef);
    }
    if (e->socketRef) {
        CFSocketInvalidate(e->socketRef);
        CFRelease(e->socketRef);
    }
    vk_free(e);
}

static void valkeyMacOSAddRead(void *data) {
    CFSocketEnableCallBacks(((ValkeyRunLoop *)data)->socketRef, kCFSocketReadCallBack);
}
static void valkeyMacOSDelRead(void *data) {
    CFSocketDisableCallBacks(((ValkeyRunLoop *)data)->socketRef, kCFSocketReadCallBack);
}
static void valkeyMacOSAddWrite(void *data) {
    CFSocketEnableCallBacks(((ValkeyRunLoop *)data)->socketRef, kCFSocketWriteCallBack);
}
static void valkeyMacOSDelWrite(void *data) {
    CFSocketDisableCallBacks(((ValkeyRunLoop *)data)->socketRef, kCFSocketWriteCallBack);
}
static void valkeyMacOSCleanup(void *data) { freeValkeyRunLoop((ValkeyRunLoop *)data); }

static void valkeyMacOSAsyncCallback(CFSocketRef socket, CFSocketCallBackType type,
                                     CFDataRef address, const void *bytes, void *info) {
    valkeyAsyncContext *ac = (valkeyAsyncContext *)info;
    (void)socket;
    (void)address;
    (void)bytes;
    if (type == kCFSocketReadCallBack) valkeyAsyncHandleRead(ac);
    if (type == kCFSocketWriteCallBack) valkeyAsyncHandleWrite(ac);
}

static void valkeyMacOSTimeout(CFRunLoopTimerRef timer, void *info) {
    (void)timer;
    valkeyAsyncHandleTimeout((valkeyAsyncContext *)info);
}

static void valkeyMacOSSetTimeout(void *data, struct timeval tv) {
    ValkeyRunLoop *e = (ValkeyRunLoop *)data;
    CFRunLoopTimerContext info = {0, NULL, NULL, NULL, NULL};
    CFAbsoluteTime due = CFAbsoluteTimeGetCurrent() + (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
    info.info = e->context;
    if (e->timerRef) {
        CFRunLoopTimerInvalidate(e->timerRef);
        CFRelease(e->timerRef);
    }
    e->timerRef = CFRunLoopTimerCreate(NULL, due, 0, 0, 0, valkeyMacOSTimeout, &info);
    if (e->timerRef) CFRunLoopAddTimer(e->runLoop, e->timerRef, kCFRunLoopDefaultMode);
}

static inline int valkeyMacOSAttach(valkeyAsyncContext *ac, CFRunLoopRef runLoop) {
    ValkeyRunLoop *e;
    CFSocketContext info = {0, NULL, NULL, NULL, NULL};
    if (ac->ev.data) return VALKEY_ERR;
    e = (ValkeyRunLoop *)vk_calloc(1, sizeof(*e));
    if (!e) return VALKEY_ERR;
    e->context = ac;
    e->runLoop = runLoop;
    info.info = ac;
    e->socketRef =
        CFSocketCreateWithNative(NULL, ac->c.fd, kCFSocketReadCallBack | kCFSocketWriteCallBack,
                                 valkeyMacOSAsyncCallback, &info);
    if (e->socketRef) e->sourceRef = CFSocketCreateRunLoopSource(NULL, e->socketRef, 0);
    if (!e->sourceRef) {
        freeValkeyRunLoop(e);
        return VALKEY_ERR;
    }
    /* The library closes the descriptor, and asks again for what it waits for. */
    CFSocketSetSocketFlags(e->socketRef, kCFSocketAutomaticallyReenableReadCallBack |
                                             kCFSocketAutomaticallyReenableWriteCallBack);
    CFSocketDisableCallBacks(e->socketRef, kCFSocketReadCallBack | kCFSocketWriteCallBack);
    CFRunLoopAddSource(runLoop, e->sourceRef, kCFRunLoopDefaultMode);
    ac->ev.data = e;
    ac->ev.addRead = valkeyMacOSAddRead;
    ac->ev.delRead = valkeyMacOSDelRead;
    ac->ev.addWrite = valkeyMacOSAddWrite;
    ac->ev.delWrite = valkeyMacOSDelWrite;
    ac->ev.cleanup = valkeyMacOSCleanup;
    ac->ev.scheduleTimer = valkeyMacOSSetTimeout;
    return VALKEY_OK;
}

/* For contexts of a cluster. */
static inline int valkeyMacOSAttachAdapter(valkeyAsyncContext *ac, void *data) {
    return valkeyMacOSAttach(ac, (CFRunLoopRef)data);
}

static inline int valkeyClusterOptionsUseMacOS(valkeyClusterOptions *options,
                                               CFRunLoopRef runLoop) {
    options->attach_fn = valkeyMacOSAttachAdapter;
    options->attach_data = (void *)runLoop;
    return VALKEY_OK;
}

#endif
