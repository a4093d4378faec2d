/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: timers, and descriptors in the event loop. A timer expires once. Its id is
 * the time of its expiry in microseconds, increased while another timer has that id.
 *
 * Main thread, or a thread that has the lock; EventLoopAddOneShot(): any thread. */
#include <errno.h>

#include "base/base.h"
#include "ds/ordered.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "io/loop.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/main_queue.h"
#include "module/timers.h"
#include "net/net.h"

/* ------------------------------------------------------------------ timers */

typedef struct moduleTimer {
    module *owner;
    uint64_t id, in_loop;
    int64_t due_us; /* monotonic */
    int db_id;
    ValkeyModuleTimerProc proc;
    void *data;
} moduleTimer;

static uint64_t idOf(const void *timer) { return ((const moduleTimer *)timer)->id; }

static slice noText(const void *timer) {
    (void)timer; /* ids are unique */
    return SLICE("");
}

static const orderedType by_id = {.rank_of = idOf, .text_of = noText};

/* By id, which is the order in which they are due. */
static orderedIndex timers;

/* The first timer whose id is not less; NULL: there is none. `at`: its position. */
static moduleTimer *seekTimer(uint64_t id, orderedCursor *at) {
    orderedPoint from = {.by = ORDERED_BY_RANK, .rank = id};
    uint64_t index = orderedCountBefore(&timers, &by_id, &from);
    return index < timers.count ? orderedSeek(&timers, index, at) : NULL;
}

static moduleTimer *findTimer(uint64_t id) {
    orderedCursor at;
    moduleTimer *t = seekTimer(id, &at);
    return t && t->id == id ? t : NULL;
}

static void freeTimer(moduleTimer *t) {
    hotCheck(findTimer(t->id) == t);
    orderedDelete(&timers, &by_id, t);
    if (t->owner) t->owner->timers--;
    memFree(t);
}

static void expire(ValkeyModuleCtx *x, void *arg) {
    hotCheck(((const moduleTimer *)arg)->proc);
    const moduleTimer *t = arg;
    t->proc(x, t->data);
}

static int64_t onTimer(loop *l, uint64_t id, void *arg) {
    moduleTimer *t = findTimer((uint64_t)(uintptr_t)arg);
    (void)l, (void)id; /* there is one loop; the module's id is enough */
    if (!t) return LOOP_TIMER_END;
    if (engineHot.current) return 1; /* a nested turn, within a command */
    uint64_t own = t->id;
    contextRun(t->owner, t->db_id, expire,
               t); /* its id is known until the end, also to StopTimer() */
    t = findTimer(own);
    if (t) freeTimer(t);
    return LOOP_TIMER_END;
}

/* The clock that ids count: the wall clock as it was at first, so that they are in the order of the
 * timers even if it is set. */
static int64_t idClockUs(int64_t mono_us) {
    hotCheck(mono_us >= 0);
    static int64_t wall_ahead_us;
    if (!wall_ahead_us) wall_ahead_us = clockWallUs() - clockMonoUs();
    return mono_us + wall_ahead_us;
}

ValkeyModuleTimerID apiCreateTimer(ValkeyModuleCtx *ctx, mstime_t period,
                                   ValkeyModuleTimerProc callback, void *data) {
    /* One that is never due: no sum of it and a clock overflows. */
    const int64_t longest_ms = INT64_MAX / 4000;
    int64_t delay_ms = period < 0 ? 0 : period > longest_ms ? longest_ms : period;
    orderedCursor at;
    moduleTimer *t = memNew(moduleTimer);
    t->owner = ctx->module;
    t->due_us = clockMonoUs() + delay_ms * 1000;
    t->db_id = ctx->run ? ctx->run->who->db_id : 0;
    t->proc = callback;
    t->data = data;
    t->id = (uint64_t)idClockUs(t->due_us);
    const moduleTimer *other = seekTimer(t->id, &at);
    for (; other && other->id == t->id; other = orderedNext(&at)) t->id++;
    t->in_loop = loopAddTimer(engineLoop(), delay_ms, onTimer, (void *)(uintptr_t)t->id);
    orderedInsert(&timers, &by_id, t);
    if (t->owner) t->owner->timers++; /* a thread's context may have none */
    return t->id;
}

