/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event loop: file descriptors, timers, and one callback before and one after each sleep. A
 * loop belongs to one thread; other threads may only call loopWake(). Turns can be nested:
 * loopTurn() may be called from a callback, to serve clients during a long script or load. */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

typedef struct loop loop;

/* LOOP_HANGUP is only reported, together with LOOP_READ: the peer has closed its end, or the
 * descriptor has failed. */
enum { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_HANGUP = 8 };
enum { LOOP_TIMER_END = -1 };

typedef void loopFdProc(loop *l, int fd, void *arg, int mask);
/* Returns ms until the next call, or LOOP_TIMER_END. */
typedef int64_t loopTimerProc(loop *l, uint64_t id, void *arg);
typedef void loopSleepProc(loop *l, void *arg);

/* `backend` NULL selects the best one; tests pass "epoll" or "poll". NULL on failure. */
loop *loopNew(const char *backend, reason *why);
void loopFree(loop *l);
/* Name of the back end, as in INFO multiplexing_api. */
const char *loopBackendName(const loop *l);

/* Adds `mask` to what is watched on `fd`, with one callback and argument per direction. The read
 * callback runs before the write callback of the same descriptor; if both are identical, including
 * the argument, it is called once with both bits. An error or hang-up counts as ready. Call
 * loopUnwatch() before closing. */
status loopWatch(loop *l, int fd, int mask, loopFdProc *proc, void *arg) MUST_USE;
void loopUnwatch(loop *l, int fd, int mask);
int loopWatched(const loop *l, int fd);
/* On: events of a watched descriptor are reported when it becomes ready, once, and not for as long
 * as it is. What is ready at the time of the call is reported in the next turn. Ends when nothing
 * is watched any more. ERR_IO: the back end cannot do that ("poll"). */
status loopSetEdge(loop *l, int fd, bool on) MUST_USE;

/* On: in each turn the events of this descriptor, which is watched, come first, and
 * loopServePriority() looks at it. Ends when nothing is watched any more. */
void loopSetPriority(loop *l, int fd, bool on);
/* In the middle of a turn: calls the read callbacks of ready descriptors with priority, at most 64,
 * without a wait; none with other back ends than epoll. Returns the number of events of such
 * descriptors since the turn began, or since the last call. */
int loopServePriority(loop *l);

uint64_t loopAddTimer(loop *l, int64_t delay_ms, loopTimerProc *proc, void *arg);
/* Removes a timer. May be called with the id of a removed timer, and from the timer's callback. */
void loopRemoveTimer(loop *l, uint64_t id);

void loopSetBeforeSleep(loop *l, loopSleepProc *proc, void *arg);
void loopSetAfterSleep(loop *l, loopSleepProc *proc, void *arg);
/* Limits the next sleep to `ms`; 0 means no sleep. Reset after each turn. */
void loopLimitSleep(loop *l, int64_t ms);
/* The outermost turns that wait call `leave` directly before they wait and `enter` directly after
 * it: in between another thread may use the loop and all that belongs to its thread, and calls
 * loopWake() afterwards. Without these functions turns cost nothing more. With the back end "poll"
 * they are called one after the other, for its state must not change while it waits. */
void loopSetGuard(loop *l, loopSleepProc *leave, loopSleepProc *enter);

/* One turn: before-sleep, wait, after-sleep, events, timers. With `wait` false it does not sleep.
 * Returns the number of events handled. */
int loopTurn(loop *l, bool wait);
/* Runs turns until loopStop(). */
void loopRun(loop *l);
void loopStop(loop *l);
/* Ends the current or next sleep immediately. Async-signal-safe. ANY_THREAD. */
void loopWake(loop *l);
/* Waits for loopWake() alone: no callback is called. May return early. */
void loopWaitWake(loop *l);
/* Number of turns begun so far, nested ones included. */
uint64_t loopTurnNumber(const loop *l);
/* Nesting depth of turns: 1 in an outermost turn. */
int loopDepth(const loop *l);

#endif
