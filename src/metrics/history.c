/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last 15 minutes of some figures, so that a page that is opened later shows the past.
 *
 * Invariant: nothing is allocated unless metrics-port is set; then the memory is fixed (see
 * HISTORY_SAMPLES), except for two numbers per command. A sample costs three sections of INFO and
 * one pass over the histograms of the commands in use, every 5 seconds. Main thread only. */
#include <math.h>

#include "base/base.h"
#include "base/histogram.h"
#include "base/number.h"
#include "engine/command.h"
#include "metrics/metrics_priv.h"

/* A counter is stored as its rate per second since the last sample. */
static const struct {
    const char *name, *info_name;
    bool counter;
} columns[] = {
    {"commands", "total_commands_processed", true},
    {"input_bytes", "total_net_input_bytes", true},
    {"output_bytes", "total_net_output_bytes", true},
    {"hits", "keyspace_hits", true},
    {"misses", "keyspace_misses", true},
    {"used_memory", "used_memory", false},
    {"rss_memory", "used_memory_rss", false},
    {"clients", "connected_clients", false},
    {"blocked_clients", "blocked_clients", false},
};
enum { COLUMNS = COUNT_OF(columns) };

/* NAN: not known. */
typedef struct sample {
    int64_t time_ms; /* wall clock */
    double values[COLUMNS];
    double p50_us, p99_us; /* of the commands of the interval */
} sample;

typedef struct history {
    sample samples[HISTORY_SAMPLES];
    int count, next; /* `next` is the oldest one if all are in use */
    int64_t last_us; /* of the last sample, monotonic; 0: none */
    double last_values[COLUMNS];
    histogram last_latency; /* of all commands, up to the last sample */
    histogram latency;      /* of the interval */
    int commands;           /* entries of the arrays, indexed by the id of the command */
    uint64_t *last_calls;
    float *call_rates;
} history;

static history *kept;

void historyFree(void) {
    hotCheck(threadIsMain());
    if (!kept) return;
    memFree(kept->last_calls);
    memFree(kept->call_rates);
    memFree(kept);
    kept = NULL;
}

void historyResetStats(void) {
    hotCheck(threadIsMain());
    if (!kept) return;
    memset(kept->last_values, 0, sizeof(kept->last_values));
    memset(&kept->last_latency, 0, sizeof(kept->last_latency));
    if (kept->commands)
        memset(kept->last_calls, 0, sizeof(*kept->last_calls) * (size_t)kept->commands);
}

/* Per second; a counter that has decreased began at 0 again. */
static double rateOf(double now, double last, double seconds) {
    return (now < last ? now : now - last) / seconds;
}

static void addValues(sample *s, slice info, double seconds) {
    infoIndex index;
    infoIndexInit(&index, info);
    for (size_t i = 0; i < COLUMNS; i++) {
        double now;
        if (!numberParseDouble(infoIndexFind(&index, columns[i].info_name), &now)) now = 0;
        s->values[i] = now;
        if (columns[i].counter) s->values[i] = rateOf(now, kept->last_values[i], seconds);
        kept->last_values[i] = now;
    }
    infoIndexClear(&index);
}

/* The percentiles of the interval are those of the difference of two sums. */
static void addLatency(sample *s, bool first) {
    histogram *now = &kept->latency, *last = &kept->last_latency;
    memset(now, 0, sizeof(*now));
    for (int id = 0; id < commandIdCount(); id++) {
        const histogram *one = commandById(id)->latency;
        if (!one) continue;
        for (int i = 0; i < HISTOGRAM_BUCKETS; i++) now->counts[i] += one->counts[i];
    }
    now->total = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t count = now->counts[i], before = last->counts[i];
        last->counts[i] = count;
        /* Fewer than before: a command was unloaded. */
        now->counts[i] = count > before ? count - before : 0;
        now->total += now->counts[i];
    }
    bool known = !first && now->total;
    s->p50_us = known ? (double)histogramPercentile(now, 50) / 1000 : (double)NAN;
    s->p99_us = known ? (double)histogramPercentile(now, 99) / 1000 : (double)NAN;
}

/* The table of commands does not shrink. */
static void addCalls(double seconds) {
    int count = commandIdCount();
    check(count >= kept->commands);
    if (count > kept->commands) {
        kept->last_calls = memRealloc(kept->last_calls, sizeof(uint64_t) * (size_t)count);
        kept->call_rates = memRealloc(kept->call_rates, sizeof(float) * (size_t)count);
        for (int id = kept->commands; id < count; id++) kept->last_calls[id] = 0;
        kept->commands = count;
    }
    for (int id = 0; id < count; id++) {
        uint64_t calls = commandById(id)->calls;
        kept->call_rates[id] = (float)rateOf((double)calls, (double)kept->last_calls[id], seconds);
        kept->last_calls[id] = calls;
    }
}

void historyAdd(slice info, int64_t time_ms, int64_t mono_us) {
    hotCheck(threadIsMain());
    if (!kept) kept = memNew(history);
    check(mono_us >= kept->last_us);
    /* Without a sample before, or without time between, there is no rate. */
    double seconds = kept->last_us && mono_us > kept->last_us
                         ? (double)(mono_us - kept->last_us) / 1e6
                         : (double)NAN;
    sample *s = &kept->samples[kept->next];
    s->time_ms = time_ms;
    addValues(s, info, seconds);
    addLatency(s, !kept->last_us);
    addCalls(seconds);
    kept->last_us = mono_us;
    kept->next = (kept->next + 1) % HISTORY_SAMPLES;
    if (kept->count < HISTORY_SAMPLES) kept->count++;
}

void historyTick(int64_t budget_us) {
    (void)budget_us; /* well below a millisecond */
    static const char *const sections[] = {"stats", "memory", "clients", NULL};
    if (!metricsConf.port) return;
    str info = STR_EMPTY;
    infoFieldsReadSections(sections, &info);
    historyAdd(strSlice(&info), clockWallMs(), clockMonoUs());
    strFree(&info);
}

static const sample *sampleAt(int i) {
    check(i < kept->count);
    int oldest = kept->count < HISTORY_SAMPLES ? 0 : kept->next;
    return &kept->samples[(oldest + i) % HISTORY_SAMPLES];
}

/* Prints one number of each sample, at this offset in it. */
static void printColumn(str *out, const char *name, size_t offset) {
    jsonName(out, name);
    strAppendByte(out, '[');
    for (int i = 0; kept && i < kept->count; i++) {
        if (i) strAppendByte(out, ',');
        jsonDecimal(out, *(const double *)((const char *)sampleAt(i) + offset));
    }
    strAppendByte(out, ']');
}

void historyPrint(str *out) {
    hotCheck(threadIsMain());
    strAppendFormat(out, "{\"interval_seconds\":%d,\"samples_max\":%d,\"time_ms\":[",
                    HISTORY_INTERVAL_MS / 1000, HISTORY_SAMPLES);
    for (int i = 0; kept && i < kept->count; i++)
        strAppendFormat(out, "%s%lld", i ? "," : "", (long long)sampleAt(i)->time_ms);
    strAppendByte(out, ']');
    for (size_t i = 0; i < COLUMNS; i++)
        printColumn(out, columns[i].name, offsetof(sample, values) + i * sizeof(double));
    printColumn(out, "p50_us", offsetof(sample, p50_us));
    printColumn(out, "p99_us", offsetof(sample, p99_us));
    strAppendText(out, "}\n");
}

double historyCommandRate(int command_id) {
    hotCheck(command_id >= 0);
    return kept && command_id < kept->commands ? (double)kept->call_rates[command_id] : (double)NAN;
}