/* A timer of the context's module. */
static moduleTimer *ownTimer(const ValkeyModuleCtx *x, uint64_t id) {
    moduleTimer *t = findTimer(id);
    return t && t->owner == x->module ? t : NULL;
}

int apiStopTimer(ValkeyModuleCtx *ctx, ValkeyModuleTimerID id, void **data) {
    moduleTimer *t = ownTimer(ctx, id);
    if (!t) return VALKEYMODULE_ERR;
    if (data) *data = t->data;
    loopRemoveTimer(engineLoop(), t->in_loop);
    freeTimer(t);
    return VALKEYMODULE_OK;
}

int apiGetTimerInfo(ValkeyModuleCtx *ctx, ValkeyModuleTimerID id, uint64_t *remaining,
                    void **data) {
    const moduleTimer *t = ownTimer(ctx, id);
    if (!t) return VALKEYMODULE_ERR;
    int64_t left_us = t->due_us - clockMonoUs();
    if (remaining) *remaining = left_us > 0 ? (uint64_t)left_us / 1000 : 0;
    if (data) *data = t->data;
    return VALKEYMODULE_OK;
}

static void descriptorsRemove(const module *m);

bool timersExist(const module *m) { return m->timers > 0; }

bool timersAreDue(int64_t before_us) {
    orderedCursor at;
    const moduleTimer *first = timers.count ? orderedSeek(&timers, 0, &at) : NULL;
    return first && first->due_us < before_us;
}

void timersRemove(module *m) {
    hotCheck(threadIsMain());
    orderedCursor at;
    moduleTimer *t = seekTimer(0, &at);
    while (t && m->timers > 0) {
        uint64_t id = t->id;
        bool is_own = t->owner == m;
        if (is_own) {
            loopRemoveTimer(engineLoop(), t->in_loop);
            freeTimer(t);
        }
        t = is_own ? seekTimer(id, &at) : orderedNext(&at); /* a change ends the cursor */
    }
    descriptorsRemove(m);
}

/* ------------------------------------------------------------------ descriptors */

enum { DIRECTIONS = 2 };

/* Callbacks of modules for a descriptor. */
typedef struct watchedFd {
    struct watchedFd *next;
    int fd;
    struct {
        ValkeyModuleEventLoopFunc func; /* NULL: not watched */
        void *data;
    } of[DIRECTIONS]; /* reading, writing */
} watchedFd;

static watchedFd *watched;

static watchedFd *findFd(int fd) {
    watchedFd *w = watched;
    while (w && w->fd != fd) w = w->next;
    return w;
}

static void onReady(loop *l, int fd, void *arg, int mask) {
    hotCheck(fd >= 0);
    watchedFd *w = arg;
    (void)l; /* there is one */
    static const int bits[DIRECTIONS] = {LOOP_READ, LOOP_WRITE};
    static const int told[DIRECTIONS] = {VALKEYMODULE_EVENTLOOP_READABLE,
                                         VALKEYMODULE_EVENTLOOP_WRITABLE};
    for (int i = 0; i < DIRECTIONS; i++) {
        if (!(mask & bits[i]) || findFd(fd) != w || !w->of[i].func) continue;
        w->of[i].func(fd, w->of[i].data, told[i]); /* it may end the watch */
    }
}

enum { BOTH = VALKEYMODULE_EVENTLOOP_READABLE | VALKEYMODULE_EVENTLOOP_WRITABLE };

static int loopMask(int mask) {
    hotCheck((mask & ~BOTH) == 0);
    return (mask & VALKEYMODULE_EVENTLOOP_READABLE ? LOOP_READ : 0) |
           (mask & VALKEYMODULE_EVENTLOOP_WRITABLE ? LOOP_WRITE : 0);
}

