/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots (snapshot.h). Invariants: `running` is set if and only if a child of kind
 * CHILD_RDB_SAVE exists; the gate is armed if and only if the last save failed, save points are set
 * and stop-writes-on-bgsave-error is on. */
#include "persist/snapshot.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/child.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/transaction.h"
#include "engine/server_event.h"
#include "io/thread.h"
#include "persist/aof.h"
#include "persist/inline_save.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "persist/rdb_save.h"
#include "persist/sync.h"
#include "store/store.h"

enum { RETRY_MS = 5000 };

static struct {
    bool running, scheduled, cancelled;
    /* The child writes to replicas: the file and the result of the last save are unaffected. */
    bool to_pipe;
    bool to_connection; /* of the only replica, not to a pipe */
    bool is_inline;     /* the child is a job of this process */
    bool for_replicas;
    int process; /* of the child */
    bool failed; /* the last save */
    int64_t last_save_s;
    int64_t last_try_ms, started_ms;
    int64_t last_seconds; /* duration of the last save; -1: none yet */
    uint64_t dirty_saved; /* value of engineHot.dirty at the last save */
    uint64_t dirty_started;
    uint64_t saves, keys_at_start, last_copied;
    const char *last_type; /* as INFO shows it; NULL: there was no save in the background */
} snapshot;

/* ------------------------------------------------------------------ the gate */

static gateVerdict refuseWrites(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE && !transactionHas(c->who, CMD_WRITE)) return GATE_PASS;
    replyError(
        c,
        SLICE(
            "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist "
            "to disk. Commands that may modify the data set are disabled, because this "
            "instance is configured to report errors during writes if RDB snapshotting "
            "fails (stop-writes-on-bgsave-error option). Please check the Valkey logs for "
            "details about the RDB error."));
    return GATE_REFUSED;
}

static void refuseScript(ctx *c) {
    replyError(c, SLICE("MISCONF Valkey is configured to save RDB snapshots, but it's currently "
                        "unable to persist to disk. Writable scripts are blocked. Use 'no-writes' "
                        "flag for read only scripts."));
}

const gate snapshotErrorGate = {.name = "snapshot error",
                                .selects = persistSelectsWrites,
                                .admit = refuseWrites,
                                .refuse_script = refuseScript,
                                .waived_for_writer = true};

void snapshotUpdateGate(void) {
    bool armed = snapshot.failed && persistConf.stop_writes_on_bgsave_error &&
                 persistConf.save_point_count > 0;
    if (gateIsArmed(&snapshotErrorGate) != armed) gateArm(&snapshotErrorGate, armed);
    hotCheck(gateIsArmed(&snapshotErrorGate) == armed);
}

/* ------------------------------------------------------------------ saving */

static void noteSuccess(uint64_t dirty) {
    hotCheck(dirty <= engineHot.dirty);
    snapshot.failed = false;
    snapshot.dirty_saved = dirty;
    snapshot.last_save_s = clockWallMs() / 1000;
    snapshotUpdateGate();
    hotCheck(!snapshot.failed);
}

status snapshotSave(reason *why) {
    hotCheck(threadIsMain());
    if (snapshot.running) return reasonSet(why, ERR_EXISTS, "Background save already in progress");
    snapshot.saves++;
    serverEventSaving(EVENT_BEGINS, false, true);
    int64_t began_ms = clockMonoMs();
    uint64_t dirty = engineHot.dirty;
    status st = rdbSaveFile(persistConf.dbfilename, false, NULL, why);
    snapshot.last_try_ms = clockMonoMs();
    serverEventSaving(st == OK ? EVENT_ENDED : EVENT_FAILED, false, true);
    if (st != OK) {
        logWarning("Write error while saving DB to the disk(rdbSaveRio): %s", why->text);
        return st;
    }
    logNotice("DB saved on disk");
    snapshot.last_seconds = (clockMonoMs() - began_ms) / 1000;
    noteSuccess(dirty);
    return OK;
}

static void useCpus(void) {
    if (persistConf.bgsave_cpulist[0] && !threadSetCpus(persistConf.bgsave_cpulist))
        logWarning("bgsave-cpulist '%s' is invalid", persistConf.bgsave_cpulist);
}

