/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading RDB files (rdb_file.h). Opcodes that precede a key apply to the next key only. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "format/rdb_envelope.h"
#include "format/rdb_file.h"
#include "format/rdb_module.h"
#include "format/rdb_producers.h"
#include "format/rdb_redis.h"
#include "store/store.h"

typedef struct fileReader {
    rdbReader *r;
    const rdbFileOptions *options;
    const rdbFileHandler *handler;
    void *arg;
    rdbFileResult *result;
    rdbEnvelope *envelope; /* NULL: the file is not compressed */
    rdbKey key;            /* attributes of the next key */
    str name;
    str producers; /* of the next key, if it has a field of RDB_PRODUCERS_FIELD */
    char foreign[sizeof("metadata:") + RDB_MODULE_NAME_SIZE]; /* key.foreign, if set */
} fileReader;

static status doing(fileReader *f, const char *at) {
    return f->handler->doing ? f->handler->doing(f->arg, f->r, at, &f->key) : OK;
}

/* ------------------------------------------------------------------ header */

/* Reads the signature and the version. In a compressed file they are part of the compressed
 * data. */
static status readStart(fileReader *f, char magic[RDB_MAGIC_LEN]) {
    enum { FIRST = RDB_ENVELOPE_LEN };
    status st = rdbReadBytes(f->r, magic, FIRST);
    if (st == OK && compressIsHead(sliceMake(magic, FIRST))) {
        f->result->bad_header = true;
        st = rdbEnvelopeBegin(f->r, magic, !f->options->check_checksum, &f->envelope);
        if (st != OK) return st;
        f->result->bad_header = false;
        f->result->codec = f->r->codec;
        st = rdbReadBytes(f->r, magic, FIRST);
    }
    return st == OK ? rdbReadBytes(f->r, magic + FIRST, RDB_MAGIC_LEN - FIRST) : st;
}

static status readHeader(fileReader *f) {
    char magic[RDB_MAGIC_LEN + 1] = {0};
    status st = readStart(f, magic);
    if (st != OK) return st;
    bool redis = !memcmp(magic, "REDIS", 5), valkey = !memcmp(magic, "VALKEY", 6);
    int64_t version;
    slice digits = redis ? sliceMake(magic + 5, 4) : sliceMake(magic + 6, 3);
    while (digits.len > 1 && *digits.ptr == '0') {
        digits.ptr++;
        digits.len--;
    }
    f->result->bad_header = true;
    if ((!redis && !valkey) || !numberParseInt(digits, &version))
        return rdbReaderFail(f->r, "Wrong signature trying to load DB from file: %s", magic);
    bool fits =
        version >= 1 && (redis ? version <= RDB_VERSION_FOREIGN_MAX : version >= RDB_VERSION);
    if (!fits || (!rdbVersionIsKnown((int)version) && !f->options->relaxed))
        return rdbReaderFail(f->r, "Can't handle RDB format version %d%s", (int)version,
                             fits ? " ('rdb-version-check relaxed' allows to try it)" : "");
    f->result->bad_header = false;
    f->result->version = (int)version;
    f->r->redis = rdbVersionIsForeign((int)version);
    if (f->r->redis) rdbTemplatesBegin(f->r);
    return f->handler->version ? f->handler->version(f->arg, f->r, (int)version) : OK;
}

/* ------------------------------------------------------------------ records between keys */

static status readAux(fileReader *f) {
    str value = STR_EMPTY;
    status st = doing(f, "read-aux");
    if (st == OK) st = rdbReadStringInto(f->r, &f->name);
    if (st == OK) st = rdbReadStringInto(f->r, &value);
    if (st == OK && sliceEqual(strSlice(&f->name), RDB_PRODUCERS_FIELD)) {
        str before = f->producers;
        f->producers = value;
        value = before;
    } else if (st == OK && f->handler->aux) {
        st = f->handler->aux(f->arg, f->r, strSlice(&f->name), strSlice(&value));
    }
    strFree(&value);
    return st;
}

