/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load in progress (loading.h). Clients are served after each
 * loading-process-events-interval-bytes. */
#include "persist/loading.h"

#include <unistd.h>

#include "base/base.h"
#include "base/progress_meter.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/tick.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "persist/rdb_load.h"
#include "persist/sync_load.h"
#include "store/keyspace.h"

static struct {
    progressMeter meter;
    const char *path; /* NULL: not from a file; its owner reports the progress in the log */
    int64_t started_s, total_bytes;
    size_t used_before;      /* memory in use when the load began */
    int64_t used_when_saved; /* that of the server that saved the dataset; 0: unknown */
    uint64_t files_bytes;    /* of the files before the current one */
    uint64_t done_bytes, next_serve;
    bool beside;
    bool serves;          /* in loadingServe() */
    bool is_aof;          /* for events */
    int64_t signalled_ms; /* when their progress was */
    loadingServeProc *observer;
    void *observer_arg;
} progress;

static bool selectsOthers(const commandSpec *spec) { return !(spec->flags & CMD_LOADING); }

static gateVerdict refuse(ctx *c) {
    replyError(c, ERR_LOADING_TEXT);
    return GATE_REFUSED;
}

const gate loadingGate = {.name = "loading", .selects = selectsOthers, .admit = refuse};

static bool selectsExclusive(const commandSpec *spec) { return spec->flags & CMD_NO_ASYNC_LOADING; }

const gate asyncLoadingGate = {
    .name = "async loading", .selects = selectsExclusive, .admit = refuse};

static void signalPhase(serverEventKind kind, serverEventPhase phase, serverDatasetSource source) {
    serverEventSignal(&(serverEvent){.kind = kind, .phase = phase, .loading = {source}});
}

static void begin(serverDatasetSource source, const char *path, int64_t bytes) {
    hotCheck(bytes >= 0);
    progressMeterBegin(&progress.meter, clockMonoMs());
    progress.path = path;
    progress.started_s = clockWallMs() / 1000;
    progress.total_bytes = bytes;
    progress.used_before = memUsed();
    progress.used_when_saved = 0;
    progress.done_bytes = progress.files_bytes = 0;
    progress.next_serve = (uint64_t)persistConf.loading_process_events_interval_bytes;
    hooksDbEvent(&(dbEvent){.kind = DB_LOAD_BEGINS, .db_id = -1, .other_id = -1, .path = path});
    progress.is_aof = source == DATASET_AOF;
    progress.signalled_ms = clockMonoMs();
    signalPhase(SERVER_LOADING, EVENT_BEGINS, source);
}

void loadingBegin(serverDatasetSource source, const char *path, int64_t bytes) {
    hotCheck(!engineHot.loading);
    engineHot.loading = true;
    gateArm(&loadingGate, true);
    begin(source, path, bytes);
}

void loadingBeginBeside(int64_t bytes) {
    hotCheck(threadIsMain());
    progress.beside = true;
    engineSetLoadsBeside(true);
    gateArm(&asyncLoadingGate, true);
    begin(DATASET_PRIMARY, NULL, bytes);
}

bool loadingIsBeside(void) { return progress.beside; }

void loadingSetObserver(loadingServeProc *proc, void *arg) {
    progress.observer = proc;
    progress.observer_arg = arg;
}

void loadingEnd(const char *path, bool success) {
    hooksDbEvent(&(dbEvent){.kind = DB_LOAD_ENDED, .db_id = -1, .other_id = -1, .path = path});
    gateArm(progress.beside ? &asyncLoadingGate : &loadingGate, false);
    engineHot.loading = false;
    progress.beside = false;
    engineSetLoadsBeside(false);
    progress.observer = NULL;
    serverEventPhase phase = success ? EVENT_ENDED : EVENT_FAILED;
    signalPhase(SERVER_LOADING, phase, DATASET_RDB);
}

void loadingSetFormat(bool is_aof) { progress.is_aof = is_aof; }

