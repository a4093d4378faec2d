/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of an RDB file (rdb_stats.h). */
#include "tools/rdb_stats.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base.h"
#include "base/number.h"
#include "store/type_hash.h"
#include "store/type_list.h"
#include "store/type_pathhash.h"
#include "store/type_set.h"
#include "store/type_stream.h"
#include "store/type_zset.h"
#include "tools/size_histogram.h"

/* Columns, in the order they are printed. */
enum { STRINGS, LISTS, SETS, ZSETS, HASHES, MODULES, STREAMS, PATHHASHES, COLUMNS };
static const char *const column_names[COLUMNS] = {"string", "list",   "set",    "zset",
                                                  "hash",   "module", "stream", "pathhash"};

/* The keys of one type in one database. */
typedef struct typeStats {
    uint64_t keys, expires, expired, key_bytes, value_bytes, elements;
    sizeHistogram counts; /* elements per key */
    sizeHistogram sizes;  /* bytes per element */
} typeStats;

typedef struct dbStats {
    typeStats types[COLUMNS];
} dbStats;

struct rdbStats {
    dbStats **dbs; /* by id; NULL: no keys */
    size_t count;
};

rdbStats *rdbStatsNew(void) { return memCalloc(1, sizeof(rdbStats)); }

static void freeDb(dbStats *db) {
    for (int t = 0; db && t < COLUMNS; t++) {
        sizeHistogramFree(&db->types[t].counts);
        sizeHistogramFree(&db->types[t].sizes);
    }
    memFree(db);
}

void rdbStatsFree(rdbStats *s) {
    if (!s) return;
    for (size_t i = 0; i < s->count; i++) freeDb(s->dbs[i]);
    memFree(s->dbs);
    memFree(s);
}

static dbStats *dbOf(rdbStats *s, uint64_t id) {
    if (id >= s->count) {
        s->dbs = memRealloc(s->dbs, (id + 1) * sizeof(*s->dbs));
        memset(s->dbs + s->count, 0, (id + 1 - s->count) * sizeof(*s->dbs));
        s->count = id + 1;
    }
    if (!s->dbs[id]) s->dbs[id] = memCalloc(1, sizeof(dbStats));
    return s->dbs[id];
}

/* ------------------------------------------------------------------ elements */

static void addElement(typeStats *t, size_t bytes) {
    t->value_bytes += bytes;
    sizeHistogramRecord(&t->sizes, bytes);
}

static size_t itemBytes(const listpackItem *item) {
    char digits[NUMBER_TEXT_MAX];
    return item->ptr ? item->len : numberPrintInt(digits, item->number);
}

static uint64_t addString(typeStats *t, const robj *o) {
    char digits[NUMBER_TEXT_MAX];
    addElement(t, objectText(o, digits).len);
    return 1;
}

static uint64_t addList(typeStats *t, const robj *o) {
    listCursor c;
    listpackItem item;
    uint64_t count = 0;
    listCursorInit(&c, o, 0, false);
    for (; listNextItem(&c, &item); count++) addElement(t, itemBytes(&item));
    listCursorClear(&c);
    return count;
}

static uint64_t addSet(typeStats *t, const robj *o) {
    setIterator it;
    listpackItem item;
    uint64_t count = 0;
    setIteratorInit(&it, o);
    for (; setNext(&it, &item); count++) addElement(t, itemBytes(&item));
    setIteratorClear(&it);
    return count;
}

static uint64_t addZset(typeStats *t, const robj *o) {
    zsetCursor cursor;
    zsetPair pair;
    char digits[NUMBER_TEXT_MAX];
    uint64_t count = 0;
    zsetSeek(&cursor, o, 0, false);
    for (; zsetNext(&cursor, &pair); count++)
        addElement(t, pair.member.len + numberPrintDouble(digits, pair.score));
    return count;
}

static uint64_t addHash(typeStats *t, const robj *o) {
    hashIterator it;
    hashPair pair;
    uint64_t count = 0;
    hashIteratorInit(&it, o, lookAtAll());
    for (; hashNext(&it, &pair); count++) addElement(t, pair.field.len + pair.value.len);
    hashIteratorClear(&it);
    return count;
}

static uint64_t addStream(typeStats *t, const robj *o) {
    streamCursor c;
    streamId id;
    streamFields fields;
    listpackItem name, value;
    uint64_t count = 0;
    streamCursorInit(&c, streamOf(o), STREAM_ID_MIN, STREAM_ID_MAX, false);
    for (; streamCursorNext(&c, &id, &fields); count++)
        while (fields.left > 0) {
            streamFieldsNext(&fields, &name, &value);
            addElement(t, itemBytes(&name) + itemBytes(&value));
        }
    streamCursorClear(&c);
    return count;
}

static uint64_t addPathHash(typeStats *t, const robj *o) {
    pathHashCursor c;
    slice path;
    const pathFields *fields;
    pathFieldsIterator it;
    hashPair pair;
    uint64_t count = 0;
    pathHashCursorInit(&c, pathHashOf(o));
    for (; pathHashNext(&c, &path, &fields); count++) {
        size_t bytes = path.len;
        pathFieldsIteratorInit(&it, fields);
        while (pathFieldsNext(&it, &pair)) bytes += pair.field.len + pair.value.len;
        pathFieldsIteratorClear(&it);
        addElement(t, bytes);
    }
    pathHashCursorClear(&c);
    return count;
}

