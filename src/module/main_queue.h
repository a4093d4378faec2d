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
/* Drops the calls for which `is_of` is true with this `of`, and frees their arguments. Main
 * thread. */
void mainQueueDrop(bool (*is_of)(mainQueueProc *proc, const void *arg, const void *of),
                   const void *of, void (*free_arg)(void *arg));

#endif
