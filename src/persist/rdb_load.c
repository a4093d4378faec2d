/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading RDB files (rdb_load.h). */
#include "persist/rdb_load.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/hooks.h"
#include "engine/keyspace.h"
#include "engine/libraries.h"
#include "engine/propagate.h"
#include "engine/server_event.h"
#include "format/rdb_file.h"
#include "format/rdb_settings.h"
#include "format/rdb_source.h"
#include "format/slot_imports.h"
#include "persist/foreign.h"
#include "persist/loading.h"
#include "persist/persist_priv.h"
#include "persist/rdb_save.h"
#include "persist/skipped_keys.h"
#include "store/placeholder.h"
#include "store/store.h"

enum {
    RESERVE_KEYS_MAX =
        1 << 24, /* limit of table slots reserved by announced sizes, which may be wrong */
    EMPTY_KEYS_LOGGED = 10,
    BATCH_KEYS = 32,
    DROPPED_MAX = 64,
};

/* A value that was read and is not in its database yet. */
typedef struct loadedKey {
    db *db;
    robj *o;
    uint64_t hash;
} loadedKey;

/* Expired fields or members of the key that is being read, which are not loaded and of which
 * replicas are not told yet. */
typedef struct droppedItems {
    valueType type;
    int count;
    str bytes;
    size_t ends[DROPPED_MAX]; /* in `bytes` */
} droppedItems;

typedef struct loading {
    keyspace *into;
    syncLoad *sync; /* NULL: a file of this server */
    db *db;
    unsigned flags;
    storeLook look;
    uint64_t loaded, expired, empty, all_fields_expired;
    uint64_t items_expired; /* fields and members */
    droppedItems dropped;
    bool is_refused;      /* for foreign values, which is logged */
    bool lacks_stream_db; /* the stream of the file goes on in a database that is not here */
    bool merges;          /* there were other keys before */
    bool has_digest;
    char digest[DIGEST_HEX]; /* of the dataset that was saved */
    /* Keys are stored in batches, so that the cache misses of their lookups overlap. */
    int batch_count;
    loadedKey batch[BATCH_KEYS];
    bool places;   /* observers are being told of the batch */
    status failed; /* rdbLoadPlace() has failed */
} loading;

static struct {
    uint64_t expired, loaded; /* keys of the last load */
    persistOrigin origin;
} last_load;

static char loaded_birth[sizeof(last_load.origin.id)]; /* of a file of this server */

static struct {
    loading *load; /* NULL: nothing is being loaded */
    rdbReader *reader;
} active;

/* ------------------------------------------------------------------ records */

static status failDatabases(loading *l, rdbReader *r) {
    if (l->sync) l->sync->lacks_databases = true;
    return rdbReaderFail(r,
                         "FATAL: Data file was created with a Valkey server configured to handle "
                         "more than %d databases. Exiting",
                         storeDbCount());
}

