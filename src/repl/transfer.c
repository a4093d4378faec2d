/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfer of a dataset (transfer.h). A load runs inside a callback of the event loop and serves
 * clients by nested turns. In such a turn the transfer may be cancelled, and another one may even
 * be started. So each transfer is an allocated block, and a load refers to the transfer that it
 * belongs to. */
#include "repl/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/progress_meter.h"
#include "engine/hot.h"
#include "engine/libraries.h"
#include "engine/lifecycle.h"
#include "engine/server_event.h"
#include "format/rdb_source.h"
#include "net/net.h"
#include "persist/sync_load.h"
#include "repl/download.h"
#include "repl/repl_priv.h"
#include "store/store.h"

enum {
    NEWLINE_MS = 1000, /* between two signs of life to the primary while loading */
    WAIT_MS = 100,     /* longest sleep while waiting for bytes */
};

typedef struct transfer {
    rdbSource source; /* of a load from the connection */
    linkTransfer what;
    transferOwner owner;
    conn *c;
    str first; /* received with the announcement; those before `first_at` are taken */
    size_t first_at;
    bool same_history, beside; /* loaded into a keyspace of its own */
    bool replaced;             /* the old dataset is gone */
    download *file;            /* NULL: from the connection */
    int64_t received, heard;
    int64_t heard_ms, newline_ms;
    progressMeter meter;
    bool loading, cancelled;
    bool cut;        /* the connection was lost or timed out */
    bool has_no_key; /* it was refused for that */
    bool is_foreign; /* the same */
    str rest;
} transfer;

static transfer *current;

static void freeTransfer(transfer *t) {
    if (t->file) downloadFree(t->file);
    strFree(&t->first);
    strFree(&t->rest);
    memFree(t);
}

static void report(transfer *t, int64_t now_ms) {
    if (!progressMeterIsDue(&t->meter, now_ms)) return;
    str line = STR_EMPTY;
    progressMeterDescribe(&t->meter, t->received, t->what.bytes, now_ms, &line);
    logNotice("PRIMARY <-> REPLICA sync: received %s", strText(&line));
    strFree(&line);
}

static void setReceived(transfer *t, int64_t received) {
    netCountDataset((size_t)(received - t->received));
    t->received = received;
}

static void noteReceived(transfer *t, int64_t received) {
    setReceived(t, received);
    t->heard_ms = clockMonoMs();
    if (!t->cancelled) t->owner.heard(t->owner.arg);
}

/* ------------------------------------------------------------------ the old dataset */

static void signalAll(dbEventKind kind, bool swapped) {
    hooksDbEvent(&(dbEvent){.kind = kind,
                            .db_id = -1,
                            .other_id = -1,
                            .later = replConf.replica_lazy_flush,
                            .swapped = swapped});
}

/* Within a load: save points must not save what is empty only for a moment. */
static bool setLoading(bool on) {
    bool before = engineHot.loading;
    engineHot.loading = on;
    return before;
}

static void emptyDataset(void) {
    bool before = setLoading(true);
    signalAll(DB_FLUSHING, false);
    (void)storeFlush(keyspaceMain(), replConf.replica_lazy_flush); /* the number is not needed */
    librariesClear();
    signalAll(DB_FLUSHED, false);
    (void)setLoading(before); /* was true */
}

static void replaceDataset(transfer *t) {
    t->replaced = true;
    persistSyncBegin();
    t->owner.dataset_gone(t->owner.arg);
}

/* The header of the new dataset is good. */
static void onAccepted(void *arg) {
    transfer *t = arg;
    if (t->beside) return;
    logNotice("RDB signature and version check passed. Flushing old data");
    replaceDataset(t);
    emptyDataset();
}

/* The primary must not take a long load for a dead replica. */
static void onProgress(void *arg) {
    transfer *t = arg;
    int64_t now_ms = clockMonoMs();
    if (t->cancelled) return;
    if (t->file) {
        noteReceived(t, t->received);
    } else {
        report(t, now_ms); /* the progress of a load from a file is reported by the load */
    }
    if (now_ms - t->newline_ms < NEWLINE_MS) return;
    t->newline_ms = now_ms;
    char byte = '\n';
    struct iovec newline = {.iov_base = &byte, .iov_len = 1};
    (void)connWritev(t->c, &newline, 1); /* if it fails, reading will fail too */
}

