/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Back end for Linux: epoll, level-triggered. One epoll_wait() per turn, one epoll_ctl() per
 * change. Descriptors with priority are in a second set, too. Invariant: the kernel's set matches
 * the last mask passed for each descriptor. */
#include "io/loop_backend.h"

#ifdef __linux__
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/loop.h"

typedef struct epollState {
    int epoll_fd;
    int priority_fd; /* -1: not needed yet */
} epollState;

static void *epollOpen(void) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) return NULL;
    epollState *state = memNew(epollState);
    *state = (epollState){epoll_fd, -1};
    return state;
}

static void epollClose(void *arg) {
    epollState *state = arg;
    close(state->epoll_fd);
    if (state->priority_fd >= 0) close(state->priority_fd);
    memFree(state);
}

static int epollChange(void *arg, int fd, int old_mask, int mask) {
    hotCheck(old_mask != mask);
    const epollState *state = arg;
    struct epoll_event event = {0};
    event.data.fd = fd;
    if (mask & LOOP_READ) event.events |= EPOLLIN;
    if (mask & LOOP_WRITE) event.events |= EPOLLOUT;
    if (mask & LOOP_EDGE) event.events |= EPOLLET | EPOLLRDHUP;
    int op = !old_mask ? EPOLL_CTL_ADD : mask ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
    return epoll_ctl(state->epoll_fd, op, fd, &event);
}

static int waitOn(int epoll_fd, int timeout_ms, loopReady *ready, int ready_max) {
    hotCheck(ready_max <= LOOP_EVENTS_MAX);
    struct epoll_event events[LOOP_EVENTS_MAX];
    int count = epoll_wait(epoll_fd, events, ready_max, timeout_ms);
    if (count < 0) {
        check(errno == EINTR);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        uint32_t bits = events[i].events;
        int mask = 0;
        if (bits & (EPOLLIN | EPOLLERR | EPOLLHUP)) mask |= LOOP_READ;
        if (bits & (EPOLLOUT | EPOLLERR | EPOLLHUP)) mask |= LOOP_WRITE;
        if (bits & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) mask |= LOOP_HANGUP;
        ready[i].fd = events[i].data.fd;
        ready[i].mask = mask;
    }
    return count;
}

static int epollWait(void *arg, int timeout_ms, loopReady *ready) {
    const epollState *state = arg;
    return waitOn(state->epoll_fd, timeout_ms, ready, LOOP_EVENTS_MAX);
}

static int epollSetPriority(void *arg, int fd, bool on) {
    epollState *state = arg;
    if (state->priority_fd < 0) state->priority_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(state->priority_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event);
}

static int epollWaitPriority(void *arg, loopReady *ready, int ready_max) {
    const epollState *state = arg;
    return state->priority_fd < 0 ? 0 : waitOn(state->priority_fd, 0, ready, ready_max);
}

static const loopBackend backend = {.name = "epoll",
                                    .has_edge = true,
                                    .open = epollOpen,
                                    .close = epollClose,
                                    .change = epollChange,
                                    .wait = epollWait,
                                    .set_priority = epollSetPriority,
                                    .wait_priority = epollWaitPriority};
const loopBackend *const loopEpoll = &backend;
#else
const loopBackend *const loopEpoll = NULL;
#endif
