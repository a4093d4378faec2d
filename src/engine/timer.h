/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wall-clock timers of sessions, for timeouts of waits and pauses, in one heap. Setting and
 * stopping cost O(log n), a turn of the loop one test. Main thread only. */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include <stddef.h>
#include <stdint.h>

typedef struct engineTimer engineTimer;
struct engineTimer {
    int64_t at_ms;
    size_t index;                /* index in the heap, from 1; 0: not set */
    uint64_t turn;               /* the call of timersTurn() that preceded timerSet() */
    void (*due)(engineTimer *t); /* called when it expires; the timer is not set any more then */
};

/* Sets the timer, or changes its time. One that is set during timersTurn() is called in the next
 * turn at the earliest, so work can be continued turn by turn. */
void timerSet(engineTimer *t, int64_t at_ms);
/* May be called if the timer is not set. */
void timerStop(engineTimer *t);
/* Calls the timers that have expired, earliest first; if many did, some now and others in the next
 * turns, so that other clients are served in between. *wait_ms is set to the time until the next
 * one, -1: none. Called by the carriers, once or several times per turn. */
void timersTurn(int64_t *wait_ms);
/* A turn begins: allows as many timers again. */
void timersNewTurn(void);

#endif
