/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting programs (process.h). The end of one is an event of its pidfd; where the system has
 * none, a timer asks. Invariant: a process has either a watched pidfd or a polling timer, until its
 * end was collected. */
#define _GNU_SOURCE /* for posix_spawn_file_actions_addclosefrom_np(), environ */
#include "io/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "base/base.h"

struct process {
    loop *loop;
    pid_t pid;
    int fd;        /* pidfd; -1: polled */
    uint64_t poll; /* timers; 0: none */
    uint64_t timeout;
    bool timed_out;
    processEndProc *ended;
    void *arg;
};

enum { POLL_MS = 50 };

#ifndef __GLIBC__
extern char **environ;
#endif

/* ------------------------------------------------------------------ starting */

/* Signals that the server ignores or blocks are as usual in the program. */
static int setAttributes(posix_spawnattr_t *attr) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setsigmask(attr, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attr, &all);
    if (!error) error = posix_spawnattr_setpgroup(attr, 0);
    if (error) return error;
    return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
}

/* Descriptors of the server are close-on-exec; those that it has inherited are closed here. */
static int setDescriptors(posix_spawn_file_actions_t *files) {
    int error = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
#endif
    return error;
}

static int spawn(const processStart *start, pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    error = posix_spawnattr_init(&attr);
    if (!error) {
        error = setAttributes(&attr);
        if (!error) error = setDescriptors(&files);
        char *const *argv = (char *const *)(uintptr_t)start->argv; /* not changed */
        char *const *env = start->env ? (char *const *)(uintptr_t)start->env : environ;
        if (!error) error = posix_spawn(pid, start->path, &files, &attr, argv, env);
        (void)posix_spawnattr_destroy(&attr); /* cannot fail */
    }
    (void)posix_spawn_file_actions_destroy(&files); /* cannot fail */
    return error;
}

/* ------------------------------------------------------------------ the end */

static void stopObserving(process *p) {
    if (p->fd >= 0) {
        loopUnwatch(p->loop, p->fd, LOOP_READ);
        (void)close(p->fd); /* nothing was written to it */
    }
    if (p->poll) loopRemoveTimer(p->loop, p->poll);
    if (p->timeout) loopRemoveTimer(p->loop, p->timeout);
}

/* True if the process has ended; *wait_status is 0 if somebody else has collected it. */
static bool collect(process *p, int *wait_status) {
    pid_t pid;
    *wait_status = 0;
    do { pid = waitpid(p->pid, wait_status, WNOHANG); } while (pid < 0 && errno == EINTR);
    return pid != 0;
}

/* Frees the process if it has ended. */
static void finish(process *p) {
    int wait_status;
    if (!collect(p, &wait_status)) return;
    stopObserving(p);
    bool exited = WIFEXITED(wait_status);
    const processEnd end = {.pid = (int)p->pid,
                            .exit_code = exited ? WEXITSTATUS(wait_status) : -1,
                            .signal = exited ? 0 : WTERMSIG(wait_status),
                            .timed_out = p->timed_out};
    processEndProc *ended = p->ended;
    void *arg = p->arg;
    memFree(p);
    ended(arg, &end);
}

static void endReadable(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)mask; /* the process knows them */
    finish(arg);
}

static int64_t pollEnd(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id; /* removed when it has ended */
    finish(arg);
    return POLL_MS;
}

static int64_t timedOut(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id; /* once */
    process *p = arg;
    p->timeout = 0;
    p->timed_out = true;
    processKill(p);
    return LOOP_TIMER_END;
}

static void observe(process *p) {
    p->fd = -1;
#ifdef SYS_pidfd_open
    p->fd = (int)syscall(SYS_pidfd_open, p->pid, 0); /* is close-on-exec */
#endif
    if (p->fd >= 0 && loopWatch(p->loop, p->fd, LOOP_READ, endReadable, p) == OK) return;
    if (p->fd >= 0) (void)close(p->fd); /* likewise */
    p->fd = -1;
    p->poll = loopAddTimer(p->loop, POLL_MS, pollEnd, p);
}

/* ------------------------------------------------------------------ public functions */

status processSpawn(loop *l, const processStart *start, process **out, reason *why) {
    pid_t pid;
    check(start->ended != NULL);
    check(start->argv[0] != NULL);
    int error = spawn(start, &pid);
    if (error) return reasonSet(why, ERR_IO, "Can't start %s: %s", start->path, strerror(error));
    process *p = memNew(process);
    *p = (process){.loop = l, .pid = pid, .ended = start->ended, .arg = start->arg};
    observe(p);
    if (start->timeout_ms) p->timeout = loopAddTimer(l, start->timeout_ms, timedOut, p);
    *out = p;
    return OK;
}

int processId(const process *p) { return (int)p->pid; }

/* The group exists until its leader was collected. */
void processKill(process *p) { (void)kill(-p->pid, SIGKILL); }
