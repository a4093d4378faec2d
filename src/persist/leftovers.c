/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Temporary files that processes have left (leftovers.h). Their names contain the process that
 * writes them: one that runs may be another server in the same directory, or the child of a killed
 * one. */
#include "persist/leftovers.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "io/append_file.h"

/* The process in the name of a temporary file; 0: the name is of another kind. */
static long long processOf(const char *name) {
    static const char *const forms[] = {"temp-%lld.rdb", "temp-rewriteaof-bg-%lld.aof",
                                        "temp-rewriteaof-%lld.aof", "temp-sync-base-%lld.rdb"};
    enum { PROCESS_MAX = 1 << 22 }; /* in Linux; greater numbers are times */
    char expected[64];
    long long process, more;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        if (sscanf(name, forms[i], &process) != 1) continue;
        snprintf(expected, sizeof(expected), forms[i], process);
        if (!strcmp(name, expected)) return process;
    }
    /* A snapshot without a fork has a count after the process, a download a time before it. */
    if (sscanf(name, "temp-%lld.%lld.rdb", &process, &more) != 2) return 0;
    snprintf(expected, sizeof(expected), "temp-%lld.%lld.rdb", process, more);
    if (strcmp(name, expected) != 0) return 0;
    return process > PROCESS_MAX ? more : process;
}

static bool processExists(long long process) {
    hotCheck(process > 0);
    return kill((pid_t)process, 0) == 0 || errno != ESRCH;
}

static void removeFile(const char *name, void *arg) {
    hotCheck(name[0]);
    (void)arg;
    long long process = processOf(name);
    if (process <= 0 || process > INT32_MAX) return;
    /* What this process could have written it has not: it has just started. */
    if (process != getpid() && processExists(process)) return;
    logNotice("Removing the temporary file %s of a process that has ended", name);
    if (unlink(name) != 0) logWarning("Can't remove %s: %s", name, strerror(errno));
}

void leftoversRemove(void) {
    hotCheck(threadIsMain());
    reason why;
    if (folderEach(".", removeFile, NULL, &why) != OK)
        logWarning("Temporary files that others have left are not removed: %s", why.text);
}
