/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compression of values in memory: directives, time, INFO (compress_values.h). How a value is
 * compressed, and how a walk finds idle ones: store/compressed.h.
 *
 * With `idle` the walk runs in steps of half a millisecond between requests, which together take
 * `value-compression-cpu` percent of the time at most. With `always` changed keys are noted, too,
 * and compressed at the end of the turn. Nothing is compressed while a forked child lives. Main
 * thread only. */
#include "engine/compress_values.h"

#include "base/base.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/pace.h"
#include "store/compressed.h"
#include "store/store.h"
#include "store/value_codec.h"

enum {
    STEP_US = 500,
    CHANGED_MAX = 1024,   /* keys of a turn; later ones are left to the walk */
    CHANGED_US = 2000,    /* for them; the rest is left to the walk */
    PASS_PAUSE_S = 10,    /* from the begin of a pass to that of the next one, at least */
    LFU_IDLE_MIN_S = 120, /* its clock counts minutes */
    PLAIN_SHARE = 16,     /* of maxmemory: so much must be free for values to be stored plain */
};

_Static_assert(COMPRESSED_TEXT_MAX == 131072, "the greatest value-compression-min-bytes");

static struct {
    bool active; /* the walk is in the midst of a pass */
    bool has_stages;
    pace walk, pressure;
    uint64_t walk_us; /* in all */
    struct {
        db *d;
        uint64_t hash;
    } changed[CHANGED_MAX];
    int changed_count;
} state;

static size_t minBytes(void) { return (size_t)engineConf.value_compression_min_bytes; }

static int64_t idleSeconds(void) {
    if (engineConf.value_compression == COMPRESSION_ALWAYS) return 0;
    bool minutes =
        keyspaceCountsAccesses() && engineConf.value_compression_idle_seconds < LFU_IDLE_MIN_S;
    return minutes ? LFU_IDLE_MIN_S : engineConf.value_compression_idle_seconds;
}

/* ------------------------------------------------------------------ the walk */

static void step(int64_t budget_us) {
    hotCheck(engineConf.value_compression != COMPRESSION_NO);
    compressPlan plan = {.min = minBytes(),
                         .idle_s = idleSeconds(),
                         .pause_s = PASS_PAUSE_S,
                         .budget_us = budget_us};
    int64_t began_us = clockMonoUs();
    state.active = storeCompressTurn(&plan);
    int64_t now_us = clockMonoUs();
    state.walk_us += (uint64_t)(now_us - began_us);
    paceTook(&state.walk, began_us, now_us, engineConf.value_compression_cpu);
}

/* True if a step may run now. */
static bool mayStep(void) {
    return engineConf.value_compression != COMPRESSION_NO && !engineHot.loading &&
           !engineHot.current && clockMonoUs() >= state.walk.next_us;
}

/* Values that are read often are stored plain, if there is memory for it; with `no` all that are
 * read. */
static void setPlainIdle(void) {
    static const int64_t of_mode[] = {[COMPRESSION_NO] = INT64_MAX, [COMPRESSION_ALWAYS] = -1};
    uint64_t most = memoryLimit();
    bool full = most && memoryCounted() > most - most / PLAIN_SHARE;
    int64_t idle_s = engineConf.value_compression == COMPRESSION_IDLE
                         ? idleSeconds()
                         : of_mode[engineConf.value_compression];
    storeSetPlainIdle(full ? -1 : idle_s);
}

void compressValuesUnderPressure(int64_t length_us) {
    enum { SHARE = 25 };
    storeSetPlainIdle(-1); /* now, not at the next tick, which allows it again if memory is free */
    if (likely(engineConf.value_compression == COMPRESSION_NO)) return;
    int64_t began_us = clockMonoUs();
    if (began_us < state.pressure.next_us) return;
    step(length_us < STEP_US ? length_us : STEP_US);
    paceTook(&state.pressure, began_us, clockMonoUs(), SHARE);
}

/* ------------------------------------------------------------------ changed keys */

static void noteChanged(db *d, slice key, const keyEvent *event) {
    (void)event; /* any change may have made a long text */
    if (state.changed_count == CHANGED_MAX || dbKeyspace(d) != keyspaceMain()) return;
    state.changed[state.changed_count].d = d;
    state.changed[state.changed_count++].hash = storeHash(key);
}

static const keyObserver observer = {.name = "value-compression", .changed = noteChanged};

