/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values in the RDB format: what is read with small limits equals what is read with the default
 * ones, what is written is read back as the same value, and nothing stays allocated.
 *
 * Input: the type byte (modulo the number of types; after those of Valkey come two of this server,
 * then those of Redis 7.4 and later), then the value. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "format/rdb_redis.h"
#include "format/rdb_value.h"
#include "store/member_expiry.h"
#include "store/slab.h"
#include "store/type_pathhash.h"
#include "store/type_stream.h"
#include "store/type_zset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const rdbReadOptions default_limits = {
    .limits = {.hash = {512, 64},
               .zset = {128, 64},
               .set = {.packed = {128, 64}, .ints = 512},
               .list = {.fill = -2, .depth = 0}},
};
static const rdbReadOptions small_limits = {
    .limits = {.hash = {2, 8},
               .zset = {2, 8},
               .set = {.packed = {2, 8}, .ints = 2},
               .list = {.fill = 2, .depth = 1}},
};

typedef struct valueKind {
    int type;
    bool redis; /* as Redis numbers the types */
} valueKind;

static valueKind kindOf(uint8_t byte) {
    enum { OWN = 2, REDIS = RDB_REDIS_GCRA + 1 - RDB_TYPE_FOREIGN_MIN };
    int index = byte % (RDB_TYPE_PATHHASH + OWN + REDIS + 1);
    if (index < RDB_TYPE_PATHHASH) return (valueKind){index, false};
    index -= RDB_TYPE_PATHHASH;
    if (index < OWN) return (valueKind){RDB_TYPE_SET_TIMED + index, false};
    index -= OWN;
    if (index < REDIS) return (valueKind){RDB_TYPE_FOREIGN_MIN + index, true};
    return (valueKind){RDB_TYPE_PATHHASH, false}; /* last: the numbers of other kinds stay */
}

/* Reads a value; all bytes must be used if `whole`. */
static robj *readValue(valueKind kind, slice bytes, const rdbReadOptions *limits, bool whole,
                       status *st) {
    rdbReadOptions options = *limits;
    options.look = lookAtAll();
    rdbSliceSource source;
    rdbSliceSourceInit(&source, bytes);
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    r.redis = kind.redis;
    robj *o = NULL;
    bool dropped = false;
    *st = rdbReadValue(&r, kind.type, SLICE("key"), &options, &o, &dropped);
    check(!dropped);
    if (*st != OK) {
        check(o == NULL);
        check(r.why.text[0] != 0);
    }
    if (whole) check(*st == OK && rdbReaderOffset(&r) == bytes.len);
    rdbReaderClear(&r);
    return o;
}

static void writeValue(const robj *o, bool compress, str *out) {
    rdbStrSink sink;
    rdbStrSinkInit(&sink, out);
    rdbWriter w;
    rdbWriterInit(&w, &sink.sink, false, compress);
    rdbWriteValue(&w, o);
    check(rdbWriterFlush(&w) == OK);
    rdbWriterClear(&w);
}

/* True if a score is -0: a packed sorted set has it as 0, as in Valkey, and a skip list as -0. */
static bool hasNegativeZero(const robj *o) {
    if (objectType(o) != TYPE_ZSET || typeOf(o)->length(o) == 0) return false;
    zsetCursor cursor;
    zsetPair pair;
    zsetSeek(&cursor, o, 0, false);
    while (zsetNext(&cursor, &pair)) {
        if (pair.score == 0 && signbit(pair.score)) return true;
    }
    return false;
}

static void checkEqual(const robj *a, const robj *b) {
    digest one = {{0}}, two = {{0}};
    check(objectType(a) == objectType(b));
    check(typeOf(a)->length(a) == typeOf(b)->length(b));
    objectDigest(a, lookAtAll(), &one);
    objectDigest(b, lookAtAll(), &two);
    if (!hasNegativeZero(a) && !hasNegativeZero(b)) check(memcmp(&one, &two, sizeof(one)) == 0);
    const memberTimes *times = membersTimes(a);
    check(memberTimesCount(times) == memberTimesCount(membersTimes(b)));
    for (uint64_t i = 0; i < memberTimesCount(times); i++) {
        timedMember m = memberTimesAt(times, i);
        check(memberTime(b, m.member) == m.time_ms);
    }
}

/* Writes the value and reads it back. */
static void checkRoundTrip(const robj *o, const rdbReadOptions *limits, bool compress) {
    str bytes = STR_EMPTY, again = STR_EMPTY;
    status st;
    if (objectType(o) == TYPE_STREAM) check(streamVerify(streamOf(o)) == NULL);
    if (objectType(o) == TYPE_PATHHASH) check(pathHashVerify(pathHashOf(o)) == NULL);
    writeValue(o, compress, &bytes);
    robj *back = readValue((valueKind){rdbTypeOf(o), false}, strSlice(&bytes), limits, true, &st);
    check(back != NULL);
    checkEqual(o, back);
    /* The digest of a stream does not contain its counters and groups; its bytes do. */
    if (objectType(o) == TYPE_STREAM) {
        check(streamVerify(streamOf(back)) == NULL);
        writeValue(back, compress, &again);
        check(sliceEqual(strSlice(&bytes), strSlice(&again)));
    }
    objectFree(back);
    strFree(&bytes);
    strFree(&again);
}

static void checkNothingLeft(slabStore *s) {
    slabStats stats;
    slabGetStats(s, &stats);
    check(stats.live_blocks == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    storeInit(1, false);
    valueKind kind = kindOf(data[0]);
    slice bytes = sliceMake((const char *)data + 1, size - 1);
    status small_status, default_status;
    robj *small = readValue(kind, bytes, &small_limits, false, &small_status);
    robj *usual = readValue(kind, bytes, &default_limits, false, &default_status);
    check(small_status == default_status);
    check((small == NULL) == (usual == NULL));
    if (small) {
        checkEqual(small, usual);
        checkRoundTrip(small, &default_limits, true);
        checkRoundTrip(usual, &small_limits, false);
        objectFree(small);
        objectFree(usual);
    }
    checkNothingLeft(slabKeyspace());
    checkNothingLeft(slabElements());
    storeShutdown();
    return 0;
}