/* ------------------------------------------------------------------ loading from the connection */

static void becameReadable(conn *c) { (void)c; /* it only ends the sleep */ }

/* Serves clients until there are bytes to read. */
static status awaitBytes(transfer *t, reason *why) {
    keyspace *filled = keyspaceUse(keyspaceMain());
    onProgress(t);
    loopLimitSleep(engineLoop(), WAIT_MS);
    (void)loopTurn(engineLoop(), true); /* how much there was does not matter */
    (void)keyspaceUse(filled);          /* the main one again */
    int64_t timeout_ms = (int64_t)replConf.repl_timeout * 1000;
    if (t->cancelled) return reasonSet(why, ERR_IO, "the synchronization was cancelled");
    t->cut = clockMonoMs() - t->heard_ms > timeout_ms;
    if (t->cut) return reasonSet(why, ERR_IO, "Timeout receiving bulk data from PRIMARY");
    return OK;
}

static status readConnection(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    transfer *t = (transfer *)source;
    if (t->cancelled) return reasonSet(why, ERR_IO, "the synchronization was cancelled");
    if (t->what.bytes >= 0) cap = sizeMin(cap, (size_t)(t->what.bytes - t->received));
    *len = 0;
    if (cap == 0) return OK;
    if (t->first_at < t->first.len) {
        *len = sizeMin(cap, t->first.len - t->first_at);
        memcpy(dst, t->first.ptr + t->first_at, *len);
        t->first_at += *len;
        noteReceived(t, t->received + (int64_t)*len);
        return OK;
    }
    while (true) {
        ssize_t n = connRead(t->c, dst, cap);
        if (n > 0) {
            *len = (size_t)n;
            noteReceived(t, t->received + n);
            return OK;
        }
        t->cut = n == 0 || errno != EAGAIN;
        if (n == 0) return OK; /* the end */
        if (errno != EAGAIN) return reasonSet(why, ERR_IO, "%s", connErrorText(t->c));
        status st = awaitBytes(t, why);
        if (st != OK) return st;
    }
}

/* After the dataset: the mark, and what else the reader has taken from the connection. */
static status onEnd(void *arg, rdbReader *r) {
    transfer *t = arg;
    if (t->what.bytes < 0) {
        char mark[REPL_ID_LEN];
        status st = rdbReadBytes(r, mark, sizeof(mark));
        if (st != OK) return st;
        if (memcmp(mark, t->what.mark, sizeof(mark)) != 0) {
            logWarning("Replication stream EOF marker is broken");
            return rdbReaderFail(r, "the end mark is wrong");
        }
    } else if (rdbReaderOffset(r) != (uint64_t)t->what.bytes) {
        return rdbReaderFail(r, "the dataset has %llu bytes instead of %lld",
                             (unsigned long long)rdbReaderOffset(r), (long long)t->what.bytes);
    }
    strAppend(&t->rest, r->buffer + r->at, r->end - r->at);
    strAppend(&t->rest, t->first.ptr + t->first_at, t->first.len - t->first_at);
    return OK;
}

static void reportSocketFailure(const syncLoad *load) {
    if (load->short_read)
        logWarning("Unexpected EOF reading RDB file. Failure loading rdb format from socket, "
                   "assuming connection error, resuming operation.");
    logWarning("Failed trying to load the PRIMARY synchronization DB from socket, check server "
               "logs.");
}

/* The dataset in `beside` takes the place of the old one, functions included. */
static void swapDatasets(transfer *t, const syncLoad *load) {
    logNotice("PRIMARY <-> REPLICA sync: Swapping active DB with loaded DB");
    replaceDataset(t);
    bool before = setLoading(true);
    signalAll(DB_FLUSHING, true);
    keyspaceSwap(keyspaceMain(), load->into);
    librariesClear();
    for (int i = 0; i < load->library_count; i++) {
        reason why;
        if (librariesLoad(strSlice(&load->libraries[i]), false, &why) != OK)
            logWarning("A library of the primary cannot be loaded: %s", why.text);
    }
    signalAll(DB_FLUSHED, true);
    (void)setLoading(before); /* was true */
    logNotice("PRIMARY <-> REPLICA sync: Discarding old DB in background");
}

