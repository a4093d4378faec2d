/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing RDB files (rdb_file.h). */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "format/rdb_file.h"
#include "format/rdb_producers.h"
#include "format/rdb_value.h"
#include "store/store.h"

void rdbFileAux(rdbWriter *w, slice name, slice value) {
    rdbWriteByte(w, RDB_OP_AUX);
    rdbWriteString(w, name);
    rdbWriteString(w, value);
}

static void writeAuxInt(rdbWriter *w, const char *name, int64_t value) {
    rdbWriteByte(w, RDB_OP_AUX);
    rdbWriteString(w, sliceOf(name));
    rdbWriteIntString(w, value);
}

void rdbFileBegin(rdbWriter *w, const rdbFileInfo *info) {
    hotCheck(info->version > 0);
    char magic[24]; /* room for any int; RDB_MAGIC_LEN bytes are written */
    bool redis = info->version < RDB_VERSION;
    snprintf(magic, sizeof(magic), redis ? "REDIS%04d" : "VALKEY%03d", info->version);
    rdbWriteBytes(w, magic, RDB_MAGIC_LEN);
    rdbFileAux(w, redis ? SLICE("redis-ver") : SLICE("valkey-ver"), sliceOf(info->server_version));
    writeAuxInt(w, "redis-bits", (int64_t)sizeof(void *) * 8);
    writeAuxInt(w, "ctime", info->time_s);
    writeAuxInt(w, "used-mem", (int64_t)info->used_memory);
    if (info->repl_id) {
        writeAuxInt(w, "repl-stream-db", info->repl_db);
        rdbFileAux(w, SLICE("repl-id"), sliceOf(info->repl_id));
        writeAuxInt(w, "repl-offset", info->repl_offset);
    }
    writeAuxInt(w, "aof-base", info->is_aof_base);
}

void rdbFileFunction(rdbWriter *w, slice source) {
    rdbWriteByte(w, RDB_OP_FUNCTION_2);
    rdbWriteString(w, source);
}

void rdbFileSlotImport(rdbWriter *w, const slotImport *import) {
    check(import->job.len == SLOT_IMPORT_NAME_LEN);
    rdbWriteByte(w, RDB_OP_SLOT_IMPORT);
    rdbWriteString(w, import->job);
    rdbWriteLength(w, import->count);
    for (size_t i = 0; i < import->count; i++) {
        rdbWriteLength(w, (uint64_t)import->ranges[i].first);
        rdbWriteLength(w, (uint64_t)import->ranges[i].last);
    }
}

void rdbFileSelect(rdbWriter *w, int id) {
    w->db_id = id;
    rdbWriteByte(w, RDB_OP_SELECT_DB);
    rdbWriteLength(w, (uint64_t)id);
}

void rdbFileDb(rdbWriter *w, int id, uint64_t keys, uint64_t volatile_keys) {
    hotCheck(volatile_keys <= keys);
    rdbFileSelect(w, id);
    rdbWriteByte(w, RDB_OP_RESIZE_DB);
    rdbWriteLength(w, keys);
    rdbWriteLength(w, volatile_keys);
}

void rdbFileSlot(rdbWriter *w, int slot, uint64_t keys, uint64_t volatile_keys) {
    hotCheck(slot < SLOT_COUNT);
    char text[64];
    int len = snprintf(text, sizeof(text), "%d,%llu,%llu", slot, (unsigned long long)keys,
                       (unsigned long long)volatile_keys);
    rdbFileAux(w, SLICE("slot-info"), sliceMake(text, (size_t)len));
}

static void writeAccess(rdbWriter *w, const robj *o, rdbAccess access) {
    if (access == RDB_ACCESS_IDLE) {
        rdbWriteByte(w, RDB_OP_IDLE);
        rdbWriteLength(w, (uint64_t)storeIdleSeconds(o));
    } else if (access == RDB_ACCESS_FREQUENCY) {
        rdbWriteByte(w, RDB_OP_FREQUENCY);
        rdbWriteByte(w, storeFrequency(o));
    }
}

