/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence: registration with the engine, loading at start, INFO. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "persist/rdb_load.h"
#include "persist/snapshot.h"
#include "store/keyspace.h"
#include "store/store.h"

static void printPersistence(str *out) {
    strAppendFormat(out, "loading:%d\r\nasync_loading:0\r\n", engineHot.loading);
    snapshotPrintInfo(out);
    strAppendText(out, "aof_enabled:0\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n");
    rdbLoadPrintInfo(out);
}

status persistLoadAtStart(reason *why) {
    int64_t began_us = clockMonoUs();
    status st = rdbLoadFile(persistConf.dbfilename, 0, why);
    if (st == ERR_NOT_FOUND) return OK;
    if (st == OK) {
        snapshotNoteLoaded();
        logNotice("DB loaded from disk: %.3f seconds", (double)(clockMonoUs() - began_us) / 1e6);
    }
    return st;
}

/* DEBUG RELOAD. */
static status reload(unsigned flags, reason *why) {
    status st = flags & RELOAD_NO_SAVE ? OK : snapshotSave(why);
    if (st != OK) return st;
    if (!(flags & RELOAD_NO_FLUSH))
        (void)storeFlush(keyspaceMain(), false); /* the number of keys is not needed */
    return rdbLoadFile(persistConf.dbfilename, flags & RELOAD_MERGE ? RDB_LOAD_OVER : 0, why);
}

/* A server configured to persist its data must not start without doing so. */
static status init(reason *why) {
    snapshotInit();
    engineSetReloadProc(reload);
    if (!persistConf.appendonly) return OK;
    return reasonSet(
        why, ERR_DENIED,
        "this version of the server has no append only file: start it with appendonly no");
}

static const infoSection sections[] = {
    {"persistence", "# Persistence", INFO_NORMAL, INFO_PERSISTENCE, printPersistence},
    {0},
};

static const tickJob ticks[] = {{"snapshot", 100, snapshotTick}, {NULL, 0, NULL}};
static const gate *const gates[] = {&snapshotErrorGate, &loadingGate, NULL};

const feature persistFeature = {.name = "persist",
                                .options = persistOptions,
                                .info = sections,
                                .ticks = ticks,
                                .gates = gates,
                                .on_child = snapshotChildEvent,
                                .on_shutdown = snapshotAtShutdown,
                                .init = init};
