/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Worker threads: start with a name and a set of CPUs, join. ANY_THREAD. */
#ifndef IO_THREAD_H
#define IO_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"

typedef struct thread {
    pthread_t id;
    bool running;
} thread;

/* `name` is truncated to 15 bytes; `cpus` is "0,2-5,8-15:2", or "" for all. All signals except
 * those of crashes are blocked in the new thread. */
status threadStart(thread *t, const char *name, const char *cpus, void *(*proc)(void *), void *arg,
                   reason *why) MUST_USE;
void threadJoin(thread *t);
void threadSetName(const char *name);
/* Pins the calling thread; false if `cpus` is invalid or the kernel refuses. */
bool threadSetCpus(const char *cpus);
/* Lets all threads of normal priority go first, from now on (Linux: nice 10 for the calling
 * thread). */
void threadGiveWay(void);

#endif
