/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of DUMP (rdb_dump.h). */
#include "format/rdb_dump.h"

#include "base/base.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "format/rdb_producers.h"
#include "format/rdb_redis.h"
#include "format/rdb_settings.h"
#include "format/rdb_value.h"
#include "store/type_string.h"

enum { VERSION_LEN = 2, VERSION_CHECKSUM_OPTIONAL = 13 };

void rdbDumpAppendFooter(str *out, size_t from, int version_number) {
    hotCheck(from <= out->len);
    uint8_t version[VERSION_LEN], checksum[RDB_CHECKSUM_LEN];
    storeU16(version, (uint16_t)version_number);
    strAppend(out, version, sizeof(version));
    storeU64(checksum, crc64(0, out->ptr + from, out->len - from));
    strAppend(out, checksum, sizeof(checksum));
}

/* The version in the footer of a payload with a value of this type in this form. */
static int versionFor(rdbType type, rdbForm form) {
    hotCheck(form <= RDB_FORM_REDIS);
    if (type == RDB_TYPE_PATHHASH) return RDB_VERSION_VALKEY_92;
    if (form == RDB_FORM_VALKEY) return RDB_VERSION;
    if (type == RDB_TYPE_HASH_REDIS) return RDB_VERSION_REDIS_TIMES;
    return rdbTypeInVersion(type, RDB_VERSION_REDIS_MAX) ? RDB_VERSION_REDIS_MAX : RDB_VERSION;
}

/* Writes the value by a buffer of RDB_WRITER_BUFFER bytes; NULL: by one for all. Sets *version to
 * the version for the footer. */
static status writeObject(const robj *o, int db_id, rdbForm form, rdbSink *sink, char *buffer,
                          int *version) {
    rdbWriter w;
    static char shared[RDB_WRITER_BUFFER]; /* to allocate one takes longer than a small value */
    rdbWriterInitBorrowed(&w, sink, buffer ? buffer : shared);
    bool is_long = objectType(o) == TYPE_STRING && stringLen(o) >= RDB_DUMP_PLAIN_MIN;
    w.compress = rdbCompressionOn() && !is_long;
    w.db_id = db_id;
    w.released_types = w.redis_types = form == RDB_FORM_REDIS;
    rdbType type = rdbTypeOf(o);
    if (w.released_types) type = rdbTypeWritten(&w, type);
    *version = versionFor(type, form);
    rdbWriteByte(&w, (uint8_t)type);
    rdbWriteValue(&w, o);
    rdbWriteProducersOf(&w, o);
    status st = rdbWriterFlush(&w);
    rdbWriterClear(&w);
    return st;
}

void rdbDump(const robj *o, int db_id, rdbForm form, str *out) {
    size_t from = out->len;
    int version;
    rdbStrSink sink;
    rdbStrSinkInit(&sink, out);
    status st = writeObject(o, db_id, form, &sink.sink, NULL, &version);
    check(st == OK); /* into memory */
    rdbDumpAppendFooter(out, from, version);
}

/* Bytes between two points of a fiber, which take as long as so many elements. */
enum { PART_BYTES = 64 * 1024, PART_ELEMENTS = 1000 };

/* A sink whose memory may be exhausted. There is always room for the footer. */
typedef struct blobSink {
    rdbSink sink;
    blob *payload;
} blobSink;

static status blobSinkWrite(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    blobSink *s = (blobSink *)sink;
    size_t needed = s->payload->len + len + RDB_DUMP_FOOTER;
    if (needed > s->payload->cap) {
        blob *grown =
            blobTryReserve(s->payload, sizeMax(needed, s->payload->cap + s->payload->cap / 2));
        if (!grown) grown = blobTryReserve(s->payload, needed);
        if (!grown) return reasonSet(why, ERR_NO_MEMORY, "out of memory");
        s->payload = grown;
    }
    for (size_t part; len > 0 && !fiberPoint(PART_ELEMENTS); len -= part) {
        part = sizeMin(len, PART_BYTES);
        memcpy(s->payload->bytes + s->payload->len, bytes, part);
        s->payload->len += part;
        bytes = (const char *)bytes + part;
    }
    return OK;
}

/* The checksum of all bytes. */
static uint64_t checksumOf(const blob *payload) {
    uint64_t crc = 0;
    for (size_t at = 0, part; at < payload->len && !fiberPoint(PART_ELEMENTS); at += part) {
        part = sizeMin(payload->len - at, PART_BYTES);
        crc = crc64(crc, payload->bytes + at, part);
    }
    return crc;
}