/* OK, or sets errno. The limit is that of Valkey, whose loop has a place for each descriptor. */
static int checkFd(int fd, int mask) {
    enum { BEYOND_CLIENTS = 128 };
    bool in_range = fd >= 0 && fd < netMaxClients() + BEYOND_CLIENTS;
    errno = !in_range ? ERANGE : mask & ~BOTH ? EINVAL : 0;
    return errno ? VALKEYMODULE_ERR : VALKEYMODULE_OK;
}

/* Frees the record of a descriptor on which nothing is watched any more. */
static void forgetIfUnwatched(watchedFd *w) {
    hotCheck(w->fd >= 0);
    if (w->of[0].func || w->of[1].func) return;
    watchedFd **at = &watched;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    memFree(w);
}

int apiEventLoopAdd(int fd, int mask, ValkeyModuleEventLoopFunc func, void *user_data) {
    if (checkFd(fd, mask) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    if (!func) {
        errno = EINVAL;
        return VALKEYMODULE_ERR;
    }
    if (!mask) return VALKEYMODULE_OK;
    watchedFd *w = findFd(fd);
    if (!w) {
        w = memNew(watchedFd);
        w->fd = fd;
        w->next = watched;
        watched = w;
    }
    if (loopWatch(engineLoop(), fd, loopMask(mask), onReady, w) != OK) {
        int error = errno; /* of the system, e.g. EBADF */
        forgetIfUnwatched(w);
        errno = error;
        return VALKEYMODULE_ERR;
    }
    for (int i = 0; i < DIRECTIONS; i++) {
        if (!(mask & (i ? VALKEYMODULE_EVENTLOOP_WRITABLE : VALKEYMODULE_EVENTLOOP_READABLE)))
            continue;
        w->of[i].func = func;
        w->of[i].data = user_data;
    }
    return VALKEYMODULE_OK;
}

int apiEventLoopDel(int fd, int mask) {
    if (checkFd(fd, mask) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    watchedFd *w = findFd(fd);
    if (!w) return VALKEYMODULE_OK;
    loopUnwatch(engineLoop(), fd, loopMask(mask));
    if (mask & VALKEYMODULE_EVENTLOOP_READABLE) w->of[0].func = NULL;
    if (mask & VALKEYMODULE_EVENTLOOP_WRITABLE) w->of[1].func = NULL;
    forgetIfUnwatched(w);
    return VALKEYMODULE_OK;
}

typedef struct oneShot {
    ValkeyModuleEventLoopOneShotFunc func;
    void *data;
} oneShot;

static void runOneShot(void *arg) {
    hotCheck(((const oneShot *)arg)->func);
    oneShot call = *(oneShot *)arg;
    memFree(arg);
    call.func(call.data);
}

int apiEventLoopAddOneShot(ValkeyModuleEventLoopOneShotFunc func, void *user_data) {
    if (!func) {
        errno = EINVAL;
        return VALKEYMODULE_ERR;
    }
    oneShot *call = memAlloc(sizeof(*call));
    *call = (oneShot){func, user_data};
    mainQueueAdd(runOneShot, call);
    return VALKEYMODULE_OK;
}

/* A call that waits in the queue is known by its block. */
static bool isOneShotOf(mainQueueProc *proc, const void *arg, const void *of) {
    return proc == runOneShot && moduleHasCode(of, (const void *)((const oneShot *)arg)->func);
}

/* The code of the module is about to be unmapped. */
static void descriptorsRemove(const module *m) {
    for (watchedFd *w = watched, *next; w; w = next) {
        next = w->next;
        for (int i = 0; i < DIRECTIONS; i++) {
            if (!w->of[i].func || !moduleHasCode(m, (const void *)w->of[i].func)) continue;
            loopUnwatch(engineLoop(), w->fd, i ? LOOP_WRITE : LOOP_READ);
            w->of[i].func = NULL;
        }
        forgetIfUnwatched(w);
    }
    mainQueueDrop(isOneShotOf, m, memFree);
}