static status readDbSize(fileReader *f) {
    uint64_t keys, volatile_keys;
    status st = doing(f, "read-len");
    if (st == OK) st = rdbReadLength(f->r, &keys);
    if (st == OK) st = rdbReadLength(f->r, &volatile_keys);
    if (st == OK && f->handler->db_size)
        st = f->handler->db_size(f->arg, f->r, keys, volatile_keys);
    return st;
}

static status readDb(fileReader *f) {
    uint64_t id = 0;
    status st = doing(f, "read-len");
    if (st == OK) st = rdbReadLength(f->r, &id);
    if (st == OK && f->handler->db) st = f->handler->db(f->arg, f->r, id);
    f->r->db_id = id < INT32_MAX ? (int)id : -1;
    return st;
}

/* Reads the size hint of a slot. */
static status skipSlotInfo(fileReader *f) {
    uint64_t ignored;
    status st = OK;
    for (int i = 0; st == OK && i < 3; i++) st = rdbReadLength(f->r, &ignored);
    return st;
}

static status readSlotRange(fileReader *f, slotRange *out) {
    uint64_t first, last;
    status st = rdbReadLength(f->r, &first);
    if (st == OK) st = rdbReadLength(f->r, &last);
    if (st != OK) return st;
    if (first > last || last >= SLOT_COUNT)
        return rdbReaderFail(f->r, "Invalid slot import range in RDB: start=%llu end=%llu",
                             (unsigned long long)first, (unsigned long long)last);
    *out = (slotRange){(int)first, (int)last};
    return OK;
}

static status readSlotImport(fileReader *f) {
    uint64_t count;
    str ranges = STR_EMPTY;
    status st = rdbReadStringInto(f->r, &f->name);
    if (st == OK && f->name.len != SLOT_IMPORT_NAME_LEN)
        st = rdbReaderFail(f->r, "Invalid slot import job name length in RDB");
    if (st == OK) st = rdbReadLength(f->r, &count);
    for (uint64_t i = 0; st == OK && i < count; i++) {
        slotRange one;
        st = readSlotRange(f, &one);
        if (st == OK && i >= SLOT_COUNT)
            st = rdbReaderFail(f->r, "Too many slot import ranges in RDB");
        if (st == OK) strAppend(&ranges, &one, sizeof(one));
    }
    slotImport import = {.job = strSlice(&f->name),
                         .ranges = (const slotRange *)ranges.ptr,
                         .count = ranges.len / sizeof(slotRange)};
    if (st == OK && f->handler->slot_import) st = f->handler->slot_import(f->arg, f->r, &import);
    strFree(&ranges);
    return st;
}

static status readFunction(fileReader *f) {
    status st = doing(f, "read-functions");
    if (st == OK) st = rdbReadStringInto(f->r, &f->name);
    if (st == OK && f->handler->function)
        st = f->handler->function(f->arg, f->r, strSlice(&f->name));
    return st;
}

static status readExpire(fileReader *f, bool seconds) {
    uint64_t ms;
    uint32_t s;
    status st = doing(f, "read-expire");
    if (st == OK) st = seconds ? rdbReadU32(f->r, &s) : rdbReadU64(f->r, &ms);
    if (st != OK) return st;
    f->key.expire_ms = seconds ? (int64_t)(int32_t)s * 1000 : (int64_t)ms;
    if (f->key.expire_ms < 0) f->key.expire_ms = 0; /* long past */
    return OK;
}

static status readIdle(fileReader *f) {
    uint64_t seconds;
    status st = rdbReadLength(f->r, &seconds);
    if (st == OK) f->key.idle_s = seconds < INT32_MAX ? (int64_t)seconds : INT32_MAX;
    return st;
}

static status readFrequency(fileReader *f) {
    uint8_t frequency;
    status st = rdbReadByte(f->r, &frequency);
    if (st == OK) f->key.frequency = frequency;
    return st;
}

