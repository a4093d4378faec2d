/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forks child processes; a periodic job waits for their end. Reports of a child arrive through a
 * pipe read by the event loop. When the child has ended, its remaining reports are read before the
 * hooks are called. */
#include "engine/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "engine/engine_priv.h"
#include "engine/hooks.h"
#include "engine/job.h"
#include "engine/latency.h"
#include "io/conn.h"
#include "io/file.h"
#include "io/message_pipe.h"
#include "store/store.h"

/* Messages for child.c itself; messages of jobs are numbered after them. */
enum { MESSAGE_PROGRESS, MESSAGES_OWN };

static struct {
    pid_t pid; /* 0: no child */
    childJob job;
    void (*stop_here)(void); /* of a job of this process; else NULL */
    messagePipe reports;
    loop *loop;
    childProgress progress;
    int64_t next_report_us; /* in the child */
    uint64_t last_copied[CHILD_KINDS];
    int64_t fork_us; /* duration of the last fork() */
    uint64_t forks;
} child;

int childProcess(void) { return (int)child.pid; }

childKind childAlive(void) { return child.job.kind; }

const char *childKindName(childKind kind) {
    static const char *const names[CHILD_KINDS] = {
        [CHILD_NONE] = "none",
        [CHILD_RDB_SAVE] = "rdb-save",
        [CHILD_AOF_REWRITE] = "aof-rewrite",
        [CHILD_SLOT_EXPORT] = "slot-export",
        [CHILD_MODULE] = "module",
        [CHILD_TEST] = "test",
        [CHILD_DEBUGGER] = "debugger",
    };
    check(kind < CHILD_KINDS);
    return names[kind];
}

void childSetLoop(loop *l) { child.loop = l; }

childProgress childProgressNow(void) { return child.progress; }

uint64_t childLastCopied(childKind kind) {
    check(kind < CHILD_KINDS);
    return child.last_copied[kind];
}

/* The parent's handlers would modify shared state, and stop the wrong process. */
static void prepareChild(void) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C in a terminal also reaches the parent, which decides */
    connSetCopied(false);    /* the connections are the parent's */
}

/* ------------------------------------------------------------------ reports: in the child */

/* Memory of this process in bytes that is not shared with the other one; 0 if the system does not
 * report it. */
static uint64_t copiedBytes(void) {
    static const char label[] = "Private_Dirty:";
    char text[2048];
    if (fileReadText("/proc/self/smaps_rollup", text, sizeof(text)) <= 0) return 0;
    const char *at = strstr(text, label);
    return at ? strtoull(at + sizeof(label) - 1, NULL, 10) * 1024 : 0;
}

/* Ends the child if nobody reads its reports any more: the server has ended. What the child writes
 * is of no use, and may be older than what the next process has written under the same name. */
static void report(uint32_t what, slice bytes) {
    status st = messagePipeSend(&child.reports, what, bytes);
    check(st != ERR_LIMIT);
    if (st == OK) return;
    logWarning("The server has ended: its child ends, too, and replaces no file");
    _exit(1);
}

void childReport(uint32_t what, slice bytes) { report(what + MESSAGES_OWN, bytes); }

static void reportProgressNow(uint64_t done, uint64_t total) {
    childProgress now = {
        .done = done, .total = total, .copied = copiedBytes(), .sent = child.progress.sent};
    child.progress = now;
    report(MESSAGE_PROGRESS, sliceMake((const char *)&now, sizeof(now)));
}

void childCountSent(size_t bytes) {
    hotCheck(threadIsMain());
    child.progress.sent += bytes;
}

void childReportProgress(uint64_t done, uint64_t total) {
    hotCheck(threadIsMain());
    enum { PERIOD_US = 250000 };
    int64_t now_us = clockMonoUs();
    child.progress.done = done;
    child.progress.total = total;
    if (now_us < child.next_report_us) return;
    child.next_report_us = now_us + PERIOD_US;
    reportProgressNow(done, total);
}

void childConfirmParent(void) {
    if (child.job.kind != CHILD_NONE && child.pid == 0 && !child.stop_here)
        reportProgressNow(child.progress.done, child.progress.total);
}

/* The kernel ends the child together with the server, also if it is not about to report. A module's
 * child is its own affair. */
static void endWithParent(pid_t parent) {
#ifdef __linux__
    if (child.job.kind == CHILD_MODULE) return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without it the next report ends the child */
    if (getppid() != parent) _exit(1);
#else
    (void)parent;
#endif
}

