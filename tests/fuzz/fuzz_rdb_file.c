/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whole RDB files: every key that is read is valid and can be written, a stream with ids of
 * producers is the same after DUMP and RESTORE, and nothing stays allocated.
 * Checksums are not compared.
 *
 * Input: a byte whose lowest bit accepts later versions and those of other servers and whose second
 * one skips data of modules, then the file. */
#include <string.h>

#include "base/base.h"
#include "format/rdb_dump.h"
#include "format/rdb_file.h"
#include "store/slab.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A stream with ids of producers is the same after DUMP and RESTORE. */
static void checkProducers(const robj *o, const rdbReadOptions *values) {
    str first = STR_EMPTY, second = STR_EMPTY;
    robj *copy;
    uint8_t type;
    reason why;
    check(!streamVerify(streamOf(o)));
    rdbDump(o, 0, RDB_FORM_VALKEY, &first);
    slice body = sliceMake(first.ptr, first.len - RDB_DUMP_FOOTER);
    check(rdbDumpRead(body, RDB_VERSION, objectKey(o), values, &copy, &type, &why) == OK);
    check(!streamVerify(streamOf(copy)));
    check(rdbHasProducers(streamOf(copy)));
    rdbDump(copy, 0, RDB_FORM_VALKEY, &second);
    check(sliceEqual(strSlice(&first), strSlice(&second)));
    objectFree(copy);
    strFree(&first);
    strFree(&second);
}

static const rdbReadOptions *values_now;

static status takeKey(void *arg, rdbReader *r, rdbKey *key) {
    uint64_t *keys = arg;
    (void)r;
    check(key->expire_ms == OBJECT_NO_EXPIRE || key->expire_ms >= 0);
    check(key->idle_s >= -1);
    check(key->frequency >= -1 && key->frequency <= 255);
    (*keys)++;
    if (!key->o) return OK;
    check(sliceEqual(objectKey(key->o), key->name));
    (void)rdbValueSize(key->o);
    if (objectType(key->o) == TYPE_STREAM && rdbHasProducers(streamOf(key->o)))
        checkProducers(key->o, values_now);
    objectFree(key->o);
    return OK;
}

static status takeText(void *arg, rdbReader *r, slice text) {
    (void)arg;
    (void)r;
    /* Every byte must be readable. */
    uint8_t sum = 0;
    for (size_t i = 0; i < text.len; i++) sum ^= (uint8_t)text.ptr[i];
    check(text.len > 0 || sum == 0);
    return OK;
}

static status takeAux(void *arg, rdbReader *r, slice name, slice value) {
    status st = takeText(arg, r, name);
    return st == OK ? takeText(arg, r, value) : st;
}

static void checkNothingLeft(slabStore *s) {
    slabStats stats;
    slabGetStats(s, &stats);
    check(stats.live_blocks == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    storeInit(1, false);
    rdbFileOptions options = {
        .values = {.limits = {.hash = {512, 64},
                              .zset = {128, 64},
                              .set = {.packed = {128, 64}, .ints = 512},
                              .list = {.fill = -2, .depth = 0}},
                   .look = lookAtAll()},
        .relaxed = data[0] & 1,
        .skip_modules = data[0] & 2,
        .skip_foreign = data[0] & 4,
        .foreign_everywhere = data[0] & 8,
    };
    values_now = &options.values;
    static const rdbFileHandler handler = {.key = takeKey, .function = takeText, .aux = takeAux};
    rdbSliceSource source;
    rdbSliceSourceInit(&source, sliceMake((const char *)data + 1, size - 1));
    rdbReader r;
    rdbReaderInit(&r, &source.source, true);
    rdbFileResult result;
    uint64_t keys = 0;
    status st = rdbFileRead(&r, &options, &handler, &keys, &result);
    if (st != OK) check(r.why.text[0] != 0);
    if (st == OK) check(!result.bad_header);
    if (result.bad_header) check(keys == 0);
    check(!result.bad_checksum);
    /* Of a compressed file offsets are those of the decompressed bytes. */
    check(rdbReaderProgress(&r) <= size - 1);
    rdbReaderClear(&r);
    checkNothingLeft(slabKeyspace());
    checkNothingLeft(slabElements());
    storeShutdown();
    return 0;
}
