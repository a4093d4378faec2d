/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values and records of Redis 7.4 and later (rdb_redis.h), but for streams, which rdb_stream.c
 * reads.
 *
 * Invariant: a template in the map has at least one name, and its names are in ascending order, the
 * shorter one first, so they are distinct. */
#include "format/rdb_redis.h"

#include "base/base.h"
#include "ds/id_tree.h"
#include "ds/listpack.h"
#include "format/packed.h"
#include "format/rdb_module.h"
#include "format/rdb_settings.h"
#include "format/rdb_value_priv.h"
#include "store/type_hash.h"

/* The greatest time that the format has room for; commands reach 2^46 - 1. */
#define REDIS_TIME_MAX ((INT64_C(1) << 48) - 1)

const char *rdbRedisTypeName(int type) {
    static const char *const names[] = {
        [RDB_REDIS_HASH_TIMES_RC - RDB_TYPE_FOREIGN_MIN] = "hash-hashtable-md-rc",
        [RDB_REDIS_HASH_LISTPACK_RC - RDB_TYPE_FOREIGN_MIN] = "hash-listpack-md-rc",
        [RDB_REDIS_HASH_TIMES - RDB_TYPE_FOREIGN_MIN] = "hash-hashtable-md",
        [RDB_REDIS_HASH_LISTPACK - RDB_TYPE_FOREIGN_MIN] = "hash-listpack-md",
        [RDB_REDIS_STREAM_4 - RDB_TYPE_FOREIGN_MIN] = "stream-v4",
        [RDB_REDIS_STREAM_5 - RDB_TYPE_FOREIGN_MIN] = "stream-v5",
        [RDB_REDIS_ARRAY - RDB_TYPE_FOREIGN_MIN] = "array",
        [RDB_REDIS_NAMED_LISTPACK - RDB_TYPE_FOREIGN_MIN] = "hash-named-listpack",
        [RDB_REDIS_TEMPLATE_LISTPACK - RDB_TYPE_FOREIGN_MIN] = "hash-template-listpack",
        [RDB_REDIS_NAMED_VALUES - RDB_TYPE_FOREIGN_MIN] = "hash-named-array",
        [RDB_REDIS_TEMPLATE_VALUES - RDB_TYPE_FOREIGN_MIN] = "hash-template-array",
        [RDB_REDIS_GCRA - RDB_TYPE_FOREIGN_MIN] = "gcra",
    };
    int at = type - RDB_TYPE_FOREIGN_MIN;
    return at >= 0 && at < (int)COUNT_OF(names) ? names[at] : NULL;
}

/* ------------------------------------------------------------------ hashes with times */

static status invalidTime(rdbReader *r) {
    return rdbReaderFail(r, "Invalid expiry time of a hash field");
}

/* Reads a hash written field by field; with `relative`, times count from the least one. */
static status readTimes(valueReader *v, bool relative) {
    uint64_t least = 0, count;
    status st = relative ? rdbReadU64(v->r, &least) : OK;
    if (st == OK && least > REDIS_TIME_MAX) st = invalidTime(v->r);
    if (st == OK) st = rdbReadLength(v->r, &count);
    if (st != OK || count == 0) return st;
    rdbBeginHash(v, count, true);
    str words[2] = {STR_EMPTY, STR_EMPTY};
    for (uint64_t i = 0; st == OK && i < count; i++) {
        uint64_t time = 0;
        st = rdbReadLength(v->r, &time);
        if (st == OK) st = rdbReadStringInto(v->r, &words[0]);
        if (st == OK) st = rdbReadStringInto(v->r, &words[1]);
        if (st != OK) break;
        bool timed = time != 0;
        if (time > REDIS_TIME_MAX) st = invalidTime(v->r);
        if (timed && relative) time += least - 1;
        if (time > REDIS_TIME_MAX) st = invalidTime(v->r);
        const slice pair[2] = {strSlice(&words[0]), strSlice(&words[1])};
        if (st == OK) st = rdbAddField(v, pair, timed ? (int64_t)time : HASH_NO_TIME);
    }
    strFree(&words[0]);
    strFree(&words[1]);
    return st;
}

