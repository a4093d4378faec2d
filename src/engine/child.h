/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forked children: processes with a snapshot of the dataset, which they write while the parent continues. There is at
 * most one. While it exists, the store modifies nothing in place (every modified page is copied), tables are not
 * resized, and access times are not updated. Main thread only. */
#ifndef ENGINE_CHILD_H
#define ENGINE_CHILD_H

#include <stdbool.h>

#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/loop.h"

/* Purpose of the child; passed to the hooks (engine/hooks.h, hook 9). */
typedef enum childKind {
    CHILD_NONE,
    CHILD_RDB_SAVE,
    CHILD_AOF_REWRITE,
    CHILD_SLOT_EXPORT,
    CHILD_MODULE,
    CHILD_TEST,
    CHILD_KINDS
} childKind;
/* "rdb-save" and so on, for logs and INFO. */
const char *childKindName(childKind kind);

/* Runs in the child; returns its exit code. It must not use the event loop or free memory of the store. */
typedef int childProc(void *arg);

/* In the parent: a message of the child, in the order sent, all of them before the hooks hear of the end. `bytes` is
 * borrowed for the call. It may not start or kill a child. */
typedef void childMessageProc(void *arg, uint32_t what, slice bytes);

typedef struct childJob {
    childKind kind;
    childProc *run;
    childMessageProc *on_message; /* NULL: no messages are expected */
    void *arg;                    /* of both */
} childJob;

/* Forks. The parent returns immediately; the child runs the job and exits. ERR_EXISTS: there is a child already;
 * ERR_IO: fork() failed. */
status childStart(const childJob *job, reason *why) MUST_USE;
/* Has the loop read the messages as they come; without it they are read when the cron asks for the child. */
void childSetLoop(loop *l);

/* How far the child is. */
typedef struct childProgress {
    uint64_t done, total;         /* keys, or what the job counts; 0: it does not */
    uint64_t copied, copied_peak; /* bytes of memory that child and parent no longer share */
    int64_t reported_us;          /* monotonic time of the last report, 0: none yet */
} childProgress;
/* Of the child that exists, or of the last one. */
childProgress childProgressNow(void);

/* In the child: tells the parent's on_message(). A parent that is gone is no error: the child will be told. */
void childReport(uint32_t what, slice bytes);
/* In the child, as often as it likes: the parent's childProgressNow() follows, some four times a second. */
void childReportProgress(uint64_t done, uint64_t total);

/* Process id of the child, 0 without one. */
int childProcess(void);
/* CHILD_NONE if there is no child. */
childKind childAlive(void);
/* Kills the child (SIGKILL) and waits for it; the hooks are called before this returns. No effect without a child. */
void childKill(void);

#endif
