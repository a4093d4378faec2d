/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event loop over a back end (epoll, poll).
 *
 * Invariants: fds[i].mask is what the back end watches on descriptor i. The generation of a
 * descriptor changes when it is no longer watched, so an event fetched before it was closed is
 * never delivered to the next owner of the same number. The heap is ordered by deadline; a running
 * timer is not in it. Cost: one wait and two clock reads per turn; O(log timers) per timer. One
 * thread owns a loop; other threads may only call loopWake(). */
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/eventfd.h>
#endif

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "io/loop_backend.h"

#define NOT_IN_HEAP UINT32_MAX
#define NO_LIMIT (-1)

typedef struct loopFd {
    loopFdProc *read_proc;
    loopFdProc *write_proc;
    void *read_arg;
    void *write_arg;
    int16_t mask;
    bool has_priority;
    uint32_t generation;
} loopFd;

/* A timer slot. A timer's id consists of slot and generation, so the id of a removed timer matches
 * no new one. */
typedef struct loopTimer {
    loopTimerProc *proc; /* NULL: free, or removed while running */
    void *arg;
    int64_t deadline_us;
    uint32_t generation;
    uint32_t heap_index; /* NOT_IN_HEAP: free or running */
    uint32_t next_free;
    bool running;
} loopTimer;

struct loop {
    const loopBackend *backend;
    void *state;
    loopFd *fds;
    size_t fd_count;

    loopTimer *timers;
    uint32_t *heap; /* slots of armed timers */
    uint32_t timer_cap;
    uint32_t timer_count; /* slots ever used */
    uint32_t heap_count;
    uint32_t first_free;
    int64_t timers_begin_us; /* start of the last run of timers */

    loopSleepProc *before_sleep, *after_sleep;
    void *before_arg, *after_arg;
    loopSleepProc *leave, *enter; /* around the wait */
    int64_t sleep_limit_ms;
    int priority_count;  /* of descriptors that have it */
    int priority_events; /* in this turn, since loopServePriority() */
    int depth;
    uint64_t turns;
    bool stopped;
    int wake_read_fd, wake_write_fd; /* the same one if eventfd is used */
};

/* ---- waking ---------------------------------------------------------------------------------- */

static int wakeOpen(loop *l) {
#ifdef __linux__
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->wake_read_fd = l->wake_write_fd = fd;
    return fd < 0 ? -1 : 0;
#else
    int ends[2];
    if (pipe(ends) != 0) return -1;
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK); /* cannot fail on a new pipe */
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    l->wake_read_fd = ends[0];
    l->wake_write_fd = ends[1];
    return 0;
#endif
}

static void wakeClose(loop *l) {
    if (l->wake_read_fd >= 0) close(l->wake_read_fd);
    if (l->wake_write_fd >= 0 && l->wake_write_fd != l->wake_read_fd) close(l->wake_write_fd);
}

/* Consumes any number of wakes: an eventfd returns their sum, a pipe is read until it is empty. */
static void wakeDrain(int fd) {
    char sink[64];
    ssize_t got;
    do { got = read(fd, sink, sizeof(sink)); } while (got == (ssize_t)sizeof(sink));
}

/* With edges each write is reported once, so nothing has to be read: the counter of an eventfd
 * needs 2^64 wakes to be full. */
static void wakeArrived(loop *l, int fd, void *arg, int mask) {
    (void)arg, (void)mask;
    if (!(l->fds[fd].mask & LOOP_EDGE)) wakeDrain(fd);
}

static status wakeWatch(loop *l) {
    status st = loopWatch(l, l->wake_read_fd, LOOP_READ, wakeArrived, NULL);
    bool is_counter = l->wake_read_fd == l->wake_write_fd;
    return st == OK && is_counter && l->backend->has_edge ? loopSetEdge(l, l->wake_read_fd, true)
                                                          : st;
}

void loopWake(loop *l) {
    int saved = errno;
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(l->wake_write_fd, &one, sizeof(one));
    } while (written < 0 && errno == EINTR);
    /* EAGAIN means that it is full, so the loop is going to wake anyway. */
    errno = saved;
}