static uint64_t addElements(typeStats *t, const robj *o) {
    switch (objectType(o)) {
    case TYPE_STRING: return addString(t, o);
    case TYPE_LIST: return addList(t, o);
    case TYPE_SET: return addSet(t, o);
    case TYPE_ZSET: return addZset(t, o);
    case TYPE_HASH: return addHash(t, o);
    case TYPE_STREAM: return addStream(t, o);
    case TYPE_PATHHASH: return addPathHash(t, o);
    default: panic("no statistics for values of type %d", (int)objectType(o));
    }
}

static int columnOf(const robj *o) {
    switch (objectType(o)) {
    case TYPE_STRING: return STRINGS;
    case TYPE_LIST: return LISTS;
    case TYPE_SET: return SETS;
    case TYPE_ZSET: return ZSETS;
    case TYPE_HASH: return HASHES;
    case TYPE_STREAM: return STREAMS;
    case TYPE_PATHHASH: return PATHHASHES;
    default: panic("no column for values of type %d", (int)objectType(o));
    }
}

void rdbStatsAdd(rdbStats *s, uint64_t db, const rdbKey *key, bool expired) {
    if (!key->o && key->type != RDB_TYPE_MODULE_2) return; /* an empty collection */
    if (db >= RDB_STATS_DBS_MAX) return;
    typeStats *t = &dbOf(s, db)->types[key->o ? columnOf(key->o) : MODULES];
    t->keys++;
    t->expires += key->expire_ms != OBJECT_NO_EXPIRE;
    t->expired += expired;
    t->key_bytes += key->name.len;
    uint64_t count = key->o ? addElements(t, key->o) : 0;
    t->elements += count;
    sizeHistogramRecord(&t->counts, count);
}

/* ------------------------------------------------------------------ printing */

static double average(uint64_t sum, uint64_t count) {
    return count ? (double)sum / (double)count : 0;
}

/* A row: a name and, for each column, an integer (at an offset in typeStats, or in one of its
 * histograms) or a number with two decimals. */
typedef enum rowKind { ROW_INT, ROW_MAX, ROW_AVERAGE, ROW_PERCENTILE } rowKind;
typedef struct row {
    const char *name;
    rowKind kind;
    size_t offset; /* of the uint64_t, or of the sizeHistogram */
    int percent;
} row;

#define COUNTER(text, member) \
    { text, ROW_INT, offsetof(typeStats, member), 0 }
#define SUMMARY(text, member) \
    {text ".max", ROW_MAX, offsetof(typeStats, member), 0}, \
        {text ".avg", ROW_AVERAGE, offsetof(typeStats, member), 0}, \
        {text ".p99", ROW_PERCENTILE, offsetof(typeStats, member), 99}, \
        {text ".p90", ROW_PERCENTILE, offsetof(typeStats, member), 90}, { \
        text ".p50", ROW_PERCENTILE, offsetof(typeStats, member), 50 \
    }
static const row rows[] = {
    COUNTER("keys.total", keys),
    COUNTER("expire_keys.total", expires),
    COUNTER("already_expired.total", expired),
    COUNTER("keys.size", key_bytes),
    COUNTER("keys.value_size", value_bytes),
    COUNTER("elements.total", elements),
    COUNTER("elements.size", value_bytes),
    SUMMARY("elements.num", counts),
    SUMMARY("elements.size", sizes),
};

static void printCell(char *dst, size_t cap, const typeStats *t, const row *r) {
    const void *member = (const char *)t + r->offset;
    const sizeHistogram *h = member;
    switch (r->kind) {
    case ROW_INT: snprintf(dst, cap, "%llu", (unsigned long long)*(const uint64_t *)member); break;
    case ROW_MAX: snprintf(dst, cap, "%llu", (unsigned long long)h->max); break;
    case ROW_AVERAGE:
        /* Pairs of a stream are averaged over its entries, as Valkey does. */
        snprintf(dst, cap, "%.2f", average(h->sum, h == &t->sizes ? t->elements : h->total));
        break;
    case ROW_PERCENTILE:
        snprintf(dst, cap, "%.2f", (double)sizeHistogramPercentile(h, r->percent));
        break;
    }
}

static void printInfo(const dbStats *db, size_t id, FILE *out) {
    char cell[32];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int t = 0; t < COLUMNS; t++) {
            printCell(cell, sizeof(cell), &db->types[t], &rows[i]);
            fprintf(out, "[info] db.%zu.type.%s.%s:%s\n", id, column_names[t], rows[i].name, cell);
        }
}

static void printRows(const dbStats *db, size_t id, bool csv, FILE *out) {
    char cell[48];
    int width = csv ? 0 : 30, cell_width = csv ? 0 : 5;
    const char *separator = csv ? "," : "\t";
    snprintf(cell, sizeof(cell), "db.%zu.type.name", id);
    fprintf(out, "%-*s", width, cell);
    for (int t = 0; t < COLUMNS; t++)
        fprintf(out, "%s%-*s", separator, cell_width, column_names[t]);
    fputc('\n', out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[64];
        snprintf(name, sizeof(name), "db.%zu.%s", id, rows[i].name);
        fprintf(out, "%-*s", width, name);
        for (int t = 0; t < COLUMNS; t++) {
            printCell(cell, sizeof(cell), &db->types[t], &rows[i]);
            fprintf(out, "%s%-*s", separator, cell_width, cell);
        }
        fputc('\n', out);
    }
}

void rdbStatsPrint(const rdbStats *s, rdbStatsFormat format, FILE *out) {
    static const dbStats none;
    for (size_t i = 0; i < s->count || i == 0; i++) {
        const dbStats *db = i < s->count && s->dbs[i] ? s->dbs[i] : &none;
        if (format == RDB_STATS_INFO) {
            printInfo(db, i, out);
        } else {
            printRows(db, i, format == RDB_STATS_CSV, out);
        }
    }
}