static void beginInChild(pid_t parent) {
    endWithParent(parent);
    prepareChild();
    messagePipeKeepWriting(&child.reports);
    hooksChildEvent(CHILD_IN_CHILD, (int)child.job.kind, 0, 0);
}

void childExit(int exit_code) {
    reportProgressNow(child.progress.done, child.progress.total);
    _exit(exit_code);
}

/* ------------------------------------------------------------------ reports: in the parent */

static void noteProgress(slice bytes) {
    check(bytes.len == sizeof(child.progress));
    uint64_t peak = child.progress.copied_peak;
    memcpy(&child.progress, bytes.ptr, sizeof(child.progress));
    child.progress.copied_peak = peak > child.progress.copied ? peak : child.progress.copied;
    child.progress.reported_us = clockMonoUs();
}

static void receiveReports(void) {
    hotCheck(child.job.kind != CHILD_NONE);
    uint32_t what;
    slice bytes;
    while (messagePipeReceive(&child.reports, &what, &bytes)) {
        if (what == MESSAGE_PROGRESS) {
            noteProgress(bytes);
        } else if (child.job.on_message) {
            child.job.on_message(child.job.arg, what - MESSAGES_OWN, bytes);
        }
    }
}

static void reportsReadable(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)arg, (void)mask;
    receiveReports();
    childPoll(0); /* end of file usually means that the child has ended */
}

static void beginReports(void) {
    hotCheck(child.reports.read_fd >= 0);
    messagePipeKeepReading(&child.reports);
    if (!child.loop) return;
    status st = loopWatch(child.loop, child.reports.read_fd, LOOP_READ, reportsReadable, NULL);
    if (st != OK) logVerbose("Reports of the child process are read by the cron only");
}

static void endReports(void) {
    if (child.loop && child.reports.read_fd >= 0)
        loopUnwatch(child.loop, child.reports.read_fd, LOOP_READ);
    messagePipeClose(&child.reports);
}

/* ------------------------------------------------------------------ life */

static struct {
    pid_t *pids;
    int count;
} beside;

/* Other processes have descriptors of our connections. */
static void noteCopies(void) { connSetCopied(child.pid || beside.count); }

static void ended(int wait_status) {
    hotCheck(child.pid > 0);
    childKind kind = child.job.kind;
    int exit_code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    int by_signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    receiveReports();
    endReports();
    child.last_copied[kind] = child.progress.copied_peak;
    child.pid = 0;
    noteCopies();
    child.job = (childJob){.kind = CHILD_NONE};
    storeForkEnd();
    hooksChildEvent(CHILD_ENDED, (int)kind, exit_code, by_signal);
}

/* Returns in both processes. */
static status forkFor(const childJob *job, bool *in_child, reason *why) {
    hotCheck(threadIsMain());
    int kind = (int)job->kind;
    check(job->kind != CHILD_NONE);
    check(job->kind < CHILD_KINDS);
    if (child.job.kind != CHILD_NONE)
        return reasonSet(why, ERR_EXISTS, "another child process is running");
    status st = messagePipeOpen(&child.reports, why);
    if (st != OK) return st;
    (void)jobEndChanges();
    hooksChildEvent(CHILD_BEFORE_FORK, kind, 0, 0);
    storeForkBegin();
    child.job = *job;
    child.progress = (childProgress){0};
    child.next_report_us = 0;
    int64_t began_us = clockMonoUs();
    pid_t parent = getpid();
    child.pid = fork();
    *in_child = child.pid == 0;
    if (*in_child) {
        beginInChild(parent);
        return OK;
    }
    if (child.pid < 0) {
        reasonSetErrno(why, "Can't fork");
        child.pid = 0;
        child.job = (childJob){.kind = CHILD_NONE};
        endReports();
        storeForkEnd();
        hooksChildEvent(CHILD_FORK_FAILED, kind, 0, 0);
        return ERR_IO;
    }
    noteCopies();
    child.fork_us = clockMonoUs() - began_us;
    child.forks++;
    latencyNote("fork", child.fork_us / 1000);
    beginReports();
    hooksChildEvent(CHILD_IN_PARENT, kind, 0, 0);
    return OK;
}

status childStart(const childJob *job, reason *why) {
    bool in_child;
    status st = forkFor(job, &in_child, why);
    if (st == OK && in_child) childExit(job->run(job->arg));
    return st;
}

