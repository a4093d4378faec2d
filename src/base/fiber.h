/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fiber: a function that runs on a stack of its own, so that it can be suspended in the middle of
 * its loops and resumed later. It runs on the thread that resumes it, and only while that call of
 * fiberResume() lasts: there is no parallelism and nothing to lock. All fibers of a process belong
 * to one thread, which may resume one fiber from within another. */
#ifndef BASE_FIBER_H
#define BASE_FIBER_H

#include <stdbool.h>

#include "base/alloc.h"

typedef struct fiber fiber;
typedef void fiberProc(void *arg);

/* Creates a suspended fiber; its first resume calls `run`. NULL: there is no memory for a stack. */
fiber *fiberNew(fiberProc *run, void *arg) MUST_USE;
/* Runs the fiber until it suspends itself (true) or `run` has returned (false). It must be
 * suspended. A switch and back take about half a microsecond. */
bool fiberResume(fiber *f);
/* Within a fiber: suspends it. The call returns when the fiber is resumed. */
void fiberSuspend(void);
/* For long loops in code that does not know who owns fibers: within a fiber it calls the function
 * that fiberSetPoint() has registered, which may suspend it. `elements`: so many were visited since
 * the last call, of some 50 ns each. True: the loop may be left, as nobody wants the result. False
 * outside of fibers. ANY_THREAD. */
bool fiberPoint(unsigned elements);
typedef bool fiberPointProc(unsigned elements);
void fiberSetPoint(fiberPointProc *proc);
/* Frees a fiber whose function has returned. A few stacks are kept for the next fibers. */
void fiberFree(fiber *f);

#endif