static status onAux(void *arg, rdbReader *r, slice name, slice value) {
    loading *l = arg;
    int64_t number;
    if (sliceIs(name, "valkey-ver") || sliceIs(name, "redis-ver")) {
        logNotice("Loading RDB produced by %s version %.*s",
                  sliceIs(name, "valkey-ver") ? "Valkey" : "Redis", (int)value.len, value.ptr);
    } else if (sliceIs(name, "ctime") && numberParseInt(value, &number)) {
        int64_t age_s = clockWallMs() / 1000 - number;
        logNotice("RDB age %lld seconds", (long long)(age_s > 0 ? age_s : 0));
    } else if (sliceIs(name, "used-mem") && numberParseInt(value, &number)) {
        logNotice("RDB memory usage when created %.2f Mb", (double)number / (1024 * 1024));
        loadingNoteUsedMemory(number);
    } else if (sliceIs(name, "aof-base") && numberParseInt(value, &number)) {
        if (number) logNotice("RDB is base AOF");
    } else if (sliceIs(name, "repl-id") && value.len == sizeof(last_load.origin.id) - 1) {
        memcpy(last_load.origin.id, value.ptr, value.len);
    } else if (sliceIs(name, "repl-offset") && numberParseInt(value, &number)) {
        last_load.origin.offset = number;
    } else if (sliceIs(name, "repl-stream-db") && numberParseInt(value, &number)) {
        if (number >= storeDbCount() && l->sync) return failDatabases(l, r);
        l->lacks_stream_db = number >= storeDbCount();
        last_load.origin.db = number >= 0 && !l->lacks_stream_db ? (int)number : -1;
    } else if (sliceEqual(name, RDB_BIRTH_FIELD) && value.len == sizeof(loaded_birth) - 1) {
        if (!l->sync) memcpy(loaded_birth, value.ptr, value.len);
    } else if (l->sync && sliceEqual(name, RDB_SLOT_STATES_FIELD)) {
        slotStatesLoaded(value);
    } else if (sliceEqual(name, RDB_DIGEST_FIELD) && value.len == DIGEST_HEX) {
        memcpy(l->digest, value.ptr, DIGEST_HEX);
        l->has_digest = true;
    } else if (name.len && *name.ptr == '%') {
        logNotice("RDB '%.*s': %.*s", (int)name.len, name.ptr, (int)value.len, value.ptr);
    }
    return OK;
}

/* The header is good, and with `needs_key` there is a key. */
static status accept(loading *l, rdbReader *r) {
    syncLoad *sync = l->sync;
    status st = OK;
    hotCheck(r);
    if (likely(!sync || sync->was_accepted)) return OK;
    sync->was_accepted = true;
    slotStatesLoaded(SLICE("")); /* a field may follow */
    if (sync->accepted) sync->accepted(sync->arg);
    if (sync->into) return OK;
    for (int i = 0; i < sync->library_count && st == OK; i++)
        st = librariesLoad(strSlice(&sync->libraries[i]), l->flags & RDB_LOAD_OVER, &r->why);
    return st;
}

static status onDb(void *arg, rdbReader *r, uint64_t id) {
    loading *l = arg;
    if (id >= (uint64_t)storeDbCount()) return failDatabases(l, r);
    l->db = keyspaceDb(l->into, (int)id);
    return OK;
}

static status onDbSize(void *arg, rdbReader *r, uint64_t keys, uint64_t volatile_keys) {
    hotCheck(((const loading *)arg)->db);
    (void)volatile_keys;
    loading *l = arg;
    status st = keys ? accept(l, r) : OK;
    if (unlikely(st != OK)) return st;
    dbReserve(l->db, dbSize(l->db) + (keys < RESERVE_KEYS_MAX ? keys : RESERVE_KEYS_MAX));
    return OK;
}

/* Stores a loaded value at its key. On failure it remains the caller's. */
static status place(loading *l, rdbReader *r, const loadedKey *key) {
    dbPosition at;
    slice name = objectKey(key->o);
    if (dbFind(key->db, name, key->hash, lookAtAll(), &at)) {
        if (!(l->flags & RDB_LOAD_OVER))
            return rdbReaderFail(r, "RDB has duplicated key in DB %d", dbId(key->db));
        (void)dbDeleteNow(key->db, name, key->hash, lookAtAll()); /* it exists */
        check(dbFind(key->db, name, key->hash, lookAtAll(), &at) == NULL);
    }
    dbPlace(key->db, &at, key->o);
    keyObserversTellLoaded(key->db, name);
    l->loaded += !objectIsPlaceholder(key->o);
    return OK;
}

/* Stores the values of the batch; frees those that follow a failure. */
static status placeBatch(loading *l, rdbReader *r) {
    hotCheck(l->batch_count >= 0);
    hotCheck(l->batch_count <= BATCH_KEYS);
    storeWant wants[BATCH_KEYS];
    for (int i = 0; i < l->batch_count; i++)
        wants[i] = (storeWant){.db = l->batch[i].db, .hash = l->batch[i].hash};
    storePrefetch(wants, l->batch_count);
    status st = OK;
    l->places = true;
    for (int i = 0; i < l->batch_count; i++) {
        if (st == OK) st = place(l, r, &l->batch[i]);
        if (st != OK) objectFree(l->batch[i].o);
    }
    l->places = false;
    l->batch_count = 0;
    return st;
}

