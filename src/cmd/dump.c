/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DUMP and RESTORE: values as bytes that another server can read. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "format/rdb_dump.h"
#include "format/rdb_redis.h"
#include "format/rdb_settings.h"
#include "store/placeholder.h"
#include "store/store.h"

/* For jobStart(). Values of modules are written by the module, in one piece. */
static uint64_t dumpedElements(const robj *o) {
    if (objectType(o) == TYPE_MODULE) return 0;
    uint64_t length = objectLength(o);
    if (objectType(o) != TYPE_STRING) return length;
    return length > COMPRESSED_TEXT_MAX ? length / STRING_ELEMENT_BYTES : 0;
}

/* DUMP key. Reply: the payload for RESTORE, or null. Does not count as an access. */
void dumpCommand(ctx *c) {
    hotCheck(c->argc == 2);
    slice key = c->argv[1];
    const robj *o = dbFindQuiet(c->db, key, storeHash(key), c->look);
    if (!o) {
        replyNull(c);
        return;
    }
    if (objectIsPlaceholder(o)) {
        replyError(c, SLICE("ERR The value of this key was skipped (foreign-values)"));
        return;
    }
    if (jobStart(c, dumpedElements(o))) return;
    blob *payload = rdbDumpBlob(o, dbId(c->db), rdbOutgoingForm(), c->flags & CTX_SLICED);
    if (!payload) {
        replyError(c, SLICE("OOM not enough memory for the payload of this value"));
        return;
    }
    respBulkBlob(c->out, payload, 0, payload->len);
    blobRelease(payload);
}

typedef struct restoreOptions {
    bool replace, absolute;
    int64_t ttl;
    int64_t idle_s, frequency; /* -1: not given */
} restoreOptions;

