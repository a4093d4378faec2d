/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --bigkeys, --memkeys and --hotkeys (modes.h): walk over all keys, and remember the largest per
 * type or the hottest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tools/cli/job_progress.h"
#include "tools/cli/modes.h"
#include "tools/cli/scan.h"

typedef struct typeRow {
    const char *name, *size_command, *unit;
    uint64_t count, total, biggest_size;
    str biggest; /* quoted name */
} typeRow;

enum { KNOWN_TYPES = 6, TYPES_MAX = 64 };

typedef struct keyJob {
    bool memory;
    int64_t samples;
    typeRow types[TYPES_MAX];
    int type_count;
    uint64_t database_size, sampled, name_bytes, pages;
    jobProgress progress;
} keyJob;

static const typeRow known[KNOWN_TYPES] = {
    {.name = "list", .size_command = "LLEN", .unit = "items"},
    {.name = "hash", .size_command = "HLEN", .unit = "fields"},
    {.name = "stream", .size_command = "XLEN", .unit = "entries"},
    {.name = "string", .size_command = "STRLEN", .unit = "bytes"},
    {.name = "set", .size_command = "SCARD", .unit = "members"},
    {.name = "zset", .size_command = "ZCARD", .unit = "members"},
};

/* Of servers that have it; the row is printed only if there are keys. */
static const typeRow path_hashes = {.size_command = "PHCARD", .unit = "paths"};

/* The row of a type; one of a module is added. NULL if there are too many. */
static typeRow *rowOf(keyJob *job, const char *name) {
    for (int i = 0; i < job->type_count; i++) {
        if (!strcmp(job->types[i].name, name)) return &job->types[i];
    }
    if (job->type_count == TYPES_MAX) return NULL;
    typeRow *row = &job->types[job->type_count++];
    *row = strcmp(name, "pathhash") ? (typeRow){.unit = "?"} : path_hashes;
    row->name = memDup(name, strlen(name));
    return row;
}

/* Asks for the types of the keys of a page in one round trip; NULL for those that are gone. */
static void readTypes(connection *c, const valkeyReply *keys, keyJob *job, typeRow **out) {
    for (size_t i = 0; i < keys->elements; i++)
        connectionQueue(c, "TYPE %b", keys->element[i]->str, keys->element[i]->len);
    for (size_t i = 0; i < keys->elements; i++) {
        valkeyReply *reply = connectionNext(c);
        if (reply->type != VALKEY_REPLY_STATUS) {
            fprintf(stderr, "Invalid reply type (%d) for TYPE on key '%s'!\n", reply->type,
                    keys->element[i]->str);
            if (reply->type == VALKEY_REPLY_ERROR) fprintf(stderr, "%s\n", reply->str);
            exit(1);
        }
        out[i] = strcmp(reply->str, "none") ? rowOf(job, reply->str) : NULL;
        freeReplyObject(reply);
    }
}

static bool hasSize(const keyJob *job, const typeRow *row) {
    return row && (job->memory || row->size_command);
}

static void readSizes(connection *c, const valkeyReply *keys, keyJob *job, typeRow **rows,
                      uint64_t *out) {
    for (size_t i = 0; i < keys->elements; i++) {
        const valkeyReply *key = keys->element[i];
        if (!hasSize(job, rows[i])) continue;
        if (!job->memory) {
            connectionQueue(c, "%s %b", rows[i]->size_command, key->str, key->len);
        } else if (job->samples > 0) {
            connectionQueue(c, "MEMORY USAGE %b SAMPLES %" PRId64, key->str, key->len,
                            job->samples);
        } else {
            connectionQueue(c, "MEMORY USAGE %b", key->str, key->len);
        }
    }
    for (size_t i = 0; i < keys->elements; i++) {
        out[i] = 0;
        if (!hasSize(job, rows[i])) continue;
        valkeyReply *reply = connectionNext(c);
        /* A key may have been removed or replaced meanwhile. */
        if (reply->type == VALKEY_REPLY_INTEGER) {
            out[i] = (uint64_t)reply->integer;
        } else if (reply->type == VALKEY_REPLY_ERROR) {
            jobProgressHide(&job->progress);
            fprintf(stderr, "Warning:  %s on '%s' failed (may have changed type)\n",
                    job->memory ? "MEMORY USAGE" : rows[i]->size_command, keys->element[i]->str);
        }
        freeReplyObject(reply);
    }
}

