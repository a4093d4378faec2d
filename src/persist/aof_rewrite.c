/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rewriting the append only file (aof_rewrite.h). A thread creates and lists the next incremental
 * file; at the end of a turn in which all changes are written to the last one the child is forked
 * and changes go to the next; when the child has ended a thread puts its file in the place of the
 * others. So nothing waits for the disk meanwhile.
 *
 * Invariant: a child of kind CHILD_AOF_REWRITE exists if and only if the step is REWRITE_RUNS;
 * next.fd >= 0 only in REWRITE_IS_PREPARED. After three failures in a row the next automatic or
 * scheduled attempt waits for a time that doubles up to an hour. */
#include "persist/aof_rewrite.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/block.h"
#include "engine/child.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "io/thread.h"
#include "persist/aof.h"
#include "persist/aof_files.h"
#include "persist/inline_save.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "persist/rdb_save.h"

enum { FAILURES_BEFORE_DELAY = 3, DELAY_MAX_MINUTES = 60, MINUTE_MS = 60000 };

typedef enum rewriteStep {
    REWRITE_IS_OFF,
    REWRITE_IS_PREPARING, /* a thread creates the next incremental file */
    REWRITE_IS_PREPARED,  /* it waits for the end of a turn, or of another child */
    REWRITE_RUNS,
    REWRITE_IS_ENDING, /* a thread puts the files in place */
} rewriteStep;

static struct {
    rewriteStep step;
    appendFile next;
    bool start_failed; /* the last time, after REWRITE_IS_PREPARING */
    bool scheduled;
    bool cancelled; /* the running one ends by our own kill */
    bool as_commands;
    bool is_inline; /* the child is a job of this process */
    bool failed;    /* the last one */
    int process;
    int64_t started_ms;
    int64_t last_seconds; /* duration of the last one; -1: none yet */
    uint64_t count, last_copied;
    int failures; /* in a row */
    int delay_minutes;
    int64_t not_before_ms; /* no automatic attempt before this time */
} rewrite = {.last_seconds = -1, .next = {.fd = -1}};

bool aofRewriteIsRunning(void) { return rewrite.step != REWRITE_IS_OFF; }
bool aofRewriteIsStarting(void) {
    return rewrite.step == REWRITE_IS_PREPARING || rewrite.step == REWRITE_IS_PREPARED;
}
bool aofRewriteStartFailed(void) { return rewrite.start_failed; }
bool aofRewriteIsScheduled(void) { return rewrite.scheduled; }

void aofRewriteSchedule(void) {
    rewrite.scheduled = true;
    rewrite.failures = 0;
}

/* ------------------------------------------------------------------ the child */

static void temporaryName(bool complete, int process, char *to, size_t cap) {
    snprintf(to, cap, "temp-rewriteaof-%s%d.aof", complete ? "bg-" : "", process);
}

static int writeBase(void *arg) {
    (void)arg;
    char temporary[64], complete[64];
    reason why;
    if (persistConf.aof_rewrite_cpulist[0] && !threadSetCpus(persistConf.aof_rewrite_cpulist))
        logWarning("aof-rewrite-cpulist '%s' is invalid", persistConf.aof_rewrite_cpulist);
    temporaryName(false, (int)getpid(), temporary, sizeof(temporary));
    temporaryName(true, (int)getpid(), complete, sizeof(complete));
    const rdbSaveJob job = {.temporary = temporary,
                            .name = complete,
                            .in_child = true,
                            .is_aof_base = true,
                            .as_commands = rewrite.as_commands,
                            .codec = rewrite.as_commands ? COMPRESS_NONE : rdbSaveCodec(),
                            .syncs = persistConf.aof_rewrite_incremental_fsync};
    if (rdbSaveTo(&job, &why) != OK) {
        logWarning("Write error writing append only file on disk: %s", why.text);
        return 1;
    }
    logNotice("Successfully created the temporary AOF base file %s", complete);
    return 0;
}

