/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checking RDB files (rdb_check.h). */
#include "tools/rdb_check.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "format/rdb_file.h"
#include "format/rdb_redis.h"
#include "format/rdb_settings.h"
#include "format/rdb_source.h"
#include "store/store.h"
#include "tools/progress.h"

typedef struct rdbChecker {
    rdbReader reader;
    rdbFileSource source;
    rdbStats *stats; /* NULL: not asked for */
    progress progress;
    const char *at; /* the current step */
    str key;        /* of the current key */
    int type;       /* of the current key; -1: between keys */
    bool key_known;
    int version;
    uint64_t db;
    int64_t now_ms;
    uint64_t keys, expires, expired, functions;
    uint64_t with_producers; /* streams with a field of RDB_PRODUCERS_FIELD, or those of Redis */
} rdbChecker;

#define offsetNow(c) ((unsigned long long)rdbReaderOffset(&(c)->reader))
#define printAt(c, ...) \
    (printf("[offset %llu] ", offsetNow(c)), printf(__VA_ARGS__), (void)putchar('\n'))

/* A version that the server loads only when told to. */
static bool isUnusual(int version) { return !rdbVersionIsKnown(version); }

/* The name of a type, which depends on the server that wrote the file; NULL if there is none. */
static const char *typeName(int version, int type) {
    bool redis = rdbVersionIsForeign(version) && type >= RDB_TYPE_FOREIGN_MIN;
    if (type == RDB_TYPE_PATHHASH && !redis && !rdbVersionIsOf92(version)) return NULL;
    return redis ? rdbRedisTypeName(type) : rdbTypeName(type);
}

static const char *unusualWord(int version) {
    return rdbVersionIsForeign(version) ? "foreign" : "future";
}

/* ------------------------------------------------------------------ records */

static status onStep(void *arg, rdbReader *r, const char *at, const rdbKey *key) {
    rdbChecker *c = arg;
    progressAt(&c->progress, rdbReaderProgress(r));
    if (!strcmp(at, "read-type")) {
        c->type = -1;
        c->key_known = false;
    } else if (!strcmp(at, "read-key")) {
        bool unknown = !typeName(c->version, key->type);
        if (unknown && isUnusual(c->version))
            return rdbReaderFail(r, "Unknown object type %d in RDB file with %s version %d",
                                 key->type, unusualWord(c->version), c->version);
        if (unknown) return rdbReaderFail(r, "Invalid object type: %d", key->type);
        c->type = key->type;
    } else if (!strcmp(at, "read-object-value")) {
        strClear(&c->key);
        strAppendSlice(&c->key, key->name);
        c->key_known = true;
        c->keys++;
        if (key->expire_ms != OBJECT_NO_EXPIRE) {
            c->expires++;
            c->expired += key->expire_ms < c->now_ms;
        }
    }
    c->at = at;
    return OK;
}

static status onVersion(void *arg, rdbReader *r, int version) {
    rdbChecker *c = arg;
    c->version = version;
    if (r->codec) printAt(c, "Compressed RDB (algo=%s)", compressName(r->codec));
    if (rdbVersionIsForeign(version)) {
        printAt(c, "Foreign RDB version %d detected", version);
    } else if (isUnusual(version)) {
        printAt(c, "Future RDB version %d detected", version);
    }
    return OK;
}

/* Texts of the file are printed with escapes, as they may contain anything. The caller frees the
 * result. */
static str printable(slice text) {
    str quoted = STR_EMPTY, out = STR_EMPTY;
    strAppendQuoted(&quoted, text);
    strAppend(&out, quoted.ptr + 1, quoted.len - 2); /* without the quotes */
    strFree(&quoted);
    return out;
}

static status onAux(void *arg, rdbReader *r, slice name, slice value) {
    rdbChecker *c = arg;
    (void)r;
    str left = printable(name), right = printable(value);
    printAt(c, "AUX FIELD %s = '%s'", strText(&left), strText(&right));
    strFree(&left);
    strFree(&right);
    return OK;
}

static status onDb(void *arg, rdbReader *r, uint64_t id) {
    rdbChecker *c = arg;
    (void)r;
    c->db = id;
    printAt(c, "Selecting DB ID %llu", (unsigned long long)id);
    return OK;
}

static status onFunction(void *arg, rdbReader *r, slice source) {
    (void)r, (void)source;
    ((rdbChecker *)arg)->functions++;
    return OK;
}