bool rdbLoadPlace(void) {
    loading *l = active.load;
    if (!l) return true;
    if (l->places) return false;
    if (l->failed == OK) l->failed = placeBatch(l, active.reader);
    return true;
}

static void freeBatch(loading *l) {
    hotCheck(l->batch_count <= BATCH_KEYS);
    for (int i = 0; i < l->batch_count; i++) objectFree(l->batch[i].o);
    l->batch_count = 0;
}

static status addToBatch(loading *l, rdbReader *r, const rdbKey *key) {
    hotCheck(l->batch_count < BATCH_KEYS);
    hotCheck(key->o);
    robj *o = key->o;
    if (key->expire_ms != OBJECT_NO_EXPIRE) o = objectSetExpire(o, key->expire_ms);
    storeSetObjectAccess(o, key->idle_s, key->frequency);
    l->batch[l->batch_count++] = (loadedKey){l->db, o, storeHash(key->name)};
    return l->batch_count < BATCH_KEYS ? OK : placeBatch(l, r);
}

static void (*origin_found)(void);

void rdbLoadSetOriginProc(void (*found)(void)) { origin_found = found; }

/* Replicas that continue after a restart of their primary, without a full synchronisation, have
 * what the load drops, so a command tells them. */
static void propagateDrop(const loading *l, slice key, int argc, const slice *words) {
    hotCheck(!(l->flags & RDB_LOAD_KEEP_EXPIRED));
    if (last_load.origin.id[0] && origin_found) origin_found();
    propagateUnitBegin();
    propagateCopy(propagateToKey(dbId(l->db), key), argc, words);
    propagateUnitEnd();
}

static void propagateDelete(const loading *l, slice key) {
    slice words[] = {keyspaceDeleteCommandName(), key};
    propagateDrop(l, key, COUNT_OF(words), words);
}

static void dropExpired(loading *l, const rdbKey *key) {
    hotCheck(key->expire_ms != OBJECT_NO_EXPIRE);
    objectFree(key->o);
    l->expired++;
    propagateDelete(l, key->name);
}

static void forgetItems(droppedItems *dropped) {
    strClear(&dropped->bytes);
    dropped->count = 0;
}

/* Removing the last item removes the key, too. */
static void propagateItems(loading *l, slice key) {
    droppedItems *dropped = &l->dropped;
    if (likely(!dropped->count)) return;
    slice words[2 + DROPPED_MAX] = {keyspaceRemovalCommandName(dropped->type), key};
    size_t from = 0;
    for (int i = 0; i < dropped->count; from = dropped->ends[i++])
        words[2 + i] = sliceMake(dropped->bytes.ptr + from, dropped->ends[i] - from);
    propagateDrop(l, key, 2 + dropped->count, words);
    forgetItems(dropped);
}

static void itemDropped(void *arg, slice key, valueType type, slice item) {
    loading *l = arg;
    droppedItems *dropped = &l->dropped;
    if (dropped->count == DROPPED_MAX) propagateItems(l, key);
    l->items_expired++;
    dropped->type = type;
    strAppendSlice(&dropped->bytes, item);
    dropped->ends[dropped->count++] = dropped->bytes.len;
}

/* A file that will be refused is read to its end for the report only. */
static bool isLeftOut(const loading *l, rdbKey *key) {
    if (unlikely(key->foreign != NULL)) foreignAdd(key->foreign, key->name, key->foreign_bytes);
    if (likely(!foreignRefuses())) {
        if (likely(!key->foreign) || key->o) return false;
        /* Keeps the name, because commands that follow may move or replace the key. */
        if (l->flags & RDB_LOAD_CONTINUES) key->o = skippedKeysNew(key->name, key->foreign);
        return !key->o;
    }
    if (key->o) objectFree(key->o);
    return true;
}

