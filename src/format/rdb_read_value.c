/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of keys from RDB bytes (rdb_value.h). Collections that are written element by element are
 * built here, packed ones in rdb_read_packed.c. Every reader either returns a complete object or
 * frees the partial one. */
#include "base/base.h"
#include "ds/quicklist.h"
#include "format/rdb_module.h"
#include "format/rdb_pathhash.h"
#include "format/rdb_redis.h"
#include "format/rdb_value_priv.h"
#include "store/member_expiry.h"
#include "store/type_hash.h"
#include "store/type_zset.h"

static status readString(valueReader *v, int type) {
    (void)type; /* the only one */
    slice text;
    status st = rdbReadString(v->r, &text);
    if (st == OK) v->o = objectNewString(v->key, text, OBJECT_NO_EXPIRE, 0, KEEP_BEST);
    return st;
}

static status readSet(valueReader *v, int type) {
    (void)type; /* the only one of this form */
    uint64_t count;
    status st = rdbReadLength(v->r, &count);
    const setLimits *limits = &v->options->limits.set;
    for (uint64_t i = 0; st == OK && i < count; i++) {
        slice text;
        st = rdbReadString(v->r, &text);
        if (st != OK) break;
        listpackItem item = listpackItemOf(text);
        if (!v->o) v->o = setNew(v->key, &item, rdbReserveCount(count), limits);
        bool added;
        v->o = setAdd(v->o, &item, limits, &added);
        if (!added) st = rdbReaderFail(v->r, "Duplicate set members detected");
    }
    return st;
}

/* Reads a sorted set, with scores as text or as 8 bytes. */
static status readZset(valueReader *v, bool binary) {
    uint64_t count;
    status st = rdbReadLength(v->r, &count);
    if (st != OK) return st;
    zsetBuilder b;
    zsetBuilderInit(&b);
    zsetBuilderReserve(&b, rdbReserveCount(count));
    str member = STR_EMPTY;
    for (uint64_t i = 0; st == OK && i < count; i++) {
        double score = 0;
        bool created;
        st = rdbReadStringInto(v->r, &member);
        if (st == OK) st = binary ? rdbReadDouble(v->r, &score) : rdbReadDoubleText(v->r, &score);
        if (st != OK) break;
        if (score != score) {
            st = rdbReaderFail(v->r, "Zset with NAN score detected");
            break;
        }
        void *place = zsetBuilderAt(&b, strSlice(&member), &created);
        if (!created) {
            st = rdbReaderFail(v->r, "Duplicate zset fields detected");
            break;
        }
        zsetBuilderWrite(place, score);
    }
    strFree(&member);
    if (st == OK) {
        v->o = zsetBuilderTake(&b, v->key, &v->options->limits.zset);
    } else {
        zsetBuilderClear(&b);
    }
    return st;
}

static status readFieldTime(valueReader *v, int64_t *time_ms) {
    uint64_t bits;
    status st = rdbReadU64(v->r, &bits);
    if (st != OK) return st;
    *time_ms = (int64_t)bits == -1 ? HASH_NO_TIME : (int64_t)bits;
    if ((int64_t)bits < -1) return rdbReaderFail(v->r, "Invalid expiry time of a field or member");
    return OK;
}

/* Adds a member with its time to v->o, a table. */
static status addTimed(valueReader *v, slice member, double score, int64_t time_ms, bool scored) {
    bool added;
    if (scored) {
        zsetPair pair = {member, score};
        zsetAdded what;
        if (score != score) return rdbReaderFail(v->r, "Zset with NAN score detected");
        v->o = zsetAdd(v->o, &pair, 0, &v->options->limits.zset, &what);
        added = what == ZSET_ADDED;
    } else {
        listpackItem item = listpackItemOf(member);
        v->o = setAdd(v->o, &item, &v->options->limits.set, &added);
    }
    if (!added) return rdbReaderFail(v->r, "Duplicate members detected");
    if (time_ms != HASH_NO_TIME) check(memberSetTime(&v->o, member, time_ms));
    return OK;
}

/* Reads a set or sorted set whose members have expiry times. */
static status readTimed(valueReader *v, int type) {
    const packLimits table = {0, 0};
    bool scored = type == RDB_TYPE_ZSET_TIMED;
    valueType value_type = scored ? TYPE_ZSET : TYPE_SET;
    uint64_t count;
    status st = rdbReadLength(v->r, &count);
    if (st != OK) return st;
    v->o = scored ? zsetNew(v->key, 1, 0, &table) : setNewLarge(v->key, rdbReserveCount(count));
    str member = STR_EMPTY;
    for (uint64_t i = 0; st == OK && i < count; i++) {
        double score = 0;
        int64_t time_ms = HASH_NO_TIME;
        st = rdbReadStringInto(v->r, &member);
        if (st == OK && scored) st = rdbReadDouble(v->r, &score);
        if (st == OK) st = readFieldTime(v, &time_ms);
        if (st != OK || rdbDropItem(v, value_type, strSlice(&member), time_ms)) continue;
        st = addTimed(v, strSlice(&member), score, time_ms, scored);
    }
    strFree(&member);
    return st;
}

