/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of DUMP (rdb_dump.h). */
#include "format/rdb_dump.h"

#include "base/base.h"
#include "base/hash.h"
#include "format/rdb_settings.h"
#include "format/rdb_value.h"

enum { VERSION_LEN = 2 };

void rdbDumpAppendFooter(str *out, size_t from) {
    uint8_t version[VERSION_LEN], checksum[RDB_CHECKSUM_LEN];
    storeU16(version, RDB_VERSION);
    strAppend(out, version, sizeof(version));
    storeU64(checksum, crc64(0, out->ptr + from, out->len - from));
    strAppend(out, checksum, sizeof(checksum));
}

void rdbDump(const robj *o, str *out) {
    size_t from = out->len;
    rdbStrSink sink;
    rdbStrSinkInit(&sink, out);
    rdbWriter w;
    static char buffer[RDB_WRITER_BUFFER]; /* to allocate one takes longer than a small value */
    rdbWriterInitBorrowed(&w, &sink.sink, buffer);
    w.compress = rdbCompressionOn();
    rdbWriteByte(&w, (uint8_t)rdbTypeOf(o));
    rdbWriteValue(&w, o);
    check(rdbWriterFlush(&w) == OK); /* into memory */
    rdbWriterClear(&w);
    rdbDumpAppendFooter(out, from);
}

bool rdbDumpHasFooter(slice payload, bool relaxed, bool skip_checksum, int *version) {
    if (payload.len < RDB_DUMP_FOOTER) return false;
    const char *footer = payload.ptr + payload.len - RDB_DUMP_FOOTER;
    *version = loadU16(footer);
    if (*version < 1) return false;
    if (!relaxed && (rdbVersionIsForeign(*version) || *version > RDB_VERSION)) return false;
    if (skip_checksum) return true;
    uint64_t expected = loadU64(footer + VERSION_LEN);
    return expected == crc64(0, payload.ptr, payload.len - RDB_CHECKSUM_LEN);
}

status rdbDumpRead(slice body, slice key, const rdbReadOptions *options, robj **out, reason *why) {
    rdbSliceSource source;
    rdbSliceSourceInit(&source, body);
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    uint8_t type;
    bool dropped;
    *out = NULL;
    status st = rdbReadByte(&r, &type);
    if (st == OK) st = rdbReadValue(&r, type, key, options, out, &dropped);
    if (st == OK && !*out) st = rdbReaderFail(&r, "Empty value");
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