status childFork(childKind kind, bool *in_child, reason *why) {
    return forkFor(&(childJob){.kind = kind}, in_child, why);
}

static void waitForIt(int options) {
    hotCheck(child.pid > 0);
    int wait_status;
    pid_t pid;
    do { pid = waitpid(child.pid, &wait_status, options); } while (pid < 0 && errno == EINTR);
    if (pid == child.pid) ended(wait_status);
}

/* ------------------------------------------------------------------ jobs of this process */

status childBeginHere(childKind kind, void (*stop)(void), reason *why) {
    hotCheck(threadIsMain());
    check(kind != CHILD_NONE);
    if (child.job.kind != CHILD_NONE)
        return reasonSet(why, ERR_EXISTS, "another child process is running");
    (void)jobEndChanges();
    hooksChildEvent(CHILD_BEFORE_FORK, (int)kind, 0, 0);
    child.job = (childJob){.kind = kind};
    child.stop_here = stop;
    child.progress = (childProgress){0};
    hooksChildEvent(CHILD_IN_PARENT, (int)kind, 0, 0);
    return OK;
}

static void endHere(int exit_code, int by_signal) {
    childKind kind = child.job.kind;
    check(child.stop_here != NULL);
    child.stop_here = NULL;
    child.job = (childJob){.kind = CHILD_NONE};
    hooksChildEvent(CHILD_ENDED, (int)kind, exit_code, by_signal);
}

void childEndHere(int exit_code) { endHere(exit_code, 0); }

void childNoteProgressHere(uint64_t done, uint64_t total, uint64_t copied) {
    hotCheck(threadIsMain());
    childProgress *p = &child.progress;
    p->done = done;
    p->total = total;
    p->copied = copied;
    if (copied > p->copied_peak) p->copied_peak = copied;
    p->reported_us = clockMonoUs();
}

bool childIsHere(void) { return child.stop_here != NULL; }

/* ------------------------------------------------------------------ */

void childKill(void) {
    hotCheck(threadIsMain());
    if (child.stop_here) {
        child.stop_here();
        endHere(-1, SIGKILL);
        return;
    }
    if (child.pid) childKillBy(SIGKILL);
}

void childKillBy(int signal_number) {
    check(child.pid > 0);
    kill(child.pid, signal_number);
    waitForIt(0);
}

/* ------------------------------------------------------------------ processes beside the child */

status childStartBeside(childProc *run, void *arg, reason *why) {
    hotCheck(threadIsMain());
    (void)jobEndChanges();
    int64_t began_us = clockMonoUs();
    pid_t pid = fork();
    if (pid < 0) {
        reasonSetErrno(why, "Can't fork");
        return ERR_IO;
    }
    if (pid == 0) {
        prepareChild();
        hooksChildEvent(CHILD_IN_CHILD, CHILD_DEBUGGER, 0, 0);
        _exit(run(arg));
    }
    child.fork_us = clockMonoUs() - began_us;
    child.forks++;
    latencyNote("fork", child.fork_us / 1000);
    beside.pids = memRealloc(beside.pids, (size_t)(beside.count + 1) * sizeof(pid_t));
    beside.pids[beside.count++] = pid;
    noteCopies();
    return OK;
}

static void waitBeside(int options) {
    for (int i = 0; i < beside.count;) {
        pid_t pid;
        do { pid = waitpid(beside.pids[i], NULL, options); } while (pid < 0 && errno == EINTR);
        if (pid == 0) {
            i++;
        } else {
            beside.pids[i] = beside.pids[--beside.count];
        }
    }
    if (beside.count) return;
    noteCopies();
    memFree(beside.pids);
    beside.pids = NULL;
}

void childKillBeside(void) {
    for (int i = 0; i < beside.count; i++) kill(beside.pids[i], SIGKILL);
    waitBeside(0);
}

/* ------------------------------------------------------------------ */

void childPoll(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us;
    if (beside.count) waitBeside(WNOHANG);
    if (!child.pid) return;
    receiveReports();
    waitForIt(WNOHANG);
}

bool childIsPolled(void) { return child.pid || beside.count; }

void childPrintStats(str *out) {
    strAppendFormat(out, "latest_fork_usec:%lld\r\ntotal_forks:%llu\r\n", (long long)child.fork_us,
                    (unsigned long long)child.forks);
}

void childResetStats(void) {
    child.fork_us = 0;
    child.forks = 0;
}
