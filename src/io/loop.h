/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event loop: file descriptors, timers, and one procedure before and one after each sleep.
 * One loop belongs to one thread; loopWake() alone may be called from any. Turns may nest (a long
 * script or a load serves clients meanwhile): loopTurn() from inside a callback is legal. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

typedef struct loop loop;

enum { LOOP_READ = 1, LOOP_WRITE = 2 };
enum { LOOP_TIMER_END = -1 };

typedef void loopFdProc(loop *l, int fd, void *arg, int mask);
/* Returns ms until the next call, or LOOP_TIMER_END. */
typedef int64_t loopTimerProc(loop *l, uint64_t id, void *arg);
typedef void loopSleepProc(loop *l, void *arg);

/* `backend` NULL takes the platform's best; "epoll", "kqueue", "poll" by name (tests). NULL on
 * failure. */
loop *loopNew(const char *backend, reason *why);
void loopFree(loop *l);
/* "epoll", ...: INFO multiplexing_api. */
const char *loopBackendName(const loop *l);

/* Adds `mask` to what is watched on `fd`; one procedure and argument per direction. The reader is
 * called before the writer of the same descriptor; if both are the same with the same argument it
 * is called once, with both bits. An error or hang-up counts as ready. Unwatch before closing. */
status loopWatch(loop *l, int fd, int mask, loopFdProc *proc, void *arg) MUST_USE;
void loopUnwatch(loop *l, int fd, int mask);
int loopWatched(const loop *l, int fd);

uint64_t loopAddTimer(loop *l, int64_t delay_ms, loopTimerProc *proc, void *arg);
/* Fine to call for one that is gone, and from inside the timer itself. */
void loopDropTimer(loop *l, uint64_t id);

void loopSetBeforeSleep(loop *l, loopSleepProc *proc, void *arg);
void loopSetAfterSleep(loop *l, loopSleepProc *proc, void *arg);
/* The next sleep lasts at most `ms`; 0 means do not sleep this turn. Reset after each turn. */
void loopLimitSleep(loop *l, int64_t ms);

/* One turn: before-sleep, wait, after-sleep, events, timers. `wait` false polls only. Returns
 * events handled. */
int loopTurn(loop *l, bool wait);
/* Turns until loopStop(). */
void loopRun(loop *l);
void loopStop(loop *l);
/* Ends the present or the next sleep at once. Async-signal-safe. ANY_THREAD. */
void loopWake(loop *l);
/* How deep turns are nested now: 1 in a plain turn. */
int loopDepth(const loop *l);

#endif
