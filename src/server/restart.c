/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG RESTART and CRASH-AND-RECOVER: the process begins anew with the arguments it was started with, under the
 * same process id. Main thread only. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/hooks.h"
#include "metrics/metrics.h"
#include "net/net.h"
#include "server/roof.h"
#include "server/watchdog.h"

extern char **environ;

/* What was not opened with close-on-exec (by a library) must not live on. */
static void closeDescriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    for (int fd = STDERR_FILENO + 1; fd < (int)limit.rlim_cur; fd++) close(fd);
}

status restartAsk(bool graceful, int64_t delay_ms, reason *why) {
    const serverRun *run = serverRunNow();
    if (access(run->executable, X_OK)) {
        return reasonSet(why, ERR_DENIED,
                         "Can't restart: this process has no permissions to execute %s",
                         run->executable);
    }
    if (configFilePath() && access(configFilePath(), R_OK)) {
        return reasonSet(why, ERR_DENIED,
                         "Can't restart: this process has no permissions to read %s",
                         configFilePath());
    }
    reason detail = {""};
    if (graceful && hooksShutdown(SHUTDOWN_NOW, &detail) != OK)
        return reasonSet(why, ERR_DENIED, "Can't restart: error preparing for shutdown: %s",
                         detail.text);
    metricsStop();
    netStopListening();
    if (graceful) netCloseAll();
    watchdogSet(0);
    closeDescriptors();
    clockSleepUs(delay_ms * 1000);
    execve(run->executable, run->kept_argv, environ);
    /* Nobody listens any more and no descriptor is left: there is nothing to go on with. */
    logWarning("Can't restart: %s", strerror(errno));
    _exit(1);
}
