/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel settings of this process, and checks of system settings. Does nothing where a setting does
 * not exist (on kernels other than Linux).
 *
 * Invariant: `oom.ours` is true if the score in /proc was written by us; `oom.found` is its
 * previous value. Main thread only. */
#include "server/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <time.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/lifecycle.h"
#include "io/file.h"
#include "io/thread.h"
#include "server/server_priv.h"

enum { OOM_SCORE_MAX = 1000, LINE_BYTES = 256 };

/* Reads the first line of a file under /proc or /sys; false if it does not exist. */
static bool readLine(const char *path, char line[LINE_BYTES]) {
    if (fileReadText(path, line, LINE_BYTES) <= 0) return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

/* ------------------------------------------------------------------ oom-score-adj */

static const char oom_path[] = "/proc/self/oom_score_adj";

static struct {
    bool ours;
    int found;
} oom;

static status writeOomScore(int score) {
    char text[16];
    snprintf(text, sizeof(text), "%d\n", score);
    status st = fileWriteText(oom_path, text);
    if (st != OK) logWarning("Unable to write oom_score_adj: %s", strerror(errno));
    return st;
}

static status applyOomScore(enum oomProcess process) {
    if (serverConf.oom_score_adj == OOM_NO) {
        if (!oom.ours) return OK;
        oom.ours = false;
        return writeOomScore(oom.found);
    }
    if (!oom.ours) {
        char line[LINE_BYTES];
        if (!readLine(oom_path, line)) {
            logWarning("Unable to read oom_score_adj: %s", strerror(errno));
            return ERR_IO;
        }
        oom.found = (int)strtol(line, NULL, 10);
    }
    int score = serverConf.oom_score_adj_values[process];
    if (serverConf.oom_score_adj == OOM_RELATIVE) score += oom.found;
    if (score > OOM_SCORE_MAX) score = OOM_SCORE_MAX;
    if (score < -OOM_SCORE_MAX) score = -OOM_SCORE_MAX;
    status st = writeOomScore(score);
    if (st == OK) oom.ours = true;
    return st;
}

status kernelApplyOomScore(void) {
    hotCheck(threadIsMain());
    engineIdentity identity;
    engineIdentify(&identity);
    bool primary = !identity.role || strcmp(identity.role, "master") == 0;
    return applyOomScore(primary ? OOM_PRIMARY : OOM_REPLICA);
}

void kernelChildEvent(childEvent e, int kind, int exit_code, int signal) {
    (void)kind, (void)exit_code, (void)signal; /* the same for all kinds of children */
    if (e == CHILD_IN_CHILD)
        (void)applyOomScore(OOM_CHILD); /* a failure is logged; the child can run anyway */
}

/* ------------------------------------------------------------------ checks */

typedef enum checkResult { CHECK_OK, CHECK_SKIPPED, CHECK_WARNING } checkResult;

static const char clock_path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/* Reading the clock should not require a system call. */
static checkResult checkSlowClock(str *why) {
    enum { READS = 20000, SLOW_NS = 400 };
    char line[LINE_BYTES];
    if (!readLine(clock_path, line)) return CHECK_SKIPPED;
    int64_t start_ns = clockMonoNs();
    for (int i = 0; i < READS; i++) (void)clockWallUs(); /* measures the cost */
    int64_t each_ns = (clockMonoNs() - start_ns) / READS;
    if (each_ns < SLOW_NS) return CHECK_OK;
    strAppendFormat(
        why,
        "Reading the clock takes %lld ns, because the kernel's clock source '%s' requires a system call. "
        "This slows down all commands. Choose a faster one listed in "
        "/sys/devices/system/clocksource/clocksource0/available_clocksource (tsc).",
        (long long)each_ns, line);
    return CHECK_WARNING;
}

static checkResult checkXenClock(str *why) {
    char line[LINE_BYTES];
    if (!readLine(clock_path, line)) return CHECK_SKIPPED;
    if (strcmp(line, "xen") != 0) return CHECK_OK;
    strAppendText(why, "The kernel's clock source is 'xen', which is slow. Write 'tsc' to "
                       "/sys/devices/system/clocksource/clocksource0/current_clocksource.");
    return CHECK_WARNING;
}

static checkResult checkOvercommit(str *why) {
    char line[LINE_BYTES];
    if (!readLine("/proc/sys/vm/overcommit_memory", line)) return CHECK_SKIPPED;
    if (strtol(line, NULL, 10) == 1) return CHECK_OK;
    strAppendText(
        why,
        "Memory overcommit must be enabled for 'snapshot-mode fork'! Without it, a background save or "
        "replication may fail when more than half of the memory is in use. Add "
        "'vm.overcommit_memory = 1' to /etc/sysctl.conf, and run 'sysctl vm.overcommit_memory=1' "
        "to apply the change immediately.");
    return CHECK_WARNING;
}

static checkResult checkHugePages(str *why) {
    char line[LINE_BYTES];
    if (!readLine("/sys/kernel/mm/transparent_hugepage/enabled", line)) return CHECK_SKIPPED;
    if (!strstr(line, "[always]")) return CHECK_OK;
    strAppendText(
        why,
        "Transparent huge pages are set to 'always', which increases latency, and memory use while a "
        "child saves. Run 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled' as root, and add "
        "it to the commands run at boot. ('disable-thp yes' has this effect for this process only.)");
    return CHECK_WARNING;
}

static const struct {
    const char *name;
    checkResult (*run)(str *why);
} checks[] = {
    {"slow-clocksource", checkSlowClock},
    {"xen-clocksource", checkXenClock},
    {"overcommit", checkOvercommit},
    {"THP", checkHugePages},
};

int kernelCheckSystem(str *out) {
    int failed = 0;
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        str why = STR_EMPTY;
        checkResult v = checks[i].run(&why);
        static const char *const words[] = {"OK", "skipped", "WARNING:"};
        strAppendFormat(out, "[%s]...%s\n", checks[i].name, words[v]);
        if (v == CHECK_WARNING) strAppendFormat(out, "%s\n\n", strText(&why));
        failed += v == CHECK_WARNING;
        strFree(&why);
    }
    return failed;
}

/* ------------------------------------------------------------------ startup */

static void warnIfNot(checkResult (*run)(str *why)) {
    str why = STR_EMPTY;
    if (run(&why) == CHECK_WARNING) logWarning("WARNING %s", strText(&why));
    strFree(&why);
}

/* Disables huge pages for this process where they are always on. */
static void disableHugePages(void) {
    str why = STR_EMPTY;
    bool hurts = checkHugePages(&why) == CHECK_WARNING;
    strFree(&why);
    if (!hurts) return;
#ifdef PR_SET_THP_DISABLE
    if (serverConf.disable_thp && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0) return;
#endif
    warnIfNot(checkHugePages);
}

/* True if snapshots of a large dataset are made by a forked child. */
static bool forksToSave(void) {
    const configOption *o = configFind(SLICE("snapshot-mode"));
    str value = STR_EMPTY;
    if (o) configGet(o, &value);
    bool forks = sliceIs(strSlice(&value), "fork");
    strFree(&value);
    return forks;
}

void kernelPrepare(void) {
    hotCheck(threadIsMain());
    if (forksToSave()) warnIfNot(checkOvercommit);
    disableHugePages();
    if (!threadSetCpus(serverConf.server_cpulist)) {
        logWarning("Can't bind the main thread to the processors of server-cpulist '%s'",
                   serverConf.server_cpulist);
    }
}