static void signalBeside(serverEventPhase phase) {
    serverEventSignal(&(serverEvent){.kind = SERVER_LOADING_BESIDE, .phase = phase});
}

static void onLoaded(syncLoad *load) {
    transfer *t = load->arg;
    if (!t->beside || t->cancelled) return;
    swapDatasets(t, load);
    signalBeside(EVENT_ENDED);
}

static void freeLibraries(syncLoad *load) {
    for (int i = 0; i < load->library_count; i++) strFree(&load->libraries[i]);
    memFree(load->libraries);
}

/* Notes why the dataset was refused, if it was; further tries would fail as well. */
static void noteRefusal(transfer *t, const syncLoad *load) {
    t->has_no_key = load->has_no_key;
    t->is_foreign = load->is_foreign;
    if (load->lacks_databases && !t->cancelled) t->owner.lacks_databases(t->owner.arg);
}

static bool loadFromConnection(transfer *t) {
    reason why;
    t->source.read = readConnection;
    syncLoad load = {.source = &t->source,
                     .bytes = t->what.bytes > 0 ? t->what.bytes : 0,
                     .into = t->beside ? keyspaceNew() : NULL,
                     .serves = t->beside && t->same_history,
                     .needs_key = t->what.needs_key,
                     .accepted = onAccepted,
                     .progress = onProgress,
                     .ended = onEnd,
                     .loaded = onLoaded,
                     .arg = t};
    if (connOnRead(t->c, becameReadable) != OK) logWarning("The connection cannot be watched");
    bool loaded = persistSyncLoad(&load, &why) == OK && (t->beside ? t->replaced : !t->cancelled);
    check(connOnRead(t->c, NULL) == OK);
    if (!loaded) {
        noteRefusal(t, &load);
        if (!load.has_no_key) reportSocketFailure(&load);
        if (t->beside) {
            logNotice("PRIMARY <-> REPLICA sync: Discarding temporary DB in background");
        } else if (t->replaced) {
            logNotice("PRIMARY <-> REPLICA sync: Discarding the half-loaded data");
            emptyDataset();
        } else if (load.has_no_key) {
            logNotice("The dataset of the primary has no key, old data preserved");
        } else {
            logNotice("RDB version or signature incompatible, old data preserved");
        }
    }
    if (t->beside && !loaded) signalBeside(EVENT_FAILED);
    keyspaceFree(load.into, true);
    freeLibraries(&load);
    if (t->replaced) persistSyncEnd(NULL);
    return loaded;
}

/* ------------------------------------------------------------------ loading the file */

static bool loadFile(transfer *t) {
    reason why;
    rdbFileSource from;
    const char *path = downloadPath(t->file);
    if (rdbFileSourceOpen(&from, path, &why) != OK) {
        logWarning("%s", why.text);
        return false;
    }
    syncLoad load = {.source = &from.source,
                     .path = path,
                     .bytes = from.file.size,
                     .needs_key = t->what.needs_key,
                     .accepted = onAccepted,
                     .progress = onProgress,
                     .arg = t};
    bool loaded = persistSyncLoad(&load, &why) == OK && !t->cancelled;
    fileReaderClose(&from.file);
    freeLibraries(&load);
    if (loaded) return true;
    noteRefusal(t, &load);
    if (t->replaced) {
        logNotice("PRIMARY <-> REPLICA sync: Discarding the half-loaded data");
        emptyDataset();
    } else {
        logNotice("Skipping flush, no new data was loaded.");
    }
    return false;
}

static void logNotKept(const char *path, const reason *why) {
    logWarning(
        "Failed trying to rename the temp DB into %s in PRIMARY <-> REPLICA synchronization: "
        "%s",
        path, why->text);
}

/* A file that cannot be kept is not loaded: after a restart the old data would be back. */
static bool canKeepFile(void) {
    reason why;
    if (downloadCanKeep(persistSnapshotPath(), &why) == OK) return true;
    logNotKept(persistSnapshotPath(), &why);
    return false;
}

