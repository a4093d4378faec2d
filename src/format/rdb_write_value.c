/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of keys as RDB bytes (rdb_value.h). A packed value is written as it is in memory:
 * listpacks and intsets have the format's layout. O(bytes). */
#include "base/base.h"
#include "ds/intset.h"
#include "ds/listpack.h"
#include "ds/quicklist.h"
#include "format/rdb_module.h"
#include "format/rdb_pathhash.h"
#include "format/rdb_settings.h"
#include "format/rdb_value_priv.h"
#include "store/compressed.h"
#include "store/member_expiry.h"
#include "store/type_hash.h"
#include "store/type_pathhash.h"
#include "store/type_zset.h"

enum { MEMBERS_AT_ONCE = 32 };

static bool hasPackedInts(const robj *o) {
    return objectIsCompressed(o) ? compressedRead(o).raw : objectForm(o) == FORM_PACKED_INTS;
}

rdbType rdbTypeOf(const robj *o) {
    hotCheck(objectType(o) < TYPE_COUNT);
    bool packed = objectType(o) != TYPE_STRING && objectIsPacked(o);
    switch (objectType(o)) {
    case TYPE_STRING: return RDB_TYPE_STRING;
    case TYPE_LIST: return RDB_TYPE_LIST_QUICKLIST_2;
    case TYPE_SET:
        if (hasPackedInts(o)) return RDB_TYPE_SET_INTSET;
        if (packed) return RDB_TYPE_SET_LISTPACK;
        return membersTimes(o) ? RDB_TYPE_SET_TIMED : RDB_TYPE_SET;
    case TYPE_ZSET:
        if (packed) return RDB_TYPE_ZSET_LISTPACK;
        return membersTimes(o) ? RDB_TYPE_ZSET_TIMED : RDB_TYPE_ZSET_2;
    case TYPE_HASH:
        if (packed) return RDB_TYPE_HASH_LISTPACK;
        return hashTimedCount(o) ? RDB_TYPE_HASH_2 : RDB_TYPE_HASH;
    case TYPE_STREAM: return RDB_TYPE_STREAM_3;
    case TYPE_MODULE: return RDB_TYPE_MODULE_2;
    case TYPE_PATHHASH: return RDB_TYPE_PATHHASH;
    default: panic("no RDB type for values of type %d", (int)objectType(o));
    }
}

const char *rdbTypeName(int type) {
    static const char *const names[RDB_TYPE_COUNT] = {
        [RDB_TYPE_STRING] = "string",
        [RDB_TYPE_LIST] = "list-linked",
        [RDB_TYPE_SET] = "set-hashtable",
        [RDB_TYPE_ZSET] = "zset-v1",
        [RDB_TYPE_HASH] = "hash-hashtable",
        [RDB_TYPE_ZSET_2] = "zset-v2",
        [RDB_TYPE_MODULE_PRE_GA] = "module-pre-release",
        [RDB_TYPE_MODULE_2] = "module-value",
        [RDB_TYPE_HASH_ZIPMAP] = "hash-zipmap",
        [RDB_TYPE_LIST_ZIPLIST] = "list-ziplist",
        [RDB_TYPE_SET_INTSET] = "set-intset",
        [RDB_TYPE_ZSET_ZIPLIST] = "zset-ziplist",
        [RDB_TYPE_HASH_ZIPLIST] = "hash-ziplist",
        [RDB_TYPE_LIST_QUICKLIST] = "quicklist",
        [RDB_TYPE_STREAM] = "stream",
        [RDB_TYPE_HASH_LISTPACK] = "hash-listpack",
        [RDB_TYPE_ZSET_LISTPACK] = "zset-listpack",
        [RDB_TYPE_LIST_QUICKLIST_2] = "quicklist-v2",
        [RDB_TYPE_STREAM_2] = "stream-v2",
        [RDB_TYPE_SET_LISTPACK] = "set-listpack",
        [RDB_TYPE_STREAM_3] = "stream-v3",
        [RDB_TYPE_HASH_2] = "hash-volatile-items",
        [RDB_TYPE_PATHHASH] = "pathhash",
    };
    if (type == RDB_TYPE_SET_TIMED) return "set-volatile-items";
    if (type == RDB_TYPE_ZSET_TIMED) return "zset-volatile-items";
    return type >= 0 && type < RDB_TYPE_COUNT ? names[type] : NULL;
}

rdbType rdbTypeWritten(const rdbWriter *w, rdbType type) {
    hotCheck(w->released_types);
    if (type == RDB_TYPE_SET_TIMED) return RDB_TYPE_SET;
    if (type == RDB_TYPE_HASH_2 && w->redis_types) return RDB_TYPE_HASH_REDIS;
    return type == RDB_TYPE_ZSET_TIMED ? RDB_TYPE_ZSET_2 : type;
}

