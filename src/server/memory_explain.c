/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MEMORY EXPLAIN: a breakdown of used memory with recommendations, as text. The memory of keys is
 * estimated from a sample; each value is given with its 95 % confidence interval. Main thread
 * only. */
#include <math.h>
#include <stdio.h>

#include "account/quota.h"
#include "base/base.h"
#include "base/number.h"
#include "engine/compress_values.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "net/net.h"
#include "server/procs.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "store/compact.h"
#include "store/compressed.h"
#include "store/memory_sample.h"
#include "store/shape.h"
#include "store/store.h"
#include "store/type.h"
#include "store/value_survey.h"

enum { SHOWN = 10 };

/* ------------------------------------------------------------------ output */

static void line(str *out, const char *what, size_t bytes, size_t of) {
    char human[NUMBER_TEXT_MAX];
    numberPrintHuman(human, bytes);
    strAppendFormat(out, "  %-44s %10s %5.1f %%\n", what, human,
                    of ? 100.0 * (double)bytes / (double)of : 0.0);
}

/* Estimates the sum of a group over all `keys` from `seen` sampled ones, and half of its 95 %
 * confidence interval. */
static void printGroup(str *out, const memoryGroup *g, uint64_t seen, uint64_t keys) {
    char human[NUMBER_TEXT_MAX];
    double scale = (double)keys / (double)seen, n = (double)seen;
    double mean = g->bytes / n, variance = g->bytes_squared / n - mean * mean;
    double error = seen < keys && variance > 0 ? 1.96 * sqrt(variance / n) * (double)keys : 0;
    numberPrintHuman(human, (uint64_t)(g->bytes * scale));
    strAppendFormat(out, "  %-44s %10s +-%4.1f %%  %12.0f keys, %.0f bytes each\n", g->name, human,
                    g->bytes > 0 ? 100 * error / (g->bytes * scale) : 0.0, (double)g->keys * scale,
                    g->bytes / (double)g->keys);
}

static void printGroups(str *out, memoryGroups *groups, const char *title, uint64_t seen,
                        uint64_t keys) {
    int count = memoryGroupsSort(groups);
    strAppendFormat(out, "\n%s\n", title);
    for (int i = 0; i < count && i < SHOWN; i++) printGroup(out, &groups->list[i], seen, keys);
    if (count > SHOWN) strAppendFormat(out, "  (and %d more)\n", count - SHOWN);
}

/* The names of a shape, as many as there is room for. */
static void printNames(str *out, const shape *s) {
    enum { WIDTH = 44 };
    str names = STR_EMPTY;
    unsigned count = shapeFieldCount(s), shown = 0;
    for (; shown < count && names.len < WIDTH; shown++) {
        slice name = shapeFieldName(s, shown);
        if (shown) strAppendText(&names, ", ");
        for (size_t i = 0; i < name.len && names.len < WIDTH; i++) {
            char byte = name.ptr[i];
            strAppendByte(&names, byte > ' ' && byte < 127 ? byte : '.');
        }
    }
    if (names.len >= WIDTH || shown < count) {
        strCut(&names, sizeMin(names.len, WIDTH - 3));
        strAppendText(&names, "...");
    }
    strAppendFormat(out, "  %-44s", strText(&names));
    strFree(&names);
}

/* Hashes that share their field names. */
static void printShapes(str *out) {
    shapesReport all;
    const shape *largest[SHOWN];
    char human[NUMBER_TEXT_MAX];
    shapesGetReport(&all);
    if (all.hashes == 0) return;
    size_t count = shapesLargest(largest, SHOWN);
    numberPrintHuman(human, all.saved);
    strAppendFormat(out, "\nField names shared by hashes: %llu shapes, %llu hashes, %s saved\n",
                    (unsigned long long)all.shapes, (unsigned long long)all.hashes, human);
    for (size_t i = 0; i < count; i++) {
        numberPrintHuman(human, shapeSaved(largest[i]));
        printNames(out, largest[i]);
        strAppendFormat(out, " %10s saved, %u fields, %llu hashes\n", human,
                        shapeFieldCount(largest[i]), (unsigned long long)shapeUsers(largest[i]));
    }
}