static status takeKey(loading *l, rdbReader *r, rdbKey *key) {
    loadingDelayKey();
    if (unlikely(isLeftOut(l, key))) return OK;
    if (unlikely(l->failed != OK)) {
        if (key->o) objectFree(key->o);
        return l->failed;
    }
    bool keeps = l->flags & RDB_LOAD_KEEP_EXPIRED;
    bool drop = !keeps && key->o && key->expire_ms != OBJECT_NO_EXPIRE &&
                lookIsPast(l->look, key->expire_ms);
    if (drop) {
        forgetItems(&l->dropped);
        dropExpired(l, key);
        return OK;
    }
    propagateItems(l, key->name);
    if (key->o) return addToBatch(l, r, key);
    if (key->fields_dropped) {
        l->all_fields_expired++;
        return OK;
    }
    if (l->empty++ < EMPTY_KEYS_LOGGED)
        logNotice("rdbLoadObject skipping empty key: %.*s", (int)key->name.len, key->name.ptr);
    if (!keeps) propagateDelete(l, key->name);
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    status st = accept(arg, r);
    if (unlikely(st != OK)) {
        if (key->o) objectFree(key->o);
        return st;
    }
    st = takeKey(arg, r, key);
    if (unlikely(loadingAdvance(rdbReaderProgress(r)))) {
        if (st == OK) st = placeBatch(arg, r);
        loadingServe();
    }
    return st;
}

static status onFunction(void *arg, rdbReader *r, slice source) {
    const loading *l = arg;
    syncLoad *sync = l->sync;
    bool is_early = sync && sync->needs_key && !sync->was_accepted;
    if (!sync || (!sync->into && !is_early))
        return librariesLoad(source, l->flags & RDB_LOAD_OVER, &r->why);
    /* Those in use are replaced together with the dataset, or later, if there is a key. */
    sync->libraries =
        memRealloc(sync->libraries, (size_t)(sync->library_count + 1) * sizeof(*sync->libraries));
    sync->libraries[sync->library_count++] = strNew(source);
    return OK;
}

static status onModuleAux(void *arg, rdbReader *r, const char *module) {
    (void)arg, (void)r;
    foreignAddAux(module);
    return OK;
}

/* Values are only counted: own data may be in memory, so at most one value is built at a time. */
static status countForeign(void *arg, rdbReader *r, rdbKey *key) {
    (void)arg;
    if (key->foreign) foreignAdd(key->foreign, key->name, key->foreign_bytes);
    if (key->o) objectFree(key->o);
    if (loadingAdvance(rdbReaderProgress(r))) loadingServe();
    return OK;
}

/* Reads the file of another server to its end, before own data are removed for it. Fails if values
 * would be refused. */
static status scanForeign(const char *path, reason *why) {
    hotCheck(!foreignSkips());
    static const rdbFileHandler counts = {.key = countForeign};
    rdbFileSource from;
    status st = rdbFileSourceOpen(&from, path, why);
    if (st != OK) return st;
    rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
                              .relaxed = rdbVersionsRelaxed(),
                              .skip_foreign = true};
    rdbReader r;
    rdbFileResult result;
    rdbReaderInit(&r, &from.source, false);
    st = rdbFileRead(&r, &options, &counts, NULL, &result);
    if (st != OK) *why = r.why;
    rdbReaderClear(&r);
    fileReaderClose(&from.file);
    return st;
}

static status refuseForeign(loading *l, rdbReader *r) {
    str types = STR_EMPTY;
    foreignLog();
    foreignAppendTypes(&types);
    l->is_refused = true;
    if (l->sync) l->sync->is_foreign = true;
    status st =
        rdbReaderFail(r, "Values of types that this server does not have: %s", strText(&types));
    strFree(&types);
    return st;
}

static void logCompressed(const loading *l, compressCodec codec) {
    hotCheck(codec != COMPRESS_NONE);
    const char *from = l->flags & RDB_LOAD_CONTINUES ? "the AOF base file" : persistConf.dbfilename;
    logNotice("Loading compressed RDB (algo=%s) from %s", compressName(codec),
              l->sync ? "primary" : from);
    logNotice("Logical RDB CRC64 skipped for streaming-compressed input");
}