bool rdbTypeInVersion(rdbType type, int version) {
    if (type == RDB_TYPE_HASH_REDIS) return version == RDB_VERSION_REDIS_TIMES;
    if (type == RDB_TYPE_PATHHASH) return rdbVersionIsOf92(version);
    return version >= RDB_VERSION || type < RDB_TYPE_HASH_2;
}

int rdbVersionOfDataset(void) { return pathHashesExist() ? RDB_VERSION_VALKEY_92 : RDB_VERSION; }

/* Writes the base of the expiry times of fields. Redis writes the smallest time; this server writes
 * 0, which needs no search. */
void rdbWriteBeforeElements(rdbWriter *w, rdbType type) {
    if (type == RDB_TYPE_HASH_REDIS) rdbWriteU64(w, 0);
}

/* Writes the expiry time of a field, which precedes the field; 0: none. */
static void writeRelativeTime(rdbWriter *w, int64_t time_ms) {
    if (time_ms > RDB_REDIS_FIELD_TIME_MAX) time_ms = RDB_REDIS_FIELD_TIME_MAX;
    rdbWriteLength(w, time_ms < 0 ? 0 : (uint64_t)time_ms + 1);
}

static void writeListpack(rdbWriter *w, const uint8_t *lp) {
    rdbWriteString(w, sliceMake((const char *)lp, listpackSize(lp)));
}

/* Files and payloads have the plain text. */
static void writeCompressed(rdbWriter *w, const robj *o) {
    compressedValue v = compressedRead(o);
    if (w->sink->expand && w->sink->expand(w->sink, w, v.dictionary, v.packed, v.len)) return;
    char *text = memAlloc(v.len);
    compressedExpand(o, text);
    rdbWriteString(w, sliceMake(text, v.len));
    memFree(text);
}

static void writeString(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_STRING);
    if (unlikely(objectIsCompressed(o))) {
        writeCompressed(w, o);
        return;
    }
    if (objectIsInt(o)) {
        rdbWriteIntString(w, objectInt(o));
        return;
    }
    if (objectForm(o) == FORM_POINTER) {
        rdbWriteShared(w, objectPointer(o));
        return;
    }
    char digits[NUMBER_TEXT_MAX];
    rdbWriteString(w, objectText(o, digits));
}

void rdbWriteNode(rdbWriter *w, const quicklistNodeView *node) {
    rdbWriteLength(w, node->plain ? RDB_NODE_PLAIN : RDB_NODE_PACKED);
    if (node->compressed) {
        rdbWriteCompressed(w, node->content, node->bytes);
    } else {
        rdbWriteString(w, node->content);
    }
}

static void writeNode(void *arg, const quicklistNodeView *node) { rdbWriteNode(arg, node); }

static void writeList(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_LIST);
    if (objectIsPacked(o)) {
        rdbWriteLength(w, 1);
        rdbWriteLength(w, RDB_NODE_PACKED);
        writeListpack(w, objectPacked(o));
        return;
    }
    quicklistStats stats;
    quicklistGetStats(listQuicklist(o), &stats);
    rdbWriteLength(w, stats.nodes);
    quicklistEachNode(listQuicklist(o), writeNode, w);
}

static void writeMemberTime(rdbWriter *w, const memberTimes *times, const listpackItem *member) {
    char digits[NUMBER_TEXT_MAX];
    rdbWriteU64(w, (uint64_t)memberTimesGet(times, listpackText(member, digits)));
}

static void writeSet(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    if (objectForm(o) == FORM_PACKED_INTS) {
        const uint8_t *set = objectPacked(o);
        rdbWriteString(w, sliceMake((const char *)set, intsetSize(set)));
        return;
    }
    if (objectIsPacked(o)) {
        writeListpack(w, objectPacked(o));
        return;
    }
    const memberTimes *times = membersTimes(o);
    bool timed = times && !w->released_types;
    rdbWriteLength(w, setLength(o) + memberTimesHidden(times));
    setIterator it;
    listpackItem members[MEMBERS_AT_ONCE];
    setIteratorInit(&it, o);
    for (unsigned n; (n = setNextMany(&it, members, MEMBERS_AT_ONCE)) > 0;) {
        for (unsigned i = 0; i < n; i++) {
            if (members[i].ptr) {
                rdbWriteString(w, sliceMake(members[i].ptr, members[i].len));
            } else {
                rdbWriteIntString(w, members[i].number);
            }
            if (timed) writeMemberTime(w, times, &members[i]);
        }
    }
    setIteratorClear(&it);
    for (uint64_t i = 0; i < memberTimesHidden(times); i++) {
        timedMember hidden = memberTimesAt(times, i);
        rdbWriteString(w, hidden.member);
        if (timed) rdbWriteU64(w, (uint64_t)hidden.time_ms);
    }
}

