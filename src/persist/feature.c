/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence: registration with the engine, loading at start, INFO. Main thread only. */
#include <string.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/keyspace.h"
#include "engine/hot.h"
#include "engine/libraries.h"
#include "engine/lifecycle.h"
#include "engine/server_event.h"
#include "persist/aof.h"
#include "persist/aof_files.h"
#include "persist/aof_load.h"
#include "persist/aof_rewrite.h"
#include "persist/foreign.h"
#include "persist/leftovers.h"
#include "persist/loading.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "persist/rdb_damage.h"
#include "persist/rdb_load.h"
#include "persist/rdb_save.h"
#include "persist/skipped_keys.h"
#include "persist/snapshot.h"
#include "persist/sync_load.h"
#include "store/keyspace.h"
#include "store/store.h"

static void printPersistence(str *out) {
    strAppendFormat(out, "loading:%d\r\nasync_loading:%d\r\n", engineHot.loading,
                    loadingIsBeside());
    snapshotPrintInfo(out);
    rdbLoadPrintInfo(out);
    aofLoadPrintInfo(out);
    aofRewritePrintInfo(out);
    loadingPrintInfo(out);
}

size_t persistAofBufferBytes(void) { return aofBufferBytes(); }
int64_t persistKeySaveDelayUs(void) { return persistConf.rdb_key_save_delay; }
uint64_t persistAofUs(void) { return aofWriteUs(); }

/* ------------------------------------------------------------------ start */

/* The primary of a replica decides what expires. */
static unsigned loadFlags(bool is_replica) {
    if (is_replica) return RDB_LOAD_KEEP_EXPIRED | RDB_LOAD_CONTINUES;
    return keyspaceKeepsExpired() ? RDB_LOAD_KEEP_EXPIRED : 0;
}

/* What the start has found. */
static bool loaded_dataset, loaded_aof;

bool persistLoadedAof(void) { return loaded_aof; }
bool persistLoadedDataset(void) { return loaded_dataset; }

static status loadSnapshot(bool is_replica, reason *why) {
    int64_t began_us = clockMonoUs();
    status st = rdbLoadFile(persistConf.dbfilename, loadFlags(is_replica), why);
    if (st == ERR_NOT_FOUND) return OK;
    loaded_dataset = st == OK;
    if (st == OK) {
        snapshotNoteLoaded();
        logNotice("DB loaded from disk: %.3f seconds", (double)(clockMonoUs() - began_us) / 1e6);
    } else {
        rdbDamageLog(persistConf.dbfilename);
    }
    return st;
}

/* Loads the append only file, and opens or creates the files to append to. */
static status startAof(reason *why) {
    hotCheck(aofStateNow() == AOF_IS_OFF);
    appendFile file;
    status st = aofFilesCheckLost(why);
    if (st == OK) st = aofFilesMigrate(why);
    if (st != OK) {
        logWarning("Fatal error: %s", why->text);
        return st;
    }
    int64_t began_us = clockMonoUs(), size = aofFilesSize(), base_size = aofFilesBaseSize();
    st = aofLoad();
    if (st != OK && st != ERR_NOT_FOUND) return st;
    loaded_aof = loaded_dataset = st == OK;
    if (st == OK && size > 0)
        logNotice("DB loaded from append only file: %.3f seconds",
                  (double)(clockMonoUs() - began_us) / 1e6);
    if (st == ERR_NOT_FOUND && fileSize(persistConf.dbfilename) > 0)
        logWarning(
            "There is no append only file yet: the server starts with an empty dataset, and does not load the "
            "snapshot %s. To keep its data, start with appendonly no, and then run CONFIG SET appendonly yes.",
            persistConf.dbfilename);
    aofFilesSweep();
    bool is_new = st == ERR_NOT_FOUND;
    st = is_new ? aofFilesCreateBase(why) : OK;
    if (st == OK) st = aofFilesOpenLast(&file, why);
    if (st == OK && is_new) aofFilesSweep(); /* what a first rewrite has left */
    /* The end of the file may be in the kernel only. From here on it counts as being on disk. */
    int error = st == OK && loaded_aof ? appendFileSync(file.fd) : 0;
    if (error) {
        appendFileClose(&file);
        st = reasonSet(why, ERR_IO, "Fail to fsync the AOF file: %s", strerror(error));
    }
    if (st != OK) {
        logWarning("Fatal error: can't open the append-only file: %s", why->text);
        return st;
    }
    aofSetSizes(size > 0 ? aofFilesSize() : 0, base_size);
    aofBegin(&file);
    aofFilesRemoveHistory();
    return OK;
}

