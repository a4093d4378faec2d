/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other processes (child.h). Invariant: between fork() and exec only functions are called that are
 * safe there, as another thread may hold locks. */
#define _GNU_SOURCE /* prctl() is of Linux */
#include "tools/backup/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

enum { NOT_STARTED = 127 };

status childStart(const char *const *argv, int in, int out, bool is_bound, pid_t *pid,
                  reason *why) {
    check(argv[0]);
    *pid = fork();
    if (*pid < 0) return reasonSetErrno(why, "cannot start %s", argv[0]);
    if (*pid > 0) return OK;
    if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) || (out >= 0 && dup2(out, STDOUT_FILENO) < 0))
        _exit(NOT_STARTED);
    if (is_bound) prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    execvp(argv[0], (char *const *)argv);
    _exit(NOT_STARTED);
}

status childAwait(pid_t *pid, const char *what, reason *why) {
    int state = 0;
    while (waitpid(*pid, &state, 0) < 0 && errno == EINTR) {}
    *pid = 0;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return OK;
    if (WIFEXITED(state) && WEXITSTATUS(state) == NOT_STARTED)
        return reasonSet(why, ERR_IO, "the program for %s cannot be started", what);
    return reasonSet(why, ERR_IO, "the program for %s failed with %s %d", what,
                     WIFEXITED(state) ? "exit code" : "signal",
                     WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state));
}

void childForget(pid_t *pid) {
    check(*pid > 0);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) {}
    *pid = 0;
}

pid_t childFork(void) {
    fflush(NULL);
    return fork();
}

status temporaryFolder(str *out, reason *why) {
    const char *base = getenv("TMPDIR");
    strAppendFormat(out, "%s/valkey-restore-", base && *base ? base : "/tmp");
    for (int i = 0; i < 6; i++) strAppendByte(out, 'X'); /* mkdtemp() replaces them */
    if (mkdtemp(out->ptr)) return OK;
    (void)reasonSetErrno(why, "cannot create a folder like %s", out->ptr);
    strClear(out);
    return ERR_IO;
}
