/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packed collections from RDB bytes: listpacks and intsets become the packed value of an object, or
 * a table when there are more entries than the directives allow; ziplists and zipmaps are converted
 * to listpacks first. */
#include "base/base.h"
#include "ds/intset.h"
#include "ds/listpack.h"
#include "ds/ordered.h"
#include "ds/quicklist.h"
#include "format/packed.h"
#include "format/rdb_settings.h"
#include "format/rdb_value_priv.h"
#include "store/type_hash.h"
#include "store/type_zset.h"

/* For errors such as "Hash listpack integrity check failed." */
typedef struct packedKind {
    const char *name, *form;
    unsigned width; /* entries per element */
    valueType type;
    bool is_zipmap;
} packedKind;

static packedKind kindOf(int type) {
    switch (type) {
    case RDB_TYPE_HASH_ZIPMAP: return (packedKind){"Zipmap", "", 2, TYPE_HASH, true};
    case RDB_TYPE_HASH_ZIPLIST: return (packedKind){"Hash", " ziplist", 2, TYPE_HASH, false};
    case RDB_TYPE_HASH_LISTPACK: return (packedKind){"Hash", " listpack", 2, TYPE_HASH, false};
    case RDB_TYPE_ZSET_ZIPLIST: return (packedKind){"Zset", " ziplist", 2, TYPE_ZSET, false};
    case RDB_TYPE_ZSET_LISTPACK: return (packedKind){"Zset", " listpack", 2, TYPE_ZSET, false};
    case RDB_TYPE_SET_LISTPACK: return (packedKind){"Set", " listpack", 1, TYPE_SET, false};
    default: return (packedKind){"List", " ziplist", 1, TYPE_LIST, false};
    }
}

static status integrityFailed(valueReader *v, const packedKind *kind) {
    return rdbReaderFail(v->r, "%s%s integrity check failed.", kind->name, kind->form);
}

/* ------------------------------------------------------------------ intsets */

static status readIntset(valueReader *v) {
    slice bytes;
    status st = rdbReadString(v->r, &bytes);
    if (st != OK) return st;
    rdbCountPackedCheck();
    if (!intsetIsValid(bytes.ptr, bytes.len, true))
        return rdbReaderFail(v->r, "Intset integrity check failed.");
    const uint8_t *set = (const uint8_t *)bytes.ptr;
    size_t count = intsetCount(set);
    const setLimits *limits = &v->options->limits.set;
    if (count == 0) return OK;
    if (count <= limits->ints) {
        v->o = objectNewPacked(v->key, TYPE_SET, FORM_PACKED_INTS, bytes, OBJECT_NO_EXPIRE, 0);
        return OK;
    }
    v->o = setNewLarge(v->key, count);
    for (size_t i = 0; i < count; i++) {
        bool added;
        listpackItem item = listpackItemInt(intsetGet(set, i));
        v->o = setAdd(v->o, &item, limits, &added);
        check(added);
    }
    return OK;
}

/* ------------------------------------------------------------------ listpacks */

/* Parses the score in an entry; false if it is not a number. */
static bool scoreOf(const listpackItem *item, double *score) {
    if (!item->ptr) {
        *score = (double)item->number;
        return true;
    }
    return numberParseDouble(sliceMake(item->ptr, item->len), score) && *score == *score;
}

/* True if all scores are numbers; *sorted: the members are in order. */
static status checkScores(valueReader *v, const packedKind *kind, const uint8_t *lp, bool *sorted) {
    hotCheck(kind->width == 2);
    double last = 0;
    char digits[NUMBER_TEXT_MAX], last_digits[NUMBER_TEXT_MAX];
    const uint8_t *last_member = NULL;
    *sorted = true;
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        const uint8_t *member = at;
        at = listpackNext(lp, at);
        listpackItem item = listpackGet(at);
        double score;
        if (!scoreOf(&item, &score))
            return rdbReaderFail(v->r, "%s%s with NAN score detected", kind->name, kind->form);
        if (last_member && score < last) *sorted = false;
        if (last_member && score == last &&
            orderedCompareText(listpackGetText(last_member, last_digits),
                               listpackGetText(member, digits)) > 0)
            *sorted = false;
        last = score;
        last_member = member;
    }
    return OK;
}

static robj *zsetFromListpack(valueReader *v, const uint8_t *lp, size_t count) {
    zsetBuilder b;
    zsetBuilderInit(&b);
    zsetBuilderReserve(&b, count);
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        char digits[NUMBER_TEXT_MAX];
        bool created;
        void *place = zsetBuilderAt(&b, listpackGetText(at, digits), &created);
        at = listpackNext(lp, at);
        listpackItem item = listpackGet(at);
        double score;
        check(scoreOf(&item, &score));
        zsetBuilderWrite(place, score);
    }
    return zsetBuilderTake(&b, v->key, &v->options->limits.zset);
}