/* `arg`: a syncContent, or NULL. */
static int saveInChild(void *arg) {
    reason why;
    useCpus();
    if (rdbSaveFile(persistConf.dbfilename, true, arg, &why) != OK) {
        logWarning("Write error while saving DB to the disk(rdbSaveRio): %s", why.text);
        return 1;
    }
    logNotice("DB saved on disk");
    return 0;
}

static status noteStart(status st) {
    hotCheck(!snapshot.running);
    if (st != OK) return st;
    snapshot.running = true;
    snapshot.cancelled = false;
    return OK;
}

static status startChild(childProc *run, void *arg, reason *why) {
    if (snapshot.running) return reasonSet(why, ERR_EXISTS, "Background save already in progress");
    if (childAlive() != CHILD_NONE)
        return reasonSet(why, ERR_AGAIN, "Another child process is active");
    const childJob job = {.kind = CHILD_RDB_SAVE, .run = run, .arg = arg};
    return noteStart(childStart(&job, why));
}

static status startInline(const syncContent *content, int mode, bool to_pipe, reason *why) {
    char temporary[64];
    if (snapshot.running) return reasonSet(why, ERR_EXISTS, "Background save already in progress");
    inlineSaveTemporary(temporary, sizeof(temporary));
    const inlineSave save = {.kind = CHILD_RDB_SAVE,
                             .job = {.temporary = temporary,
                                     .name = to_pipe ? NULL : persistConf.dbfilename,
                                     .content = content ? *content : (syncContent){.version = 0},
                                     .codec = content ? content->codec : rdbSaveCodec(),
                                     .syncs = persistConf.rdb_save_incremental_fsync},
                             .mode = mode,
                             .relays = to_pipe,
                             .cpus = persistConf.bgsave_cpulist};
    return noteStart(inlineSaveStart(&save, why));
}

/* enum snapshotMode of BGSAVE and of save points: bgsave-default-method forkless, as in Valkey 9.2,
 * forks only for modules that are not prepared. */
static int modeOfBgsave(void) {
    bool forkless = persistConf.bgsave_default_method == BGSAVE_FORKLESS;
    if (!forkless || !persistConf.forkless_infrastructure_enabled) return persistConf.snapshot_mode;
    return engineModuleWithout(MODULES_HANDLE_FORKLESS) ? SNAPSHOT_FORK : SNAPSHOT_INLINE;
}

/* `content` NULL: everything. */
static status startSave(const syncContent *content, reason *why) {
    syncContent copy; /* the child has a copy of this stack */
    if (content) copy = *content;
    if (!snapshot.running) {
        snapshot.to_pipe = false;
        snapshot.for_replicas = content != NULL;
    }
    int64_t now_ms = clockMonoMs();
    int mode = content ? persistConf.snapshot_mode : modeOfBgsave();
    status st = inlineSaveIsWanted(mode, false)
                    ? startInline(content, mode, false, why)
                    : startChild(saveInChild, content ? &copy : NULL, why);
    if (st == ERR_EXISTS || st == ERR_AGAIN) return st;
    snapshot.last_try_ms = snapshot.started_ms = now_ms;
    snapshot.dirty_started = engineHot.dirty;
    snapshot.saves++;
    if (st == OK) {
        snapshot.scheduled = false;
        return OK;
    }
    snapshot.failed = true;
    snapshotUpdateGate();
    logWarning("Can't save in background: %s", why->text);
    return st;
}

status snapshotStart(reason *why) { return startSave(NULL, why); }

/* ------------------------------------------------------------------ for replicas */

status syncSaveToFile(const syncContent *content, reason *why) { return startSave(content, why); }

typedef struct pipeSave {
    syncPipe *to;
    const syncContent *content;
} pipeSave;

static int sendInChild(void *arg) {
    const pipeSave *save = arg;
    syncPipe *to = save->to;
    reason why;
    useCpus();
    pipeCloseReading(&to->data); /* the parent's ends */
    pipeCloseWriting(&to->end);
    if (rdbSaveToPipe(to->data.write_fd, to->mark, save->content, &why) != OK) {
        logWarning("RDB transfer to replicas failed: %s", why.text);
        return 1;
    }
    pipeCloseWriting(&to->data);
    pipeWaitForEnd(to->end.read_fd);
    return 0;
}

