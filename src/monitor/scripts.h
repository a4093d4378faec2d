/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of scripts: those that notify, and those that reconfigure clients. Without processes
 * and clock: the caller starts what scriptsNext() returns, and tells its end.
 *
 * Invariant: at most SCRIPTS_RUNNING_MAX run; a job is not started while an earlier one
 * with the same path runs. So events reach a script in their order, except those whose script has
 * failed and is run again. */
#ifndef MONITOR_SCRIPTS_H
#define MONITOR_SCRIPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"

enum {
    SCRIPTS_QUEUED_MAX = 256,
    SCRIPTS_RUNNING_MAX = 16,
    SCRIPTS_TRIES_MAX = 10,
    SCRIPTS_ARGS_MAX = 8,
};

typedef struct scriptJob {
    listNode node;
    str args[SCRIPTS_ARGS_MAX]; /* the first is the path */
    int count;
    int tries;        /* how often it was started */
    int64_t start_ms; /* when it was started, or is to be; 0: at once */
    bool running;
    void *process; /* the caller's */
} scriptJob;

typedef struct scriptQueue {
    list jobs;
    int running;
} scriptQueue;

void scriptsInit(scriptQueue *q);
void scriptsClear(scriptQueue *q);
/* Adds a job; the oldest one that waits is dropped if there are too many. */
void scriptsAdd(scriptQueue *q, slice path, int count, const slice *args);
/* The next job that is to be started now, which is running afterwards; NULL: none is. */
scriptJob *scriptsNext(scriptQueue *q, int64_t now_ms);
/* A running job has ended. True if it will be tried again: it ended by a signal, or with exit code
 * 1, and not too often. Else it is freed, having succeeded or not. */
bool scriptsEnded(scriptQueue *q, scriptJob *job, int exit_code, int signal, int64_t retry_ms,
                  int64_t now_ms);

#endif