/* In descending order of scores, which is faster for readers with a skip list. */
static void writeZset(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_ZSET);
    if (objectIsPacked(o)) {
        writeListpack(w, objectPacked(o));
        return;
    }
    size_t count = zsetLength(o);
    const memberTimes *times = membersTimes(o);
    bool timed = times && !w->released_types;
    rdbWriteLength(w, count + memberTimesHidden(times));
    zsetCursor cursor;
    zsetPair pair;
    if (count) zsetSeek(&cursor, o, count - 1, true);
    while (count-- && zsetNext(&cursor, &pair)) {
        rdbWriteString(w, pair.member);
        rdbWriteDouble(w, pair.score);
        if (timed) rdbWriteU64(w, (uint64_t)memberTimesGet(times, pair.member));
    }
    for (uint64_t i = 0; i < memberTimesHidden(times); i++) {
        timedMember hidden = memberTimesAt(times, i);
        rdbWriteString(w, hidden.member);
        rdbWriteDouble(w, hidden.score);
        if (timed) rdbWriteU64(w, (uint64_t)hidden.time_ms);
    }
}

static void writeHash(rdbWriter *w, const robj *o) {
    hotCheck(objectType(o) == TYPE_HASH);
    if (objectIsPacked(o)) {
        rdbWriteString(w, hashListpack(o));
        return;
    }
    bool timed = hashTimedCount(o) > 0, relative = timed && w->redis_types;
    if (relative) rdbWriteBeforeElements(w, RDB_TYPE_HASH_REDIS);
    rdbWriteLength(w, hashLength(o));
    hashIterator it;
    hashPair pair;
    hashIteratorInit(&it, o, lookAtAll());
    int64_t time_ms;
    while (hashNextTimed(&it, &pair, &time_ms)) {
        if (relative) writeRelativeTime(w, time_ms);
        rdbWriteString(w, pair.field);
        rdbWriteString(w, pair.value);
        if (timed && !relative) rdbWriteU64(w, (uint64_t)(time_ms == HASH_NO_TIME ? -1 : time_ms));
    }
    hashIteratorClear(&it);
}

void rdbWriteValue(rdbWriter *w, const robj *o) {
    /* rdbWriteModuleValue() passes values of types that were added on to their codecs. */
    static void (*const writers[TYPE_COUNT])(rdbWriter * to, const robj *value) = {
        [TYPE_STRING] = writeString,
        [TYPE_LIST] = writeList,
        [TYPE_SET] = writeSet,
        [TYPE_ZSET] = writeZset,
        [TYPE_HASH] = writeHash,
        [TYPE_STREAM] = rdbWriteStream,
        [TYPE_MODULE] = rdbWriteModuleValue,
        [TYPE_PATHHASH] = rdbWritePathHash};
    if (likely(!objectIsCompressed(o)) || objectType(o) == TYPE_STRING) {
        writers[objectType(o)](w, o);
        return;
    }
    robj *plain = compressedOpen(o);
    writers[objectType(o)](w, plain);
    compressedClose(plain);
}

rdbType rdbTypeInParts(valueType type, bool timed) {
    switch (type) {
    case TYPE_LIST: return RDB_TYPE_LIST_QUICKLIST_2;
    case TYPE_SET: return timed ? RDB_TYPE_SET_TIMED : RDB_TYPE_SET;
    case TYPE_ZSET: return timed ? RDB_TYPE_ZSET_TIMED : RDB_TYPE_ZSET_2;
    case TYPE_HASH: return timed ? RDB_TYPE_HASH_2 : RDB_TYPE_HASH;
    case TYPE_STREAM: return RDB_TYPE_STREAM_3;
    case TYPE_PATHHASH: return RDB_TYPE_PATHHASH;
    default: panic("no RDB type for values of type %d in parts", (int)type);
    }
}

void rdbWriteElement(rdbWriter *w, rdbType type, const valueElement *e) {
    if (type == RDB_TYPE_PATHHASH) {
        rdbWritePath(w, e->name, e->fields);
        return;
    }
    if (type == RDB_TYPE_HASH_REDIS) writeRelativeTime(w, e->time_ms);
    rdbWriteString(w, e->name);
    if (type == RDB_TYPE_ZSET_2 || type == RDB_TYPE_ZSET_TIMED) rdbWriteDouble(w, e->score);
    if (type == RDB_TYPE_HASH || type == RDB_TYPE_HASH_2 || type == RDB_TYPE_HASH_REDIS)
        rdbWriteString(w, e->value);
    bool timed =
        type == RDB_TYPE_HASH_2 || type == RDB_TYPE_SET_TIMED || type == RDB_TYPE_ZSET_TIMED;
    if (timed) rdbWriteU64(w, (uint64_t)e->time_ms);
}

static status countOnly(rdbSink *sink, const void *bytes, size_t len, reason *why) {
    (void)sink; /* the writer counts the bytes */
    (void)bytes;
    (void)len;
    (void)why;
    return OK;
}

size_t rdbValueSize(const robj *o) {
    rdbSink sink = {.write = countOnly};
    rdbWriter w;
    rdbWriterInit(&w, &sink, false, rdbCompressionOn());
    rdbWriteValue(&w, o);
    size_t size = (size_t)rdbWriterOffset(&w);
    rdbWriterClear(&w);
    return size;
}