static robj *hashFromListpack(valueReader *v, const uint8_t *lp, size_t count) {
    hotCheck(listpackCount(lp) == 2 * count);
    robj *o = hashNewLarge(v->key, count);
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        char digits[2][NUMBER_TEXT_MAX];
        bool created;
        slice field = listpackGetText(at, digits[0]);
        at = listpackNext(lp, at);
        o = hashSet(o, field, listpackGetText(at, digits[1]), &v->options->limits.hash, &created);
    }
    return o;
}

static robj *setFromListpack(valueReader *v, const uint8_t *lp, size_t count) {
    hotCheck(listpackCount(lp) == count);
    robj *o = setNewLarge(v->key, count);
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        bool added;
        listpackItem item = listpackGet(at);
        if (item.ptr) item = listpackItemOf(sliceMake(item.ptr, item.len));
        o = setAdd(o, &item, &v->options->limits.set, &added);
    }
    return o;
}

static robj *listFromListpack(valueReader *v, const uint8_t *lp) {
    const listLimits *limits = &v->options->limits.list;
    quicklist *q = quicklistNew(limits->fill, limits->depth);
    for (const uint8_t *at = listpackFirst(lp); at; at = listpackNext(lp, at)) {
        char digits[NUMBER_TEXT_MAX];
        quicklistPush(q, listpackGetText(at, digits), false);
    }
    return objectNewPointer(v->key, TYPE_LIST, q, OBJECT_NO_EXPIRE, 0);
}

/* True if the value is within the limits of the packed form. */
static bool fitsPacked(const valueReader *v, valueType type, const uint8_t *lp, size_t count) {
    hotCheck(type < TYPE_COUNT);
    const rdbLimits *limits = &v->options->limits;
    switch (type) {
    case TYPE_HASH: return count <= limits->hash.entries;
    case TYPE_ZSET: return count <= limits->zset.entries;
    case TYPE_SET: return count <= limits->set.packed.entries;
    default: return !quicklistExceeds(limits->list.fill, listpackSize(lp), count);
    }
}

/* A hash whose field names have a shape: those of a shape are distinct, so nobody has to look for
 * duplicates. NULL for all others. */
static robj *hashWithShape(valueReader *v, const uint8_t *lp, const packedFacts *facts,
                           bool is_zipmap) {
    size_t count = facts->entries / 2;
    if (is_zipmap || !facts->is_canonical || !fitsPacked(v, TYPE_HASH, lp, count)) return NULL;
    return hashNewShaped(v->key, lp);
}

/* Builds the object of a listpack that has passed packedCheck(). */
static status fromListpack(valueReader *v, const packedKind *kind, const uint8_t *lp,
                           const packedFacts *facts) {
    hotCheck(kind->width > 0);
    hotCheck(facts->entries % kind->width == 0);
    size_t count = facts->entries / kind->width;
    bool sorted = true;
    if (kind->type == TYPE_ZSET) {
        status st = checkScores(v, kind, lp, &sorted);
        if (st != OK) return st;
    }
    if (count == 0) return OK;
    /* Zipmaps had a limit of their own for the length of texts. */
    bool too_long = kind->is_zipmap && facts->longest > v->options->limits.hash.bytes;
    if (sorted && !too_long && fitsPacked(v, kind->type, lp, count)) {
        uint8_t *canonical = facts->is_canonical ? NULL : packedCanonical(lp);
        const uint8_t *bytes = canonical ? canonical : lp;
        v->o = objectNewPacked(v->key, kind->type, FORM_PACKED,
                               sliceMake((const char *)bytes, listpackSize(bytes)),
                               OBJECT_NO_EXPIRE, 0);
        memFree(canonical);
        return OK;
    }
    switch (kind->type) {
    case TYPE_HASH: v->o = hashFromListpack(v, lp, count); break;
    case TYPE_ZSET: v->o = zsetFromListpack(v, lp, count); break;
    case TYPE_SET: v->o = setFromListpack(v, lp, count); break;
    default: v->o = listFromListpack(v, lp); break;
    }
    return OK;
}

static status duplicates(valueReader *v, const packedKind *kind) {
    switch (kind->type) {
    case TYPE_HASH: return rdbReaderFail(v->r, "Hash with dup elements");
    case TYPE_ZSET: return rdbReaderFail(v->r, "Duplicate zset fields detected");
    default: return rdbReaderFail(v->r, "Duplicate set members detected");
    }
}

