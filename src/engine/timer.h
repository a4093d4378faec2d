/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wall-clock timers of sessions: the ends of waits and of pauses, in one heap. Setting and stopping cost O(log n), a
 * turn of the loop one test. Main thread only. */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

#include <stddef.h>
#include <stdint.h>

typedef struct engineTimer engineTimer;
struct engineTimer {
    int64_t at_ms;
    size_t place;                /* in the heap, from 1; 0: not set */
    void (*due)(engineTimer *t); /* is not set any more when it is called */
};

/* Sets the timer, or moves it. */
void timerSet(engineTimer *t, int64_t at_ms);
/* Fine for one that is not set. */
void timerStop(engineTimer *t);
/* Calls those whose time has come. Then *wait_ms is how long it takes until the next, -1: there is none. The carriers
 * call it once a turn. */
void timersTurn(int64_t *wait_ms);

#endif
