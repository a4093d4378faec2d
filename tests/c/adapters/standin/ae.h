/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stand-in with the part of the interface of ae that its adapter needs. */
#ifndef STANDIN_AE_H
#define STANDIN_AE_H

#include "standin_loop.h"

#define AE_OK 0
#define AE_ERR -1
#define AE_READABLE 1
#define AE_WRITABLE 2
#define AE_NOMORE -1

typedef struct aeEventLoop aeEventLoop;
typedef void aeFileProc(aeEventLoop *loop, int fd, void *data, int mask);
typedef int aeTimeProc(aeEventLoop *loop, long long id, void *data);
typedef void aeEventFinalizerProc(aeEventLoop *loop, void *data);

struct aeEventLoop {
    aeFileProc *procs[STANDIN_FDS][2];
    void *data[STANDIN_FDS];
    aeTimeProc *timer;
    void *timer_data;
};

static void aeReady(int fd, void *loop, int ready) {
    aeEventLoop *l = (aeEventLoop *)loop;
    l->procs[fd][ready - 1](l, fd, l->data[fd], ready);
}

static int aeCreateFileEvent(aeEventLoop *loop, int fd, int mask, aeFileProc *proc, void *data) {
    loop->procs[fd][mask - 1] = proc;
    loop->data[fd] = data;
    standinWatch(fd, mask, aeReady, loop);
    return AE_OK;
}
static void aeDeleteFileEvent(aeEventLoop *loop, int fd, int mask) {
    (void)loop;
    standinUnwatch(fd, mask);
}

static void aeExpired(long long id, void *loop) {
    aeEventLoop *l = (aeEventLoop *)loop;
    l->timer(l, id, l->timer_data);
}

/* One at a time. */
static long long aeCreateTimeEvent(aeEventLoop *loop, long long ms, aeTimeProc *proc, void *data,
                                   aeEventFinalizerProc *finalizer) {
    (void)finalizer;
    loop->timer = proc;
    loop->timer_data = data;
    return standinAddTimer(ms * 1000, aeExpired, loop);
}
static int aeDeleteTimeEvent(aeEventLoop *loop, long long id) {
    (void)loop;
    standinRemoveTimer(id);
    return AE_OK;
}

#endif
