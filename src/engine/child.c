/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forks child processes; a periodic job waits for their end. */
#include "engine/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/engine_priv.h"
#include "engine/hooks.h"
#include "engine/latency.h"
#include "store/store.h"

static struct {
    pid_t pid; /* 0: no child */
    childKind kind;
    int64_t fork_us; /* duration of the last fork() */
    uint64_t forks;
} child;

childKind childAlive(void) { return child.kind; }

/* The parent's handlers would modify shared state, and stop the wrong process. */
static void signalsOfChild(void) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C in a terminal also reaches the parent, which decides */
}

static void ended(int wait_status) {
    childKind kind = child.kind;
    int exit_code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    int by_signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    child.pid = 0;
    child.kind = CHILD_NONE;
    storeForkEnd();
    hooksChildEvent(CHILD_ENDED, kind, exit_code, by_signal);
}

status childStart(childKind kind, childProc *proc, void *arg, reason *why) {
    check(kind != CHILD_NONE);
    if (child.pid) return reasonSet(why, ERR_EXISTS, "another child process is running");
    hooksChildEvent(CHILD_BEFORE_FORK, kind, 0, 0);
    storeForkBegin();
    child.kind = kind;
    int64_t began_us = clockMonoUs();
    child.pid = fork();
    if (child.pid == 0) {
        signalsOfChild();
        hooksChildEvent(CHILD_IN_CHILD, kind, 0, 0);
        _exit(proc(arg));
    }
    if (child.pid < 0) {
        reasonSetErrno(why, "Can't fork");
        child.pid = 0;
        child.kind = CHILD_NONE;
        storeForkEnd();
        hooksChildEvent(CHILD_ENDED, kind, -1, 0);
        return ERR_IO;
    }
    child.fork_us = clockMonoUs() - began_us;
    child.forks++;
    latencyNote("fork", child.fork_us / 1000);
    hooksChildEvent(CHILD_IN_PARENT, kind, 0, 0);
    return OK;
}

static void waitForIt(int options) {
    int wait_status;
    pid_t pid;
    do { pid = waitpid(child.pid, &wait_status, options); } while (pid < 0 && errno == EINTR);
    if (pid == child.pid) ended(wait_status);
}

void childKill(void) {
    if (!child.pid) return;
    kill(child.pid, SIGKILL);
    waitForIt(0);
}

void childPoll(int64_t budget_us) {
    (void)budget_us;
    if (child.pid) waitForIt(WNOHANG);
}

void childPrintStats(str *out) {
    strAppendFormat(out, "latest_fork_usec:%lld\r\ntotal_forks:%llu\r\n", (long long)child.fork_us,
                    (unsigned long long)child.forks);
}

void childResetStats(void) {
    child.fork_us = 0;
    child.forks = 0;
}