/* Reads a hash; `timed`: each field has an expiry time. */
static status readHash(valueReader *v, bool timed) {
    uint64_t count;
    status st = rdbReadLength(v->r, &count);
    if (st != OK) return st;
    rdbBeginHash(v, count, timed);
    str words[2] = {STR_EMPTY, STR_EMPTY};
    for (uint64_t i = 0; st == OK && i < count; i++) {
        int64_t time_ms = HASH_NO_TIME;
        st = rdbReadStringInto(v->r, &words[0]);
        if (st == OK) st = rdbReadStringInto(v->r, &words[1]);
        if (st == OK && timed) st = readFieldTime(v, &time_ms);
        const slice pair[2] = {strSlice(&words[0]), strSlice(&words[1])};
        if (st == OK) st = rdbAddField(v, pair, time_ms);
    }
    if (st == OK && hashLength(v->o) > 0) v->o = hashFindShape(v->o);
    strFree(&words[0]);
    strFree(&words[1]);
    return st;
}

/* Reads the oldest form of lists: a sequence of elements. */
static status readList(valueReader *v, int type) {
    (void)type; /* the only one of this form */
    uint64_t count;
    status st = rdbReadLength(v->r, &count);
    const listLimits *limits = &v->options->limits.list;
    for (uint64_t i = 0; st == OK && i < count; i++) {
        slice text;
        st = rdbReadString(v->r, &text);
        if (st != OK) break;
        if (!v->o) v->o = listNew(v->key);
        v->o = listPrepare(v->o, &text, 1, limits);
        v->o = listPush(v->o, &text, 1, false);
    }
    return st;
}

static status readZsetText(valueReader *v, int type) {
    (void)type; /* one of two forms */
    return readZset(v, false);
}

static status readZsetBinary(valueReader *v, int type) {
    (void)type; /* one of two forms */
    return readZset(v, true);
}

static status readHashOrTimed(valueReader *v, int type) {
    return readHash(v, type == RDB_TYPE_HASH_2);
}

static status readNodes(valueReader *v, int type) {
    return rdbReadQuicklist(v, type == RDB_TYPE_LIST_QUICKLIST_2);
}

static status readModule(valueReader *v, int type) {
    (void)type; /* the value names its own type */
    uint64_t id;
    status st = rdbReadLength(v->r, &id);
    return st == OK ? rdbReadModuleValue(v->r, id, v->key, &v->o) : st;
}

static status readPreGa(valueReader *v, int type) {
    (void)type; /* the only one */
    (void)rdbReaderFail(v->r, "The RDB file contains module data I can't load: no modules");
    return ERR_NOT_FOUND;
}

static status readPaths(valueReader *v, int type) {
    (void)type; /* the only one */
    return rdbReadPathHash(v);
}

static status readByType(valueReader *v, int type) {
    static status (*const readers[RDB_TYPE_COUNT])(valueReader * v, int type) = {
        [RDB_TYPE_STRING] = readString,
        [RDB_TYPE_LIST] = readList,
        [RDB_TYPE_SET] = readSet,
        [RDB_TYPE_ZSET] = readZsetText,
        [RDB_TYPE_ZSET_2] = readZsetBinary,
        [RDB_TYPE_HASH] = readHashOrTimed,
        [RDB_TYPE_HASH_2] = readHashOrTimed,
        [RDB_TYPE_LIST_QUICKLIST] = readNodes,
        [RDB_TYPE_LIST_QUICKLIST_2] = readNodes,
        [RDB_TYPE_HASH_ZIPMAP] = rdbReadPacked,
        [RDB_TYPE_LIST_ZIPLIST] = rdbReadPacked,
        [RDB_TYPE_SET_INTSET] = rdbReadPacked,
        [RDB_TYPE_ZSET_ZIPLIST] = rdbReadPacked,
        [RDB_TYPE_HASH_ZIPLIST] = rdbReadPacked,
        [RDB_TYPE_HASH_LISTPACK] = rdbReadPacked,
        [RDB_TYPE_ZSET_LISTPACK] = rdbReadPacked,
        [RDB_TYPE_SET_LISTPACK] = rdbReadPacked,
        [RDB_TYPE_STREAM] = rdbReadStream,
        [RDB_TYPE_STREAM_2] = rdbReadStream,
        [RDB_TYPE_STREAM_3] = rdbReadStream,
        [RDB_TYPE_MODULE_PRE_GA] = readPreGa,
        [RDB_TYPE_MODULE_2] = readModule,
        [RDB_TYPE_PATHHASH] = readPaths,
    };
    if (type == RDB_TYPE_SET_TIMED || type == RDB_TYPE_ZSET_TIMED) return readTimed(v, type);
    if (v->r->redis && type >= RDB_TYPE_FOREIGN_MIN) return rdbReadRedisValue(v, type);
    if (type < 0 || type >= RDB_TYPE_COUNT || !readers[type]) {
        (void)rdbReaderFail(v->r, "Unknown RDB encoding type %d", type);
        return ERR_NOT_FOUND;
    }
    return readers[type](v, type);
}

status rdbReadValue(rdbReader *r, int type, slice key, const rdbReadOptions *options, robj **out,
                    bool *dropped) {
    valueReader v = {.r = r, .key = key, .options = options};
    status st = readByType(&v, type);
    /* An empty stream keeps its last id and groups. */
    bool may_be_empty = v.o && (objectType(v.o) == TYPE_STRING || objectType(v.o) == TYPE_STREAM ||
                                objectType(v.o) == TYPE_PATHHASH);
    bool is_empty = v.o && !may_be_empty && typeOf(v.o)->length(v.o) == 0;
    if (v.o && (st != OK || is_empty)) {
        objectFree(v.o);
        v.o = NULL;
    }
    *out = v.o;
    *dropped = v.dropped;
    return st;
}