/* True if each third item is a time; *timed: of at least one field. */
static bool checkTimes(const uint8_t *lp, bool *timed) {
    hotCheck(listpackCount(lp) % 3 == 0);
    *timed = false;
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        at = listpackNext(lp, listpackNext(lp, at));
        listpackItem time = listpackGet(at);
        if (time.ptr || time.number < 0 || time.number > REDIS_TIME_MAX) return false;
        if (time.number) *timed = true;
    }
    return true;
}

/* Reads a packed hash: a listpack of field, value and time, in any order. */
static status readTriples(valueReader *v) {
    enum { WIDTH = 3 };
    slice bytes;
    packedFacts facts;
    bool timed;
    status st = rdbReadListpack(v->r, &bytes);
    if (st != OK) return st;
    rdbCountPackedCheck();
    const uint8_t *lp = (const uint8_t *)bytes.ptr;
    if (!packedCheck(bytes, WIDTH, &facts))
        return rdbReaderFail(v->r, "Hash listpack integrity check failed.");
    if (facts.entries == 0) return OK;
    if (!checkTimes(lp, &timed)) return invalidTime(v->r);
    size_t count = facts.entries / WIDTH;
    if (!packedIsUnique(lp, WIDTH, count)) return rdbReaderFail(v->r, "Hash with dup elements");
    rdbBeginHash(v, count, timed);
    for (const uint8_t *at = listpackFirst(lp); at && st == OK; at = listpackNext(lp, at)) {
        char digits[2][NUMBER_TEXT_MAX];
        slice pair[2];
        pair[0] = listpackGetText(at, digits[0]);
        at = listpackNext(lp, at);
        pair[1] = listpackGetText(at, digits[1]);
        at = listpackNext(lp, at);
        int64_t time_ms = listpackGet(at).number;
        st = rdbAddField(v, pair, time_ms ? time_ms : HASH_NO_TIME);
    }
    return st;
}

static status readTriplesWithHint(valueReader *v) {
    uint64_t hint; /* the least time at some moment: of no use */
    status st = rdbReadU64(v->r, &hint);
    return st == OK ? readTriples(v) : st;
}

/* ------------------------------------------------------------------ templates of hashes */

/* Names of fields: each is in `bytes`, where the one before it ends. */
typedef struct nameList {
    str bytes;
    size_t *ends;
    size_t count, cap;
} nameList;

struct rdbTemplates {
    idTree by_id; /* key: the id, as ms; value: the address of a nameList */
};

static void nameListClear(nameList *l) {
    strFree(&l->bytes);
    memFree(l->ends);
}

static slice nameAt(const nameList *l, size_t i) {
    hotCheck(i < l->count);
    hotCheck(l->ends[l->count - 1] == l->bytes.len);
    size_t from = i ? l->ends[i - 1] : 0;
    return sliceMake(strSlice(&l->bytes).ptr + from, l->ends[i] - from);
}

static bool precedes(slice a, slice b) {
    return a.len != b.len ? a.len < b.len : memcmp(a.ptr, b.ptr, a.len) < 0;
}

static status addName(rdbReader *r, nameList *l, slice name) {
    if (l->count && !precedes(nameAt(l, l->count - 1), name))
        return rdbReaderFail(r, "Names of a hash template are not in order");
    hotCheck(l->count <= l->cap);
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 8;
        l->ends = memRealloc(l->ends, l->cap * sizeof(*l->ends));
    }
    strAppendSlice(&l->bytes, name);
    l->ends[l->count++] = l->bytes.len;
    return OK;
}

static status readNames(rdbReader *r, nameList *l) {
    uint64_t count;
    status st = rdbReadLength(r, &count);
    for (uint64_t i = 0; st == OK && i < count; i++) {
        slice name;
        st = rdbReadString(r, &name);
        if (st == OK) st = addName(r, l, name);
    }
    if (st == OK && l->count == 0) st = rdbReaderFail(r, "Hash template without names");
    return st;
}