status syncSaveToPipe(syncPipe *to, const syncContent *content, reason *why) {
    hotCheck(threadIsMain());
    pipeSave save = {.to = to, .content = content};
    bool was = snapshot.to_pipe;
    snapshot.to_pipe = true;
    snapshot.to_connection = to->is_connection;
    int64_t now_ms = clockMonoMs();
    status st = startChild(sendInChild, &save, why);
    pipeCloseWriting(&to->data); /* the child's ends */
    pipeCloseReading(&to->end);
    if (st == OK) {
        snapshot.started_ms = now_ms;
    } else {
        if (snapshot.running) snapshot.to_pipe = was;
        if (st == ERR_IO) logWarning("Can't save in background: %s", why->text);
    }
    return st;
}

bool syncIsInline(void) { return inlineSaveIsWanted(persistConf.snapshot_mode, false); }

status syncSaveInline(const syncContent *content, reason *why) {
    hotCheck(threadIsMain());
    bool was = snapshot.to_pipe;
    snapshot.to_pipe = true;
    int64_t now_ms = clockMonoMs();
    status st = startInline(content, persistConf.snapshot_mode, true, why);
    if (st == OK) {
        snapshot.started_ms = now_ms;
    } else {
        if (snapshot.running) snapshot.to_pipe = was;
        if (st == ERR_IO) logWarning("Can't save in background: %s", why->text);
    }
    return st;
}

blob *syncTakeInline(void) { return inlineSaveTake(); }
bool syncInlineIsPressed(void) { return inlineSaveIsPressed(); }

void syncStop(void) {
    hotCheck(threadIsMain());
    if (snapshot.running) snapshot.cancelled = true;
    childKill();
}

compressCodec syncFileCodec(void) { return rdbSaveCodec(); }
bool syncFileHasChecksum(void) { return persistConf.rdbchecksum; }

const char *syncFile(void) { return persistConf.dbfilename; }

bool syncFileIsUnwanted(void) {
    return persistConf.rdb_del_sync_files && persistConf.save_point_count == 0 &&
           aofStateNow() == AOF_IS_OFF;
}

/* --------------------------------------------------------------- scheduling, the end of a child */

void snapshotSchedule(void) { snapshot.scheduled = true; }

bool snapshotCancel(bool *running) {
    *running = snapshot.running;
    if (snapshot.running) {
        logNotice("Background saving will be aborted due to user request");
        snapshot.cancelled = true;
        childKill();
        return true;
    }
    bool scheduled = snapshot.scheduled;
    snapshot.scheduled = false;
    return scheduled;
}

/* On failure, already logged, the save is retried later. */
static void startAgain(void) {
    reason why;
    if (snapshotStart(&why) != OK) snapshot.failed = true;
}

static void pipeEnded(int exit_code, int signal_number) {
    hotCheck(snapshot.to_pipe);
    if (exit_code == 0) {
        logNotice("Background RDB transfer terminated with success");
    } else if (signal_number && snapshot.is_inline) {
        logWarning("RDB transfer was stopped");
    } else if (signal_number) {
        logWarning("Background RDB transfer terminated by signal %d", signal_number);
    } else {
        logWarning("Background RDB transfer error");
    }
}

static const char *typeName(bool is_inline) { return is_inline ? "forkless" : "fork"; }