static status readModuleAux(fileReader *f) {
    char name[RDB_MODULE_NAME_SIZE];
    bool skipped = false;
    status st = doing(f, "read-module-aux");
    if (st == OK) st = rdbReadModuleAux(f->r, f->options->skip_modules, name, &skipped);
    if (st != OK || !skipped || !f->handler->module_aux) return st;
    return f->handler->module_aux(f->arg, f->r, name);
}

static status readTemplate(fileReader *f) {
    status st = doing(f, "read-hash-template");
    return st == OK ? rdbReadTemplate(f->r) : st;
}

/* Reads what modules have stored with the next key. */
static status readMetadata(fileReader *f) {
    char needed[RDB_METADATA_NAME_SIZE];
    status st = doing(f, "read-key-metadata");
    if (st == OK) st = rdbSkipMetadata(f->r, needed);
    if (st != OK || !*needed) return st;
    if (!f->options->skip_foreign)
        return rdbReaderFail(f->r, "Can't handle key metadata of class '%s'", needed);
    snprintf(f->foreign, sizeof(f->foreign), "metadata:%s", needed);
    f->key.foreign = f->foreign;
    return OK;
}

/* ------------------------------------------------------------------ keys */

static rdbKey emptyKey(void) {
    return (rdbKey){.expire_ms = OBJECT_NO_EXPIRE, .idle_s = -1, .frequency = -1};
}

/* Skips a value that this server has no type for. */
static status skipForeign(fileReader *f, int type, const char *name) {
    hotCheck(*name);
    hotCheck(strlen(name) < sizeof(f->foreign));
    uint64_t from = rdbReaderOffset(f->r);
    status st;
    switch (type) {
    case RDB_TYPE_MODULE_2: st = rdbSkipModuleData(f->r); break;
    default: st = rdbSkipRedisValue(f->r, type); break;
    }
    snprintf(f->foreign, sizeof(f->foreign), "%s", name);
    f->key.foreign = f->foreign;
    f->key.foreign_bytes = rdbReaderOffset(f->r) - from;
    return st;
}

/* Reads the value of a module, or skips it if its type is not loaded. */
static status readModuleValue(fileReader *f) {
    uint64_t id;
    char name[RDB_MODULE_NAME_SIZE];
    status st = rdbReadLength(f->r, &id);
    if (st != OK) return st;
    if (rdbModuleIsLoaded(id)) return rdbReadModuleValue(f->r, id, f->key.name, &f->key.o);
    rdbModuleName(id, name);
    return skipForeign(f, RDB_TYPE_MODULE_2, name);
}

static status readValue(fileReader *f, int type) {
    const rdbFileOptions *options = f->options;
    bool skips = options->skip_foreign && (f->r->redis || options->foreign_everywhere);
    if (type == RDB_TYPE_MODULE_2 && options->skip_modules) return rdbSkipModuleValue(f->r);
    if (type == RDB_TYPE_MODULE_2 && skips) return readModuleValue(f);
    if (skips && f->r->redis && (type == RDB_REDIS_ARRAY || type == RDB_REDIS_GCRA))
        return skipForeign(f, type, rdbRedisTypeName(type));
    return rdbReadValue(f->r, type, f->key.name, &options->values, &f->key.o,
                        &f->key.fields_dropped);
}

/* Adds the ids of producers that preceded the value to it; frees the value if they are invalid. */
static status readProducers(fileReader *f) {
    hotCheck(f->producers.len);
    status st = rdbReadProducersField(f->r, strSlice(&f->producers), f->key.o);
    strClear(&f->producers);
    if (st == OK || !f->key.o) return st;
    objectFree(f->key.o);
    f->key.o = NULL;
    return st;
}