/* Parses the arguments after the payload. False: the error was replied. */
static bool parseOptions(ctx *c, restoreOptions *out) {
    hotCheck(c->argc >= 4);
    *out = (restoreOptions){.idle_s = -1, .frequency = -1};
    for (int i = 4; i < c->argc; i++) {
        bool has_value = i + 1 < c->argc;
        if (ctxArgIs(c, i, "replace")) {
            out->replace = true;
        } else if (ctxArgIs(c, i, "absttl")) {
            out->absolute = true;
        } else if (ctxArgIs(c, i, "idletime") && has_value && out->frequency == -1) {
            if (!ctxArgInt(c, ++i, &out->idle_s)) return false;
            if (out->idle_s < 0) {
                replyError(c, SLICE("ERR Invalid IDLETIME value, must be >= 0"));
                return false;
            }
        } else if (ctxArgIs(c, i, "freq") && has_value && out->idle_s == -1) {
            if (!ctxArgInt(c, ++i, &out->frequency)) return false;
            if (out->frequency < 0 || out->frequency > UINT8_MAX) {
                replyError(c, SLICE("ERR Invalid FREQ value, must be >= 0 and <= 255"));
                return false;
            }
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* Parses argument 2 into the Unix time in ms, OBJECT_NO_EXPIRE for 0. False: the error was
 * replied. */
static bool parseTtl(ctx *c, restoreOptions *options, int64_t *expire_ms) {
    hotCheck(c->argc >= 4);
    if (!ctxArgInt(c, 2, &options->ttl)) return false;
    if (options->ttl < 0) {
        replyError(c, SLICE("ERR Invalid TTL value, must be >= 0"));
        return false;
    }
    *expire_ms = options->ttl;
    if (options->ttl == 0) {
        *expire_ms = OBJECT_NO_EXPIRE;
    } else if (!options->absolute && !numberAdd(options->ttl, c->now_ms, expire_ms)) {
        replyErrorFormat(c, "ERR invalid expire time in '%.*s' command", (int)c->cmd->name.len,
                         c->cmd->name.ptr);
        return false;
    }
    return true;
}

/* Reads the value of the payload at argument 3. False: the error was replied. */
static bool readPayload(ctx *c, robj **out) {
    hotCheck(c->argc >= 4);
    slice payload = c->argv[3];
    int version;
    if (!rdbDumpHasFooter(payload, rdbVersionsRelaxed(), rdbChecksumSkipped(), &version)) {
        replyError(c, SLICE("ERR DUMP payload version or checksum are wrong"));
        return false;
    }
    uint8_t type;
    rdbReadOptions options = {.limits = *rdbLimitsNow(), .db_id = dbId(c->db), .look = lookAtAll()};
    reason why;
    payload.len -= RDB_DUMP_FOOTER;
    status st = rdbDumpRead(payload, version, c->argv[1], &options, out, &type, &why);
    if (st == OK) return true;
    bool is_redis = rdbVersionIsForeign(version) && type >= RDB_TYPE_FOREIGN_MIN;
    bool has_no_type = st == ERR_NOT_FOUND && is_redis;
    bool is_stream = c->origin == ORIGIN_PRIMARY || c->origin == ORIGIN_AOF;
    if (is_stream && placeholdersAreAllowed()) { /* the sender may have the type */
        char module[RDB_MODULE_NAME_SIZE];
        const char *name = has_no_type ? rdbRedisTypeName(type) : NULL;
        if (rdbDumpForeignModule(payload, module)) name = module;
        *out = name ? placeholderNew(c->argv[1], name) : NULL;
        if (*out) return true;
    }
    logVerbose("RESTORE: %s", why.text);
    if (has_no_type) {
        replyErrorFormat(c, "ERR Unsupported foreign data type: %u", type);
    } else {
        replyError(c, SLICE("ERR Bad data format"));
    }
    return false;
}

/* The absolute time that was set is propagated, so that replicas and the AOF do not depend on their
 * own clocks. */
static void propagateRestore(ctx *c, const restoreOptions *options, int64_t expire_ms) {
    if (!engineHot.sinks || options->absolute || expire_ms == OBJECT_NO_EXPIRE) return;
    char digits[NUMBER_TEXT_MAX];
    slice *words = memNewArray(slice, (size_t)c->argc + 1);
    for (int i = 0; i < c->argc; i++) words[i] = c->argv[i];
    words[2] = sliceMake(digits, numberPrintInt(digits, expire_ms));
    words[c->argc] = SLICE("ABSTTL");
    ctxPropagateAs(c, c->argc + 1, words);
    memFree(words);
}

/* The key given a time that has passed: an existing one is deleted, a new one is not created. */
static void deleteInstead(ctx *c, bool existed) {
    hotCheck(c->argc >= 4);
    slice key = c->argv[1];
    if (existed) {
        (void)dbDelete(c->db, key, storeHash(key), c->look); /* it exists */
        slice words[] = {keyspaceDeleteCommandName(), key};
        ctxPropagateAs(c, 2, words);
        ctxKeyChanged(c, key, &eventDel);
    }
    replyOk(c);
}

/* RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]. */
void restoreCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    slice key = c->argv[1];
    uint64_t hash = storeHash(key);
    restoreOptions options;
    int64_t expire_ms;
    robj *o;
    if (!parseOptions(c, &options)) return;
    bool existed = dbFind(c->db, key, hash, lookWithoutTouch(c->look), &c->at) != NULL;
    if (existed && !options.replace) {
        replyError(c, SLICE("BUSYKEY Target key name already exists."));
        return;
    }
    if (!parseTtl(c, &options, &expire_ms) || !readPayload(c, &o)) return;
    if (expire_ms != OBJECT_NO_EXPIRE && keyspaceIsPast(c, expire_ms)) {
        objectFree(o);
        deleteInstead(c, existed);
        return;
    }
    if (existed) (void)dbDelete(c->db, key, hash, c->look); /* it exists */
    if (expire_ms != OBJECT_NO_EXPIRE) o = objectSetExpire(o, expire_ms);
    storeSetObjectAccess(o, options.idle_s, (int)options.frequency);
    check(dbFind(c->db, key, hash, lookWithoutTouch(c->look), &c->at) == NULL);
    dbPlace(c->db, &c->at, o);
    ctxKeyChanged(c, key, &eventRestore);
    propagateRestore(c, &options, expire_ms);
    replyOk(c);
}