static void logProgress(void) {
    int64_t now_ms = clockMonoMs();
    if (!progress.path || !progressMeterIsDue(&progress.meter, now_ms)) return;
    str line = STR_EMPTY;
    progressMeterDescribe(&progress.meter, (int64_t)progress.done_bytes, progress.total_bytes,
                          now_ms, &line);
    logNotice("Loading %s: %s", progress.path, strText(&line));
    strFree(&line);
}

/* What is done of what: bytes of the file, or of the memory that the dataset will need if it comes
 * from a socket. */
static void measure(int64_t *done, int64_t *total) {
    *done = (int64_t)progress.done_bytes;
    *total = progress.total_bytes;
    if (*total > 0) return;
    size_t used = memUsed();
    *done = used > progress.used_before ? (int64_t)(used - progress.used_before) : 0;
    *total = progress.used_when_saved;
    if (*done > *total) *done = *total; /* it may need more here than where it was saved */
    hotCheck(*done >= 0);
}

static void signalProgress(void) {
    if (likely(!serverEventIsWanted(SERVER_LOADING_PROGRESS))) return;
    int64_t now_ms = clockMonoMs(), done, total;
    if (now_ms - progress.signalled_ms < 1000 / tickHz()) return;
    progress.signalled_ms = now_ms;
    measure(&done, &total);
    int per_1024 = total > 0 ? (int)(1024.0 * (double)done / (double)total) : -1;
    serverEventSignal(&(serverEvent){
        .kind = SERVER_LOADING_PROGRESS,
        .progress = {.is_aof = progress.is_aof, .per_1024 = per_1024, .hz = tickHz()}});
}

/* Clients use the main keyspace, whichever is being filled. */
void loadingServe(void) {
    hotCheck(threadIsMain());
    logProgress();
    progress.serves = true;
    keyspace *filled = keyspaceUse(keyspaceMain());
    signalProgress();
    if (progress.observer) progress.observer(progress.observer_arg);
    engineServe();
    (void)keyspaceUse(filled); /* the main one again */
    progress.serves = false;
}

void persistServeInLoad(void) {
    if (progress.serves || !rdbLoadPlace()) return;
    loadingServe();
}

bool loadingAdvance(uint64_t done) {
    progress.done_bytes = progress.files_bytes + done;
    if (likely(progress.done_bytes < progress.next_serve)) return false;
    progress.next_serve =
        progress.done_bytes + (uint64_t)persistConf.loading_process_events_interval_bytes;
    return true;
}

void loadingProgress(uint64_t done) {
    if (loadingAdvance(done)) loadingServe();
}

void loadingNextFile(void) { progress.files_bytes = progress.done_bytes; }

/* Microseconds per key, or keys per microsecond when negative. */
void loadingDelayKey(void) {
    hotCheck(threadIsMain());
    static int keys;
    int delay = persistConf.key_load_delay;
    if (delay == 0) return;
    if (delay > 0) {
        (void)usleep((useconds_t)delay); /* may be interrupted */
    } else if (++keys >= -(int64_t)delay) {
        keys = 0;
        (void)usleep(1); /* likewise */
    }
}

void loadingNoteUsedMemory(int64_t bytes) { progress.used_when_saved = bytes > 0 ? bytes : 0; }

int64_t persistSyncSecondsLeft(void) {
    int64_t done, total;
    measure(&done, &total);
    return progressMeterSecondsLeft(&progress.meter, done, total, clockMonoMs());
}

void loadingPrintInfo(str *out) {
    hotCheck(threadIsMain());
    if (!engineHot.loading && !progress.beside) return;
    int64_t done, total;
    measure(&done, &total);
    int64_t left_s = progressMeterSecondsLeft(&progress.meter, done, total, clockMonoMs());
    strAppendFormat(
        out,
        "loading_start_time:%lld\r\nloading_total_bytes:%lld\r\nloading_rdb_used_mem:%lld\r\n"
        "loading_loaded_bytes:%llu\r\nloading_loaded_perc:%.2f\r\nloading_eta_seconds:%lld\r\n",
        (long long)progress.started_s, (long long)progress.total_bytes,
        (long long)progress.used_when_saved, (unsigned long long)progress.done_bytes,
        total > 0 ? 100.0 * (double)done / (double)total : 0.0,
        left_s < 0 ? 1LL : (long long)left_s);
}