/* The size of the first block. In a fiber it is most probably enough: to move a long payload to a
 * larger one cannot be suspended. */
static size_t firstSize(const robj *o, int db_id, bool in_fiber) {
    enum { FIRST = 1000, SAMPLES = 100 };
    return in_fiber ? objectMemoryAt(o, db_id, SAMPLES) + FIRST : FIRST;
}

blob *rdbDumpBlob(const robj *o, int db_id, rdbForm form, bool in_fiber) {
    int version;
    blobSink s = {.sink = {.write = blobSinkWrite},
                  .payload = blobTryNew(firstSize(o, db_id, in_fiber))};
    char *buffer = in_fiber ? memAlloc(RDB_WRITER_BUFFER) : NULL;
    bool done = s.payload && writeObject(o, db_id, form, &s.sink, buffer, &version) == OK;
    memFree(buffer);
    if (!done) {
        blobRelease(s.payload);
        return NULL;
    }
    char *footer = s.payload->bytes + s.payload->len;
    storeU16(footer, (uint16_t)version);
    s.payload->len += VERSION_LEN;
    storeU64(footer + VERSION_LEN, checksumOf(s.payload));
    s.payload->len += RDB_CHECKSUM_LEN;
    return s.payload;
}

bool rdbDumpHasFooter(slice payload, bool relaxed, bool skip_checksum, int *version) {
    if (payload.len < RDB_DUMP_FOOTER) return false;
    const char *footer = payload.ptr + payload.len - RDB_DUMP_FOOTER;
    *version = loadU16(footer);
    if (*version < 1) return false;
    if (!relaxed && !rdbVersionIsKnown(*version)) return false;
    if (skip_checksum) return true;
    uint64_t expected = loadU64(footer + VERSION_LEN);
    if (expected == 0 && rdbVersionIsForeign(*version) && *version >= VERSION_CHECKSUM_OPTIONAL)
        return true;
    return expected == crc64(0, payload.ptr, payload.len - RDB_CHECKSUM_LEN);
}

/* Reads the type, after the key metadata that may precede it. */
static status readType(rdbReader *r, uint8_t *type) {
    char needed[RDB_METADATA_NAME_SIZE];
    status st = rdbReadByte(r, type);
    if (st != OK || !r->redis || *type != RDB_REDIS_OP_METADATA) return st;
    st = rdbSkipMetadata(r, needed);
    if (st == OK && *needed)
        st = rdbReaderFail(r, "Can't handle key metadata of class '%s'", needed);
    return st == OK ? rdbReadByte(r, type) : st;
}

status rdbDumpRead(slice body, int version, slice key, const rdbReadOptions *options, robj **out,
                   uint8_t *type, reason *why) {
    rdbSliceSource source;
    rdbSliceSourceInit(&source, body);
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    r.db_id = options->db_id;
    r.redis = rdbVersionIsForeign(version);
    bool dropped;
    *out = NULL;
    status st = readType(&r, type);
    if (st == OK && *type == RDB_TYPE_PATHHASH && !r.redis && !rdbTypeInVersion(*type, version))
        st = rdbReaderFail(&r, "Unknown RDB encoding type %d", *type);
    if (st == OK) st = rdbReadValue(&r, *type, key, options, out, &dropped);
    if (st == OK && !*out) st = rdbReaderFail(&r, "Empty value");
    if (st == OK && !r.redis && rdbReaderOffset(&r) != body.len)
        st = rdbReadProducersAfter(&r, *out);
    if (st == OK && rdbReaderOffset(&r) != body.len)
        st = rdbReaderFail(&r, "%zu bytes after the value", body.len - (size_t)rdbReaderOffset(&r));
    if (st != OK) {
        if (*out) objectFree(*out);
        *out = NULL;
        *why = r.why;
    }
    rdbReaderClear(&r);
    return st;
}

bool rdbDumpForeignModule(slice body, char name[RDB_MODULE_NAME_SIZE]) {
    rdbSliceSource source;
    rdbReader r;
    uint8_t type;
    uint64_t id;
    rdbSliceSourceInit(&source, body);
    rdbReaderInit(&r, &source.source, false);
    bool is_module = rdbReadByte(&r, &type) == OK && type == RDB_TYPE_MODULE_2 &&
                     rdbReadLength(&r, &id) == OK && !rdbModuleIsLoaded(id);
    rdbReaderClear(&r);
    if (is_module) rdbModuleName(id, name);
    return is_module;
}