static status onVersion(void *arg, rdbReader *r, int version) {
    loading *l = arg;
    const syncLoad *sync = l->sync;
    bool may_be_foreign = r->redis || rdbVersionIsOf92(version);
    if (r->codec) logCompressed(l, r->codec);
    if (sync && may_be_foreign && sync->path && !sync->into && !foreignSkips() &&
        keyspaceKeyCount(keyspaceMain()) > 0) {
        status st = scanForeign(sync->path, &r->why);
        if (st == OK && foreignRefuses()) st = refuseForeign(l, r);
        if (st != OK) return st;
    }
    return sync && sync->needs_key ? OK : accept(l, r);
}

static status onSlotImport(void *arg, rdbReader *r, const slotImport *import) {
    (void)arg, (void)r; /* it is the main dataset's, or never served */
    slotImportsLoaded(import);
    return OK;
}

static const rdbFileHandler handler = {.version = onVersion,
                                       .aux = onAux,
                                       .db = onDb,
                                       .db_size = onDbSize,
                                       .function = onFunction,
                                       .slot_import = onSlotImport,
                                       .module_aux = onModuleAux,
                                       .key = onKey};

/* ------------------------------------------------------------------ the file */

/* Logs the reason of a failed load, in the format that tools and tests expect. */
static void logFailure(const rdbReader *r, const rdbFileResult *result, bool unknown_type) {
    if (unknown_type) { /* the last line before that of the caller */
        logWarning("Unknown type or opcode when loading DB. Unrecoverable error, aborting now.");
        return;
    }
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

/* Builds with checks: the dataset is compared with the one that was saved, unless something was not
 * loaded. */
static status checkDigest(const loading *l, rdbReader *r) {
#ifdef HOT_CHECKS
    if (!l->has_digest || l->merges || l->expired || l->items_expired || l->empty) return OK;
    digest all;
    char hex[DIGEST_HEX];
    storeDigestWithTimes(l->into, &all);
    digestPrint(&all, hex);
    if (memcmp(hex, l->digest, DIGEST_HEX) == 0) return OK;
    return rdbReaderFail(r, "The dataset with digest %.*s was saved, but %.*s was loaded",
                         DIGEST_HEX, l->digest, DIGEST_HEX, hex);
#else
    (void)l, (void)r; /* no other build writes digests */
    return OK;
#endif
}

/* Loads from an open file, or for replication (`sync`); *end is the offset after the RDB part. */
static status load(rdbSource *from, unsigned flags, syncLoad *sync, uint64_t *end, reason *why) {
    keyspace *into = sync && sync->into ? sync->into : keyspaceMain();
    loading l = {.into = into,
                 .sync = sync,
                 .db = keyspaceDb(into, 0),
                 .flags = flags,
                 .merges = keyspaceKeyCount(into) > 0,
                 .look = flags & RDB_LOAD_KEEP_EXPIRED ? lookAtAll() : lookAt(clockWallMs())};
    rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = l.look},
                              .relaxed = rdbVersionsRelaxed(),
                              .skip_foreign = true,
                              .foreign_everywhere = foreignSkips(),
                              .check_checksum = persistConf.rdbchecksum && !rdbChecksumSkipped()};
    options.values.item_dropped = itemDropped;
    options.values.arg = &l;
    rdbReader r;
    rdbFileResult result;
    last_load.origin = (persistOrigin){.db = -1};
    foreignBegin();
    rdbReaderInit(&r, from, options.check_checksum);
    active.load = &l;
    active.reader = &r;
    status st = rdbFileRead(&r, &options, &handler, &l, &result);
    if (st == OK) st = l.failed == OK ? placeBatch(&l, &r) : l.failed;
    if (st == OK && foreignRefuses()) st = refuseForeign(&l, &r);
    active.load = NULL;
    freeBatch(&l);
    strFree(&l.dropped.bytes);
    if (st == OK) st = checkDigest(&l, &r);
    last_load.expired = l.expired;
    last_load.loaded = l.loaded;
    if (l.lacks_stream_db) last_load.origin.id[0] = 0; /* nobody can continue from there */
    if (sync) sync->short_read = st != OK && r.short_read;
    if (st == OK && sync && sync->ended) st = sync->ended(sync->arg, &r);
    if (st == OK && sync && sync->needs_key && !sync->was_accepted) {
        sync->has_no_key = true;
        st = reasonSet(why, ERR_NOT_FOUND, "the dataset has no key");
    } else if (st == OK) {
        foreignLog();
        foreignLoaded();
        logSuccess(&l, &result);
        *end = rdbReaderOffset(&r);
        loadingProgress(*end);
    } else {
        if (!l.is_refused) logFailure(&r, &result, st == ERR_NOT_FOUND && options.relaxed);
        *why = r.why;
    }
    rdbReaderClear(&r);
    return st == ERR_NOT_FOUND ? ERR_SYNTAX
                               : st; /* here it means an unknown type, not a missing file */
}

