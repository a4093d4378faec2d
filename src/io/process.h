/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Programs that the server starts (the scripts of Sentinel): with arguments and environment,
 * without any descriptor of the server but standard output and error, in a process group of their
 * own. The loop observes their end. Starting one does not copy the page tables of this process. How
 * many may run at a time is the caller's rule. Main thread only. */
#ifndef IO_PROCESS_H
#define IO_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "io/loop.h"

typedef struct process process;

typedef struct processEnd {
    int pid;
    int exit_code; /* -1: ended by a signal */
    int signal;    /* 0: exited */
    bool timed_out;
} processEnd;

/* Called from the loop, once; the process is freed already. */
typedef void processEndProc(void *arg, const processEnd *end);

typedef struct processStart {
    const char *path;        /* of the program; it is not searched for */
    const char *const *argv; /* argv[0] included; NULL-terminated */
    const char *const *env;  /* "NAME=value"; NULL-terminated. NULL: that of the server */
    int64_t timeout_ms;      /* then the process group is killed; 0: never */
    processEndProc *ended;
    void *arg;
} processStart;

/* Starts a program; the texts of `start` are copied. ERR_IO: it could not be started, and `ended`
 * will not be called. */
status processSpawn(loop *l, const processStart *start, process **out, reason *why) MUST_USE;
int processId(const process *p);
/* Kills the process group (SIGKILL); its end is reported as usual. */
void processKill(process *p);

#endif
