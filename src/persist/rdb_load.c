/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading RDB files (rdb_load.h). Clients are served after each loading-process-events-interval-bytes. */
#include "persist/rdb_load.h"

#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "format/rdb_file.h"
#include "format/rdb_settings.h"
#include "io/file_stream.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "store/store.h"

enum {
    RESERVE_KEYS_MAX =
        1 << 24, /* limit of table slots reserved by announced sizes, which may be wrong */
    EMPTY_KEYS_LOGGED = 10,
};

typedef struct fileSource {
    rdbSource source;
    fileReader file;
} fileSource;

typedef struct loading {
    db *db;
    unsigned flags;
    storeLook look;
    uint64_t loaded, expired, empty, all_fields_expired;
} loading;

static struct {
    int64_t started_s, total_bytes;
    uint64_t done_bytes, next_serve;
} progress;

/* ------------------------------------------------------------------ serving meanwhile */

static bool selectsOthers(const commandSpec *spec) { return !(spec->flags & CMD_LOADING); }

static gateVerdict refuse(ctx *c) {
    replyError(c, SLICE("LOADING Valkey is loading the dataset in memory"));
    return GATE_REFUSED;
}

const gate loadingGate = {.name = "loading", .selects = selectsOthers, .admit = refuse};

/* Called between two keys, because the clients served may move objects. */
static void serveOthers(const rdbReader *r) {
    progress.done_bytes = rdbReaderOffset(r);
    if (progress.done_bytes < progress.next_serve) return;
    progress.next_serve =
        progress.done_bytes + (uint64_t)persistConf.loading_process_events_interval_bytes;
    engineServe();
}

