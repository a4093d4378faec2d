/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LATENCY: the samples of the latency monitor as data, graph and report, and the latency histograms
 * of commands. Main thread only. */
#include "engine/latency.h"

#include "base/base.h"
#include "base/histogram.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "engine/commandlog.h"
#include "config/config.h"
#include "engine/reply.h"

/* The i-th sample of an event, oldest first. A sample with time 0 is unused. */
static const latencySample *sampleAt(const latencyEvent *e, int i) {
    return &e->samples[(e->next + i) % LATENCY_SAMPLES_MAX];
}

static int sampleCount(const latencyEvent *e) {
    int count = 0;
    for (int i = 0; i < LATENCY_SAMPLES_MAX; i++) count += e->samples[i].time_s != 0;
    return count;
}

/* ------------------------------------------------------------------ samples */

/* LATENCY HISTORY event. Reply: pairs of time and ms, oldest first. */
void latencyHistoryCommand(ctx *c) {
    hotCheck(c->argc == 3);
    const latencyEvent *e = latencyFind(c->argv[2]);
    if (!e) {
        replyArray(c, 0);
        return;
    }
    replyArray(c, sampleCount(e));
    for (int i = 0; i < LATENCY_SAMPLES_MAX; i++) {
        const latencySample *sample = sampleAt(e, i);
        if (!sample->time_s) continue;
        replyArray(c, 2);
        replyInteger(c, sample->time_s);
        replyInteger(c, sample->ms);
    }
}

/* LATENCY LATEST. Reply for each event: name, time and ms of the latest sample, and the maximum,
 * sum and count of all spikes. */
void latencyLatestCommand(ctx *c) {
    replyArray(c, latencyEventCount());
    for (int i = 0; i < latencyEventCount(); i++) {
        const latencyEvent *e = latencyEventAt(i);
        const latencySample *last = sampleAt(e, LATENCY_SAMPLES_MAX - 1);
        replyArray(c, 6);
        replyBulkText(c, e->name);
        replyInteger(c, last->time_s);
        replyInteger(c, last->ms);
        replyInteger(c, e->max_ms);
        replyInteger(c, e->sum_ms);
        replyInteger(c, e->count);
    }
}

/* LATENCY RESET [event ...]. Reply: number of events reset. */
void latencyResetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int gone = 0;
    if (c->argc == 2) gone = latencyReset(sliceMake(NULL, 0));
    for (int i = 2; i < c->argc; i++) gone += latencyReset(c->argv[i]);
    replyInteger(c, gone);
}

/* ------------------------------------------------------------------ HISTOGRAM */

/* Cumulative counts at bounds that double from 1024 ns on, where the count increases. */
static void replyHistogram(ctx *c, const command *cmd) {
    replyBulk(c, cmd->name);
    replyMap(c, 2);
    replyBulkText(c, "calls");
    replyInteger(c, (int64_t)cmd->latency->total);
    replyBulkText(c, "histogram_usec");
    respDeferred map = respDeferBegin(c->out);
    uint64_t before = 0;
    int pairs = 0;
    for (int64_t bound = 1024; before < cmd->latency->total; bound *= 2) {
        int64_t highest = histogramHighest(histogramIndex(bound));
        uint64_t count = histogramCountUpTo(cmd->latency, bound);
        if (count == before) continue;
        replyInteger(c, highest / 1000);
        replyInteger(c, (int64_t)count);
        before = count;
        pairs++;
    }
    respDeferEnd(c->out, map, '%', c->proto, pairs);
}

/* Replies the histogram of a command, or those of its subcommands if it is a container. Returns
 * their number. */
static int replyHistogramsOf(ctx *c, const command *cmd) {
    if (cmd->latency) {
        replyHistogram(c, cmd);
        return 1;
    }
    int count = 0;
    for (int i = 0; i < cmd->sub_count; i++) {
        if (!cmd->subs[i].latency) continue;
        replyHistogram(c, &cmd->subs[i]);
        count++;
    }
    return count;
}

/* LATENCY HISTOGRAM [command ...]. Reply: a map of commands to the number of calls and cumulative
 * counts by microseconds. */
void latencyHistogramCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    respDeferred map = respDeferBegin(c->out);
    int count = 0;
    for (int i = 2; i < c->argc; i++) {
        const command *cmd = commandFindByFullName(c->argv[i]);
        if (cmd) count += replyHistogramsOf(c, cmd);
    }
    for (int id = 0; c->argc == 2 && id < commandIdCount(); id++) {
        const command *cmd = commandById(id);
        if (cmd->latency && cmd->latency->total) {
            replyHistogram(c, cmd);
            count++;
        }
    }
    respDeferEnd(c->out, map, '%', c->proto, count);
}

/* ------------------------------------------------------------------ GRAPH */

enum { GRAPH_COLUMNS = 80, GRAPH_ROWS = 4, GRAPH_LABEL_MAX = 24 };

typedef struct graphColumn {
    int level; /* three levels per row */
    char label[GRAPH_LABEL_MAX];
} graphColumn;

/* Prints an age in the largest unit that gives a whole number. */
static void printAge(char *dst, int64_t seconds) {
    hotCheck(seconds >= 0);
    static const struct {
        int64_t length;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;
    while (i < COUNT_OF(units) - 1 && seconds < units[i].length) i++;
    size_t len = numberPrintInt(dst, seconds / units[i].length);
    dst[len] = units[i].letter;
    dst[len + 1] = 0;
}

/* Draws one line per row of the graph, then the labels vertically. */
static void drawColumns(const graphColumn *columns, int count, str *out) {
    hotCheck(count >= 0);
    hotCheck(count <= LATENCY_SAMPLES_MAX);
    for (int row = GRAPH_ROWS - 1; row >= 0; row--) {
        for (int i = 0; i < count; i++) {
            int above = columns[i].level - 3 * row;
            strAppendByte(out, above < 0 ? ' ' : above < 3 ? "_o#"[above] : '|');
        }
        strAppendByte(out, '\n');
    }
    for (int i = 0; i < count; i++) strAppendByte(out, ' ');
    strAppendByte(out, '\n');
    for (size_t at = 0;; at++) {
        bool any = false;
        for (int i = 0; i < count; i++) any = any || strlen(columns[i].label) > at;
        if (!any) return;
        for (int i = 0; i < count; i++) {
            strAppendByte(out, strlen(columns[i].label) > at ? columns[i].label[at] : ' ');
        }
        strAppendByte(out, '\n');
    }
}

static void drawEvent(const latencyEvent *e, str *out) {
    graphColumn columns[LATENCY_SAMPLES_MAX];
    int count = 0;
    int64_t high = 0, low = INT64_MAX, now_s = clockWallMs() / 1000;
    for (int i = 0; i < LATENCY_SAMPLES_MAX; i++) {
        const latencySample *sample = sampleAt(e, i);
        if (!sample->time_s) continue;
        if (sample->ms > high) high = sample->ms;
        if (sample->ms < low) low = sample->ms;
    }
    double span = high > low ? (double)(high - low) : 1;
    for (int i = 0; i < LATENCY_SAMPLES_MAX; i++) {
        const latencySample *sample = sampleAt(e, i);
        if (!sample->time_s) continue;
        graphColumn *column = &columns[count++];
        column->level = (int)((double)(sample->ms - low) / span * (GRAPH_ROWS * 3 - 1));
        printAge(column->label, now_s - sample->time_s);
    }
    strAppendFormat(out, "%s - high %lld ms, low %lld ms (all time high %lld ms)\n", e->name,
                    (long long)high, (long long)low, (long long)e->max_ms);
    for (int i = 0; i < GRAPH_COLUMNS; i++) strAppendByte(out, '-');
    strAppendByte(out, '\n');
    for (int from = 0; from < count; from += GRAPH_COLUMNS) {
        if (from) strAppendByte(out, '\n');
        int left = count - from;
        drawColumns(columns + from, left < GRAPH_COLUMNS ? left : GRAPH_COLUMNS, out);
    }
}

/* LATENCY GRAPH event. Reply: an ASCII graph of its samples. */
void latencyGraphCommand(ctx *c) {
    hotCheck(c->argc == 3);
    const latencyEvent *e = latencyFind(c->argv[2]);
    if (!e) {
        replyErrorFormat(c, "ERR No samples available for event '%.*s'", (int)c->argv[2].len,
                         c->argv[2].ptr);
        return;
    }
    str text = STR_EMPTY;
    drawEvent(e, &text);
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* ------------------------------------------------------------------ DOCTOR */

typedef struct latencySummary {
    int count;
    int64_t mean_ms, deviation_ms;
    double period_s;
} latencySummary;

static latencySummary summarize(const latencyEvent *e) {
    latencySummary sum = {.count = sampleCount(e)};
    int64_t total = 0, deviations = 0, oldest_s = 0, now_s = clockWallMs() / 1000;
    for (int i = 0; i < LATENCY_SAMPLES_MAX; i++) {
        const latencySample *sample = sampleAt(e, i);
        if (!sample->time_s) continue;
        if (!oldest_s) oldest_s = sample->time_s;
        total += sample->ms;
    }
    sum.mean_ms = total / sum.count;
    for (int i = 0; i < LATENCY_SAMPLES_MAX; i++) {
        const latencySample *sample = sampleAt(e, i);
        if (!sample->time_s) continue;
        int64_t from_mean = sample->ms - sum.mean_ms;
        deviations += from_mean < 0 ? -from_mean : from_mean;
    }
    sum.deviation_ms = deviations / sum.count;
    int64_t elapsed_s = now_s > oldest_s ? now_s - oldest_s : 1;
    sum.period_s = (double)elapsed_s / sum.count;
    return sum;
}

/* The numeric value of a directive. */
static int64_t directive(const char *name) {
    str text = STR_EMPTY;
    int64_t value = 0;
    configGet(configFind(sliceOf(name)), &text);
    (void)numberParseInt(strSlice(&text), &value); /* the directive is numeric */
    strFree(&text);
    return value;
}

/* Names the slowest command of the command log, with its first words and its client. */
static void nameSlowest(str *out) {
    enum { WORDS_MAX = 4 };
    hotCheck(threadIsMain());
    const commandlogEntry *slowest = NULL;
    const list *entries = commandlogOf(COMMANDLOG_SLOW);
    for (listNode *n = listFirst(entries); n; n = listNext(entries, n)) {
        const commandlogEntry *e = LIST_OWNER(n, commandlogEntry, node);
        if (!slowest || e->value > slowest->value) slowest = e;
    }
    if (!slowest) return;
    strAppendFormat(
        out, "- The slowest command there took %lld ms:", (long long)(slowest->value / 1000));
    for (int i = 0; i < slowest->argc && i < WORDS_MAX; i++) {
        strAppendByte(out, ' ');
        configAppendWord(out, strSlice(&slowest->argv[i]));
    }
    strAppendFormat(out, "%s (client %s%s%s, COMMANDLOG entry %lld).\n",
                    slowest->argc > WORDS_MAX ? " ..." : "", strText(&slowest->peer),
                    slowest->name.len ? ", name " : "", strText(&slowest->name),
                    (long long)slowest->id);
}

static void adviseOnCommandLog(str *out) {
    int64_t slower_us = directive("commandlog-execution-slower-than");
    int64_t threshold_us = latencyThreshold() * 1000;
    if (slower_us < 0) {
        strAppendFormat(
            out,
            "- There are latency issues with potentially slow commands you are using. Try "
            "to enable the Slow Log Valkey feature using the command 'CONFIG SET "
            "slowlog-log-slower-than %lld'. If the Slow log is disabled Valkey is not able "
            "to log slow commands execution for you.\n",
            (long long)threshold_us);
    } else if (slower_us > threshold_us) {
        strAppendFormat(
            out,
            "- Your current Slow Log configuration only logs events that are slower than "
            "your configured latency monitor threshold. Please use 'CONFIG SET "
            "slowlog-log-slower-than %lld'.\n",
            (long long)threshold_us);
    }
    strAppendText(
        out, "- Check your Slow Log to understand what are the commands you are running which are "
             "too slow to execute. Please check https://valkey.io/commands/slowlog for more "
             "information.\n");
    nameSlowest(out);
}

static void adviseOnSystem(str *out) {
    strAppendText(
        out,
        "- The system is slow to execute Valkey code paths not containing system calls. This usually means "
        "the system does not provide Valkey CPU time to run for long periods. You should try to:\n"
        "  1) Lower the system load.\n"
        "  2) Use a computer / VM just for Valkey if you are running other software in the same system.\n"
        "  3) Check if you have a \"noisy neighbour\" problem.\n"
        "  4) Check with 'valkey-cli --intrinsic-latency 100' what is the intrinsic latency in your "
        "system.\n"
        "  5) Check if the problem is allocator-related by recompiling Valkey with MALLOC=libc, if you are "
        "using Jemalloc. However this may create fragmentation problems.\n");
}

static void adviseOnSlices(str *out) {
    int64_t budget_us = directive("command-slice-us");
    strAppendFormat(
        out,
        "- Commands that run in slices (command-slice-us %lld) had slices of more than twice that. "
        "A slice is long if a change had to end the command in one piece (jobs_in_one_piece in INFO "
        "stats), or if the system gave the server no CPU time. The times of these commands in the "
        "Slow Log are sums of slices, and no stall: others wait for a slice at a time.\n",
        (long long)budget_us);
}

/* Prints advice on the recorded events. */
static void advise(str *out) {
    bool slow = latencyFind(SLICE("command")) != NULL;
    bool fast = latencyFind(SLICE("fast-command")) != NULL;
    bool expire = latencyFind(SLICE("expire-cycle")) != NULL;
    bool slices = latencyFind(SLICE("slice")) != NULL;
    if (!slow && !fast && !expire && !slices) {
        strAppendText(
            out, "\nWhile there are latency events logged, I'm not able to suggest any easy fix. "
                 "Please use the Valkey community to get some help, providing this report in your "
                 "help request.\n");
        return;
    }
    strAppendText(out, "\nHere is some advice for you:\n\n");
    if (fast) adviseOnSystem(out);
    if (slow) adviseOnCommandLog(out);
    if (slices) adviseOnSlices(out);
    if (expire && directive("hz") < 100) {
        strAppendText(
            out, "- In order to make the Valkey keys expiring process more incremental, try to set "
                 "the 'hz' configuration parameter to 100 using 'CONFIG SET hz 100'.\n");
    }
    if (!slow && !expire) return;
    strAppendText(
        out,
        "- Deleting, expiring or evicting (because of maxmemory policy) large objects is a "
        "blocking operation. If you have very large objects that are often deleted, expired, or "
        "evicted, try to fragment those objects into multiple smaller objects.\n");
}

/* LATENCY DOCTOR. Reply: a report as text. */
void latencyDoctorCommand(ctx *c) {
    str text = STR_EMPTY;
    if (latencyEventCount() == 0 && !latencyThreshold()) {
        strAppendText(
            &text,
            "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Valkey "
            "instance. You may use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in "
            "order to enable it.\n");
    } else if (latencyEventCount() == 0) {
        strAppendText(
            &text,
            "No latency spike was observed during the lifetime of this Valkey instance, not in "
            "the slightest bit.\n");
    } else {
        strAppendText(&text, "Latency spikes are observed in this Valkey instance.\n\n");
        for (int i = 0; i < latencyEventCount(); i++) {
            const latencyEvent *e = latencyEventAt(i);
            latencySummary sum = summarize(e);
            strAppendFormat(
                &text,
                "%d. %s: %d latency spikes (average %lldms, mean deviation %lldms, period "
                "%.2f sec). Worst all time event %lldms.\n",
                i + 1, e->name, sum.count, (long long)sum.mean_ms, (long long)sum.deviation_ms,
                sum.period_s, (long long)e->max_ms);
        }
        advise(&text);
    }
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

void latencyHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "DOCTOR",
        "    Return a human readable latency analysis report.",
        "GRAPH <event>",
        "    Return an ASCII latency graph for the <event> class.",
        "HISTORY <event>",
        "    Return time-latency samples for the <event> class.",
        "LATEST",
        "    Return the latest latency samples for all events.",
        "RESET [<event> ...]",
        "    Reset latency data of one or more <event> classes.",
        "    (default: reset all data for all event classes)",
        "HISTOGRAM [COMMAND ...]",
        "    Return a cumulative distribution of latencies in the format of a histogram for the "
        "specified command names.",
        "    If no commands are specified then all histograms are replied.",
        NULL,
    };
    replyHelp(c, lines);
}