/* Databases and users with limits. */
static void printLimits(str *out) {
    if (!quotaCount()) return;
    hotCheck(threadIsMain());
    accountsSettle();
    strAppendText(out, "\nLimits of databases and users\n");
    for (int i = 0; i < quotaCount(); i++) {
        quotaReport r;
        char name[64], used[NUMBER_TEXT_MAX], limit[NUMBER_TEXT_MAX];
        quotaRead(i, &r);
        if (r.db_id < 0) {
            snprintf(name, sizeof(name), "user %.*s", (int)sizeMin(r.user.len, 38), r.user.ptr);
        } else {
            snprintf(name, sizeof(name), "database %d", r.db_id);
        }
        numberPrintHuman(used, r.bytes);
        numberPrintHuman(limit, r.limit);
        strAppendFormat(out,
                        "  %-44s %10s of %s (%.1f %%), %llu keys evicted, %llu requests refused\n",
                        name, used, limit, 100.0 * (double)r.bytes / (double)r.limit,
                        (unsigned long long)r.evicted, (unsigned long long)r.refused);
    }
    if (accountsMeasuredPercent() < 100)
        strAppendFormat(out, "  (%d %% of the keys were measured so far)\n",
                        accountsMeasuredPercent());
}

/* ------------------------------------------------------------------ compression */

typedef struct valueSample {
    valueSurvey *survey;
    uint64_t seen;
    int db_id;
} valueSample;

static void addValue(void *arg, const robj *o) {
    enum { VALUE_MIN = 64 };
    valueSample *s = arg;
    s->seen++;
    if (objectIsCompressed(o)) return;                             /* nothing to gain */
    (void)valueSurveyAddObject(s->survey, s->db_id, o, VALUE_MIN); /* the number of its fields */
}

/* Recommends value-compression if it would save a part of memory, estimated from a sample of
 * values, with dictionaries that are not trained: what is trained saves more. Some 20 ms. */
static void adviseCompression(str *out, size_t used) {
    enum { SAMPLES = 4000, SAMPLE_BYTES = 4 << 20, CLASSES = 8, SAVED_MIN = 1 << 20, PART = 20 };
    static const valueTrialPlan plan = {.dictionary_max = VALUE_CODEC_DICTIONARY_MAX / 2,
                                        .is_quick = true};
    uint64_t keys = keyspaceKeyCount(keyspaceMain());
    if (!keys || compressValuesIsOn() || valueCodecRequire(NULL) != OK) return;
    valueSample s = {.survey = valueSurveyNew(SAMPLE_BYTES)};
    for (s.db_id = 0; s.db_id < storeDbCount(); s.db_id++) {
        const db *d = storeDb(s.db_id);
        uint64_t most = (uint64_t)(SAMPLES * (double)dbSize(d) / (double)keys) + 1;
        if (dbSize(d)) (void)dbSample(d, most, addValue, &s); /* the callback counts */
    }
    unsigned count = valueSurveyEnd(s.survey);
    double saved = 0;
    for (unsigned i = 0; i < count && i < CLASSES; i++) {
        surveyClass c;
        valueTrial t;
        valueSurveyClass(s.survey, i, &c);
        valueSurveyTry(s.survey, i, &plan, &t);
        valueCodecFree(t.codec);
        double gain = (1 - t.share) * (double)c.bytes * (double)keys / (double)s.seen;
        if (gain < SAVED_MIN || gain < (double)used / PART) continue;
        if (saved == 0)
            strAppendText(out, "  * CONFIG SET value-compression idle would save, of values that "
                               "are not used:\n");
        char human[NUMBER_TEXT_MAX];
        numberPrintHuman(human, (uint64_t)gain);
        strAppendText(out, "      ");
        for (size_t at = 0; at < c.prefix.len; at++) {
            char byte = c.prefix.ptr[at];
            strAppendByte(out, byte > ' ' && byte < 127 ? byte : '.');
        }
        strAppendFormat(out, "%s: %s, %.0f %%; a read of one costs %.1f us more\n",
                        c.prefix.len ? "*" : "other keys", human, 100 * (1 - t.share), t.expand_us);
        saved += gain;
    }
    valueSurveyFree(s.survey);
}

