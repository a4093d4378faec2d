/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fallback back end: poll(). The cost of a turn is linear in the highest descriptor. Invariant:
 * entry i is for descriptor i, or disabled with the descriptor -1. */
#include "io/loop_backend.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "io/loop.h"

typedef struct pollState {
    struct pollfd *entries;
    size_t count;
    size_t cap;
    size_t start; /* where the next scan starts: more may be ready than fits in one turn */
} pollState;

static void *pollOpen(void) { return memNew(pollState); }

static void pollClose(void *arg) {
    pollState *state = arg;
    memFree(state->entries);
    memFree(state);
}

static int pollChange(void *arg, int fd, int old_mask, int mask) {
    (void)old_mask; /* the entry is overwritten */
    pollState *state = arg;
    size_t need = (size_t)fd + 1;
    if (need > state->cap) {
        state->cap = sizePowerOfTwo(sizeMax(need, 64));
        state->entries = memRealloc(state->entries, state->cap * sizeof(*state->entries));
    }
    while (state->count < need) state->entries[state->count++] = (struct pollfd){.fd = -1};
    struct pollfd *entry = &state->entries[fd];
    *entry = (struct pollfd){.fd = mask ? fd : -1};
    if (mask & LOOP_READ) entry->events |= POLLIN;
    if (mask & LOOP_WRITE) entry->events |= POLLOUT;
    return 0;
}

static int pollWait(void *arg, int timeout_ms, loopReady *ready) {
    pollState *state = arg;
    int found = poll(state->entries, (nfds_t)state->count, timeout_ms);
    if (found < 0) {
        check(errno == EINTR);
        return 0;
    }
    int filled = 0;
    for (size_t n = 0; n < state->count && filled < found && filled < LOOP_EVENTS_MAX; n++) {
        size_t i = (state->start + n) % state->count;
        const struct pollfd *entry = &state->entries[i];
        if (entry->fd < 0 || !entry->revents) continue;
        int mask = 0;
        if (entry->revents & (POLLIN | POLLERR | POLLHUP | POLLNVAL)) mask |= LOOP_READ;
        if (entry->revents & (POLLOUT | POLLERR | POLLHUP | POLLNVAL)) mask |= LOOP_WRITE;
        ready[filled].fd = entry->fd;
        ready[filled].mask = mask;
        filled++;
    }
    if (filled) state->start = ((size_t)ready[filled - 1].fd + 1) % state->count;
    return filled;
}

static const loopBackend backend = {.name = "poll",
                                    .has_edge = false,
                                    .open = pollOpen,
                                    .close = pollClose,
                                    .change = pollChange,
                                    .wait = pollWait};
const loopBackend *const loopPoll = &backend;