static status startInline(reason *why) {
    hotCheck(rewrite.step != REWRITE_RUNS);
    char temporary[64], complete[64];
    temporaryName(false, (int)getpid(), temporary, sizeof(temporary));
    temporaryName(true, (int)getpid(), complete, sizeof(complete));
    const inlineSave save = {.kind = CHILD_AOF_REWRITE,
                             .job = {.temporary = temporary,
                                     .name = complete,
                                     .is_aof_base = true,
                                     .as_commands = rewrite.as_commands,
                                     .codec = rewrite.as_commands ? COMPRESS_NONE : rdbSaveCodec(),
                                     .syncs = persistConf.aof_rewrite_incremental_fsync},
                             .cpus = persistConf.aof_rewrite_cpulist};
    return inlineSaveStart(&save, why);
}

static void removeTemporaryFiles(int process) {
    hotCheck(process > 0);
    char name[64];
    for (int complete = 0; complete < 2; complete++) {
        temporaryName(complete, process, name, sizeof(name));
        (void)unlink(name); /* it may not exist */
    }
}

/* ------------------------------------------------------------------ start */

static void noteFailure(void) {
    rewrite.failed = true;
    rewrite.failures++;
    /* Until it has succeeded nothing is appended durably. */
    if (aofStateNow() == AOF_IS_WAITING) rewrite.scheduled = true;
}

static void startFailed(const reason *why) {
    hotCheck(rewrite.step != REWRITE_RUNS);
    logWarning("Can't rewrite append only file in background: %s", why->text);
    rewrite.step = REWRITE_IS_OFF;
    rewrite.start_failed = true;
    noteFailure();
    blockNotify(BLOCK_OFFSET);
}

static status startChild(reason *why) {
    const childJob job = {.kind = CHILD_AOF_REWRITE, .run = writeBase};
    status st = inlineSaveIsWanted(persistConf.snapshot_mode, rewrite.as_commands)
                    ? startInline(why)
                    : childStart(&job, why);
    if (st != OK) return st;
    rewrite.step = REWRITE_RUNS;
    rewrite.scheduled = rewrite.cancelled = false;
    blockNotify(BLOCK_OFFSET);
    return OK;
}

/* All changes are written to the last file. */
static void startPrepared(void) {
    hotCheck(rewrite.step == REWRITE_IS_PREPARED);
    reason why;
    if (jobEndChanges()) { /* what they have changed has to be written, too */
        aofWhenWritten(startPrepared);
        return;
    }
    if (childAlive() != CHILD_NONE) { /* later: aofRewriteTick() */
        rewrite.scheduled = true;
        blockNotify(BLOCK_OFFSET);
        return;
    }
    status st = aofSwitchFile(&rewrite.next, &why);
    if (st == OK) st = startChild(&why);
    if (st == OK) return;
    appendFileClose(&rewrite.next);
    startFailed(&why);
}

static void prepared(status st, appendFile *file, const reason *why) {
    hotCheck(rewrite.next.fd < 0);
    if (rewrite.step != REWRITE_IS_PREPARING) { /* cancelled: the file remains, empty */
        appendFileClose(file);
        return;
    }
    if (st != OK) {
        startFailed(why);
        return;
    }
    rewrite.next = *file;
    rewrite.step = REWRITE_IS_PREPARED;
    aofWhenWritten(startPrepared);
}

/* Before the first rewrite nobody waits for the append only file. */
static status startWaiting(reason *why) {
    appendFile next;
    if (aofStateNow() == AOF_IS_WAITING) {
        status st = aofFilesCreateTemporaryIncr(&next, why);
        if (st != OK) return st;
        st = aofSwitchFile(&next, why);
        if (st != OK) appendFileClose(&next);
        if (st != OK) return st;
    }
    return startChild(why);
}