/* Copies 2 to 2 * RDB_STRING_PLAIN_MAX + 2 bytes. */
ALWAYS_INLINE void copyShort(char *to, const char *from, size_t len) {
    enum { STEP = 16 };
    if (unlikely(len < STEP)) {
        memcpy(to, from, len);
        return;
    }
    memcpy(to, from, STEP);
    if (len > 2 * STEP) memcpy(to + STEP, from + STEP, STEP);
    memcpy(to + len - STEP, from + len - STEP, STEP);
}
_Static_assert(2 * RDB_STRING_PLAIN_MAX + 2 <= 48, "three steps are enough");

/* Type, key and value of a short text in one copy: their lengths are the same bytes in an object as
 * in a file. False if it is not one, or must be encoded. */
ALWAYS_INLINE bool writeShortText(rdbWriter *w, const robj *o) {
    if (objectForm(o) > FORM_EMBED_RAW || objectIsCompressed(o)) return false;
    slice key = objectKey(o), text;
    const char *at = key.ptr + key.len;
    text.len = objectReadLength(&at);
    text.ptr = at;
    if (key.len > RDB_STRING_PLAIN_MAX || text.len > RDB_STRING_PLAIN_MAX) return false;
    if (numberMayBeInt(key) || numberMayBeInt(text)) return false;
    size_t len = key.len + text.len + 2;
    if (unlikely(RDB_WRITER_BUFFER - w->used < 1 + len)) return false;
    char *to = w->buffer + w->used;
    *to = RDB_TYPE_STRING;
    copyShort(to + 1, key.ptr - 1, len);
    w->used += 1 + len;
    return true;
}

/* Expiry time and access of a key. */
static void writeAttributes(rdbWriter *w, const robj *o, rdbAccess access) {
    hotCheck(objectType(o) < TYPE_COUNT);
    if (objectHasExpire(o)) {
        rdbWriteByte(w, RDB_OP_EXPIRE_MS);
        rdbWriteU64(w, (uint64_t)objectExpire(o));
    }
    writeAccess(w, o, access);
}

status rdbFileKey(rdbWriter *w, const robj *o, int version, rdbAccess access) {
    hotCheck(objectType(o) < TYPE_COUNT);
    bool is_string = objectType(o) == TYPE_STRING;
    rdbType type = likely(is_string) ? RDB_TYPE_STRING : rdbTypeOf(o);
    if (unlikely(w->released_types)) type = rdbTypeWritten(w, type);
    if (!is_string && !rdbTypeInVersion(type, version)) {
        return reasonSet(&w->why, ERR_LIMIT,
                         type == RDB_TYPE_PATHHASH
                             ? "RDB version %d has no type for a path hash"
                             : "RDB version %d has no type for a hash whose fields expire",
                         version);
    }
    if (!is_string) rdbWriteProducersOf(w, o);
    writeAttributes(w, o, access);
    if (likely(is_string) && writeShortText(w, o)) return w->failed;
    rdbWriteByte(w, (uint8_t)type);
    rdbWriteString(w, objectKey(o));
    rdbWriteValue(w, o);
    return w->failed;
}

void rdbFileKeyInParts(rdbWriter *w, const robj *o, rdbType type, uint64_t count,
                       rdbAccess access) {
    hotCheck(objectType(o) != TYPE_STRING);
    writeAttributes(w, o, access);
    rdbWriteByte(w, (uint8_t)type);
    rdbWriteString(w, objectKey(o));
    rdbWriteBeforeElements(w, type);
    rdbWriteLength(w, count);
}

status rdbFileEnd(rdbWriter *w, reason *why) {
    rdbWriteByte(w, RDB_OP_EOF);
    rdbWriteU64(w, rdbWriterChecksum(w));
    status st = rdbWriterFlush(w);
    if (st != OK && why) *why = w->why;
    return st;
}
