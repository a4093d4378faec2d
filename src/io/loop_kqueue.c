/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Back end for the BSDs and macOS: kqueue, with one filter per direction and descriptor. Invariant:
 * the kernel's filters match the last mask passed for each descriptor. */
#include "io/loop_backend.h"

#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__) || \
    defined(__DragonFly__)
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/loop.h"

typedef struct kqueueState {
    int queue_fd;
} kqueueState;

static void *kqueueOpen(void) {
    int queue_fd = kqueue();
    if (queue_fd < 0) return NULL;
    if (fcntl(queue_fd, F_SETFD, FD_CLOEXEC) < 0) {
        close(queue_fd);
        return NULL;
    }
    kqueueState *state = memNew(kqueueState);
    state->queue_fd = queue_fd;
    return state;
}

static void kqueueClose(void *arg) {
    kqueueState *state = arg;
    close(state->queue_fd);
    memFree(state);
}

static int kqueueChange(void *arg, int fd, int old_mask, int mask) {
    static const struct {
        int direction;
        short filter;
    } filters[] = {{LOOP_READ, EVFILT_READ}, {LOOP_WRITE, EVFILT_WRITE}};
    const kqueueState *state = arg;
    struct kevent changes[4];
    int count = 0;
    for (int i = 0; i < 2; i++) {
        bool before = old_mask & filters[i].direction, after = mask & filters[i].direction;
        bool other_edge = (old_mask ^ mask) & LOOP_EDGE;
        /* EV_CLEAR takes effect only when a filter is added. */
        if (before && (!after || other_edge))
            EV_SET(&changes[count++], fd, filters[i].filter, EV_DELETE, 0, 0, NULL);
        if (after && (!before || other_edge))
            EV_SET(&changes[count++], fd, filters[i].filter,
                   mask & LOOP_EDGE ? EV_ADD | EV_CLEAR : EV_ADD, 0, 0, NULL);
    }
    return kevent(state->queue_fd, changes, count, NULL, 0, NULL);
}

static int kqueueWait(void *arg, int timeout_ms, loopReady *ready) {
    const kqueueState *state = arg;
    struct kevent events[LOOP_EVENTS_MAX];
    struct timespec timeout = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    int count =
        kevent(state->queue_fd, NULL, 0, events, LOOP_EVENTS_MAX, timeout_ms < 0 ? NULL : &timeout);
    if (count < 0) {
        check(errno == EINTR);
        return 0;
    }
    /* Two passes, so that the read event of a descriptor precedes its write event. */
    int filled = 0;
    for (int writers = 0; writers <= 1; writers++) {
        for (int i = 0; i < count; i++) {
            bool is_writer = events[i].filter == EVFILT_WRITE;
            if (is_writer != (bool)writers) continue;
            ready[filled].fd = (int)events[i].ident;
            ready[filled].mask = is_writer ? LOOP_WRITE : LOOP_READ;
            if (events[i].flags & EV_EOF) ready[filled].mask |= LOOP_HANGUP;
            filled++;
        }
    }
    return filled;
}

static const loopBackend backend = {.name = "kqueue",
                                    .has_edge = true,
                                    .open = kqueueOpen,
                                    .close = kqueueClose,
                                    .change = kqueueChange,
                                    .wait = kqueueWait};
const loopBackend *const loopKqueue = &backend;
#else
#include <stddef.h>
const loopBackend *const loopKqueue = NULL;
#endif
