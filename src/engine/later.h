/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work in parts, between the requests of others: what would take long is done in the following
 * turns of the loop. Costs nothing while there is none. Main thread only. */
#ifndef ENGINE_LATER_H
#define ENGINE_LATER_H

/* The answer of a step: nothing is left to do, more may be done now, or more in the next turn. */
typedef enum laterRest { LATER_NOTHING, LATER_MORE, LATER_NEXT_TURN } laterRest;
/* Does a part that takes some 100 us. Outside of commands. */
typedef laterRest laterProc(void *arg);
/* Calls `step` until it returns LATER_NOTHING. May be called by a step. */
void laterRun(laterProc *step, void *arg);

#endif