static void compressChanged(void) {
    hotCheck(state.changed_count <= CHANGED_MAX);
    int64_t deadline_us = clockMonoUs() + CHANGED_US;
    for (int i = 0; i < state.changed_count; i++) {
        const robj *o = dbPeekHash(state.changed[i].d, state.changed[i].hash);
        if (!o || !storeCompressKey(state.changed[i].d, o, minBytes())) continue;
        if (clockMonoUs() >= deadline_us) break;
    }
    state.changed_count = 0;
}

static void betweenRequests(void) {
    if (engineHot.current) return; /* a nested turn, within a command */
    compressedReclaim();
    storePlainFields();
    if (state.changed_count) compressChanged();
    if (likely(!state.active)) return;
    if (mayStep()) step(STEP_US);
    if (state.active) loopLimitSleep(engineLoop(), paceLeftMs(&state.walk));
}

/* A turn of the loop pays for this only while values are compressed. */
static const stageJob stages[] = {{STAGE_EXPIRE, betweenRequests}, {STAGE_COUNT, NULL}};
static const feature turns = {.name = "value-compression-turns", .stages = stages};

static void setStages(void) {
    bool wanted = engineConf.value_compression != COMPRESSION_NO;
    if (likely(wanted == state.has_stages)) return;
    if (wanted) {
        hooksAddFeature(&turns);
    } else {
        hooksRemoveFeature(&turns);
    }
    state.has_stages = wanted;
}

static void tick(int64_t budget_us) {
    setStages();
    setPlainIdle();
    if (!engineHot.current) {
        compressedReclaim();
        storePlainFields();
    }
    if (mayStep()) step(budget_us < STEP_US ? budget_us : STEP_US);
}

/* ------------------------------------------------------------------ directives, INFO */

status compressValuesApply(reason *why) {
    (void)why; /* cannot fail */
    keyObserverArm(&observer, engineConf.value_compression == COMPRESSION_ALWAYS);
    state.changed_count = 0;
    if (engineConf.value_compression == COMPRESSION_NO) state.active = false;
    setPlainIdle();
    return OK;
}

bool compressValuesIsOn(void) { return engineConf.value_compression != COMPRESSION_NO; }

status compressValuesAccept(slice text, int64_t number, reason *why) {
    (void)text; /* parsed already */
    return number == COMPRESSION_NO ? OK : valueCodecRequire(why);
}

static void printReport(str *out, const char *what, const compressedReport *r) {
    double ratio = r->text_bytes ? (double)r->packed_bytes / (double)r->text_bytes : 1;
    strAppendFormat(out,
                    "compressed_%s:%llu\r\ncompressed_%s_bytes:%llu\r\n"
                    "compressed_%s_packed_bytes:%llu\r\ncompressed_%s_ratio:%.2f\r\n",
                    what, (unsigned long long)r->values, what, (unsigned long long)r->text_bytes,
                    what, (unsigned long long)r->packed_bytes, what, ratio);
}

static void printMemory(str *out) {
    compressedReport r;
    compressedGetReport(&r);
    printReport(out, "values", &r);
    compressedGetNodesReport(&r);
    printReport(out, "nodes", &r);
}

static void printStats(str *out) {
    compressedReport r, nodes;
    compressedGetReport(&r);
    compressedGetNodesReport(&nodes);
    strAppendField(out, "values_compressed", r.made);
    strAppendField(out, "values_not_compressible", r.futile);
    strAppendField(out, "values_expanded_to_read", r.shown);
    strAppendField(out, "values_stored_plain_again", r.restored);
    strAppendField(out, "nodes_compressed", nodes.made);
    strAppendField(out, "nodes_not_compressible", nodes.futile);
    strAppendField(out, "nodes_expanded", nodes.shown);
    strAppendField(out, "nodes_stored_plain_again", nodes.restored);
    strAppendField(out, "values_compress_cpu_milliseconds", (r.make_us + nodes.make_us) / 1000);
    strAppendField(out, "values_expand_cpu_milliseconds", (r.expand_us + nodes.expand_us) / 1000);
}

static status init(reason *why) {
    compressedSetSerial(&engineHot.commands);
    return compressValuesApply(why);
}

static bool isBusy(void) { return state.active; }

static const tickJob ticks[] = {{"compress-values", 0, tick, isBusy}, {0}};
static const keyObserver *const observers[] = {&observer, NULL};
static const infoSection sections[] = {
    {"memory", "# Memory", INFO_NORMAL, INFO_MEMORY, printMemory},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

const feature compressValuesFeature = {.name = "value-compression",
                                       .info = sections,
                                       .ticks = ticks,
                                       .observers = observers,
                                       .init = init,
                                       .on_stats_reset = compressedResetStats};