status rdbLoadFile(const char *path, unsigned flags, reason *why) {
    hotCheck(threadIsMain());
    rdbFileSource from;
    status st = rdbFileSourceOpen(&from, path, why);
    if (st != OK) return st;
    uint64_t end;
    loadingBegin(DATASET_RDB, path, from.file.size);
    st = load(&from.source, flags, NULL, &end, why);
    loadingEnd(path, st == OK);
    fileReaderClose(&from.file);
    return st;
}

status rdbLoadSync(syncLoad *sync, reason *why) {
    hotCheck(threadIsMain());
    uint64_t end;
    if (sync->into)
        serverEventSignal(&(serverEvent){.kind = SERVER_LOADING_BESIDE, .phase = EVENT_BEGINS});
    if (sync->serves) {
        loadingBeginBeside(sync->bytes);
    } else {
        loadingBegin(DATASET_PRIMARY, sync->path, sync->bytes);
    }
    loadingSetObserver(sync->progress, sync->arg);
    keyspace *before = sync->into ? keyspaceUse(sync->into) : NULL;
    status st = load(sync->source, RDB_LOAD_KEEP_EXPIRED | RDB_LOAD_CONTINUES, sync, &end, why);
    if (before) (void)keyspaceUse(before); /* was sync->into */
    if (st == OK && sync->loaded) sync->loaded(sync);
    loadingEnd(sync->path, st == OK);
    return st;
}

persistOrigin rdbLoadOrigin(void) { return last_load.origin; }
const char *rdbLoadBirth(void) { return loaded_birth; }

void rdbLoadSetOrigin(const persistOrigin *origin) { last_load.origin = *origin; }

/* Ends the reading after the header. */
static status stopAtVersion(void *arg, rdbReader *r, int version) {
    (void)r, (void)version;
    *(bool *)arg = true;
    return ERR_AGAIN;
}

status rdbLoadCheckHeader(const char *path, reason *why) {
    hotCheck(threadIsMain());
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
        logFailure(&r, &result, false);
        *why = r.why;
    }
    rdbReaderClear(&r);
    fileReaderClose(&from.file);
    return st;
}

status rdbLoadPreamble(const char *path, uint64_t *end, reason *why) {
    hotCheck(threadIsMain());
    rdbFileSource from;
    status st = rdbFileSourceOpen(&from, path, why);
    if (st != OK) return st;
    st = load(&from.source, RDB_LOAD_KEEP_EXPIRED | RDB_LOAD_CONTINUES, NULL, end, why);
    last_load.origin = (persistOrigin){.db = -1}; /* the commands that follow change the dataset */
    fileReaderClose(&from.file);
    return st;
}

void rdbLoadPrintInfo(str *out) {
    strAppendField(out, "rdb_last_load_keys_expired", last_load.expired);
    strAppendField(out, "rdb_last_load_keys_loaded", last_load.loaded);
    foreignPrintInfo(out);
}