static status readKey(fileReader *f, int type) {
    f->key.type = type;
    status st = doing(f, "read-key");
    if (st != OK) return st;
    if (f->r->redis && type >= RDB_TYPE_FOREIGN_MIN && !rdbRedisTypeName(type))
        return rdbReaderFail(f->r, "Can't handle foreign type or opcode %d in RDB with version %d",
                             type, f->result->version);
    if (type == RDB_TYPE_PATHHASH && !f->r->redis && !rdbTypeInVersion(type, f->result->version))
        return rdbReaderFail(f->r, "Unknown RDB encoding type %d", type);
    st = rdbReadStringInto(f->r, &f->name);
    if (st != OK) return st;
    f->key.name = strSlice(&f->name);
    st = doing(f, "read-object-value");
    if (st == OK) st = readValue(f, type);
    if (st == OK && f->producers.len) st = readProducers(f);
    if (st == OK) st = f->handler->key(f->arg, f->r, &f->key);
    f->key = emptyKey();
    return st;
}

/* Handles one record; *end is set after the last one. */
static status readRecord(fileReader *f, bool *end) {
    uint8_t type;
    status st = doing(f, "read-type");
    if (st == OK) st = rdbReadByte(f->r, &type);
    if (st != OK) return st;
    switch (type) {
    case RDB_OP_EXPIRE_S: return readExpire(f, true);
    case RDB_OP_EXPIRE_MS: return readExpire(f, false);
    case RDB_OP_IDLE: return readIdle(f);
    case RDB_OP_FREQUENCY: return readFrequency(f);
    case RDB_OP_SELECT_DB: return readDb(f);
    case RDB_OP_RESIZE_DB: return readDbSize(f);
    case RDB_OP_SLOT_INFO: return skipSlotInfo(f);
    case RDB_OP_AUX: return readAux(f);
    case RDB_OP_MODULE_AUX: return readModuleAux(f);
    case RDB_OP_FUNCTION_2: return readFunction(f);
    case RDB_OP_FUNCTION_PRE_GA:
        return rdbReaderFail(f->r, "Pre-release function format not supported.");
    case RDB_OP_EOF: *end = true; return OK;
    default: break;
    }
    if (f->r->redis && type == RDB_REDIS_OP_TEMPLATE) return readTemplate(f);
    if (f->r->redis && type == RDB_REDIS_OP_METADATA) return readMetadata(f);
    if (!f->r->redis && type == RDB_OP_SLOT_IMPORT) return readSlotImport(f);
    if (type == RDB_OP_UPDATE && !f->r->redis && rdbVersionIsOf92(f->result->version))
        return rdbReaderFail(f->r, "Can't handle opcode 242: a command of a full synchronisation "
                                   "that its primary runs without a fork; with repl-diskless-sync "
                                   "no it sends a file, which has none");
    return readKey(f, type);
}

static status readChecksum(fileReader *f) {
    if (f->result->version < RDB_VERSION_CHECKSUM_MIN) return OK;
    uint64_t found = rdbReaderChecksum(f->r), expected;
    status st = doing(f, "check-sum");
    if (st == OK) st = rdbReadU64(f->r, &expected);
    if (st != OK || f->envelope) return st;
    f->result->expected = expected;
    f->result->found = found;
    f->result->checksum_disabled = expected == 0;
    if (!f->options->check_checksum || expected == 0 || expected == found) return OK;
    f->result->bad_checksum = true;
    return rdbReaderFail(f->r, "RDB CRC error");
}

status rdbFileRead(rdbReader *r, const rdbFileOptions *options, const rdbFileHandler *handler,
                   void *arg, rdbFileResult *out) {
    fileReader f = {.r = r,
                    .options = options,
                    .handler = handler,
                    .arg = arg,
                    .result = out,
                    .key = emptyKey()};
    *out = (rdbFileResult){.version = 0};
    status st = doing(&f, "start");
    if (st == OK) st = readHeader(&f);
    for (bool end = false; st == OK && !end;) st = readRecord(&f, &end);
    if (st == OK) st = readChecksum(&f);
    if (f.envelope) {
        out->logical = rdbReaderOffset(r);
        if (st == OK) st = rdbEnvelopeEnd(f.envelope);
        out->physical = r->raw;
    }
    rdbEnvelopeFree(f.envelope);
    rdbTemplatesEnd(r);
    strFree(&f.name);
    strFree(&f.producers);
    return st;
}