void loopWaitWake(loop *l) {
    struct pollfd fd = {.fd = l->wake_read_fd, .events = POLLIN};
    if (poll(&fd, 1, -1) > 0) wakeDrain(l->wake_read_fd);
}

/* ---- creating and freeing
 * ---------------------------------------------------------------------- */

static const loopBackend *backendNamed(const char *name) {
    const loopBackend *all[] = {loopEpoll, loopPoll};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (!all[i]) continue;
        if (!name || strcmp(name, all[i]->name) == 0) return all[i];
    }
    return NULL;
}

loop *loopNew(const char *backend, reason *why) {
    const loopBackend *found = backendNamed(backend);
    if (!found) {
        reasonSet(why, ERR_NOT_FOUND, "no event back end '%s' here", backend);
        return NULL;
    }
    loop *l = memNew(loop);
    l->backend = found;
    l->sleep_limit_ms = NO_LIMIT;
    l->first_free = NOT_IN_HEAP;
    l->wake_read_fd = l->wake_write_fd = -1;
    l->state = found->open();
    if (!l->state || wakeOpen(l) != 0) {
        reasonSetErrno(why, "can't create an event loop");
        goto fail;
    }
    if (wakeWatch(l) != OK) {
        reasonSetErrno(why, "can't watch the loop's own descriptor");
        goto fail;
    }
    return l;
fail:
    loopFree(l);
    return NULL;
}

void loopFree(loop *l) {
    if (!l) return;
    check(l->depth == 0);
    wakeClose(l);
    if (l->state) l->backend->close(l->state);
    memFree(l->fds);
    memFree(l->timers);
    memFree(l->heap);
    memFree(l);
}

const char *loopBackendName(const loop *l) { return l->backend->name; }

/* ---- descriptors ----------------------------------------------------------------------------- */

static void fdsGrow(loop *l, size_t need) {
    hotCheck(need > l->fd_count);
    size_t count = sizePowerOfTwo(sizeMax(need, 64));
    l->fds = memRealloc(l->fds, count * sizeof(*l->fds));
    memset(l->fds + l->fd_count, 0, (count - l->fd_count) * sizeof(*l->fds));
    l->fd_count = count;
}

status loopWatch(loop *l, int fd, int mask, loopFdProc *proc, void *arg) {
    check(fd >= 0);
    check((mask & ~(LOOP_READ | LOOP_WRITE)) == 0);
    check(proc != NULL);
    if ((size_t)fd >= l->fd_count) fdsGrow(l, (size_t)fd + 1);
    loopFd *entry = &l->fds[fd];
    int wanted = entry->mask | mask;
    if (wanted != entry->mask && l->backend->change(l->state, fd, entry->mask, wanted) != 0)
        return ERR_IO;
    entry->mask = (int16_t)wanted;
    if (mask & LOOP_READ) {
        entry->read_proc = proc;
        entry->read_arg = arg;
    }
    if (mask & LOOP_WRITE) {
        entry->write_proc = proc;
        entry->write_arg = arg;
    }
    return OK;
}

void loopUnwatch(loop *l, int fd, int mask) {
    if (fd < 0 || (size_t)fd >= l->fd_count) return;
    loopFd *entry = &l->fds[fd];
    int left = entry->mask & ~mask;
    if (left == entry->mask) return;
    if (left == LOOP_EDGE) left = 0;
    if (unlikely(entry->has_priority) && left == 0) loopSetPriority(l, fd, false);
    /* Fails only for a descriptor that was closed already and therefore is not watched any more. */
    (void)l->backend->change(l->state, fd, entry->mask, left);
    entry->mask = (int16_t)left;
    if (left == 0) entry->generation++;
}

status loopSetEdge(loop *l, int fd, bool on) {
    check(fd >= 0);
    check((size_t)fd < l->fd_count);
    loopFd *entry = &l->fds[fd];
    check(entry->mask != 0);
    int wanted = on ? entry->mask | LOOP_EDGE : entry->mask & ~LOOP_EDGE;
    if (wanted == entry->mask) return OK;
    if (!l->backend->has_edge || l->backend->change(l->state, fd, entry->mask, wanted) != 0)
        return ERR_IO;
    entry->mask = (int16_t)wanted;
    return OK;
}