/* The file becomes the snapshot of this server, and the base of its append only file. */
static void keepFile(transfer *t) {
    reason why;
    const char *path = persistSnapshotPath();
    if (downloadKeep(t->file, path, &why) != OK) {
        logNotKept(path, &why);
        persistSyncEnd(NULL);
        return;
    }
    persistSyncSaved();
    persistSyncEnd(path);
    if (!persistDeletesSyncFiles()) return;
    logNotice("Removing the RDB file obtained from the primary. This replica has persistence "
              "disabled");
    if (unlink(path) != 0) logWarning("Can't remove %s: %s", path, strerror(errno));
}

static bool endDownload(transfer *t) {
    reason why;
    status st = downloadEnd(t->file, &why);
    t->cut = downloadWasCut(t->file);
    if (st == OK) {
        strAppendSlice(&t->rest, downloadRest(t->file));
        logNotice("Replica main thread detected RDB download completion in Bio thread");
        return true;
    }
    if (st == ERR_SYNTAX) {
        logWarning(
            "The dataset received from the primary is corrupt (%s): it is discarded, the old "
            "data is kept",
            why.text);
    } else {
        logWarning("PRIMARY <-> REPLICA sync: I/O error trying to sync with PRIMARY: %s", why.text);
    }
    return false;
}

/* ------------------------------------------------------------------ begin and end */

static void runWhenReady(void);

/* Registered only while there is a transfer. */
static const stageJob stages[] = {{STAGE_AFTER_SLEEP, runWhenReady}, {0, NULL}};
static const feature active = {.name = "transfer", .stages = stages};

static void end(transfer *t, bool loaded) {
    if (current == t) {
        current = NULL;
        hooksRemoveFeature(&active);
    }
    if (t->cancelled) {
        netOutgoingClose(t->c);
    } else {
        linkResult result = loaded          ? LINK_LOADED
                            : t->has_no_key ? LINK_NO_KEY
                            : t->is_foreign ? LINK_FOREIGN
                            : t->cut        ? LINK_CUT
                                            : LINK_FAILED;
        t->owner.ended(t->owner.arg, result, strSlice(&t->rest));
    }
    freeTransfer(t);
}

static void load(transfer *t) {
    logNotice("Loading the RDB and finalizing primary-replica sync...");
    logNotice("PRIMARY <-> REPLICA sync: Loading DB in memory");
    t->loading = true;
    t->newline_ms = clockMonoMs();
    bool loaded = t->file ? loadFile(t) : loadFromConnection(t);
    if (loaded && t->file) {
        keepFile(t);
    } else if (t->file && t->replaced) {
        persistSyncEnd(NULL);
    }
    if (loaded) {
        double took_s = (double)(clockMonoMs() - t->meter.began_ms) / 1000;
        logNotice("%lld bytes received from the primary and loaded in %.1f seconds",
                  (long long)t->received, took_s);
        logNotice("PRIMARY <-> REPLICA sync: Finished with success");
    } else if (!t->has_no_key) {
        logWarning("Failed to load RDB");
    }
    end(t, loaded);
}

/* Not inside a command or a nested turn. */
static void runWhenReady(void) {
    transfer *t = current;
    if (!t || t->loading || engineHot.current || loopDepth(engineLoop()) != 1) return;
    if (!t->file) {
        load(t);
    } else if (downloadIsDone(t->file)) {
        setReceived(t, downloadBytes(t->file));
        if (endDownload(t) && canKeepFile()) {
            load(t);
        } else {
            end(t, false);
        }
    }
}

/* True if modules can load the dataset directly from the connection. */
static bool modulesLoadDirectly(void) {
    const char *why = NULL;
    if (engineModuleWithout(MODULES_HANDLE_READ_ERRORS)) {
        why = "that don't handle read errors";
    } else if (replConf.repl_diskless_load == DISKLESS_LOAD_SWAPDB &&
               engineModuleWithout(MODULES_HANDLE_ASYNC_LOAD)) {
        why = "that are not aware of async replication";
    }
    if (why) logWarning("Skipping diskless-load because there are modules %s.", why);
    return !why;
}

