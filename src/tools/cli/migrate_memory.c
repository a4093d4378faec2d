/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Estimates the memory that a dataset would need on this server, from a sample of keys
 * (migrate_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "tools/cli/info.h"
#include "tools/cli/migrate_priv.h"

enum {
    PAGE = 200,
    /* STRING_OVERHEAD: bytes of a string on this server besides key and value, with its entry of
     * the hash table. TABLE_ENTRY_THERE: bytes of the entry of the hash table on the other server,
     * which MEMORY USAGE does not count. */
    STRING_OVERHEAD = 18,
    TABLE_ENTRY_THERE = 10,
};

/* Memory of values of a type on this server, as a part of their memory on the other server, on
 * average over small and large values. */
static const struct {
    const char *type;
    double part;
} parts[] = {
    {"list", 1.0},  {"set", 0.91},   {"hash", 0.87},
    {"zset", 0.65}, {"stream", 1.0}, {"pathhash", 1.0},
};

/* Bytes on this server of a value that takes `there` bytes on the other server; 0: the type is not
 * known. */
static double partOf(const char *type, double there) {
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (!strcmp(parts[i].type, type)) return parts[i].part * there;
    }
    return 0;
}

/* A sample being taken; random keys repeat. */
typedef struct keySample {
    memoryEstimate estimate;
    int db_id;
    str names; /* a hash of 8 bytes for each key sampled */
} keySample;

static void noteName(keySample *s, const valkeyReply *key) {
    uint64_t name[] = {hashBytes(key->str, key->len), (uint64_t)s->db_id};
    uint64_t hash = hashBytes(name, sizeof(name));
    strAppend(&s->names, &hash, sizeof(hash));
}

static int compareHashes(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The number of different keys. */
static uint64_t countNames(const str *names) {
    uint64_t *hashes = memNewArray(uint64_t, names->len / sizeof(*hashes) + 1), different = 0;
    size_t count = names->len / sizeof(*hashes);
    if (count) memcpy(hashes, names->ptr, names->len);
    qsort(hashes, count, sizeof(*hashes), compareHashes);
    for (size_t i = 0; i < count; i++) different += i == 0 || hashes[i] != hashes[i - 1];
    memFree(hashes);
    return different;
}

static void noteKey(keySample *s, const valkeyReply *key, const valkeyReply *type,
                    const valkeyReply *usage, const valkeyReply *length) {
    if (usage->type != VALKEY_REPLY_INTEGER || type->type != VALKEY_REPLY_STATUS) return;
    memoryEstimate *e = &s->estimate;
    double there = (double)usage->integer + TABLE_ENTRY_THERE;
    double here = partOf(type->str, there);
    if (!strcmp(type->str, "string")) {
        here = (double)key->len + (double)length->integer + STRING_OVERHEAD;
        if (here > there) here = there; /* numbers and HyperLogLogs are stored in other ways */
    } else if (here == 0) {
        here = there;
    }
    noteName(s, key);
    e->there += there;
    e->here += here;
}

static void samplePage(connection *c, keySample *s, size_t count) {
    valkeyReply *keys[PAGE];
    for (size_t i = 0; i < count; i++) connectionQueue(c, "RANDOMKEY");
    for (size_t i = 0; i < count; i++) keys[i] = connectionNext(c);
    for (size_t i = 0; i < count; i++) {
        const char *name = keys[i]->str ? keys[i]->str : "";
        connectionQueue(c, "TYPE %b", name, keys[i]->len);
        connectionQueue(c, "MEMORY USAGE %b", name, keys[i]->len);
        connectionQueue(c, "STRLEN %b", name, keys[i]->len);
    }
    for (size_t i = 0; i < count; i++) {
        valkeyReply *type = connectionNext(c), *usage = connectionNext(c);
        valkeyReply *length = connectionNext(c);
        if (keys[i]->type == VALKEY_REPLY_STRING) noteKey(s, keys[i], type, usage, length);
        freeReplyObject(type);
        freeReplyObject(usage);
        freeReplyObject(length);
        freeReplyObject(keys[i]);
    }
}

memoryEstimate migrateEstimate(connection *c, const char *keyspace, uint64_t count) {
    keySample s = {.names = STR_EMPTY};
    uint64_t total = (uint64_t)infoKeys(keyspace);
    for (infoDatabase d; total && infoNextDatabase(&keyspace, &d);) {
        /* Each database has its share of the sample. */
        uint64_t left = ((uint64_t)d.keys * count + total - 1) / total;
        freeReplyObject(connectionRequire(c, "SELECT", "SELECT %d", d.id));
        s.db_id = d.id;
        for (; left > 0; left -= left < PAGE ? left : PAGE)
            samplePage(c, &s, left < PAGE ? left : PAGE);
    }
    s.estimate.keys = countNames(&s.names);
    strFree(&s.names);
    return s.estimate;
}