void snapshotChildEvent(childEvent e, int kind, int exit_code, int signal_number) {
    hotCheck(threadIsMain());
    if (e == CHILD_BEFORE_FORK) snapshot.keys_at_start = keyspaceKeyCount(keyspaceMain());
    if (kind != CHILD_RDB_SAVE) return;
    if (e == CHILD_IN_PARENT) {
        snapshot.process = childProcess();
        snapshot.is_inline = childIsHere();
        if (snapshot.is_inline) {
            logNotice(snapshot.to_pipe ? "RDB transfer started in this process"
                                       : "Background saving started in this process");
        } else if (snapshot.to_pipe) {
            logNotice("Background RDB transfer started by pid %d to %s", snapshot.process,
                      snapshot.to_connection ? "direct socket to replica"
                                             : "pipe through parent process");
        } else {
            logNotice("Background saving started by pid %d", snapshot.process);
        }
    }
    if (e != CHILD_ENDED || !snapshot.running) return;
    snapshot.running = false;
    snapshot.last_type = typeName(snapshot.is_inline);
    if (snapshot.to_pipe) {
        pipeEnded(exit_code, signal_number);
        return;
    }
    snapshot.last_seconds = (clockMonoMs() - snapshot.started_ms) / 1000;
    snapshot.last_copied = childProgressNow().copied;
    if (exit_code == 0) {
        logNotice("Background saving terminated with success");
        noteSuccess(snapshot.dirty_started);
        return;
    }
    if (exit_code == INLINE_SAVE_NEEDS_FORK) {
        if (!snapshot.for_replicas) startAgain(); /* replicas ask again */
        return;
    }
    if (!snapshot.is_inline) rdbSaveRemoveTemporary(snapshot.process);
    if (signal_number && snapshot.is_inline) {
        logWarning("Background saving was stopped");
    } else if (signal_number) {
        logWarning("Background saving terminated by signal %d", signal_number);
    } else {
        logWarning("Background saving error");
    }
    if (!snapshot.cancelled) snapshot.failed = true;
    snapshotUpdateGate();
}

/* ------------------------------------------------------------------ when */

/* The first save point that is due in `later_s` seconds; NULL if there is none. */
static const savePoint *duePoint(int64_t later_s) {
    hotCheck(snapshot.dirty_saved <= engineHot.dirty);
    hotCheck(later_s >= 0);
    uint64_t changes = engineHot.dirty - snapshot.dirty_saved;
    int64_t passed_s = clockWallMs() / 1000 + later_s - snapshot.last_save_s;
    for (int i = 0; i < persistConf.save_point_count; i++) {
        const savePoint *point = &persistConf.save_points[i];
        if (changes >= (uint64_t)point->changes && passed_s > point->seconds) return point;
    }
    return NULL;
}

void snapshotTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* a fork cannot be limited */
    if (childAlive() != CHILD_NONE || engineHot.loading) return;
    if (snapshot.failed && clockMonoMs() - snapshot.last_try_ms <= RETRY_MS) return;
    const savePoint *point = duePoint(0);
    if (point)
        logNotice("%lld changes in %lld seconds. Saving...", (long long)point->changes,
                  (long long)point->seconds);
    if (point || snapshot.scheduled) startAgain();
}

bool snapshotIsNear(void) {
    enum { NEAR_S = 2 }; /* more than the cron rests */
    return snapshot.scheduled || snapshot.failed || duePoint(NEAR_S);
}

static void killChild(void) {
    hotCheck(snapshot.running);
    if (snapshot.is_inline) {
        logNotice("Stopping the running snapshot");
    } else {
        logNotice("Killing running RDB child: %d", snapshot.process);
    }
    snapshot.cancelled = true;
    childKill();
}

void snapshotKill(void) {
    hotCheck(threadIsMain());
    if (!snapshot.running) return;
    logNotice("Replica is about to load the RDB file received from the primary, but there is a "
              "pending RDB child running. Killing process %d and removing its temp file to avoid "
              "any race",
              snapshot.process);
    snapshot.cancelled = true;
    childKill();
}

void snapshotFlushed(void) {
    hotCheck(threadIsMain());
    reason why;
    if (engineHot.loading) return;
    if (snapshot.running) killChild();
    if (persistConf.save_point_count > 0 && snapshotSave(&why) != OK) {
        snapshot.failed = true; /* was logged; the save points try again */
        snapshotUpdateGate();
    }
}

bool snapshotIsSavedAtShutdown(uint32_t flags) {
    return flags & SHUTDOWN_SAVE ||
           (persistConf.save_point_count > 0 && !(flags & SHUTDOWN_NOSAVE));
}

