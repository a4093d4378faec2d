/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forked children: processes with a snapshot of the dataset, which they write while the parent
 * continues. There is at most one. While it exists, the store modifies nothing in place (every
 * modified page is copied), tables are not resized, and access times are not updated.
 *
 * The same job can be done by this process itself in steps, without a fork (childBeginHere()). It
 * counts as the child: childAlive() returns its kind, the hooks are called, but nothing of the
 * above is restricted. Main thread only. */
#ifndef ENGINE_CHILD_H
#define ENGINE_CHILD_H

#include <stdbool.h>

#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "io/loop.h"

/* Purpose of the child; passed to the hooks (on_child of engine/hooks.h). */
typedef enum childKind {
    CHILD_NONE,
    CHILD_RDB_SAVE,
    CHILD_AOF_REWRITE,
    CHILD_SLOT_EXPORT,
    CHILD_MODULE,
    CHILD_TEST,
    CHILD_DEBUGGER, /* never the child, but a process beside it */
    CHILD_KINDS
} childKind;
/* "rdb-save" and so on, for logs and INFO. */
const char *childKindName(childKind kind);

/* Runs in the child; returns its exit code. It must not use the event loop or free memory of the
 * store. */
typedef int childProc(void *arg);

/* Called in the parent for each message of the child, in order, and before the hooks are called for
 * its end. `bytes` is borrowed for the call. Must not start or kill a child. */
typedef void childMessageProc(void *arg, uint32_t what, slice bytes);

typedef struct childJob {
    childKind kind;
    childProc *run;
    childMessageProc *on_message; /* NULL: no messages are expected */
    void *arg;                    /* of both */
} childJob;

/* Forks. The parent returns immediately; the child runs the job and exits. ERR_EXISTS: there is a
 * child already; ERR_IO: fork() failed, hook CHILD_FORK_FAILED was called. */
status childStart(const childJob *job, reason *why) MUST_USE;
/* The same, but returns in both processes, as fork() does: *in_child tells which one it is. The
 * child ends by childExit(); the same rules apply to it as to a childProc. */
status childFork(childKind kind, bool *in_child, reason *why) MUST_USE;
void childExit(int exit_code) __attribute__((noreturn));
/* Lets the loop read messages on arrival; without it they are read when the cron polls the
 * child. */
void childSetLoop(loop *l);

/* Progress of the child. */
typedef struct childProgress {
    uint64_t done, total;         /* keys, or the units the job counts; 0: not counted */
    uint64_t copied, copied_peak; /* bytes of memory no longer shared with the parent */
    uint64_t sent;                /* bytes it has written to a pipe or connection */
    int64_t reported_us;          /* monotonic time of the last report, 0: none yet */
} childProgress;
/* The peak of `copied` of the last child of this kind. */
uint64_t childLastCopied(childKind kind);
/* Progress of the current child, or of the last one. */
childProgress childProgressNow(void);

/* In the child: sends a message to the parent's on_message(). If the parent has ended the child
 * exits. */
void childReport(uint32_t what, slice bytes);
/* In the child: adds to `sent` of its next report. */
void childCountSent(size_t bytes);
/* In the child: updates the parent's childProgressNow(). May be called often; about four reports
 * per second are sent. */
void childReportProgress(uint64_t done, uint64_t total);
/* Before a file is replaced: a child whose parent has ended exits here. No effect in the parent. */
void childConfirmParent(void);

/* A job of this kind begins in this process. `stop` is called by childKill(), and must end it at
 * once. on_child gets CHILD_BEFORE_FORK and CHILD_IN_PARENT. ERR_EXISTS: there is a child
 * already. */
status childBeginHere(childKind kind, void (*stop)(void), reason *why) MUST_USE;
/* It has ended: on_child gets CHILD_ENDED with this exit code, 0 for success. */
void childEndHere(int exit_code);
/* Its progress; `copied` is the memory it holds in bytes. */
void childNoteProgressHere(uint64_t done, uint64_t total, uint64_t copied);
/* True if the current child is a job of this process. */
bool childIsHere(void);

/* Process id of the child, 0 without one or if it is this process. */
int childProcess(void);
/* CHILD_NONE if there is no child. */
childKind childAlive(void);
/* Kills the child (SIGKILL) and waits for it; the hooks are called before this returns. A job of
 * this process ends as if killed. No effect without a child. */
void childKill(void);
/* The same by a signal that ends the process, which must not be a job of this one. */
void childKillBy(int signal_number);

/* Forks a process beside the child, for work with an own copy of the dataset that may take any
 * time: a session of the debugger of scripts. There may be several. It runs `run` and exits with
 * its result; on_child is called in it only, with CHILD_DEBUGGER. */
status childStartBeside(childProc *run, void *arg, reason *why) MUST_USE;
/* Kills these processes and waits for them. */
void childKillBeside(void);

#endif