/* Names in front of a hash: one by one, or as a listpack. */
static status readNamesOfHash(rdbReader *r, nameList *l) {
    enum { PACKED, SINGLE };
    uint64_t form;
    slice bytes;
    packedFacts facts;
    status st = rdbReadLength(r, &form);
    if (st != OK) return st;
    if (form == SINGLE) return readNames(r, l);
    if (form != PACKED) return rdbReaderFail(r, "Unknown form of the names of a hash");
    st = rdbReadListpack(r, &bytes);
    if (st != OK) return st;
    rdbCountPackedCheck();
    if (!packedCheck(bytes, 1, &facts) || facts.entries == 0)
        return rdbReaderFail(r, "Hash names integrity check failed.");
    const uint8_t *lp = (const uint8_t *)bytes.ptr;
    for (const uint8_t *at = listpackFirst(lp); at && st == OK; at = listpackNext(lp, at)) {
        char digits[NUMBER_TEXT_MAX];
        st = addName(r, l, listpackGetText(at, digits));
    }
    return st;
}

void rdbTemplatesBegin(rdbReader *r) {
    check(!r->templates);
    r->templates = memNew(struct rdbTemplates);
    r->templates->by_id = (idTree){.values = 1};
}

void rdbTemplatesEnd(rdbReader *r) {
    if (!r->templates) return;
    idTree *by_id = &r->templates->by_id;
    idCursor at;
    for (bool more = idTreeSeek(by_id, (streamId){0, 0}, &at); more; more = idCursorNext(&at)) {
        idEntry entry;
        idCursorRead(&at, &entry);
        nameList *l = (nameList *)(uintptr_t)entry.value[0];
        nameListClear(l);
        memFree(l);
    }
    idTreeClear(by_id);
    memFree(r->templates);
    r->templates = NULL;
}

status rdbReadTemplate(rdbReader *r) {
    uint64_t id;
    check(r->templates);
    status st = rdbReadLength(r, &id);
    if (st != OK) return st;
    nameList *l = memNew(nameList);
    idEntry entry = {.id = {.ms = id}, .value = {(uint64_t)(uintptr_t)l}};
    st = readNames(r, l);
    if (st == OK && !idTreeInsert(&r->templates->by_id, &entry))
        st = rdbReaderFail(r, "Duplicate hash template %llu", (unsigned long long)id);
    if (st != OK) {
        nameListClear(l);
        memFree(l);
    }
    return st;
}

static status findTemplate(rdbReader *r, uint64_t id, const nameList **out) {
    idEntry entry;
    if (!r->templates || !idTreeFind(&r->templates->by_id, (streamId){.ms = id}, &entry))
        return rdbReaderFail(r, "Unknown hash template %llu", (unsigned long long)id);
    *out = (const nameList *)(uintptr_t)entry.value[0];
    return OK;
}

/* Reads the values of the names, one by one. */
static status readValues(valueReader *v, const nameList *names) {
    hotCheck(names->count > 0);
    status st = OK;
    rdbBeginHash(v, names->count, false);
    for (size_t i = 0; st == OK && i < names->count; i++) {
        slice pair[2] = {nameAt(names, i), SLICE("")};
        st = rdbReadString(v->r, &pair[1]);
        if (st == OK) st = rdbAddField(v, pair, HASH_NO_TIME);
    }
    return st;
}

/* Reads a listpack of an id and values; `names` NULL: those of the template with the id. */
static status readPackedValues(valueReader *v, const nameList *names) {
    hotCheck(!v->o);
    slice bytes;
    packedFacts facts;
    status st = rdbReadListpack(v->r, &bytes);
    if (st != OK) return st;
    rdbCountPackedCheck();
    if (!packedCheck(bytes, 1, &facts) || facts.entries == 0)
        return rdbReaderFail(v->r, "Hash listpack integrity check failed.");
    const uint8_t *lp = (const uint8_t *)bytes.ptr, *at = listpackFirst(lp);
    listpackItem id = listpackGet(at);
    if (id.ptr || id.number < 0) return rdbReaderFail(v->r, "Invalid id of a hash template");
    if (!names) st = findTemplate(v->r, (uint64_t)id.number, &names);
    if (st != OK) return st;
    if (facts.entries != names->count + 1)
        return rdbReaderFail(v->r, "Hash has %zu values for %zu names", facts.entries - 1,
                             names->count);
    rdbBeginHash(v, names->count, false);
    for (size_t i = 0; st == OK && i < names->count; i++) {
        char digits[NUMBER_TEXT_MAX];
        at = listpackNext(lp, at);
        const slice pair[2] = {nameAt(names, i), listpackGetText(at, digits)};
        st = rdbAddField(v, pair, HASH_NO_TIME);
    }
    return st;
}

