/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints results; see the header. */
#include "tools/benchmark/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_FINE_US = 100, FINE_UNTIL_US = 2100, COARSE_STEPS = 20, PLOT_WIDTH = 60 };

static double ms(int64_t us) { return (double)us / 1000; }

double reportRate(const runResult *r) {
    return (double)r->requests / ((double)r->elapsed_ms / 1000);
}

/* ------------------------------------------------------------------ what was run */

static void printNodeConfig(const target *t, bool cluster) {
    for (int i = 0; i < t->count; i++) {
        const targetNode *n = &t->nodes[i];
        if (cluster) {
            printf("  node [%d] configuration:\n", i);
            printf("    save: %s\n", n->save && n->save[0] ? n->save : "NONE");
            printf("    appendonly: %s\n", n->appendonly ? n->appendonly : "");
        } else if (n->save || n->appendonly) {
            printf("  host configuration \"save\": %s\n", n->save ? n->save : "");
            printf("  host configuration \"appendonly\": %s\n", n->appendonly ? n->appendonly : "");
        }
    }
}

static void printHeader(const benchOptions *o, const target *t, const workload *w,
                        const runResult *r) {
    static const char *const kinds[] = {"primary", "replica", "cluster"};
    printf("====== %s ======\n", w->title);
    printf("  %lld requests completed in %.2f seconds\n", (long long)r->requests,
           ms(r->elapsed_ms));
    printf("  %d parallel clients\n", o->clients);
    printf("  %lld bytes payload\n", (long long)w->payload);
    printf("  keep alive: %d\n", o->keep_alive);
    if (o->cluster) printf("  cluster mode: yes (%d %s)\n", t->count, kinds[o->read_from]);
    printNodeConfig(t, o->cluster);
    int threads = o->cluster && o->threads == 0 ? t->count : o->threads;
    printf("  multi-thread: %s\n", threads > 0 ? "yes" : "no");
    if (threads > 0) printf("  threads: %d\n", threads);
    printf("\n");
}

/* ------------------------------------------------------------------ distributions */

static void printRow(double percent, int64_t us, uint64_t count) {
    printf("%3.3f%% <= %.3f milliseconds (cumulative count %llu)\n", percent, ms(us),
           (unsigned long long)count);
}

/* The percentile after `percent`: each step is half of what remains to 100 %. */
static double nextPercentile(double percent) {
    return percent + 100 / exp2(floor(log2(100 / (100 - percent))) + 1);
}

static void printPercentiles(const latency *l) {
    latencyWalk w;
    double percent = 0;
    printf("Latency by percentile distribution:\n");
    latencyWalkInit(&w, l);
    bool more = latencyWalkNext(&w);
    while (more) {
        if (100.0 * (double)w.cumulative / (double)l->total >= percent) {
            printRow(percent, w.highest, w.cumulative);
            percent = nextPercentile(percent);
            if (w.cumulative == l->total) break;
        } else {
            more = latencyWalkNext(&w);
        }
    }
    printRow(100, latencyMax(l), l->total);
    printf("\n");
}

/* Some 20 steps per power of ten. */
static int64_t nextStep(int64_t us) {
    int64_t step = STEP_FINE_US * 10;
    if (us < FINE_UNTIL_US) return STEP_FINE_US;
    while (us >= step * COARSE_STEPS) step *= 10;
    return step;
}

/* The counts up to multiples of a step: fine ones first. A row is printed if its count is new. */
static void printCumulative(const latency *l) {
    printf("Cumulative distribution of latencies:\n");
    latencyWalk w;
    uint64_t count = 0, shown = UINT64_MAX;
    latencyWalkInit(&w, l);
    bool more = latencyWalkNext(&w);
    for (int64_t us = STEP_FINE_US; l->total > 0 && count < l->total; us += nextStep(us)) {
        int64_t highest = latencyHighest(l, us);
        while (more && w.highest <= highest) {
            count = w.cumulative;
            more = latencyWalkNext(&w);
        }
        if (count != shown) printRow(100.0 * (double)count / (double)l->total, highest, count);
        shown = count;
    }
    printf("\n");
}

/* ------------------------------------------------------------------ summaries */