status persistLoadAtStart(bool is_replica, reason *why) {
    hotCheck(threadIsMain());
    /* Not before: tools wait for the process to be initialised, and then for its end. */
    if (aofFilesReadManifest() != OK)
        return reasonSet(why, ERR_SYNTAX, "the AOF manifest cannot be read");
    status st = persistConf.appendonly ? startAof(why) : loadSnapshot(is_replica, why);
    if (st == OK && !is_replica) skippedKeysDrop(); /* nothing that comes later is about them */
    if (st == OK) leftoversRemove();
    return st;
}

/* ------------------------------------------------------------------ DEBUG RELOAD, LOADAOF */

static void emptyDatabases(void) {
    librariesClear();
    (void)storeFlush(keyspaceMain(), false); /* the number of keys is not needed */
}

static status reloadAof(reason *why) {
    status st = aofFlushAll(why);
    if (st != OK) return st;
    emptyDatabases();
    /* Somebody may have replaced the files; new ones are numbered on from what the manifest
     * says. */
    if (aofFilesReadManifest() != OK)
        return reasonSet(why, ERR_SYNTAX, "the AOF manifest cannot be read");
    st = aofLoad();
    if (st == ERR_NOT_FOUND) (void)reasonSet(why, st, "there is no append only file");
    return st;
}

static status reload(unsigned flags, reason *why) {
    if (flags & RELOAD_AOF) return reloadAof(why);
    status st = flags & RELOAD_NO_SAVE ? OK : snapshotSave(why);
    if (st != OK) return st;
    st = rdbLoadCheckHeader(persistConf.dbfilename, why);
    if (st != OK) return st;
    logNotice("RDB signature and version check passed. Flushing old data");
    if (!(flags & RELOAD_NO_FLUSH)) emptyDatabases();
    unsigned over = flags & RELOAD_MERGE ? RDB_LOAD_OVER : 0;
    return rdbLoadFile(persistConf.dbfilename, loadFlags(false) | over, why);
}

/* ------------------------------------------------------------------ for modules */

status persistSaveTo(const char *path, reason *why) {
    hotCheck(threadIsMain());
    serverEventSaving(EVENT_BEGINS, false, true);
    status st = rdbSaveFile(path, false, NULL, why);
    serverEventSaving(st == OK ? EVENT_ENDED : EVENT_FAILED, false, true);
    if (st == OK) {
        logNotice("DB saved on disk");
    } else {
        logWarning("Write error while saving DB to the disk(rdbSaveRio): %s", why->text);
    }
    return st;
}

status persistLoadInstead(const char *path, void (*empty)(void), reason *why) {
    hotCheck(threadIsMain());
    check(empty);
    status st = rdbLoadCheckHeader(path, why);
    if (st != OK) return st;
    persistSyncBegin();
    empty();
    librariesClear();
    st = rdbLoadFile(path, loadFlags(false), why);
    persistSyncEnd(NULL);
    return st;
}

/* ------------------------------------------------------------------ registration */

static status init(reason *why) {
    (void)why; /* cannot fail */
    snapshotInit();
    foreignBeginReplays();
    skippedKeysInit();
    engineSetReloadProc(reload);
    return OK;
}

static void onChild(childEvent e, int kind, int exit_code, int signal_number) {
    snapshotChildEvent(e, kind, exit_code, signal_number);
    aofRewriteChildEvent(e, kind, exit_code, signal_number);
}

static status onShutdown(uint32_t flags, reason *why) {
    status st = aofAtShutdown(flags, why);
    return st == OK ? snapshotAtShutdown(flags, why) : st;
}

bool persistKeepsDataset(uint32_t flags) {
    return aofStateNow() != AOF_IS_OFF || snapshotIsSavedAtShutdown(flags);
}

static void onDb(const dbEvent *e) {
    if (e->kind == DB_FLUSHED && e->db_id < 0) snapshotFlushed();
}

static const infoSection sections[] = {
    {"persistence", "# Persistence", INFO_NORMAL, INFO_PERSISTENCE, printPersistence},
    {0},
};

static const tickJob ticks[] = {{"snapshot", 100, snapshotTick, snapshotIsNear},
                                {"aof", 100, aofTick, aofIsBehind},
                                {"aof-rewrite", 100, aofRewriteTick, aofRewriteIsWanted},
                                {0}};
static const gate *const gates[] = {&snapshotErrorGate, &aofErrorGate,    &loadingGate,
                                    &asyncLoadingGate,  &skippedKeysGate, NULL};
static const sink *const sinks[] = {&aofSink, NULL};

const feature persistFeature = {.name = "persist",
                                .options = persistOptions,
                                .info = sections,
                                .ticks = ticks,
                                .gates = gates,
                                .sinks = sinks,
                                .on_db = onDb,
                                .on_child = onChild,
                                .on_stats_reset = aofResetStats,
                                .on_shutdown = onShutdown,
                                .init = init};
