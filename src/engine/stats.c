/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Error counters by code (bounded), rates, and the INFO sections Commandstats, Errorstats,
 * Latencystats and the engine's share of Stats. Main thread only. */
#include "engine/stats.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/hotkeys_priv.h"
#include "engine/expiry_gate.h"
#include "engine/job.h"
#include "engine/stats_priv.h"

/* Codes of the server's own errors are few, and are listed even if scripts have filled their part
 * of the table. */
enum { ERROR_CODES_MAX = 192, SCRIPT_CODES_MAX = 128, ERROR_CODE_LEN_MAX = 64 };

typedef struct errorCount {
    char code[ERROR_CODE_LEN_MAX];
    uint64_t count;
} errorCount;

static struct {
    errorCount errors[ERROR_CODES_MAX]; /* unordered */
    int error_count;
    uint64_t errors_total, errors_unexpected;
    uint64_t errors_overflow; /* errors whose code did not fit in the table */
    rate ops;
    uint64_t commands_base; /* engineHot.commands at the last reset */
} stats;

static void countError(slice code, int most) {
    stats.errors_total++;
    size_t len = sizeMin(code.len, ERROR_CODE_LEN_MAX - 1);
    for (int i = 0; i < stats.error_count; i++) {
        if (strlen(stats.errors[i].code) == len &&
            memcmp(stats.errors[i].code, code.ptr, len) == 0) {
            stats.errors[i].count++;
            return;
        }
    }
    if (stats.error_count >= most) {
        stats.errors_overflow++;
        return;
    }
    errorCount *e = &stats.errors[stats.error_count++];
    memcpy(e->code, code.ptr, len);
    e->code[len] = 0;
    e->count = 1;
}

void statsCountError(slice code) { countError(code, ERROR_CODES_MAX); }

void statsCountScriptError(slice code) { countError(code, SCRIPT_CODES_MAX); }

void statsCountUnexpectedError(void) { stats.errors_unexpected++; }

void statsMakeHistogram(command *cmd) { cmd->latency = memNew(histogram); }

void statsReset(void) {
    hotCheck(threadIsMain());
    childResetStats();
    jobResetStats();
    expiryGateResetStats();
    memset(stats.errors, 0, sizeof(stats.errors));
    stats.error_count = 0;
    stats.errors_total = stats.errors_unexpected = stats.errors_overflow = 0;
    stats.commands_base = engineHot.commands;
    for (int id = 0; id < commandIdCount(); id++) {
        command *cmd = (command *)commandById(id);
        cmd->calls = cmd->usec_ns = cmd->rejected = cmd->failed = 0;
        memFree(cmd->latency);
        cmd->latency = NULL;
    }
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_stats_reset) hooksFeature(i)->on_stats_reset();
    }
}

void rateSample(rate *r, uint64_t count, int64_t now_us) {
    hotCheck(threadIsMain());
    int64_t elapsed = now_us - r->last_us;
    if (r->last_us && elapsed > 0) {
        r->samples[r->next] = (uint64_t)((double)(count - r->last_count) * 1e6 / (double)elapsed);
        r->next = (r->next + 1) % (int)COUNT_OF(r->samples);
    }
    r->last_count = count;
    r->last_us = now_us;
}

uint64_t ratePerSecond(const rate *r) {
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(r->samples); i++) sum += r->samples[i];
    return sum / COUNT_OF(r->samples);
}

void statsSampleRates(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    rateSample(&stats.ops, engineHot.commands, clockMonoUs());
}

static void printStats(str *out) {
    strAppendField(out, "total_commands_processed", (engineHot.commands - stats.commands_base));
    strAppendField(out, "instantaneous_ops_per_sec", ratePerSecond(&stats.ops));
    strAppendField(out, "unexpected_error_replies", stats.errors_unexpected);
    strAppendField(out, "total_error_replies", stats.errors_total);
    jobPrintStats(out);
    strAppendFormat(out, "expiry_requests_held:%llu\r\n", (unsigned long long)expiryGateCount());
}

/* Appends a field of INFO that begins with a name of others, so that it remains one field. */
static void appendName(str *out, const char *prefix, slice name) {
    strAppendText(out, prefix);
    size_t start = out->len;
    strAppendSlice(out, name);
    for (size_t i = start; i < out->len; i++) {
        char ch = out->ptr[i];
        if (ch == '#' || ch == ':' || ch == '\r' || ch == '\n') out->ptr[i] = '_';
    }
}

static void printCommandstats(str *out) {
    for (int id = 0; id < commandIdCount(); id++) {
        const command *cmd = commandById(id);
        if (!cmd->calls && !cmd->rejected && !cmd->failed) continue;
        uint64_t usec = cmd->usec_ns / 1000;
        appendName(out, "cmdstat_", cmd->name);
        strAppendFormat(
            out,
            ":calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu\r\n",
            (unsigned long long)cmd->calls, (unsigned long long)usec,
            cmd->calls ? (double)cmd->usec_ns / 1000.0 / (double)cmd->calls : 0.0,
            (unsigned long long)cmd->rejected, (unsigned long long)cmd->failed);
    }
}

static int compareCodes(const void *a, const void *b) {
    return strcmp(((const errorCount *)a)->code, ((const errorCount *)b)->code);
}

/* Sorted by code. */
static void printErrorstats(str *out) {
    qsort(stats.errors, (size_t)stats.error_count, sizeof(errorCount), compareCodes);
    for (int i = 0; i < stats.error_count; i++) {
        appendName(out, "errorstat_", sliceOf(stats.errors[i].code));
        strAppendFormat(out, ":count=%llu\r\n", (unsigned long long)stats.errors[i].count);
    }
    if (stats.errors_overflow) {
        strAppendFormat(out, "errorstat_ERRORSTATS_OVERFLOW:count=%llu\r\n",
                        (unsigned long long)stats.errors_overflow);
    }
}

static void printLatencystats(str *out) {
    for (int id = 0; id < commandIdCount(); id++) {
        const command *cmd = commandById(id);
        if (!cmd->latency) continue;
        appendName(out, "latency_percentiles_usec_", cmd->name);
        strAppendByte(out, ':');
        for (int i = 0; i < engineConf.latency_percentile_count; i++) {
            double percent = engineConf.latency_percentiles[i];
            char name[NUMBER_TEXT_MAX];
            numberPrintDouble(name, percent);
            strAppendFormat(out, "%sp%s=%.3f", i ? "," : "", name,
                            (double)histogramPercentile(cmd->latency, percent) / 1000.0);
        }
        strAppendText(out, "\r\n");
    }
}

static uint64_t busy_us;

void statsAddBusy(uint64_t us) { busy_us += us; }

uint64_t statsBusyUs(void) { return busy_us; }

const infoSection statsSections[] = {
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, childPrintStats},
    {"commandstats", "# Commandstats", INFO_IN_ALL | INFO_IN_EVERYTHING, INFO_COMMANDSTATS,
     printCommandstats},
    {"errorstats", "# Errorstats", INFO_NORMAL, INFO_ERRORSTATS, printErrorstats},
    {"latencystats", "# Latencystats", INFO_IN_ALL | INFO_IN_EVERYTHING, INFO_LATENCYSTATS,
     printLatencystats},
    {"hotkeys", "# Hotkeys", INFO_IN_ALL | INFO_IN_EVERYTHING, INFO_HOTKEYS,
     hotkeysWindowPrintInfo},
    {0},
};