/* True if the dataset is loaded directly from the connection. */
static bool loadsDirectly(void) {
    switch (replConf.repl_diskless_load) {
    case DISKLESS_LOAD_ON_EMPTY_DB:
        return keyspaceKeyCount(keyspaceMain()) == 0 && modulesLoadDirectly();
    case DISKLESS_LOAD_SWAPDB:
    case DISKLESS_LOAD_FLUSH_BEFORE_LOAD: return modulesLoadDirectly();
    default: return false;
    }
}

static void logBegin(const transfer *t) {
    const char *who =
        t->file ? "Replica bio thread: PRIMARY <-> REPLICA sync" : "PRIMARY <-> REPLICA sync";
    const char *where = t->file ? "disk" : "parser";
    if (t->what.bytes < 0) {
        logNotice("%s: receiving streamed RDB from primary with EOF to %s", who, where);
    } else {
        logNotice("%s: receiving %lld bytes from primary to %s", who, (long long)t->what.bytes,
                  where);
    }
}

void transferBegin(const linkTransfer *what, conn *c, slice received, bool same_history,
                   const transferOwner *owner) {
    hotCheck(threadIsMain());
    check(!current);
    transfer *t = memNew(transfer);
    *t = (transfer){.what = *what, .owner = *owner, .c = c, .same_history = same_history};
    t->heard_ms = clockMonoMs();
    progressMeterBegin(&t->meter, t->heard_ms);
    current = t;
    hooksAddFeature(&active);
    loopLimitSleep(engineLoop(), 0);
    t->first = strNew(received);
    bool direct = loadsDirectly();
    t->beside = replConf.repl_diskless_load == DISKLESS_LOAD_SWAPDB &&
                !engineModuleWithout(MODULES_HANDLE_ASYNC_LOAD);
    if (!direct) {
        reason why;
        logNotice("Replica main thread creating Bio thread to save RDB to disk");
        t->file = downloadStart(what, c, received, &why);
        if (!t->file) logWarning("%s: the dataset is loaded from the connection", why.text);
    }
    logBegin(t);
}

void transferCancel(void) {
    hotCheck(threadIsMain());
    transfer *t = current;
    if (!t) return;
    current = NULL;
    hooksRemoveFeature(&active);
    t->cancelled = true;
    /* The load notices it, and ends the transfer, unless the process ends first. */
    if (t->loading) {
        if (t->file) (void)unlink(downloadPath(t->file)); /* downloadFree() does the rest */
        return;
    }
    reason why;
    if (t->file && downloadEnd(t->file, &why) != OK)
        logVerbose("The download of the dataset was cancelled");
    netOutgoingClose(t->c);
    freeTransfer(t);
}

/* ------------------------------------------------------------------ progress */

void transferTick(int64_t now_ms) {
    hotCheck(threadIsMain());
    transfer *t = current;
    if (!t) return;
    if (t->file && !t->loading && downloadBytes(t->file) != t->received)
        noteReceived(t, downloadBytes(t->file));
    if (!t->loading) report(t, now_ms);
}

void transferPrintInfo(str *out) {
    hotCheck(threadIsMain());
    const transfer *t = current;
    int64_t total = t ? (t->what.bytes < 0 ? 0 : t->what.bytes) : -1;
    int64_t received = t ? t->received : 0;
    int64_t now_ms = clockMonoMs(), left_s = -1;
    if (t && t->loading) {
        left_s = persistSyncSecondsLeft();
    } else if (t) {
        left_s = progressMeterSecondsLeft(&t->meter, received, total, now_ms);
    }
    strAppendFormat(out,
                    "master_sync_total_bytes:%lld\r\nmaster_sync_read_bytes:%lld\r\n"
                    "master_sync_left_bytes:%lld\r\nmaster_sync_perc:%.2f\r\n"
                    "master_sync_bytes_per_second:%lld\r\nmaster_sync_eta_seconds:%lld\r\n",
                    (long long)total, (long long)received, (long long)(total - received),
                    total > 0 ? 100.0 * (double)received / (double)total : 0.0,
                    t ? (long long)progressMeterPerSecond(&t->meter, received, now_ms) : 0LL,
                    (long long)left_s);
}