status rdbReadPacked(valueReader *v, int type) {
    if (type == RDB_TYPE_SET_INTSET) return readIntset(v);
    packedKind kind = kindOf(type);
    slice bytes;
    bool is_ziplist = type == RDB_TYPE_LIST_ZIPLIST || type == RDB_TYPE_HASH_ZIPLIST ||
                      type == RDB_TYPE_ZSET_ZIPLIST;
    bool is_legacy = is_ziplist || type == RDB_TYPE_HASH_ZIPMAP;
    status st = is_legacy ? rdbReadString(v->r, &bytes) : rdbReadListpack(v->r, &bytes);
    if (st != OK) return st;
    rdbCountPackedCheck();
    uint8_t *converted = NULL;
    if (is_legacy) {
        converted = is_ziplist ? packedFromZiplist(bytes) : packedFromZipmap(bytes);
        if (!converted) return integrityFailed(v, &kind);
        bytes = sliceMake((const char *)converted, listpackSize(converted));
    }
    const uint8_t *lp = (const uint8_t *)bytes.ptr;
    packedFacts facts;
    if (!packedCheck(bytes, kind.width, &facts)) {
        st = integrityFailed(v, &kind);
    } else if (kind.type == TYPE_HASH && (v->o = hashWithShape(v, lp, &facts, kind.is_zipmap))) {
        st = OK;
    } else if (kind.type != TYPE_LIST &&
               !packedIsUnique(lp, kind.width, facts.entries / kind.width)) {
        st = is_ziplist ? integrityFailed(v, &kind) : duplicates(v, &kind);
    } else {
        st = fromListpack(v, &kind, lp, &facts);
    }
    memFree(converted);
    return st;
}

/* ------------------------------------------------------------------ lists of nodes */

/* Appends one packed node, in `bytes`. */
static status appendPackedNode(valueReader *v, quicklist *q, slice bytes, bool is_ziplist) {
    rdbCountPackedCheck();
    uint8_t *node = NULL;
    packedFacts facts;
    if (is_ziplist) {
        node = packedFromZiplist(bytes);
        if (!node) return rdbReaderFail(v->r, "Ziplist integrity check failed.");
        facts.entries = listpackCount(node);
    } else {
        if (!packedCheck(bytes, 1, &facts))
            return rdbReaderFail(v->r, "Listpack integrity check failed.");
        if (!facts.is_canonical) {
            node = packedCanonical((const uint8_t *)bytes.ptr);
        } else {
            node = memAlloc(bytes.len);
            memcpy(node, bytes.ptr, bytes.len);
        }
    }
    if (facts.entries == 0) {
        memFree(node);
        return OK;
    }
    quicklistTakeListpack(q, &node);
    return OK;
}

static status readNode(valueReader *v, quicklist *q, bool second) {
    uint64_t container = RDB_NODE_PACKED;
    status st = second ? rdbReadLength(v->r, &container) : OK;
    if (st != OK) return st;
    if (container != RDB_NODE_PACKED && container != RDB_NODE_PLAIN)
        return rdbReaderFail(v->r, "Quicklist integrity check failed.");
    slice bytes;
    bool is_listpack = second && container == RDB_NODE_PACKED;
    st = is_listpack ? rdbReadListpack(v->r, &bytes) : rdbReadString(v->r, &bytes);
    if (st != OK) return st;
    if (container == RDB_NODE_PACKED) return appendPackedNode(v, q, bytes, !second);
    if (bytes.len == 0) return rdbReaderFail(v->r, "Quicklist integrity check failed.");
    quicklistAppendPlain(q, bytes);
    return OK;
}

/* A list with a single node within the limits becomes packed. */
static void packSmallList(valueReader *v, quicklist *q) {
    const uint8_t *only = quicklistOnlyListpack(q);
    if (!only ||
        quicklistExceeds(v->options->limits.list.fill, listpackSize(only), listpackCount(only))) {
        v->o = objectNewPointer(v->key, TYPE_LIST, q, OBJECT_NO_EXPIRE, 0);
        return;
    }
    v->o = objectNewPacked(v->key, TYPE_LIST, FORM_PACKED,
                           sliceMake((const char *)only, listpackSize(only)), OBJECT_NO_EXPIRE, 0);
    quicklistFree(q);
}

status rdbReadQuicklist(valueReader *v, bool second) {
    uint64_t nodes;
    status st = rdbReadLength(v->r, &nodes);
    if (st != OK) return st;
    const listLimits *limits = &v->options->limits.list;
    quicklist *q = quicklistNew(limits->fill, limits->depth);
    for (uint64_t i = 0; st == OK && i < nodes; i++) st = readNode(v, q, second);
    if (st != OK || quicklistCount(q) == 0) {
        quicklistFree(q);
        return st;
    }
    packSmallList(v, q);
    return OK;
}
