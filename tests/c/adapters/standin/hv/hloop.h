/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A stand-in with the part of the interface of libhv that its adapter needs. */
#ifndef STANDIN_HLOOP_H
#define STANDIN_HLOOP_H

#include "../standin_loop.h"

#define HV_READ 1
#define HV_WRITE 4
#define HV_RDWR (HV_READ | HV_WRITE)

typedef struct hio_s hio_t;
typedef struct htimer_s htimer_t;
typedef void (*hio_cb)(hio_t *io);
typedef void (*htimer_cb)(htimer_t *timer);

typedef struct hloop_s {
    struct hio_s {
        struct hloop_s *loop;
        void *userdata;
        hio_cb cb;
        int fd, revents;
    } ios[STANDIN_FDS];
} hloop_t;

struct htimer_s {
    hloop_t *loop;
    void *userdata;
    htimer_cb cb;
    long long id;
};

#define hevent_loop(ev) ((ev)->loop)
#define hevent_userdata(ev) ((ev)->userdata)
#define hevent_set_userdata(ev, data) ((ev)->userdata = (void *)(data))

static hio_t *hio_get(hloop_t *loop, int fd) {
    hio_t *io = &loop->ios[fd];
    io->loop = loop;
    io->fd = fd;
    return io;
}
static int hio_revents(hio_t *io) { return io->revents; }

static void hioReady(int fd, void *arg, int ready) {
    hio_t *io = (hio_t *)arg;
    (void)fd;
    io->revents = ready == STANDIN_READ ? HV_READ : HV_WRITE;
    io->cb(io);
}
static int hioMask(int events) {
    return (events & HV_READ ? STANDIN_READ : 0) | (events & HV_WRITE ? STANDIN_WRITE : 0);
}
static int hio_add(hio_t *io, hio_cb cb, int events) {
    io->cb = cb;
    standinWatch(io->fd, hioMask(events), hioReady, io);
    return 0;
}
static int hio_del(hio_t *io, int events) {
    standinUnwatch(io->fd, hioMask(events));
    return 0;
}

/* A timer that has expired for the last time is freed. */
static void htimerExpired(long long id, void *arg) {
    htimer_t *timer = (htimer_t *)arg;
    (void)id;
    timer->cb(timer);
    free(timer);
}
static htimer_t *htimer_add(hloop_t *loop, htimer_cb cb, uint32_t ms, uint32_t repeat) {
    htimer_t *timer = (htimer_t *)calloc(1, sizeof(*timer));
    (void)repeat;
    timer->loop = loop;
    timer->cb = cb;
    timer->id = standinAddTimer((long long)ms * 1000, htimerExpired, timer);
    return timer;
}
static void htimer_del(htimer_t *timer) {
    standinRemoveTimer(timer->id);
    free(timer);
}

#endif
