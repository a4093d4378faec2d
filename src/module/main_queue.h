/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that other threads have ordered, made by the main thread between commands. */
#ifndef MODULE_MAIN_QUEUE_H
#define MODULE_MAIN_QUEUE_H

#include <stdbool.h>

/* Before the first module is loaded. Main thread. */
void mainQueueStart(void);
/* Calls `proc` soon, in the order of these calls. ANY_THREAD. */
typedef void mainQueueProc(void *arg);
void mainQueueAdd(mainQueueProc *proc, void *arg);

#endif