status snapshotAtShutdown(uint32_t flags, reason *why) {
    hotCheck(threadIsMain());
    if (snapshot.running) {
        logWarning("There is a child saving an .rdb. Killing it!");
        killChild();
    }
    inlineSaveWait();
    if (!snapshotIsSavedAtShutdown(flags) || engineHot.loading) return OK;
    logNotice("Saving the final RDB snapshot before exiting.");
    if (snapshotSave(why) == OK) return OK;
    if (flags & SHUTDOWN_FORCE) {
        logWarning("Error trying to save the DB. Exit anyway.");
        return OK;
    }
    logWarning("Error trying to save the DB, can't exit.");
    char folder[PATH_MAX];
    logWarning(
        "The server keeps running, as ending it would lose data. Make it possible to write in the folder %s, "
        "and stop it again; SHUTDOWN NOSAVE ends it without saving.",
        getcwd(folder, sizeof(folder)) ? folder : "of the directive dir");
    return ERR_DENIED;
}

/* ------------------------------------------------------------------ state */

bool snapshotIsRunning(void) { return snapshot.running; }
int64_t snapshotLastSave(void) { return snapshot.last_save_s; }
void snapshotNoteLoaded(void) { snapshot.dirty_saved = engineHot.dirty; }

void snapshotInit(void) {
    snapshot.last_save_s = clockWallMs() / 1000;
    snapshot.last_seconds = -1;
}

/* The child may be one that rewrites the append only file, or that of a module, which counts no
 * keys. */
static void printChild(str *out) {
    childProgress p = childProgressNow();
    bool saves = childAlive() == CHILD_RDB_SAVE || childAlive() == CHILD_AOF_REWRITE;
    if (!saves && childAlive() != CHILD_MODULE) p = (childProgress){0};
    int64_t age_s = p.reported_us ? (clockMonoUs() - p.reported_us) / 1000000 : 0;
    double percent = p.total ? 100.0 * (double)p.done / (double)p.total : 0;
    strAppendFormat(
        out,
        "current_cow_peak:%llu\r\ncurrent_cow_size:%llu\r\ncurrent_cow_size_age:%lld\r\n"
        "current_fork_perc:%.2f\r\ncurrent_save_keys_processed:%llu\r\n"
        "current_save_keys_total:%llu\r\n",
        (unsigned long long)p.copied_peak, (unsigned long long)p.copied, (long long)age_s, percent,
        (unsigned long long)(saves ? p.done : 0),
        (unsigned long long)(saves ? snapshot.keys_at_start : 0));
}

/* Fields of Valkey 9.2. */
static void printTypes(str *out) {
    hotCheck(threadIsMain());
    strAppendFormat(out, "rdb_current_bgsave_type:%s\r\nrdb_last_bgsave_type:%s\r\n",
                    snapshot.running ? typeName(snapshot.is_inline) : "none",
                    snapshot.last_type ? snapshot.last_type : "none");
    if (!snapshot.running || !snapshot.is_inline) return;
    childProgress p = childProgressNow();
    double past_s = (double)(clockMonoMs() - snapshot.started_ms) / 1000;
    double left_s = p.done ? past_s * (double)(p.total - p.done) / (double)p.done : 0;
    strAppendFormat(out, "forkless_estimated_seconds_remaining:%lld\r\n", llround(left_s));
}

void snapshotPrintInfo(str *out) {
    hotCheck(threadIsMain());
    int64_t current_s = snapshot.running ? (clockMonoMs() - snapshot.started_ms) / 1000 : -1;
    printChild(out);
    strAppendFormat(
        out,
        "rdb_changes_since_last_save:%llu\r\nrdb_bgsave_in_progress:%d\r\n"
        "rdb_last_save_time:%lld\r\nrdb_last_bgsave_status:%s\r\n"
        "rdb_last_bgsave_time_sec:%lld\r\nrdb_current_bgsave_time_sec:%lld\r\nrdb_saves:%llu\r\n"
        "rdb_last_cow_size:%llu\r\n",
        (unsigned long long)(engineHot.dirty - snapshot.dirty_saved), snapshot.running,
        (long long)snapshot.last_save_s, snapshot.failed ? "err" : "ok",
        (long long)snapshot.last_seconds, (long long)current_s, (unsigned long long)snapshot.saves,
        (unsigned long long)snapshot.last_copied);
    printTypes(out);
    inlineSavePrintInfo(out);
}
