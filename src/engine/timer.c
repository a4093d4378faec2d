/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Timers of sessions (timer.h). Invariant: heap[1..count] is a binary heap with the earliest timer
 * first, and each timer knows its index. */
#include "engine/timer.h"

#include "base/base.h"

/* The callback of a timer sends a reply or ends a pause, which takes some 10 us. */
enum { DUE_PER_TURN = 64 };

static struct {
    engineTimer **heap; /* [0] is unused */
    size_t count, cap;
    uint64_t turn; /* number of calls of timersTurn() that found a timer */
    int due_left;  /* timers that may be called before the next timersNewTurn() */
} timers = {.due_left = DUE_PER_TURN};

static void put(size_t at, engineTimer *t) {
    timers.heap[at] = t;
    t->index = at;
}

/* Moves a timer up or down to restore the heap order. */
static void siftTimer(size_t at, engineTimer *t) {
    while (at > 1 && timers.heap[at / 2]->at_ms > t->at_ms) {
        put(at, timers.heap[at / 2]);
        at /= 2;
    }
    for (;;) {
        size_t child = 2 * at;
        if (child > timers.count) break;
        if (child < timers.count && timers.heap[child + 1]->at_ms < timers.heap[child]->at_ms)
            child++;
        if (timers.heap[child]->at_ms >= t->at_ms) break;
        put(at, timers.heap[child]);
        at = child;
    }
    put(at, t);
}

void timerSet(engineTimer *t, int64_t at_ms) {
    hotCheck(threadIsMain());
    t->at_ms = at_ms;
    t->turn = timers.turn;
    if (t->index) {
        siftTimer(t->index, t);
        return;
    }
    if (timers.count + 1 >= timers.cap) {
        timers.cap = timers.cap ? 2 * timers.cap : 16;
        timers.heap = memRealloc(timers.heap, timers.cap * sizeof(engineTimer *));
    }
    siftTimer(++timers.count, t);
}

void timerStop(engineTimer *t) {
    hotCheck(threadIsMain());
    if (!t->index) return;
    check(timers.heap[t->index] == t);
    engineTimer *last = timers.heap[timers.count--];
    if (last != t) siftTimer(t->index, last);
    t->index = 0;
    if (timers.count) return;
    memFree(timers.heap);
    timers.heap = NULL;
    timers.cap = 0;
}

void timersNewTurn(void) {
    hotCheck(timers.due_left >= 0);
    timers.due_left = DUE_PER_TURN;
}

void timersTurn(int64_t *wait_ms) {
    hotCheck(threadIsMain());
    *wait_ms = -1;
    if (likely(!timers.count)) return;
    int64_t now_ms = clockWallMs();
    timers.turn++;
    while (timers.count) {
        engineTimer *next = timers.heap[1];
        if (next->at_ms > now_ms) {
            *wait_ms = next->at_ms - now_ms;
            return;
        }
        if (next->turn == timers.turn || !timers.due_left) {
            *wait_ms = 0;
            return;
        }
        timers.due_left--;
        timerStop(next);
        next->due(next);
    }
}
