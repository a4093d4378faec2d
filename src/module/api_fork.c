/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: a forked process with the dataset as it is now. It is the child of the
 * server (engine/child.h), so there is only one at a time. Main thread only. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/child.h"
#include "module/forks.h"
#include "module/generated/api.h"

/* What the child exits with if it was asked to end. */
enum { EXIT_ASKED = 255 };

static struct {
    int pid;
    bool is_child;                    /* this process is it */
    ValkeyModuleForkDoneHandler done; /* NULL: not called */
    void *arg;
} forked;

static void endChild(int signal_number) {
    (void)signal_number;
    logFromSignal("Received SIGUSR1 in child, exiting now.");
    _exit(EXIT_ASKED);
}

int apiFork(ValkeyModuleForkDoneHandler cb, void *user_data) {
    bool in_child = false;
    reason why;
    errno = 0;
    /* The child may be asked to end before it has a handler for that. */
    sigset_t asked, before;
    sigemptyset(&asked);
    sigaddset(&asked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &asked, &before);
    status st = childFork(CHILD_MODULE, &in_child, &why);
    if (in_child) signal(SIGUSR1, endChild);
    sigprocmask(SIG_SETMASK, &before, NULL);
    forked.is_child = in_child;
    if (st != OK) {
        logWarning("Can't fork for module: %s", st == ERR_EXISTS ? strerror(EALREADY) : why.text);
        if (st == ERR_EXISTS) errno = EALREADY;
        return -1;
    }
    if (in_child) return 0;
    forked.pid = childProcess();
    forked.done = cb;
    forked.arg = user_data;
    logVerbose("Module fork started pid: %d ", forked.pid);
    return forked.pid;
}

void apiSendChildHeartbeat(double progress) {
    if (!forked.is_child) return;
    enum { UNITS = 1000000 };
    bool known = progress >= 0 && progress <= UNITS;
    uint64_t before = childProgressNow().done; /* else what it has said last stays */
    childReportProgress(known ? (uint64_t)(progress * UNITS) : before, UNITS);
}

int apiExitFromChild(int retcode) {
    if (!forked.is_child) return VALKEYMODULE_ERR;
    childExit(retcode);
}

/* Ends the child, and nobody is told. */
static void end(void) {
    hotCheck(forked.pid > 0);
    forked.done = NULL;
    logVerbose("Killing running module fork child: %d", forked.pid);
    childKillBy(SIGUSR1);
}

int apiKillForkChild(int child_pid) {
    if (childAlive() != CHILD_MODULE || childProcess() != child_pid) return VALKEYMODULE_ERR;
    end();
    return VALKEYMODULE_OK;
}

void forksChildEvent(childEvent e, int kind, int exit_code, int signal_number) {
    if (e != CHILD_ENDED || kind != CHILD_MODULE) return;
    ValkeyModuleForkDoneHandler done = forked.done;
    forked.done = NULL;
    if (!done) return;
    logVerbose("Module fork exited pid: %d, retcode: %d, bysignal: %d", forked.pid, exit_code,
               signal_number);
    done(exit_code, signal_number, forked.arg);
}

void forksRemove(const module *m) {
    if (!forked.done || childAlive() != CHILD_MODULE) return;
    if (moduleHasCode(m, (const void *)forked.done)) end();
}