static status onModuleAux(void *arg, rdbReader *r, const char *module) {
    rdbChecker *c = arg;
    (void)r;
    printAt(c, "MODULE AUX for: %s", module);
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    rdbChecker *c = arg;
    (void)r;
    if (c->stats)
        rdbStatsAdd(c->stats, c->db, key,
                    key->expire_ms != OBJECT_NO_EXPIRE && key->expire_ms < c->now_ms);
    if (!key->o) return OK;
    if (objectType(key->o) == TYPE_STREAM) c->with_producers += rdbHasProducers(streamOf(key->o));
    objectFree(key->o);
    return OK;
}

static const rdbFileHandler handler = {
    .version = onVersion,
    .aux = onAux,
    .db = onDb,
    .function = onFunction,
    .key = onKey,
    .module_aux = onModuleAux,
    .doing = onStep,
};

/* ------------------------------------------------------------------ report */

static void printTotals(const rdbChecker *c) {
    printf("[info] %llu keys read\n", (unsigned long long)c->keys);
    printf("[info] %llu expires\n", (unsigned long long)c->expires);
    printf("[info] %llu already expired\n", (unsigned long long)c->expired);
    printf("[info] %llu functions\n", (unsigned long long)c->functions);
    if (c->with_producers)
        printf("[info] %llu streams with ids of producers (XADD IDMP)\n",
               (unsigned long long)c->with_producers);
}

static void printStats(const rdbChecker *c, const rdbCheckOptions *options) {
    if (c->stats) rdbStatsPrint(c->stats, options->format, options->stats_to);
}

/* Prints both offsets of a compressed file, as the offsets in messages are those of the
 * decompressed bytes. */
static void printOffsets(const rdbFileResult *result) {
    if (!result->codec) return;
    printf("[info] compressed file (algo=%s): logical offset %llu, physical offset %llu\n",
           compressName(result->codec), (unsigned long long)result->logical,
           (unsigned long long)result->physical);
}

static void printFailure(rdbChecker *c, const rdbFileResult *result,
                         const rdbCheckOptions *options) {
    printf("--- RDB ERROR DETECTED ---\n");
    printAt(c, "%s", c->reader.why.text);
    printf("[additional info] While doing: %s\n", c->at);
    if (c->key_known) {
        str name = printable(strSlice(&c->key));
        printf("[additional info] Reading key '%s'\n", strText(&name));
        strFree(&name);
    }
    if (c->type >= 0)
        printf("[additional info] Reading type %d (%s)\n", c->type, typeName(c->version, c->type));
    printOffsets(result);
    printTotals(c);
    printStats(c, options);
    printAt(c, "Check RDB returned error code 1 (0 means success)");
}

static void printSuccess(rdbChecker *c, const rdbFileResult *result,
                         const rdbCheckOptions *options) {
    if (result->codec) {
        printAt(c, "Logical RDB CRC64 skipped for streaming-compressed input");
    } else if (result->checksum_disabled) {
        printAt(c, "RDB file was saved with checksum disabled: no check performed.");
    } else if (result->version >= RDB_VERSION_CHECKSUM_MIN) {
        printAt(c, "Checksum OK");
    }
    printAt(c, "Check RDB returned error code 0 (0 means success)");
    if (isUnusual(result->version)) {
        printAt(c, "\\o/ RDB looks OK, but loading requires config 'rdb-version-check relaxed'");
    } else {
        printAt(c, "\\o/ RDB looks OK! \\o/");
    }
    printOffsets(result);
    printTotals(c);
    printStats(c, options);
}

bool rdbCheck(const rdbCheckOptions *options, uint64_t *len) {
    rdbChecker c = {.at = "start", .type = -1, .now_ms = clockWallMs()};
    reason why;
    printf("[offset 0] Checking RDB file %s\n", options->path);
    if (rdbFileSourceOpen(&c.source, options->path, &why) != OK) {
        fprintf(stderr, "%s\n", why.text);
        printf("[offset 0] Check RDB returned error code 1 (0 means success)\n");
        return false;
    }
    if (options->stats) c.stats = rdbStatsNew();
    progressBegin(&c.progress, (uint64_t)c.source.file.size);
    rdbReaderInit(&c.reader, &c.source.source, true);
    const rdbFileOptions file_options = {
        .values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
        .relaxed = true,
        .skip_modules = true,
        .skip_foreign = true,
        .check_checksum = true,
    };
    rdbFileResult result;
    status st = rdbFileRead(&c.reader, &file_options, &handler, &c, &result);
    progressEnd(&c.progress);
    if (st == OK) {
        printSuccess(&c, &result, options);
    } else {
        printFailure(&c, &result, options);
    }
    if (len) *len = rdbReaderOffset(&c.reader);
    rdbReaderClear(&c.reader);
    fileReaderClose(&c.source.file);
    rdbStatsFree(c.stats);
    strFree(&c.key);
    return st == OK;
}
