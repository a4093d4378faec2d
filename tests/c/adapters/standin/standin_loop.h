/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small event loop, which the headers beside it show with the interfaces of libraries that are
 * not installed here. */
#ifndef STANDIN_LOOP_H
#define STANDIN_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STANDIN_READ = 1, STANDIN_WRITE = 2, STANDIN_FDS = 1024, STANDIN_TIMERS = 64 };

typedef void standinFdProc(int fd, void *arg, int ready);
typedef void standinTimerProc(long long id, void *arg);

typedef struct standinFd {
    standinFdProc *read, *write;
    void *read_arg, *write_arg;
} standinFd;
typedef struct standinTimer {
    long long id; /* 0: free */
    long long due_us;
    standinTimerProc *proc;
    void *arg;
} standinTimer;

static standinFd standin_fds[STANDIN_FDS];
static standinTimer standin_timers[STANDIN_TIMERS];
static long long standin_last_id;

static void standinBegin(void) {
    memset(standin_fds, 0, sizeof(standin_fds));
    memset(standin_timers, 0, sizeof(standin_timers));
}

static long long standinNow(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void standinWatch(int fd, int mask, standinFdProc *proc, void *arg) {
    if (mask & STANDIN_READ) standin_fds[fd].read = proc, standin_fds[fd].read_arg = arg;
    if (mask & STANDIN_WRITE) standin_fds[fd].write = proc, standin_fds[fd].write_arg = arg;
}
static void standinUnwatch(int fd, int mask) {
    if (mask & STANDIN_READ) standin_fds[fd].read = NULL;
    if (mask & STANDIN_WRITE) standin_fds[fd].write = NULL;
}

static long long standinAddTimer(long long us, standinTimerProc *proc, void *arg) {
    standinTimer *t = standin_timers;
    while (t->id) t++;
    *t = (standinTimer){++standin_last_id, standinNow() + us, proc, arg};
    return t->id;
}
static void standinRemoveTimer(long long id) {
    for (int i = 0; i < STANDIN_TIMERS; i++) {
        if (standin_timers[i].id == id) standin_timers[i].id = 0;
    }
}

/* Handles what is ready. */
static void standinTurn(void) {
    for (int fd = 0; fd < STANDIN_FDS; fd++) {
        standinFd *f = &standin_fds[fd];
        struct pollfd p = {.fd = fd};
        p.events = (short)((f->read ? POLLIN : 0) | (f->write ? POLLOUT : 0));
        if (!p.events || poll(&p, 1, 0) <= 0) continue;
        if (p.revents & (POLLERR | POLLHUP)) p.revents |= POLLIN | POLLOUT;
        if (f->read && (p.revents & POLLIN)) f->read(fd, f->read_arg, STANDIN_READ);
        if (f->write && (p.revents & POLLOUT)) f->write(fd, f->write_arg, STANDIN_WRITE);
    }
    for (int i = 0; i < STANDIN_TIMERS; i++) {
        standinTimer t = standin_timers[i];
        if (!t.id || standinNow() < t.due_us) continue;
        standin_timers[i].id = 0;
        t.proc(t.id, t.arg);
    }
}

#endif
