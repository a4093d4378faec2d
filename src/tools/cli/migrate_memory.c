/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory that a dataset would need here, from a sample (migrate_priv.h). */
#include <string.h>

#include "tools/cli/info.h"
#include "tools/cli/migrate_priv.h"

enum {
    PAGE = 200,
    /* Bytes beside key and value of a string here, its entry of the table included, and of the
     * entry of the table there, which MEMORY USAGE does not count. */
    STRING_OVERHEAD = 18,
    TABLE_ENTRY_THERE = 10,
};

/* A value of this type takes this part of what it takes there, small and large ones together. */
static const struct {
    const char *type;
    double part;
} parts[] = {
    {"list", 1.0}, {"set", 0.91}, {"hash", 0.87}, {"zset", 0.65}, {"stream", 1.0},
};

/* Bytes here of a value that takes `there`; 0: the type is not known. */
static double partOf(const char *type, double there) {
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (!strcmp(parts[i].type, type)) return parts[i].part * there;
    }
    return 0;
}

static void noteKey(memoryEstimate *e, const valkeyReply *key, const valkeyReply *type,
                    const valkeyReply *usage, const valkeyReply *length) {
    if (usage->type != VALKEY_REPLY_INTEGER || type->type != VALKEY_REPLY_STATUS) return;
    double there = (double)usage->integer + TABLE_ENTRY_THERE;
    double here = partOf(type->str, there);
    if (!strcmp(type->str, "string")) {
        here = (double)key->len + (double)length->integer + STRING_OVERHEAD;
        if (here > there) here = there; /* numbers and HyperLogLogs are stored in other ways */
    } else if (here == 0) {
        here = there;
    }
    e->sampled++;
    e->there += there;
    e->here += here;
}

static void samplePage(connection *c, memoryEstimate *e, size_t count) {
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
        if (keys[i]->type == VALKEY_REPLY_STRING) noteKey(e, keys[i], type, usage, length);
        freeReplyObject(type);
        freeReplyObject(usage);
        freeReplyObject(length);
        freeReplyObject(keys[i]);
    }
}

memoryEstimate migrateEstimate(connection *c, const char *keyspace, uint64_t count) {
    memoryEstimate e = {0};
    uint64_t total = (uint64_t)infoKeys(keyspace);
    for (infoDatabase d; total && infoNextDatabase(&keyspace, &d);) {
        /* Each database has its share of the sample. */
        uint64_t left = ((uint64_t)d.keys * count + total - 1) / total;
        freeReplyObject(connectionRequire(c, "SELECT", "SELECT %d", d.id));
        for (; left > 0; left -= left < PAGE ? left : PAGE)
            samplePage(c, &e, left < PAGE ? left : PAGE);
    }
    return e;
}