void loopSetPriority(loop *l, int fd, bool on) {
    check(fd >= 0);
    check((size_t)fd < l->fd_count);
    loopFd *entry = &l->fds[fd];
    check(entry->mask != 0);
    if (entry->has_priority == on) return;
    entry->has_priority = on;
    l->priority_count += on ? 1 : -1;
    /* Without it the descriptor is served in the next turn. */
    if (l->backend->set_priority) (void)l->backend->set_priority(l->state, fd, on);
}

int loopWatched(const loop *l, int fd) {
    return fd >= 0 && (size_t)fd < l->fd_count ? l->fds[fd].mask & ~LOOP_EDGE : 0;
}

/* ---- timers ---------------------------------------------------------------------------------- */

static void heapPut(loop *l, uint32_t index, uint32_t slot) {
    hotCheck(index <= l->heap_count);
    hotCheck(slot < l->timer_count);
    l->heap[index] = slot;
    l->timers[slot].heap_index = index;
}

static int64_t heapDeadline(const loop *l, uint32_t index) {
    return l->timers[l->heap[index]].deadline_us;
}

static void heapUp(loop *l, uint32_t index) {
    uint32_t slot = l->heap[index];
    int64_t deadline_us = l->timers[slot].deadline_us;
    while (index > 0 && heapDeadline(l, (index - 1) / 2) > deadline_us) {
        heapPut(l, index, l->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    heapPut(l, index, slot);
    hotCheck(heapDeadline(l, 0) <= deadline_us);
}

static void heapDown(loop *l, uint32_t index) {
    hotCheck(index < l->heap_count);
    uint32_t slot = l->heap[index];
    int64_t deadline_us = l->timers[slot].deadline_us;
    for (;;) {
        uint32_t child = index * 2 + 1;
        if (child >= l->heap_count) break;
        if (child + 1 < l->heap_count && heapDeadline(l, child + 1) < heapDeadline(l, child))
            child++;
        if (heapDeadline(l, child) >= deadline_us) break;
        heapPut(l, index, l->heap[child]);
        index = child;
    }
    heapPut(l, index, slot);
    hotCheck(index == 0 || heapDeadline(l, (index - 1) / 2) <= deadline_us);
    hotCheck(heapDeadline(l, 0) <= deadline_us);
}

static void heapAdd(loop *l, uint32_t slot) {
    hotCheck(slot < l->timer_count);
    hotCheck(l->heap_count < l->timer_cap);
    l->heap[l->heap_count] = slot;
    heapUp(l, l->heap_count++);
}

static void heapRemove(loop *l, uint32_t slot) {
    uint32_t index = l->timers[slot].heap_index;
    check(index < l->heap_count);
    hotCheck(l->heap[index] == slot);
    l->timers[slot].heap_index = NOT_IN_HEAP;
    l->heap_count--;
    if (index == l->heap_count) return;
    uint32_t moved = l->heap[l->heap_count];
    hotCheck(l->timers[moved].heap_index == l->heap_count);
    heapPut(l, index, moved);
    heapUp(l, index);
    heapDown(l, l->timers[moved].heap_index);
}

static uint32_t timerSlot(loop *l) {
    if (l->first_free != NOT_IN_HEAP) {
        uint32_t slot = l->first_free;
        l->first_free = l->timers[slot].next_free;
        return slot;
    }
    if (l->timer_count == l->timer_cap) {
        l->timer_cap = l->timer_cap ? l->timer_cap * 2 : 8;
        l->timers = memRealloc(l->timers, l->timer_cap * sizeof(*l->timers));
        l->heap = memRealloc(l->heap, l->timer_cap * sizeof(*l->heap));
    }
    hotCheck(l->timer_count < l->timer_cap);
    l->timers[l->timer_count].generation = 0;
    return l->timer_count++;
}

static void timerRelease(loop *l, uint32_t slot) {
    hotCheck(slot < l->timer_count);
    loopTimer *t = &l->timers[slot];
    t->proc = NULL;
    t->next_free = l->first_free;
    l->first_free = slot;
}

/* Adds the timer to the heap. A timer armed while timers run gets a deadline after the start of
 * that run, even with delay 0: it runs in the next turn, so that descriptors are served in
 * between. */
static void timerArm(loop *l, uint32_t slot, int64_t delay_ms) {
    hotCheck(slot < l->timer_count);
    int64_t delay_us, deadline_us;
    if (delay_ms < 0) delay_ms = 0;
    if (__builtin_mul_overflow(delay_ms, 1000, &delay_us) ||
        __builtin_add_overflow(clockMonoUs(), delay_us, &deadline_us))
        deadline_us = INT64_MAX;
    if (deadline_us <= l->timers_begin_us) deadline_us = l->timers_begin_us + 1;
    l->timers[slot].deadline_us = deadline_us;
    heapAdd(l, slot);
}

uint64_t loopAddTimer(loop *l, int64_t delay_ms, loopTimerProc *proc, void *arg) {
    check(proc != NULL);
    uint32_t slot = timerSlot(l);
    loopTimer *t = &l->timers[slot];
    t->proc = proc;
    t->arg = arg;
    t->running = false;
    t->generation++;
    timerArm(l, slot, delay_ms);
    return (uint64_t)t->generation << 32 | slot;
}

void loopRemoveTimer(loop *l, uint64_t id) {
    uint32_t slot = (uint32_t)id;
    if (slot >= l->timer_count) return;
    loopTimer *t = &l->timers[slot];
    if (!t->proc || t->generation != (uint32_t)(id >> 32)) return;
    t->proc = NULL;
    if (t->running) return; /* runTimers() releases the slot when the callback returns */
    heapRemove(l, slot);
    timerRelease(l, slot);
}

/* Runs all timers that are due. */
static int runTimers(loop *l) {
    if (l->heap_count == 0) return 0;
    int64_t begin_us = clockMonoUs();
    l->timers_begin_us = begin_us;
    int count = 0;
    while (l->heap_count && heapDeadline(l, 0) <= begin_us) {
        uint32_t slot = l->heap[0];
        loopTimer *t = &l->timers[slot];
        uint64_t id = (uint64_t)t->generation << 32 | slot;
        heapRemove(l, slot);
        t->running = true;
        int64_t again_ms = t->proc(l, id, t->arg);
        t = &l->timers[slot]; /* the table may have been reallocated */
        t->running = false;
        count++;
        if (!t->proc || again_ms < 0) {
            timerRelease(l, slot);
            continue;
        }
        timerArm(l, slot, again_ms);
    }
    return count;
}

/* ---- turns ----------------------------------------------------------------------------------- */

void loopSetBeforeSleep(loop *l, loopSleepProc *proc, void *arg) {
    l->before_sleep = proc;
    l->before_arg = arg;
}

void loopSetAfterSleep(loop *l, loopSleepProc *proc, void *arg) {
    l->after_sleep = proc;
    l->after_arg = arg;
}

void loopLimitSleep(loop *l, int64_t ms) {
    if (ms < 0) ms = 0;
    if (l->sleep_limit_ms == NO_LIMIT || ms < l->sleep_limit_ms) l->sleep_limit_ms = ms;
}

void loopSetGuard(loop *l, loopSleepProc *leave, loopSleepProc *enter) {
    l->leave = leave;
    l->enter = enter;
}

/* Timeout of the next wait; consumes the sleep limit. */
static int sleepTimeout(loop *l, bool wait) {
    hotCheck(l->sleep_limit_ms >= 0 || l->sleep_limit_ms == NO_LIMIT);
    int64_t limit_ms = l->sleep_limit_ms;
    l->sleep_limit_ms = NO_LIMIT;
    if (!wait || limit_ms == 0) return 0;
    int64_t timeout_ms = -1;
    if (l->heap_count) {
        int64_t left_us = heapDeadline(l, 0) - clockMonoUs();
        timeout_ms = left_us > 0 ? left_us / 1000 + (left_us % 1000 != 0) : 0;
    }
    if (limit_ms != NO_LIMIT && (timeout_ms < 0 || limit_ms < timeout_ms)) timeout_ms = limit_ms;
    return timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
}

/* Waits as loopSetGuard() wants. */
static NO_INLINE int waitGuarded(loop *l, int timeout_ms, loopReady *ready) {
    hotCheck(l->depth == 1);
    l->leave(l, NULL);
    if (!l->backend->has_edge) l->enter(l, NULL);
    int count = l->backend->wait(l->state, timeout_ms, ready);
    if (l->backend->has_edge) l->enter(l, NULL);
    return count;
}

/* Calls the callbacks of a ready descriptor; returns their number. */
static int dispatch(loop *l, const loopReady *ready) {
    hotCheck(ready->fd >= 0);
    hotCheck((size_t)ready->fd < l->fd_count);
    const loopFd *entry = &l->fds[ready->fd];
    if (entry->generation != ready->generation) return 0;
    int mask = entry->mask & ready->mask;
    bool both = mask == (LOOP_READ | LOOP_WRITE) && entry->read_proc == entry->write_proc &&
                entry->read_arg == entry->write_arg;
    if (both) {
        entry->read_proc(l, ready->fd, entry->read_arg, mask);
        return 1;
    }
    int count = 0;
    if (mask & LOOP_READ) {
        entry->read_proc(l, ready->fd, entry->read_arg, LOOP_READ | (ready->mask & LOOP_HANGUP));
        count++;
        /* The read callback may have reallocated the table, closed the descriptor or stopped
         * watching for writability. */
        entry = &l->fds[ready->fd];
        if (entry->generation != ready->generation) return count;
    }
    if (mask & entry->mask & LOOP_WRITE) {
        entry->write_proc(l, ready->fd, entry->write_arg, LOOP_WRITE);
        count++;
    }
    return count;
}

int loopServePriority(loop *l) {
    enum { READY_MAX = 64 };
    int before = l->priority_events;
    l->priority_events = 0;
    if (!l->priority_count || !l->backend->wait_priority) return before;
    hotCheck(l->depth > 0);
    loopReady ready[READY_MAX];
    int count = l->backend->wait_priority(l->state, ready, READY_MAX);
    for (int i = 0; i < count; i++) {
        ready[i].generation = l->fds[ready[i].fd].generation;
        ready[i].mask &= LOOP_READ;
    }
    for (int i = 0; i < count; i++) dispatch(l, &ready[i]);
    return before + count;
}

/* Dispatches those events of a turn that come before others. */
static NO_INLINE int dispatchPriority(loop *l, loopReady *ready, int count) {
    int handled = 0;
    l->priority_events = 0;
    for (int i = 0; i < count; i++) {
        if (!l->fds[ready[i].fd].has_priority) continue;
        handled += dispatch(l, &ready[i]);
        ready[i].mask = 0;
        l->priority_events++;
    }
    return handled;
}

int loopTurn(loop *l, bool wait) {
    hotCheck(l->depth >= 0);
    /* On the stack, because turns can be nested. */
    loopReady ready[LOOP_EVENTS_MAX];
    l->depth++;
    l->turns++;
    if (l->before_sleep) l->before_sleep(l, l->before_arg);
    int timeout_ms = sleepTimeout(l, wait);
    int ready_count = unlikely(l->leave != NULL) && wait && l->depth == 1
                          ? waitGuarded(l, timeout_ms, ready)
                          : l->backend->wait(l->state, timeout_ms, ready);
    for (int i = 0; i < ready_count; i++) ready[i].generation = l->fds[ready[i].fd].generation;
    if (l->after_sleep) l->after_sleep(l, l->after_arg);
    int handled = unlikely(l->priority_count) ? dispatchPriority(l, ready, ready_count) : 0;
    for (int i = 0; i < ready_count; i++) {
        int called = dispatch(l, &ready[i]);
        if (ready[i].fd != l->wake_read_fd) handled += called;
    }
    handled += runTimers(l);
    l->depth--;
    return handled;
}

void loopRun(loop *l) {
    l->stopped = false;
    while (!l->stopped) loopTurn(l, true);
}

void loopStop(loop *l) { l->stopped = true; }

uint64_t loopTurnNumber(const loop *l) { return l->turns; }

int loopDepth(const loop *l) { return l->depth; }
