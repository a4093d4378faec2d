/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lock of the server for threads of modules. From the first call of threadLockOffer() on the
 * main thread has the lock, except while it waits in the event loop. Threads and the main thread
 * get it in the order in which they request it, so neither clients nor threads starve. */
#ifndef MODULE_THREAD_LOCK_H
#define MODULE_THREAD_LOCK_H

#include <stdbool.h>

/* The calling thread is the main thread, which has the lock. Before the first module is loaded. */
void threadLockStart(void);
/* The main thread gives the lock away from its next wait on. ANY_THREAD. */
void threadLockOffer(void);
/* Waits for the lock. The calling thread acts for the main thread then: what it changes until
 * threadLockRelease() is one unit of propagation. Calls by who has it nest. ANY_THREAD. */
void threadLockTake(void);
/* The same, waiting so long at most: for what modules may call while the main thread waits for
 * them. False: it was not taken. ANY_THREAD. */
bool threadLockTakeWithin(int ms);
/* The same without waiting; false: another one has it. ANY_THREAD. */
bool threadLockTry(void);
/* False: the calling thread has not taken it. ANY_THREAD. */
bool threadLockRelease(void);
/* For a thread that has taken the lock: gives it to the main thread for one turn of the loop, if
 * the main thread waits for it; else wakes it. No other thread gets it in between. */
void threadLockLend(void);
/* True if the calling thread is the main thread. ANY_THREAD. */
bool threadLockIsMain(void);
/* True if the calling thread has the lock. ANY_THREAD. */
bool threadLockIsMine(void);

#endif
