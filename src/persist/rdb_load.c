/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading RDB files (rdb_load.h). */
#include "persist/rdb_load.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/libraries.h"
#include "format/rdb_file.h"
#include "format/rdb_settings.h"
#include "format/rdb_source.h"
#include "persist/loading.h"
#include "persist/persist_priv.h"
#include "store/store.h"

enum {
    RESERVE_KEYS_MAX =
        1 << 24, /* limit of table slots reserved by announced sizes, which may be wrong */
    EMPTY_KEYS_LOGGED = 10,
};

typedef struct loading {
    db *db;
    unsigned flags;
    storeLook look;
    uint64_t loaded, expired, empty, all_fields_expired;
} loading;

static struct { uint64_t expired, loaded; /* keys of the last load */ } last_load;

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
    } else if (sliceIs(name, "aof-base") && numberParseInt(value, &number)) {
        if (number) logNotice("RDB is base AOF");
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

static status takeKey(loading *l, rdbReader *r, rdbKey *key) {
    loadingDelayKey();
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
    loadingProgress(rdbReaderOffset(r));
    return st;
}

static status onFunction(void *arg, rdbReader *r, slice source) {
    (void)arg; /* libraries do not belong to the keyspace */
    return librariesLoad(source, &r->why);
}

static const rdbFileHandler handler = {
    .aux = onAux, .db = onDb, .db_size = onDbSize, .function = onFunction, .key = onKey};

/* ------------------------------------------------------------------ the file */

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

/* Loads from an open file; *end is the offset after the RDB part. */
static status load(rdbFileSource *from, unsigned flags, uint64_t *end, reason *why) {
    loading l = {.db = storeDb(0),
                 .flags = flags,
                 .look = flags & RDB_LOAD_KEEP_EXPIRED ? lookAtAll() : lookAt(clockWallMs())};
    rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = l.look},
                              .relaxed = rdbVersionsRelaxed(),
                              .check_checksum = persistConf.rdbchecksum && !rdbChecksumSkipped()};
    rdbReader r;
    rdbFileResult result;
    rdbReaderInit(&r, &from->source, options.check_checksum);
    status st = rdbFileRead(&r, &options, &handler, &l, &result);
    last_load.expired = l.expired;
    last_load.loaded = l.loaded;
    if (st == OK) {
        logSuccess(&l, &result);
        *end = rdbReaderOffset(&r);
        loadingProgress(*end);
    } else {
        if (st == ERR_NOT_FOUND && options.relaxed)
            logWarning(
                "Unknown type or opcode when loading DB. Unrecoverable error, aborting now.");
        logFailure(&r, &result);
        *why = r.why;
    }
    rdbReaderClear(&r);
    return st == ERR_NOT_FOUND ? ERR_SYNTAX
                               : st; /* here it means an unknown type, not a missing file */
}

status rdbLoadFile(const char *path, unsigned flags, reason *why) {
    rdbFileSource from;
    status st = rdbFileSourceOpen(&from, path, why);
    if (st != OK) return st;
    uint64_t end;
    loadingBegin(path, from.file.size);
    st = load(&from, flags, &end, why);
    loadingEnd(path);
    fileReaderClose(&from.file);
    return st;
}

/* Ends the reading after the header. */
static status stopAtVersion(void *arg, rdbReader *r, int version) {
    (void)r, (void)version;
    *(bool *)arg = true;
    return ERR_AGAIN;
}

status rdbLoadCheckHeader(const char *path, reason *why) {
    static const rdbFileHandler header_only = {.version = stopAtVersion};
    rdbFileSource from;
    status st = rdbFileSourceOpen(&from, path, why);
    if (st != OK) return st;
    rdbFileOptions options = {.relaxed = rdbVersionsRelaxed()};
    rdbReader r;
    rdbFileResult result;
    bool good = false;
    rdbReaderInit(&r, &from.source, false);
    st = rdbFileRead(&r, &options, &header_only, &good, &result);
    if (good) {
        st = OK;
    } else {
        logFailure(&r, &result);
        *why = r.why;
    }
    rdbReaderClear(&r);
    fileReaderClose(&from.file);
    return st;
}

status rdbLoadPreamble(const char *path, uint64_t *end, reason *why) {
    rdbFileSource from;
    status st = rdbFileSourceOpen(&from, path, why);
    if (st != OK) return st;
    st = load(&from, RDB_LOAD_KEEP_EXPIRED, end, why);
    fileReaderClose(&from.file);
    return st;
}

void rdbLoadPrintInfo(str *out) {
    strAppendFormat(out, "rdb_last_load_keys_expired:%llu\r\nrdb_last_load_keys_loaded:%llu\r\n",
                    (unsigned long long)last_load.expired, (unsigned long long)last_load.loaded);
}