status aofRewriteStart(void) {
    hotCheck(threadIsMain());
    reason why;
    if (childAlive() != CHILD_NONE || rewrite.step != REWRITE_IS_OFF) return ERR_EXISTS;
    rewrite.started_ms = clockMonoMs();
    rewrite.as_commands = !persistConf.aof_use_rdb_preamble;
    rewrite.count++;
    rewrite.start_failed = false;
    (void)jobEndChanges(); /* they are in the old file */
    aofFlush(true);
    status st = OK;
    if (aofWriteFails()) {
        st = reasonSet(&why, ERR_IO, "pending changes cannot be written");
    } else if (aofStateNow() == AOF_IS_ON) {
        rewrite.step = REWRITE_IS_PREPARING;
        st = aofFilesCreateIncrLater(prepared, &why);
    } else {
        st = startWaiting(&why);
    }
    if (st != OK) startFailed(&why);
    return st;
}

/* ------------------------------------------------------------------ end */

/* After the child, however it has ended. */
static void cleanUp(void) {
    removeTemporaryFiles(rewrite.process);
    if (aofStateNow() != AOF_IS_WAITING) return;
    aofDropFile();
    aofFilesRemoveTemporaryIncr();
}

static void adopted(status st, appendFile *file, const reason *why) {
    hotCheck(rewrite.process > 0);
    (void)file; /* there is none */
    check(rewrite.step == REWRITE_IS_ENDING);
    rewrite.step = REWRITE_IS_OFF;
    rewrite.last_seconds = (clockMonoMs() - rewrite.started_ms) / 1000;
    if (st != OK) {
        logWarning("Background AOF rewrite: %s", why->text);
        noteFailure();
        cleanUp();
        return;
    }
    int64_t size = aofFilesSize();
    aofSetSizes(size, size);
    aofRewritten();
    rewrite.failed = false;
    rewrite.failures = 0;
    rewrite.delay_minutes = 0;
    logNotice("Background AOF rewrite finished successfully");
    cleanUp();
}

static void succeeded(void) {
    char temporary[64];
    reason why;
    bool waiting = aofStateNow() == AOF_IS_WAITING;
    temporaryName(true, rewrite.process, temporary, sizeof(temporary));
    logNotice("Background AOF rewrite terminated with success");
    rewrite.step = REWRITE_IS_ENDING;
    status st = aofFilesAdoptBaseLater(temporary, rewrite.as_commands, waiting,
                                       aofStateNow() == AOF_IS_ON, adopted, &why);
    if (st != OK) adopted(st, NULL, &why);
}

void aofRewriteChildEvent(childEvent e, int kind, int exit_code, int signal_number) {
    hotCheck(threadIsMain());
    if (kind != CHILD_AOF_REWRITE) return;
    if (e == CHILD_IN_PARENT) {
        rewrite.is_inline = childIsHere();
        rewrite.process = rewrite.is_inline ? (int)getpid() : childProcess();
        if (rewrite.is_inline) {
            logNotice("Background append only file rewriting started in this process");
        } else {
            logNotice("Background append only file rewriting started by pid %d", rewrite.process);
        }
    }
    if (e != CHILD_ENDED || rewrite.step != REWRITE_RUNS) return;
    rewrite.step = REWRITE_IS_OFF;
    rewrite.last_seconds = (clockMonoMs() - rewrite.started_ms) / 1000;
    rewrite.last_copied = childProgressNow().copied;
    bool again = exit_code == INLINE_SAVE_NEEDS_FORK;
    if (exit_code == 0) {
        succeeded();
        return;
    }
    if (again) {
        rewrite.count--; /* it is the same one */
    } else if (rewrite.cancelled || signal_number == SIGUSR1) {
        rewrite.cancelled = true;
    } else {
        noteFailure();
        if (signal_number && rewrite.is_inline) {
            logWarning("Background AOF rewrite was stopped");
        } else if (signal_number) {
            logWarning("Background AOF rewrite terminated by signal %d", signal_number);
        } else {
            logWarning("Background AOF rewrite terminated with error");
        }
    }
    cleanUp();
    if (again && aofRewriteStart() != OK) rewrite.scheduled = true; /* was logged */
}