static void advise(str *out, const memorySample *all, const storeWaste *waste, size_t used,
                   size_t clients, const memReport *process) {
    enum { SMALL = 16 << 20 };
    size_t start = out->len;
    uint64_t limit = memoryLimit();
    str refusal = STR_EMPTY;
    if (memoryTellRefusal(&refusal)) strAppendFormat(out, "  * %s\n", strText(&refusal));
    strFree(&refusal);
    if (waste->recoverable > SMALL && waste->recoverable > waste->live / 10)
        strAppendText(
            out, "  * Free space between keys: CONFIG SET activedefrag yes compacts it faster.\n");
    if (clients > used / 5)
        strAppendText(out,
                      "  * Clients use much memory: CLIENT LIST (omem, qbuf, tot-mem) shows which, "
                      "maxmemory-clients limits it.\n");
    if (process->active > process->allocated + SMALL &&
        process->active > process->allocated / 4 * 5)
        strAppendText(out,
                      "  * The allocator holds free memory: MEMORY PURGE returns some of it.\n");
    if (limit && used > limit / 10 * 9 && !memoryRefuses())
        strAppendText(
            out, "  * Used memory is near maxmemory: keys will be evicted, or writes refused, as "
                 "set by maxmemory-policy.\n");
    if (!limit)
        strAppendText(out,
                      "  * maxmemory is not set: memory use is limited only by the machine.\n");
    if (all->seen && all->timed == 0)
        strAppendText(out,
                      "  * None of the sampled keys has a TTL: volatile-... policies would find "
                      "nothing to evict.\n");
    adviseCompression(out, used);
    if (out->len == start) strAppendText(out, "  No recommendations.\n");
}

/* MEMORY EXPLAIN [SAMPLES count]. Reply: a report as text. */
void memoryExplainCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    enum { SAMPLES_DEFAULT = 10000, SAMPLES_MAX = 1000000 };
    int64_t samples = SAMPLES_DEFAULT;
    if (c->argc > 2) {
        if (c->argc != 4 || !ctxArgIs(c, 2, "samples")) {
            replyError(c, ERR_SYNTAX_TEXT);
            return;
        }
        if (!ctxArgInt(c, 3, &samples)) return;
        if (samples < 1 || samples > SAMPLES_MAX) {
            replyError(c, SLICE("ERR SAMPLES must be between 1 and 1000000"));
            return;
        }
    }
    memorySample *all = memNew(memorySample);
    size_t used = memUsed(), clients = netClientsMemory(), tables = 0;
    uint64_t keys = keyspaceKeyCount(keyspaceMain());
    for (int i = 0; i < storeDbCount(); i++) tables += dbTableMemory(storeDb(i));
    memorySampleRead((uint64_t)samples, all);
    storeWaste waste;
    memReport process;
    storeGetWaste(&waste);
    memReportRead(&process);
    double scale = all->seen ? (double)keys / (double)all->seen : 0;
    size_t data = (size_t)(all->bytes * scale), known = data + tables + clients + waste.metadata;
    str out = STR_EMPTY;
    strAppendFormat(&out, "Used memory (%llu keys, %llu sampled)\n", (unsigned long long)keys,
                    (unsigned long long)all->seen);
    line(&out, "keys and values", data, used);
    line(&out, "tables of the databases", tables, used);
    line(&out, "clients and their buffers", clients, used);
    line(&out, "slab metadata", waste.metadata, used);
    line(&out, "the server itself and everything else", used > known ? used - known : 0, used);
    line(&out, "total: used_memory", used, used);
    strAppendText(&out, "\nIn addition to used memory\n");
    line(&out, "free space between keys", waste.holes, used);
    line(&out, "  of which compaction can recover", waste.recoverable, used);
    line(&out, "empty slabs kept for reuse", waste.empty, used);
    line(&out, "free memory held by the allocator",
         process.active > process.allocated ? process.active - process.allocated : 0, used);
    line(&out, "resident total: used_memory_rss", process.rss, used);
    if (all->seen) {
        printGroups(&out, &all->kinds, "Keys by type and encoding", all->seen, keys);
        printGroups(&out, &all->prefixes, "Keys by prefix", all->seen, keys);
    }
    printShapes(&out);
    printLimits(&out);
    strAppendText(&out, "\nRecommendations\n");
    advise(&out, all, &waste, used, clients, &process);
    replyVerbatim(c, strSlice(&out), "txt");
    strFree(&out);
    memFree(all);
}