static status readNamed(valueReader *v, bool packed) {
    nameList names = {.count = 0};
    status st = readNamesOfHash(v->r, &names);
    if (st == OK) st = packed ? readPackedValues(v, &names) : readValues(v, &names);
    nameListClear(&names);
    return st;
}

static status readOfTemplate(valueReader *v) {
    uint64_t id;
    const nameList *names = NULL; /* gcc does not see that it is set */
    status st = rdbReadLength(v->r, &id);
    if (st == OK) st = findTemplate(v->r, id, &names);
    return st == OK ? readValues(v, names) : st;
}

/* ------------------------------------------------------------------ all values */

status rdbReadRedisValue(valueReader *v, int type) {
    hotCheck(v->r->redis);
    status st;
    switch (type) {
    case RDB_REDIS_HASH_TIMES_RC: st = readTimes(v, false); break;
    case RDB_REDIS_HASH_TIMES: st = readTimes(v, true); break;
    case RDB_REDIS_HASH_LISTPACK_RC: st = readTriples(v); break;
    case RDB_REDIS_HASH_LISTPACK: st = readTriplesWithHint(v); break;
    case RDB_REDIS_NAMED_LISTPACK: st = readNamed(v, true); break;
    case RDB_REDIS_NAMED_VALUES: st = readNamed(v, false); break;
    case RDB_REDIS_TEMPLATE_LISTPACK: st = readPackedValues(v, NULL); break;
    case RDB_REDIS_TEMPLATE_VALUES: st = readOfTemplate(v); break;
    case RDB_REDIS_STREAM_4:
    case RDB_REDIS_STREAM_5: return rdbReadStream(v, type);
    default:
        (void)rdbReaderFail(v->r, "Can't handle foreign type or opcode %d", type);
        return ERR_NOT_FOUND;
    }
    if (st == OK && v->o && hashLength(v->o) > 0) v->o = hashFindShape(v->o);
    return st;
}

/* ------------------------------------------------------------------ skipping */

/* Skips one element of an array: its index, the kind of its value, the value. */
static status skipArrayElement(rdbReader *r) {
    enum { TEXT = 0, INTEGER = 1, REAL = 2, SHORT_TEXT = 3 };
    uint64_t index, kind, bits;
    slice text;
    status st = rdbReadLength(r, &index);
    if (st == OK) st = rdbReadLength(r, &kind);
    if (st != OK) return st;
    switch (kind) {
    case TEXT:
    case SHORT_TEXT: return rdbReadString(r, &text);
    case INTEGER:
    case REAL: return rdbReadU64(r, &bits);
    default: return rdbReaderFail(r, "Invalid element in an array");
    }
}

status rdbSkipRedisValue(rdbReader *r, int type) {
    hotCheck(r->redis);
    uint64_t number, count, has_cursor;
    if (type == RDB_REDIS_GCRA) return rdbReadLength(r, &number);
    if (type != RDB_REDIS_ARRAY) return ERR_NOT_FOUND;
    status st = rdbReadLength(r, &count);
    if (st == OK) st = rdbReadLength(r, &has_cursor);
    if (st == OK && has_cursor) st = rdbReadLength(r, &number);
    for (uint64_t i = 0; st == OK && i < count; i++) st = skipArrayElement(r);
    return st;
}

status rdbSkipMetadata(rdbReader *r, char needed[RDB_METADATA_NAME_SIZE]) {
    hotCheck(r->redis);
    enum { CLASSES_MAX = 7, MAY_SKIP = 1 };
    uint64_t classes;
    *needed = 0;
    status st = rdbReadLength(r, &classes);
    if (st == OK && classes > CLASSES_MAX)
        st = rdbReaderFail(r, "Key metadata of %llu classes", (unsigned long long)classes);
    for (uint64_t i = 0; st == OK && i < classes; i++) {
        uint32_t class;
        st = rdbReadU32(r, &class);
        if (st == OK && !(class & MAY_SKIP) && !*needed) rdbMetadataName(class, needed);
        if (st == OK) st = rdbSkipModuleData(r);
    }
    return st;
}