static int compareDoubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void printRateSummary(const benchOptions *o, const runResult *r) {
    int n = r->rate_count;
    double sorted[RATE_SAMPLES_MAX], sum = 0;
    memcpy(sorted, r->rates, (size_t)n * sizeof(*sorted));
    qsort(sorted, (size_t)n, sizeof(*sorted), compareDoubles);
    for (int i = 0; i < n; i++) sum += sorted[i];
    printf("RPS Summary:\n  target RPS: %.2f\n  RPS distribution (reqs/sec):\n", o->rate);
    printf("    %9s %9s %9s %9s %9s %9s\n", "avg", "min", "p50", "p95", "p99", "max");
    double none[1] = {0};
    const double *s = n ? sorted : none;
    int last = n ? n - 1 : 0;
    printf("    %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n\n", n ? sum / n : 0, s[0], s[last / 2],
           s[last * 95 / 100], s[last * 99 / 100], s[last]);
}

static void printSummary(const runResult *r) {
    const latency *l = &r->latencies;
    printf("Summary:\n  throughput summary: %.2f requests per second\n", reportRate(r));
    printf("  latency summary (msec):\n");
    printf("    %9s %9s %9s %9s %9s %9s\n", "avg", "min", "p50", "p95", "p99", "max");
    printf("    %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n", latencyMean(l) / 1000, ms(latencyMin(l)),
           ms(latencyPercentile(l, 50)), ms(latencyPercentile(l, 95)), ms(latencyPercentile(l, 99)),
           ms(latencyMax(l)));
}

void reportPercentiles(const latency *l) {
    static const double percents[] = {50, 75, 90, 95, 99, 99.9, 99.99};
    printf("  latency percentiles (msec):\n   ");
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%g", percents[i]);
        printf(" %9s", name);
    }
    printf(" %9s\n   ", "max");
    for (int i = 0; i < 7; i++) printf(" %9.3f", ms(latencyPercentile(l, percents[i])));
    printf(" %9.3f\n", ms(latencyMax(l)));
}

/* A bar per third of a power of two of microseconds. */
void reportPlot(const latency *l) {
    enum { ROWS = 100 };
    uint64_t counts[ROWS] = {0}, most = 0;
    int first = ROWS, last = 0;
    latencyWalk w;
    latencyWalkInit(&w, l);
    while (latencyWalkNext(&w)) {
        int row = (int)(log2((double)(w.highest + 1)) * 3);
        if (row >= ROWS) row = ROWS - 1;
        counts[row] += w.count;
        if (counts[row] > most) most = counts[row];
        if (row < first) first = row;
        if (row > last) last = row;
    }
    printf("  latency plot (up to msec, percent of requests):\n");
    for (int row = first; row <= last; row++) {
        char bar[PLOT_WIDTH + 1];
        int len = (int)((double)counts[row] * PLOT_WIDTH / (double)most + 0.5);
        if (len == 0 && counts[row] > 0) len = 1;
        memset(bar, '#', (size_t)len);
        bar[len] = '\0';
        printf("    %10.3f %7.3f%% %s\n", exp2((row + 1) / 3.0) / 1000,
               100.0 * (double)counts[row] / (double)l->total, bar);
    }
}

/* ------------------------------------------------------------------ results */

void reportCsvHeader(void) {
    printf(
        "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\","
        "\"p99_latency_ms\",\"max_latency_ms\"\n");
}

static void printCsv(const workload *w, const runResult *r) {
    const latency *l = &r->latencies;
    printf("\"%s\",\"%.2f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\"\n", w->title,
           reportRate(r), latencyMean(l) / 1000, ms(latencyMin(l)), ms(latencyPercentile(l, 50)),
           ms(latencyPercentile(l, 95)), ms(latencyPercentile(l, 99)), ms(latencyMax(l)));
}

void reportResult(const benchOptions *o, const target *t, const workload *w, const runResult *r) {
    const latency *l = &r->latencies;
    if (o->csv) {
        printCsv(w, r);
    } else if (o->quiet) {
        printf("%s: %.2f requests per second, p50=%.3f msec\n", w->title, reportRate(r),
               ms(latencyPercentile(l, 50)));
    } else {
        printHeader(o, t, w, r);
        if (o->rate > 0) printRateSummary(o, r);
        printPercentiles(l);
        printCumulative(l);
        printSummary(r);
    }
    if (!o->csv && o->percentiles) reportPercentiles(l);
    if (!o->csv && o->plot && l->total > 0) reportPlot(l);
    if (!o->csv && !o->quiet) printf("\n");
    fflush(stdout);
}