void rdbLoadPrintInfo(str *out) {
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

/* ------------------------------------------------------------------ records */

static status onAux(void *arg, rdbReader *r, slice name, slice value) {
    (void)arg, (void)r;
    int64_t number;
    if (sliceIs(name, "valkey-ver") || sliceIs(name, "redis-ver")) {
        logNotice("Loading RDB produced by %s version %.*s",
                  sliceIs(name, "valkey-ver") ? "Valkey" : "Redis", (int)value.len, value.ptr);
    } else if (sliceIs(name, "ctime") && numberParseInt(value, &number)) {
        int64_t age_s = clockWallMs() / 1000 - number;
        logNotice("RDB age %lld seconds", (long long)(age_s > 0 ? age_s : 0));
    } else if (sliceIs(name, "used-mem") && numberParseInt(value, &number)) {
        logNotice("RDB memory usage when created %.2f Mb", (double)number / (1024 * 1024));
    } else if (name.len && *name.ptr == '%') {
        logNotice("RDB '%.*s': %.*s", (int)name.len, name.ptr, (int)value.len, value.ptr);
    }
    return OK;
}

static status onDb(void *arg, rdbReader *r, uint64_t id) {
    loading *l = arg;
    if (id >= (uint64_t)storeDbCount())
        return rdbReaderFail(
            r,
            "FATAL: Data file was created with a Valkey server configured to handle more than "
            "%d databases. Exiting",
            storeDbCount());
    l->db = storeDb((int)id);
    return OK;
}

static status onDbSize(void *arg, rdbReader *r, uint64_t keys, uint64_t volatile_keys) {
    (void)r, (void)volatile_keys;
    loading *l = arg;
    dbReserve(l->db, dbSize(l->db) + (keys < RESERVE_KEYS_MAX ? keys : RESERVE_KEYS_MAX));
    return OK;
}

/* Stores a loaded value at its key. */
static status place(loading *l, rdbReader *r, rdbKey *key) {
    uint64_t hash = storeHash(key->name);
    dbPosition at;
    if (dbFind(l->db, key->name, hash, lookAtAll(), &at)) {
        if (!(l->flags & RDB_LOAD_OVER)) {
            objectFree(key->o);
            return rdbReaderFail(r, "RDB has duplicated key in DB %d", dbId(l->db));
        }
        (void)dbDeleteNow(l->db, key->name, hash, lookAtAll()); /* it exists */
        check(dbFind(l->db, key->name, hash, lookAtAll(), &at) == NULL);
    }
    if (key->expire_ms != OBJECT_NO_EXPIRE) key->o = objectSetExpire(key->o, key->expire_ms);
    storeSetObjectAccess(key->o, key->idle_s, key->frequency);
    dbPlace(l->db, &at, key->o);
    l->loaded++;
    return OK;
}

/* key-load-delay: microseconds per key, or keys per microsecond when negative. */
static void delayForTests(void) {
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

static status takeKey(loading *l, rdbReader *r, rdbKey *key) {
    delayForTests();
    if (!key->o && key->fields_dropped) {
        l->all_fields_expired++;
        return OK;
    }
    if (!key->o) {
        if (l->empty++ < EMPTY_KEYS_LOGGED)
            logNotice("rdbLoadObject skipping empty key: %.*s", (int)key->name.len, key->name.ptr);
        return OK;
    }
    bool drop = !(l->flags & RDB_LOAD_KEEP_EXPIRED) && key->expire_ms != OBJECT_NO_EXPIRE &&
                lookIsPast(l->look, key->expire_ms);
    if (!drop) return place(l, r, key);
    objectFree(key->o);
    l->expired++;
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    status st = takeKey(arg, r, key);
    serveOthers(r);
    return st;
}

static const rdbFileHandler handler = {.aux = onAux, .db = onDb, .db_size = onDbSize, .key = onKey};

/* ------------------------------------------------------------------ the file */

static status readFile(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    return fileReaderRead(&((fileSource *)source)->file, dst, cap, len, why);
}

static void begin(const char *path, int64_t bytes) {
    engineHot.loading = true;
    gateArm(&loadingGate, true);
    progress.started_s = clockWallMs() / 1000;
    progress.total_bytes = bytes;
    progress.done_bytes = 0;
    progress.next_serve = (uint64_t)persistConf.loading_process_events_interval_bytes;
    hooksDbEvent(&(dbEvent){.kind = DB_LOAD_BEGINS, .db_id = -1, .other_id = -1, .path = path});
}

static void end(const char *path) {
    hooksDbEvent(&(dbEvent){.kind = DB_LOAD_ENDED, .db_id = -1, .other_id = -1, .path = path});
    gateArm(&loadingGate, false);
    engineHot.loading = false;
}

/* Logs the reason of a failed load, in the format that tools and tests expect. */
static void logFailure(const rdbReader *r, const rdbFileResult *result) {
    if (result->bad_checksum) {
        logWarning("Wrong RDB checksum expected: (%llx) but got (%llx). Aborting now.",
                   (unsigned long long)result->expected, (unsigned long long)result->found);
    }
    if (result->bad_header) {
        logWarning("%s", r->why.text);
        return;
    }
    if (r->short_read)
        logWarning("Short read or OOM loading DB. Unrecoverable error, aborting now.");
    logWarning("Internal error in RDB reading offset %llu: %s",
               (unsigned long long)rdbReaderOffset(r), r->why.text);
}

static void logSuccess(const loading *l, const rdbFileResult *result) {
    if (result->checksum_disabled)
        logNotice("RDB file was saved with checksum disabled: no check performed.");
    str empty = STR_EMPTY;
    if (l->empty)
        strAppendFormat(&empty, " empty keys skipped: %llu,", (unsigned long long)l->empty);
    logNotice(
        "Done loading RDB, keys loaded: %llu, keys expired: %llu,%s all fields expired hashes: %llu.",
        (unsigned long long)l->loaded, (unsigned long long)l->expired, strText(&empty),
        (unsigned long long)l->all_fields_expired);
    strFree(&empty);
}

status rdbLoadFile(const char *path, unsigned flags, reason *why) {
    fileSource from = {.source = {.read = readFile}};
    status st = fileReaderOpen(&from.file, path, why);
    if (st != OK) return st;
    loading l = {.db = storeDb(0),
                 .flags = flags,
                 .look = flags & RDB_LOAD_KEEP_EXPIRED ? lookAtAll() : lookAt(clockWallMs())};
    rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = l.look},
                              .relaxed = rdbVersionsRelaxed(),
                              .check_checksum = persistConf.rdbchecksum && !rdbChecksumSkipped()};
    rdbReader r;
    rdbFileResult result;
    rdbReaderInit(&r, &from.source, options.check_checksum);
    begin(path, from.file.size);
    st = rdbFileRead(&r, &options, &handler, &l, &result);
    end(path);
    if (st == OK) {
        logSuccess(&l, &result);
    } else {
        logFailure(&r, &result);
        *why = r.why;
    }
    rdbReaderClear(&r);
    fileReaderClose(&from.file);
    return st == ERR_NOT_FOUND ? ERR_SYNTAX
                               : st; /* here it means an unknown type, not a missing file */
}
