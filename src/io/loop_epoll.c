/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Back end for Linux: epoll, level-triggered. One epoll_wait() per turn, one epoll_ctl() per
 * change. Invariant: the kernel's set matches the last mask passed for each descriptor. */
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
} epollState;

static void *epollOpen(void) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) return NULL;
    epollState *state = memNew(epollState);
    state->epoll_fd = epoll_fd;
    return state;
}

static void epollClose(void *arg) {
    epollState *state = arg;
    close(state->epoll_fd);
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

static int epollWait(void *arg, int timeout_ms, loopReady *ready) {
    const epollState *state = arg;
    struct epoll_event events[LOOP_EVENTS_MAX];
    int count = epoll_wait(state->epoll_fd, events, LOOP_EVENTS_MAX, timeout_ms);
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

static const loopBackend backend = {"epoll", true, epollOpen, epollClose, epollChange, epollWait};
const loopBackend *const loopEpoll = &backend;
#else
const loopBackend *const loopEpoll = NULL;
#endif
