/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load in progress (loading.h). Clients are served after each loading-process-events-interval-bytes. */
#include "persist/loading.h"

#include <unistd.h>

#include "base/base.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"

static struct {
    int64_t started_s, total_bytes;
    uint64_t files_bytes; /* of the files before the current one */
    uint64_t done_bytes, next_serve;
} progress;

static bool selectsOthers(const commandSpec *spec) { return !(spec->flags & CMD_LOADING); }

static gateVerdict refuse(ctx *c) {
    replyError(c, SLICE("LOADING Valkey is loading the dataset in memory"));
    return GATE_REFUSED;
}

const gate loadingGate = {.name = "loading", .selects = selectsOthers, .admit = refuse};

void loadingBegin(const char *path, int64_t bytes) {
    engineHot.loading = true;
    gateArm(&loadingGate, true);
    progress.started_s = clockWallMs() / 1000;
    progress.total_bytes = bytes;
    progress.done_bytes = progress.files_bytes = 0;
    progress.next_serve = (uint64_t)persistConf.loading_process_events_interval_bytes;
    hooksDbEvent(&(dbEvent){.kind = DB_LOAD_BEGINS, .db_id = -1, .other_id = -1, .path = path});
}

void loadingEnd(const char *path) {
    hooksDbEvent(&(dbEvent){.kind = DB_LOAD_ENDED, .db_id = -1, .other_id = -1, .path = path});
    gateArm(&loadingGate, false);
    engineHot.loading = false;
}

void loadingProgress(uint64_t done) {
    progress.done_bytes = progress.files_bytes + done;
    if (progress.done_bytes < progress.next_serve) return;
    progress.next_serve =
        progress.done_bytes + (uint64_t)persistConf.loading_process_events_interval_bytes;
    engineServe();
}

void loadingNextFile(void) { progress.files_bytes = progress.done_bytes; }

/* Microseconds per key, or keys per microsecond when negative. */
void loadingDelayKey(void) {
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

void loadingPrintInfo(str *out) {
    if (!engineHot.loading) return;
    double percent = progress.total_bytes > 0
                         ? 100.0 * (double)progress.done_bytes / (double)progress.total_bytes
                         : 0;
    int64_t elapsed_s = clockWallMs() / 1000 - progress.started_s;
    int64_t eta_s = 1;
    if (elapsed_s > 0 && progress.done_bytes > 0) {
        double rate = (double)progress.done_bytes / (double)elapsed_s;
        eta_s = (int64_t)((double)(progress.total_bytes - (int64_t)progress.done_bytes) / rate);
    }
    strAppendFormat(
        out,
        "loading_start_time:%lld\r\nloading_total_bytes:%lld\r\nloading_rdb_used_mem:0\r\n"
        "loading_loaded_bytes:%llu\r\nloading_loaded_perc:%.2f\r\nloading_eta_seconds:%lld\r\n",
        (long long)progress.started_s, (long long)progress.total_bytes,
        (unsigned long long)progress.done_bytes, percent, (long long)eta_s);
}
