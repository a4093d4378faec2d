/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --latency, --latency-history, --latency-dist and --intrinsic-latency (modes.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/cli/bars.h"
#include "tools/cli/modes.h"
#include "tools/cli/terminal.h"
#include "tools/size_histogram.h"

enum { SAMPLE_INTERVAL_US = 10000, HISTORY_MS = 15000, SPARK_MAX = 40, CONTROL_LEN = 8 };

typedef struct latencyRun {
    int64_t min_ms, max_ms, total_ms;
    uint64_t count;
    sizeHistogram histogram; /* microseconds */
    uint32_t recent_us[SPARK_MAX];
} latencyRun;

static int64_t pingUs(connection *c) {
    int64_t start_us = clockMonoUs();
    freeReplyObject(connectionCommand(c, "PING"));
    return clockMonoUs() - start_us;
}

static void record(latencyRun *run, int64_t us) {
    int64_t ms = us / 1000;
    if (run->count == 0 || ms < run->min_ms) run->min_ms = ms;
    if (ms > run->max_ms) run->max_ms = ms;
    run->total_ms += ms;
    run->recent_us[run->count % SPARK_MAX] = (uint32_t)us;
    run->count++;
    sizeHistogramRecord(&run->histogram, (uint64_t)us);
}

static double average(const latencyRun *run) {
    return run->count ? (double)run->total_ms / (double)run->count : 0;
}

static void printOnce(const cliOptions *o, const latencyRun *run) {
    const char *format = "%" PRId64 " %" PRId64 " %.2f %" PRIu64 "\n";
    if (o->output == OUTPUT_CSV) format = "%" PRId64 ",%" PRId64 ",%.2f,%" PRIu64 "\n";
    if (o->output == OUTPUT_JSON || o->output == OUTPUT_QUOTED_JSON)
        format =
            "{\"min\": %" PRId64 ", \"max\": %" PRId64 ", \"avg\": %.2f, \"count\": %" PRIu64 "}\n";
    printf(format, run->min_ms, run->max_ms, average(run), run->count);
}

/* The last samples as bars, as many as fit into `columns`. */
static void printSparkline(const latencyRun *run, int columns) {
    uint64_t shown = columns < SPARK_MAX ? (uint64_t)(columns > 0 ? columns : 0) : SPARK_MAX;
    uint64_t first = run->count > shown ? run->count - shown : 0;
    str out = STR_EMPTY;
    for (uint64_t i = first; i < run->count; i++)
        barsAppendLatency(&out, run->recent_us[i % SPARK_MAX], barsAreBlocks());
    fputs(strText(&out), stdout);
    strFree(&out);
}

/* Replaces the line; on a terminal with as many details as fit, because a line that wraps could not
 * be replaced. */
static void printLine(const latencyRun *run, bool details) {
    int columns = terminalColumns() - 1;
    int used =
        printf("\x1b[0G\x1b[2Kmin: %" PRId64 ", max: %" PRId64 ", avg: %.2f (%" PRIu64 " samples)",
               run->min_ms, run->max_ms, average(run), run->count) -
        CONTROL_LEN;
    str percentiles = STR_EMPTY;
    strAppendFormat(&percentiles, " p50: %.2f, p99: %.2f, p99.9: %.2f ms ",
                    (double)sizeHistogramPercentile(&run->histogram, 50) / 1000,
                    (double)sizeHistogramPercentile(&run->histogram, 99) / 1000,
                    (double)sizeHistogramPercentile(&run->histogram, 99.9) / 1000);
    used += (int)percentiles.len;
    if (details && used <= columns) {
        fputs(strText(&percentiles), stdout);
        printSparkline(run, columns - used);
    }
    strFree(&percentiles);
    fflush(stdout);
}

static void restart(latencyRun *run) {
    sizeHistogramFree(&run->histogram);
    *run = (latencyRun){0};
}

int modeLatency(connection *c) {
    const cliOptions *o = c->options;
    bool history = o->mode == MODE_LATENCY_HISTORY;
    int64_t interval_ms = o->interval_us ? o->interval_us / 1000 : history ? HISTORY_MS : 1000;
    bool once = !history && o->output != OUTPUT_STANDARD;
    bool terminal = isatty(STDOUT_FILENO);
    latencyRun run = {0};
    if (!connectionConnect(c)) return 1;
    int64_t start_ms = clockMonoMs();
    for (;;) {
        record(&run, pingUs(c));
        if (o->output == OUTPUT_STANDARD) printLine(&run, terminal);
        int64_t elapsed_ms = clockMonoMs() - start_ms;
        if (once && elapsed_ms > interval_ms) {
            printOnce(o, &run);
            restart(&run);
            return 0;
        }
        if (history && elapsed_ms > interval_ms) {
            if (o->output == OUTPUT_STANDARD) {
                printf(" -- %.2f seconds range\n", (double)elapsed_ms / 1000);
            } else {
                printOnce(o, &run);
                fflush(stdout);
            }
            restart(&run);
            start_ms = clockMonoMs();
        }
        clockSleepUs(SAMPLE_INTERVAL_US);
    }
}

/* ------------------------------------------------------------------ --latency-dist */

static const int palette[] = {0,   233, 234, 235, 237, 239, 241, 243, 245, 247,
                              144, 143, 142, 184, 226, 214, 208, 202, 196};
enum { PALETTE_SIZE = sizeof(palette) / sizeof(*palette), CLASSES = 35 };

/* Upper limits of the classes in microseconds, and the letter of each. */
static const struct {
    int64_t max_us;
    char letter;
} classes[CLASSES] = {{10, '.'},       {125, '-'},      {250, '*'},      {500, '#'},
                      {1000, '1'},     {2000, '2'},     {3000, '3'},     {4000, '4'},
                      {5000, '5'},     {6000, '6'},     {7000, '7'},     {8000, '8'},
                      {9000, '9'},     {10000, 'A'},    {20000, 'B'},    {30000, 'C'},
                      {40000, 'D'},    {50000, 'E'},    {100000, 'F'},   {200000, 'G'},
                      {300000, 'H'},   {400000, 'I'},   {500000, 'J'},   {1000000, 'K'},
                      {2000000, 'L'},  {4000000, 'M'},  {8000000, 'N'},  {16000000, 'O'},
                      {30000000, 'P'}, {60000000, 'Q'}, {INT64_MAX, '?'}};

static void printLegend(void) {
    printf("---------------------------------------------\n"
           ". - * #          .01 .125 .25 .5 milliseconds\n"
           "1,2,3,...,9      from 1 to 9     milliseconds\n"
           "A,B,C,D,E        10,20,30,40,50  milliseconds\n"
           "F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n"
           "K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n"
           "From 0 to 100%%: ");
    for (int i = 0; i < PALETTE_SIZE; i++) printf("\033[48;5;%dm ", palette[i]);
    printf("\033[0m\n---------------------------------------------\n");
}

static void printSpectrum(const uint64_t *counts, uint64_t total) {
    for (int i = 0; i < CLASSES && classes[i].letter; i++) {
        uint64_t step = total ? counts[i] * (PALETTE_SIZE - 1) / total : 0;
        if (counts[i] > 0 && step == 0) step = 1;
        printf("\033[38;5;0m\033[48;5;%dm%c", palette[step], classes[i].letter);
    }
    printf("\033[0m\n");
    fflush(stdout);
}

int modeLatencyDist(connection *c) {
    int64_t interval_us = c->options->interval_us ? c->options->interval_us : 1000000;
    if (!connectionConnect(c)) return 1;
    int lines = 0;
    for (;;) {
        uint64_t counts[CLASSES] = {0}, total = 0;
        int64_t end_us = clockMonoUs() + interval_us;
        do {
            int64_t us = pingUs(c);
            int at = 0;
            while (us > classes[at].max_us) at++;
            counts[at]++;
            total++;
            clockSleepUs(SAMPLE_INTERVAL_US);
        } while (clockMonoUs() < end_us);
        if (lines++ % 20 == 0) printLegend();
        printSpectrum(counts, total);
    }
}

/* ------------------------------------------------------------------ --intrinsic-latency */

/* A loop of which nothing is asked but time: what it loses was taken by the kernel or the
 * hypervisor. */
int modeIntrinsicLatency(connection *c) {
    int64_t start_us = clockMonoUs(), end_us = start_us + c->options->intrinsic_s * 1000000;
    uint64_t runs = 0, state = 88172645463325252ull;
    int64_t max_us = 0, now_us = start_us;
    while (now_us < end_us) {
        int64_t before_us = now_us;
        for (int i = 0; i < 100; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        __asm__ volatile("" : : "r"(state));
        now_us = clockMonoUs();
        runs++;
        if (now_us - before_us <= max_us) continue;
        max_us = now_us - before_us;
        printf("Max latency so far: %" PRId64 " microseconds.\n", max_us);
        fflush(stdout);
    }
    double average_us = runs ? (double)(now_us - start_us) / (double)runs : 0;
    printf("\n%" PRIu64
           " total runs (avg latency: %.4f microseconds / %.2f nanoseconds per run).\n",
           runs, average_us, average_us * 1e3);
    printf("Worst run took %.0fx longer than the average latency.\n",
           average_us > 0 ? (double)max_us / average_us : 0);
    return 0;
}
