/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stand-in with the part of the interface of CoreFoundation that the adapter for macOS needs.
 * Objects count their references; those of sockets and timers act while they are valid. */
#ifndef STANDIN_COREFOUNDATION_H
#define STANDIN_COREFOUNDATION_H

#include "../standin_loop.h"

typedef long CFIndex;
typedef unsigned long CFOptionFlags, CFSocketCallBackType;
typedef double CFAbsoluteTime, CFTimeInterval;
typedef const void *CFTypeRef, *CFAllocatorRef, *CFDataRef, *CFStringRef;
typedef struct standinRunLoop {
    int unused;
} * CFRunLoopRef;
typedef struct standinSocket *CFSocketRef;
typedef struct standinSource *CFRunLoopSourceRef;
typedef struct standinCFTimer *CFRunLoopTimerRef;

enum {
    kCFSocketReadCallBack = 1,
    kCFSocketWriteCallBack = 8,
    kCFSocketAutomaticallyReenableReadCallBack = 1,
    kCFSocketAutomaticallyReenableWriteCallBack = 8,
};
static const CFStringRef kCFRunLoopDefaultMode = "default";

typedef struct CFSocketContext {
    CFIndex version;
    void *info;
    const void *(*retain)(const void *);
    void (*release)(const void *);
    CFStringRef (*copyDescription)(const void *);
} CFSocketContext, CFRunLoopTimerContext;
typedef void (*CFSocketCallBack)(CFSocketRef, CFSocketCallBackType, CFDataRef, const void *,
                                 void *info);
typedef void (*CFRunLoopTimerCallBack)(CFRunLoopTimerRef, void *info);

struct standinSocket {
    int references;
    int fd;
    CFSocketCallBack proc;
    void *info;
};
struct standinSource {
    int references;
};
struct standinCFTimer {
    int references;
    bool active; /* in the loop, which has a reference */
    long long id, due_us;
    CFRunLoopTimerCallBack proc;
    void *info;
};

/* Every object begins with its count. */
static void CFRelease(CFTypeRef object) {
    int *references = (int *)object;
    if (--*references == 0) free(references);
}

static void socketReady(int fd, void *arg, int ready) {
    CFSocketRef s = (CFSocketRef)arg;
    (void)fd;
    s->references++;
    s->proc(s, ready == STANDIN_READ ? kCFSocketReadCallBack : kCFSocketWriteCallBack, NULL, NULL,
            s->info);
    CFRelease(s);
}
static int socketMask(CFOptionFlags types) {
    return (types & kCFSocketReadCallBack ? STANDIN_READ : 0) |
           (types & kCFSocketWriteCallBack ? STANDIN_WRITE : 0);
}
static void CFSocketEnableCallBacks(CFSocketRef s, CFOptionFlags types) {
    standinWatch(s->fd, socketMask(types), socketReady, s);
}
static void CFSocketDisableCallBacks(CFSocketRef s, CFOptionFlags types) {
    standinUnwatch(s->fd, socketMask(types));
}
static CFSocketRef CFSocketCreateWithNative(CFAllocatorRef allocator, int fd, CFOptionFlags types,
                                            CFSocketCallBack proc, const CFSocketContext *context) {
    CFSocketRef s = (CFSocketRef)calloc(1, sizeof(*s));
    (void)allocator;
    s->references = 1;
    s->fd = fd;
    s->proc = proc;
    s->info = context->info;
    CFSocketEnableCallBacks(s, types);
    return s;
}
static void CFSocketSetSocketFlags(CFSocketRef s, CFOptionFlags flags) {
    (void)s;
    (void)flags;
}
static void CFSocketInvalidate(CFSocketRef s) {
    standinUnwatch(s->fd, STANDIN_READ | STANDIN_WRITE);
}

static CFRunLoopSourceRef CFSocketCreateRunLoopSource(CFAllocatorRef allocator, CFSocketRef s,
                                                      CFIndex order) {
    CFRunLoopSourceRef source = (CFRunLoopSourceRef)calloc(1, sizeof(*source));
    (void)allocator;
    (void)s;
    (void)order;
    source->references = 1;
    return source;
}
static void CFRunLoopSourceInvalidate(CFRunLoopSourceRef source) { (void)source; }
static void CFRunLoopAddSource(CFRunLoopRef loop, CFRunLoopSourceRef source, CFStringRef mode) {
    (void)loop;
    (void)source;
    (void)mode;
}

static CFAbsoluteTime CFAbsoluteTimeGetCurrent(void) { return (double)standinNow() / 1e6; }
static CFRunLoopTimerRef CFRunLoopTimerCreate(CFAllocatorRef allocator, CFAbsoluteTime due,
                                              CFTimeInterval interval, CFOptionFlags flags,
                                              CFIndex order, CFRunLoopTimerCallBack proc,
                                              CFRunLoopTimerContext *context) {
    CFRunLoopTimerRef t = (CFRunLoopTimerRef)calloc(1, sizeof(*t));
    (void)allocator;
    (void)interval;
    (void)flags;
    (void)order;
    t->references = 1;
    t->due_us = (long long)(due * 1e6);
    t->proc = proc;
    t->info = context->info;
    return t;
}
static void timerExpired(long long id, void *arg) {
    CFRunLoopTimerRef t = (CFRunLoopTimerRef)arg;
    (void)id;
    t->active = false;
    t->proc(t, t->info);
    CFRelease(t);
}
static void CFRunLoopAddTimer(CFRunLoopRef loop, CFRunLoopTimerRef t, CFStringRef mode) {
    (void)loop;
    (void)mode;
    t->references++;
    t->active = true;
    t->id = standinAddTimer(t->due_us - standinNow(), timerExpired, t);
}
static void CFRunLoopTimerInvalidate(CFRunLoopTimerRef t) {
    if (!t->active) return;
    standinRemoveTimer(t->id);
    t->active = false;
    CFRelease(t);
}

#endif