/* ------------------------------------------------------------------ when */

/* True while repeated failures forbid an attempt. */
static bool isDelayed(int64_t now_ms) {
    if (rewrite.failures < FAILURES_BEFORE_DELAY) return false;
    if (rewrite.not_before_ms && now_ms < rewrite.not_before_ms) return true;
    if (rewrite.not_before_ms) {
        rewrite.not_before_ms = 0; /* one attempt */
        return false;
    }
    int minutes = rewrite.delay_minutes ? rewrite.delay_minutes * 2 : 1;
    rewrite.delay_minutes = minutes > DELAY_MAX_MINUTES ? DELAY_MAX_MINUTES : minutes;
    rewrite.not_before_ms = now_ms + (int64_t)rewrite.delay_minutes * MINUTE_MS;
    logWarning(
        "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in "
        "%d minutes",
        rewrite.delay_minutes);
    return true;
}

/* The growth of the files in percent if it calls for a rewrite, else -1. */
static int64_t growth(void) {
    int64_t size = aofSize();
    if (aofStateNow() != AOF_IS_ON || !persistConf.auto_aof_rewrite_percentage ||
        size <= persistConf.auto_aof_rewrite_min_size)
        return -1;
    int64_t base = aofSizeAfterRewrite() ? aofSizeAfterRewrite() : 1;
    int64_t percent = size * 100 / base - 100;
    return percent >= persistConf.auto_aof_rewrite_percentage ? percent : -1;
}

void aofRewriteTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* a fork cannot be limited */
    if (childAlive() != CHILD_NONE || engineHot.loading) return;
    if (rewrite.step == REWRITE_IS_PREPARED) aofWhenWritten(startPrepared);
    if (rewrite.step != REWRITE_IS_OFF) return;
    int64_t percent = growth();
    bool wanted = rewrite.scheduled || aofNeedsRewrite() || percent >= 0;
    if (!wanted || aofWriteFails() || isDelayed(clockMonoMs())) return;
    if (!rewrite.scheduled && percent >= 0)
        logNotice("Starting automatic rewriting of AOF on %lld%% growth", (long long)percent);
    /* A failure was logged, and is tried again later. */
    if (aofRewriteStart() != OK) rewrite.failed = true;
}

bool aofRewriteIsWanted(void) { return rewrite.scheduled || aofNeedsRewrite() || growth() >= 0; }

/* ------------------------------------------------------------------ on and off */

static bool inTransaction(void) {
    return engineHot.current && engineHot.current->flags & CTX_IN_MULTI;
}

/* Kills the child without counting it as a failure. Waits for what threads do to files. */
static void cancel(void) {
    if (aofRewriteIsStarting()) {
        rewrite.step = REWRITE_IS_OFF;
        rewrite.start_failed = true;
        aofWhenWritten(NULL);
        appendFileClose(&rewrite.next);
        blockNotify(BLOCK_OFFSET);
    }
    aofFilesWait();
    if (rewrite.step != REWRITE_RUNS) return;
    if (rewrite.is_inline) {
        logNotice("Stopping the running AOF rewrite");
    } else {
        logNotice("Killing running AOF rewrite child: %d", rewrite.process);
    }
    rewrite.cancelled = true;
    childKill();
}

status aofSwitchOn(reason *why) {
    aofFilesWait(); /* the end of a rewrite that lacks what was changed since */
    aofBeginWaiting();
    if (childAlive() != CHILD_NONE && rewrite.step != REWRITE_RUNS) {
        logNotice(
            "AOF was enabled but there is already another background operation. An AOF background "
            "was scheduled to start when possible.");
    } else if (inTransaction()) {
        logNotice(
            "AOF was enabled during a transaction. An AOF background was scheduled to start when "
            "possible.");
    } else {
        if (rewrite.step != REWRITE_IS_OFF) {
            logNotice(
                "AOF was enabled but there is already an AOF rewriting in background. Stopping "
                "background AOF and starting a rewrite now.");
            cancel();
        }
        if (aofRewriteStart() == OK) return OK;
        aofEnd();
        rewrite.scheduled = false;
        logWarning(
            "Server needs to enable the AOF but can't trigger a background AOF rewrite operation. "
            "Check the above logs for more info about the error.");
        return reasonSet(why, ERR_IO, "Unable to turn on AOF. Check server logs.");
    }
    aofRewriteSchedule();
    return OK;
}