static const char *unitOf(const keyJob *job, const typeRow *row) {
    return job->memory ? "bytes" : row->unit;
}

static void noteKey(keyJob *job, typeRow *row, const valkeyReply *key, uint64_t size,
                    double percent) {
    row->count++;
    row->total += size;
    job->name_bytes += key->len;
    job->sampled++;
    if (size <= row->biggest_size && row->biggest.len > 0) return;
    if (size == 0 && row->size_command) return;
    strClear(&row->biggest);
    strAppendQuoted(&row->biggest, sliceMake(key->str, key->len));
    row->biggest_size = size;
    jobProgressHide(&job->progress);
    printf("[%05.2f%%] Biggest %-6s found so far '%s' with %" PRIu64 " %s\n", percent, row->name,
           strText(&row->biggest), size, unitOf(job, row));
}

static bool takePage(connection *c, const valkeyReply *keys, void *arg) {
    keyJob *job = arg;
    double percent =
        job->database_size ? 100.0 * (double)job->sampled / (double)job->database_size : 0;
    size_t count = keys->elements;
    typeRow **rows = memCalloc(count + 1, sizeof(*rows));
    uint64_t *sizes = memCalloc(count + 1, sizeof(*sizes));
    readTypes(c, keys, job, rows);
    readSizes(c, keys, job, rows, sizes);
    for (size_t i = 0; i < count; i++) {
        if (rows[i]) noteKey(job, rows[i], keys->element[i], sizes[i], percent);
    }
    memFree(rows);
    memFree(sizes);
    jobProgressAt(&job->progress, job->sampled);
    if (++job->pages % 100 == 0 && c->options->interval_us > 0) {
        fflush(stdout);
        clockSleepUs(c->options->interval_us);
    }
    return true;
}

static uint64_t databaseSize(connection *c) {
    valkeyReply *reply = connectionRequire(c, "DBSIZE", "DBSIZE");
    uint64_t size = (uint64_t)reply->integer;
    freeReplyObject(reply);
    return size;
}

static void printIntroduction(const char *what) {
    printf("\n# Scanning the entire keyspace to find %s keys as well as\n"
           "# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n"
           "# per 100 SCAN commands (not usually needed).\n\n",
           what);
}

static void printSummary(const keyJob *job) {
    printf("\n-------- Summary --------\n\nSampled %" PRIu64 " keys in the keyspace!\n",
           job->sampled);
    printf("Total key length in bytes is %" PRIu64 " (avg len %.2f)\n\n", job->name_bytes,
           job->sampled ? (double)job->name_bytes / (double)job->sampled : 0.0);
    for (int i = 0; i < job->type_count; i++) {
        const typeRow *row = &job->types[i];
        if (row->biggest.len > 0)
            printf("Biggest %6s found '%s' has %" PRIu64 " %s\n", row->name, strText(&row->biggest),
                   row->biggest_size, unitOf(job, row));
    }
    putchar('\n');
    for (int i = 0; i < job->type_count; i++) {
        const typeRow *row = &job->types[i];
        printf("%" PRIu64 " %ss with %" PRIu64 " %s (%05.2f%% of keys, avg size %.2f)\n",
               row->count, row->name, row->total, unitOf(job, row),
               job->sampled ? 100.0 * (double)row->count / (double)job->sampled : 0.0,
               row->count ? (double)row->total / (double)row->count : 0.0);
    }
}

