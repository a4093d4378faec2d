/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG RESTART and CRASH-AND-RECOVER: executes the program again in the same process, with its
 * original arguments and working directory, so that relative paths mean the same files. Main thread
 * only. */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "config/config.h"
#include "engine/hooks.h"
#include "metrics/metrics.h"
#include "net/net.h"
#include "repl/repl.h"
#include "server/server.h"
#include "server/watchdog.h"

extern char **environ;

/* Closes descriptors that were opened without close-on-exec (by a library, or before this program
 * began). The limit of descriptors says little: it may be unlimited, and it may have been lowered
 * while descriptors above it were open. */
static void closeDescriptors(void) {
    DIR *folder = opendir("/dev/fd");
    if (!folder) return;
    int own = dirfd(folder);
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        int64_t fd;
        if (!numberParseInt(sliceOf(entry->d_name), &fd)) continue; /* "." and ".." */
        if (fd > STDERR_FILENO && fd != own) close((int)fd);
    }
    closedir(folder);
}

/* Refuses what could not start again. Until then nothing has been closed. */
static status checkFiles(const serverRun *run, reason *why) {
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
    if (access(run->start_folder, X_OK)) {
        return reasonSet(why, ERR_DENIED, "Can't restart: the working directory %s is gone",
                         run->start_folder);
    }
    return OK;
}

/* Keeps what CONFIG SET has changed. */
static status rewriteConfiguration(reason *why) {
    reason detail = {""};
    if (!configFilePath() || configRewrite(0, &detail) == OK) return OK;
    return reasonSet(why, ERR_IO, "Can't restart: configuration rewrite process failed: %s",
                     detail.text);
}

status restartRequest(bool graceful, int64_t delay_ms, reason *why) {
    hotCheck(threadIsMain());
    const serverRun *run = serverRunNow();
    status st = checkFiles(run, why);
    if (st == OK && graceful) st = rewriteConfiguration(why);
    if (st != OK) return st;
    reason detail = {""};
    if (graceful && hooksShutdown(SHUTDOWN_NOW, &detail) != OK)
        return reasonSet(why, ERR_DENIED, "Can't restart: error preparing for shutdown: %s",
                         detail.text);
    metricsStop();
    netStopListening();
    if (graceful) {
        replStop();
        netCloseAll();
    }
    watchdogSet(0);
    netThreadsPark(); /* what they wait on is closed */
    closeDescriptors();
    clockSleepUs(delay_ms * 1000);
    if (chdir(run->start_folder) == 0) execve(run->executable, run->argv_copy, environ);
    /* The listeners and descriptors are closed already: the process cannot continue. */
    logWarning("Can't restart: %s", strerror(errno));
    _exit(1);
}