void aofSwitchOff(void) {
    hotCheck(threadIsMain());
    if (rewrite.scheduled) {
        rewrite.scheduled = false;
        logNotice("AOF was disabled but there is a scheduled AOF background, cancel it.");
    }
    cancel();
    aofEnd();
}

status aofAtShutdown(uint32_t flags, reason *why) {
    hotCheck(threadIsMain());
    if (rewrite.step == REWRITE_IS_ENDING) aofFilesWait();
    if (rewrite.step != REWRITE_IS_OFF) {
        if (aofStateNow() == AOF_IS_WAITING && !(flags & SHUTDOWN_FORCE)) {
            logWarning("Writing initial AOF, can't exit.");
            return ERR_DENIED;
        }
        if (aofStateNow() == AOF_IS_WAITING) logWarning("Writing initial AOF. Exit anyway.");
        if (rewrite.step == REWRITE_RUNS)
            logWarning("There is a child rewriting the AOF. Killing it!");
        cancel();
    }
    inlineSaveWait();
    if (aofStateNow() == AOF_IS_WAITING)
        logWarning(
            "The append only file was switched on, but its first rewrite has not succeeded: it does "
            "not have the dataset.");
    if (aofStateNow() != AOF_IS_ON) return OK;
    aofNotePosition();
    logNotice("Calling fsync() on the AOF file.");
    if (aofFlushAll(why) == OK) return OK;
    if (flags & SHUTDOWN_FORCE) {
        logWarning("%s. Exit anyway.", why->text);
        return OK;
    }
    logWarning("%s. Changes would be lost, can't exit.", why->text);
    return ERR_DENIED;
}

void aofRewritePrintInfo(str *out) {
    hotCheck(threadIsMain());
    bool runs = rewrite.step != REWRITE_IS_OFF;
    int64_t current_s = runs ? (clockMonoMs() - rewrite.started_ms) / 1000 : -1;
    bool on = aofStateNow() != AOF_IS_OFF;
    strAppendFormat(out,
                    "aof_enabled:%d\r\naof_rewrite_in_progress:%d\r\naof_rewrite_scheduled:%d\r\n"
                    "aof_last_rewrite_time_sec:%lld\r\naof_current_rewrite_time_sec:%lld\r\n"
                    "aof_last_bgrewrite_status:%s\r\naof_rewrites:%llu\r\n"
                    "aof_rewrites_consecutive_failures:%d\r\n",
                    on, runs, rewrite.scheduled, (long long)rewrite.last_seconds,
                    (long long)current_s, rewrite.failed ? "err" : "ok",
                    (unsigned long long)rewrite.count, rewrite.failures);
    aofPrintStatus(out);
    strAppendFormat(out,
                    "aof_last_cow_size:%llu\r\nmodule_fork_in_progress:%d\r\n"
                    "module_fork_last_cow_size:%llu\r\nslot_migration_fork_in_progress:%d\r\n",
                    (unsigned long long)rewrite.last_copied, childAlive() == CHILD_MODULE,
                    (unsigned long long)childLastCopied(CHILD_MODULE),
                    childAlive() == CHILD_SLOT_EXPORT);
    if (!on) return;
    strAppendFormat(out,
                    "aof_current_size:%lld\r\naof_base_size:%lld\r\naof_pending_rewrite:%d\r\n",
                    (long long)aofSize(), (long long)aofSizeAfterRewrite(), rewrite.scheduled);
    aofPrintSizes(out);
}