int modeKeySizes(connection *c) {
    if (!connectionConnect(c)) return 1;
    keyJob job = {.memory = c->options->mode == MODE_MEMKEYS,
                  .samples = c->options->memkeys_samples,
                  .type_count = KNOWN_TYPES};
    memcpy(job.types, known, sizeof(known));
    job.database_size = databaseSize(c);
    printIntroduction("biggest");
    jobProgressBegin(&job.progress, c->options->progress, job.memory ? "memkeys" : "bigkeys",
                     "keys", job.database_size);
    scanKeys(c, takePage, &job);
    jobProgressEnd(&job.progress, job.sampled);
    printSummary(&job);
    for (int i = 0; i < job.type_count; i++) {
        strFree(&job.types[i].biggest);
        if (i >= KNOWN_TYPES) memFree((void *)job.types[i].name);
    }
    return 0;
}

/* ------------------------------------------------------------------ --hotkeys */

typedef struct hotKey {
    uint64_t count;
    str name;
} hotKey;

typedef struct hotJob {
    hotKey *keys; /* descending */
    int cap;
    uint64_t database_size, sampled, pages;
    jobProgress progress;
} hotJob;

static void noteHot(hotJob *job, const valkeyReply *key, uint64_t count, double percent) {
    int at = 0;
    while (at < job->cap && job->keys[at].count >= count) at++;
    if (at == job->cap || count == 0) return;
    strFree(&job->keys[job->cap - 1].name);
    memmove(&job->keys[at + 1], &job->keys[at], sizeof(hotKey) * (size_t)(job->cap - 1 - at));
    job->keys[at] = (hotKey){.count = count};
    strAppendQuoted(&job->keys[at].name, sliceMake(key->str, key->len));
    jobProgressHide(&job->progress);
    printf("[%05.2f%%] Hot key '%s' found so far with counter %" PRIu64 "\n", percent,
           strText(&job->keys[at].name), count);
}

static bool takeHotPage(connection *c, const valkeyReply *keys, void *arg) {
    hotJob *job = arg;
    double percent =
        job->database_size ? 100.0 * (double)job->sampled / (double)job->database_size : 0;
    for (size_t i = 0; i < keys->elements; i++)
        connectionQueue(c, "OBJECT FREQ %b", keys->element[i]->str, keys->element[i]->len);
    for (size_t i = 0; i < keys->elements; i++) {
        valkeyReply *reply = connectionNext(c);
        if (reply->type == VALKEY_REPLY_ERROR) {
            fprintf(stderr, "Error: %s\n", reply->str);
            exit(1);
        }
        if (reply->type == VALKEY_REPLY_INTEGER)
            noteHot(job, keys->element[i], (uint64_t)reply->integer, percent);
        freeReplyObject(reply);
        job->sampled++;
    }
    jobProgressAt(&job->progress, job->sampled);
    if (++job->pages % 100 == 0 && c->options->interval_us > 0)
        clockSleepUs(c->options->interval_us);
    return true;
}

int modeHotKeys(connection *c) {
    if (!connectionConnect(c)) return 1;
    int64_t wanted = c->options->hotkeys_count;
    if (wanted <= 0 || wanted > 100000) {
        fputs("Hotkeys number should be greater than 0\n", stderr);
        return 1;
    }
    hotJob job = {.cap = (int)wanted, .keys = memCalloc((size_t)wanted, sizeof(hotKey))};
    job.database_size = databaseSize(c);
    printIntroduction("hot");
    jobProgressBegin(&job.progress, c->options->progress, "hotkeys", "keys", job.database_size);
    scanKeys(c, takeHotPage, &job);
    jobProgressEnd(&job.progress, job.sampled);
    printf("\n-------- Summary --------\n\nSampled %" PRIu64 " keys in the keyspace!\n",
           job.sampled);
    for (int i = 0; i < job.cap; i++) {
        if (job.keys[i].count > 0)
            printf("hot key found with counter: %" PRIu64 "\tkeyname: %s\n", job.keys[i].count,
                   strText(&job.keys[i].name));
        strFree(&job.keys[i].name);
    }
    memFree(job.keys);
    return 0;
}
