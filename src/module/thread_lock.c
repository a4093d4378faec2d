/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lock of the server for threads of modules.
 *
 * Invariant: if anyone waits, the lock is held: it is handed over to who has waited longest. A turn
 * of the loop without a waiting thread costs two uncontended mutex operations, and nothing at all
 * if the lock was never offered. */
#include "module/thread_lock.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/base.h"
#include "engine/block.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "engine/propagate.h"
#include "module/main_queue.h"
#include "net/net.h"
#include "resp/resp.h"

/* A thread that waits, on its stack. */
typedef struct waiter {
    struct waiter *next;
    pthread_t who;
    pthread_cond_t granted;
    bool has_it;
} waiter;

static struct {
    pthread_mutex_t mutex;
    bool held;
    pthread_t owner, main_thread;
    int nested; /* further calls of threadLockTake() by the owner */
    waiter *first, *last;
    waiter *lender; /* that gets it when the main thread releases it; NULL: none */
    bool offered;
} lock = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------ taking and releasing */

static bool tryTake(void) {
    pthread_mutex_lock(&lock.mutex);
    bool free = !lock.held;
    if (free) {
        lock.held = true;
        lock.owner = pthread_self();
    }
    pthread_mutex_unlock(&lock.mutex);
    return free;
}

/* Removes the thread `w` from those who wait. */
static void dequeue(waiter *w) {
    waiter *before = NULL;
    for (waiter *at = lock.first; at != w; at = at->next) before = at;
    *(before ? &before->next : &lock.first) = w->next;
    if (lock.last == w) lock.last = before;
}

/* Waits until `end` at most, for ever if it is NULL. False: the time is over. */
static bool takeUntil(const struct timespec *end) {
    waiter own = {.who = pthread_self(), .granted = PTHREAD_COND_INITIALIZER};
    int result = 0;
    pthread_mutex_lock(&lock.mutex);
    check(!lock.held || !pthread_equal(lock.owner, own.who));
    if (!lock.held) {
        lock.held = own.has_it = true;
        lock.owner = own.who;
    } else {
        *(lock.first ? &lock.last->next : &lock.first) = &own;
        lock.last = &own;
        while (!own.has_it && result != ETIMEDOUT)
            result = end ? pthread_cond_timedwait(&own.granted, &lock.mutex, end)
                         : pthread_cond_wait(&own.granted, &lock.mutex);
        if (!own.has_it) dequeue(&own);
    }
    pthread_mutex_unlock(&lock.mutex);
    pthread_cond_destroy(&own.granted);
    return own.has_it;
}

static void take(void) { check(takeUntil(NULL)); }

/* Gives the lock to a waiting thread. The mutex is locked. */
static void grant(waiter *next) {
    hotCheck(lock.held);
    hotCheck(!next->has_it);
    lock.owner = next->who;
    next->has_it = true;
    pthread_cond_signal(&next->granted);
}

static void release(void) {
    pthread_mutex_lock(&lock.mutex);
    check(lock.held);
    check(pthread_equal(lock.owner, pthread_self()));
    waiter *next = lock.lender ? lock.lender : lock.first;
    if (next && next == lock.first) dequeue(next);
    lock.lender = NULL;
    if (next) {
        grant(next);
    } else {
        lock.held = false;
    }
    pthread_mutex_unlock(&lock.mutex);
}

/* Gives the lock to the main thread and waits until it releases it. False: it does not wait. */
static bool lend(void) {
    waiter own = {.who = pthread_self(), .granted = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&lock.mutex);
    waiter *w = lock.first;
    while (w && !pthread_equal(w->who, lock.main_thread)) w = w->next;
    if (w) {
        dequeue(w);
        lock.lender = &own;
        grant(w);
        while (!own.has_it) pthread_cond_wait(&own.granted, &lock.mutex);
    }
    pthread_mutex_unlock(&lock.mutex);
    pthread_cond_destroy(&own.granted);
    return w != NULL;
}

bool threadLockIsMain(void) {
    pthread_mutex_lock(&lock.mutex);
    bool is_main = pthread_equal(lock.main_thread, pthread_self());
    pthread_mutex_unlock(&lock.mutex);
    return is_main;
}

bool threadLockIsMine(void) {
    pthread_mutex_lock(&lock.mutex);
    bool mine = lock.held && pthread_equal(lock.owner, pthread_self());
    pthread_mutex_unlock(&lock.mutex);
    return mine;
}

/* ------------------------------------------------------------------ the main thread */

static void leave(loop *l, void *arg) {
    (void)l, (void)arg; /* there is one lock */
    release();
}

static void enter(loop *l, void *arg) {
    (void)l, (void)arg;
    if (likely(tryTake())) return;
    int64_t began_us = clockMonoUs();
    take();
    latencyNote("module-acquire-GIL", (clockMonoUs() - began_us) / 1000);
}

/* Requests that wait for keys which a thread has changed run before those that arrive now. */
static void wakeBlocked(void) {
    if (!engineHot.current) blockWake();
}

static const stageJob stages[] = {{STAGE_AFTER_SLEEP, wakeBlocked}, {0}};
static const feature lock_feature = {.name = "module lock", .stages = stages};

static void startOffering(void *arg) {
    (void)arg;
    hotCheck(threadLockIsMine());
    loopSetGuard(engineLoop(), leave, enter);
    hooksAddFeature(&lock_feature);
}

void threadLockStart(void) {
    pthread_mutex_lock(&lock.mutex);
    lock.held = true;
    lock.owner = lock.main_thread = pthread_self();
    pthread_mutex_unlock(&lock.mutex);
}

void threadLockOffer(void) {
    if (__atomic_exchange_n(&lock.offered, true, __ATOMIC_RELAXED)) return;
    mainQueueAdd(startOffering, NULL);
}

/* ------------------------------------------------------------------ other threads */

/* The thread acts for the main thread from now on. */
static void begin(void) {
    netActAsMain(true);
    executeNewTurn();
    propagateUnitBegin();
}

void threadLockTake(void) {
    threadLockOffer();
    if (threadLockIsMine()) {
        lock.nested++;
        return;
    }
    take();
    begin();
}

bool threadLockTakeWithin(int ms) {
    threadLockOffer();
    if (threadLockIsMine()) {
        lock.nested++;
        return true;
    }
    struct timespec end;
    (void)clock_gettime(CLOCK_REALTIME, &end); /* the clock exists */
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000L;
    }
    if (!takeUntil(&end)) return false;
    begin();
    return true;
}

bool threadLockTry(void) {
    threadLockOffer();
    if (!tryTake()) return false;
    begin();
    return true;
}

void threadLockLend(void) {
    netActAsMain(false);
    if (!lend()) loopWake(engineLoop());
    netActAsMain(true);
}

bool threadLockRelease(void) {
    if (!threadLockIsMine()) return false;
    if (lock.nested) {
        lock.nested--;
        return true;
    }
    if (pthread_equal(lock.main_thread, pthread_self())) return false;
    propagateUnitEnd();
    netActAsMain(false);
    (void)outbufPoolTrim(); /* the thread may end */
    release();
    loopWake(engineLoop()); /* to send what has come together */
    return true;
}
