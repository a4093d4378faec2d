/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare: two servers, measured in turns, so that what disturbs the machine disturbs both. */
#include "tools/benchmark/compare.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "tools/benchmark/report.h"

/* The figures of one server, one per round. */
typedef struct series {
    double *rate, *p50, *p99;
    latency all;
} series;

static int compareDoubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; for an even number, the mean of the two in the middle. */
static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof(*values), compareDoubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void seriesInit(series *s, const benchOptions *o) {
    s->rate = memNewArray(double, (size_t)o->rounds);
    s->p50 = memNewArray(double, (size_t)o->rounds);
    s->p99 = memNewArray(double, (size_t)o->rounds);
    latencyInit(&s->all, LATENCY_UNIT_FINE);
}

static void seriesClear(series *s) {
    memFree(s->rate);
    memFree(s->p50);
    memFree(s->p99);
}

static void measure(series *s, int round, const benchOptions *o, const target *t,
                    const workload *w) {
    runResult *r = runWorkload(o, t, w, true);
    s->rate[round] = (double)r->requests / r->seconds;
    s->p50[round] = (double)latencyPercentile(&r->latencies, 50) / 1000;
    s->p99[round] = (double)latencyPercentile(&r->latencies, 99) / 1000;
    latencyAdd(&s->all, &r->latencies);
    memFree(r);
}

/* Half of the distance between the lowest and the highest of sorted values, in percent of the
 * median. */
static double spread(const double *sorted, int count, double middle) {
    return middle > 0 ? (sorted[count - 1] - sorted[0]) / 2 / middle * 100 : 0;
}

static void printRow(const char *what, double *a, double *b, int rounds, int decimals) {
    double ma = median(a, rounds), mb = median(b, rounds);
    printf("  %-18s %14.*f %14.*f %8.3f   +-%.1f%% +-%.1f%%\n", what, decimals, ma, decimals, mb,
           mb > 0 ? ma / mb : 0, spread(a, rounds, ma), spread(b, rounds, mb));
}

static void printCsv(const workload *w, series *a, series *b, int rounds) {
    double ra = median(a->rate, rounds), rb = median(b->rate, rounds);
    printf(
        "\"%s\",\"%.2f\",\"%.2f\",\"%.3f\",\"%.1f\",\"%.1f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\"\n",
        w->title, ra, rb, rb > 0 ? ra / rb : 0, spread(a->rate, rounds, ra),
        spread(b->rate, rounds, rb), median(a->p50, rounds), median(b->p50, rounds),
        median(a->p99, rounds), median(b->p99, rounds));
}

void compareRun(const benchOptions *o, const target *a, const target *b, const workload *w) {
    benchOptions fine = *o;
    fine.percentiles = true; /* latencies with a resolution of 1 us */
    series sa, sb;
    seriesInit(&sa, o);
    seriesInit(&sb, o);
    for (int round = 0; round < o->rounds; round++) {
        /* The order alternates, too. */
        for (int turn = 0; turn < 2; turn++) {
            bool first = turn == round % 2;
            measure(first ? &sa : &sb, round, &fine, first ? a : b, w);
        }
    }
    if (o->csv) {
        printCsv(w, &sa, &sb, o->rounds);
    } else {
        char name[256];
        snprintf(name, sizeof(name), "%s", targetName(&a->nodes[0].at));
        printf("====== %s ======\n  %d rounds each, medians; A: %s, B: %s\n", w->title, o->rounds,
               name, targetName(&b->nodes[0].at));
        printf("  %-18s %14s %14s %8s   %s\n", "", "A", "B", "A/B", "spread");
        printRow("requests/s", sa.rate, sb.rate, o->rounds, 0);
        printRow("p50 (msec)", sa.p50, sb.p50, o->rounds, 3);
        printRow("p99 (msec)", sa.p99, sb.p99, o->rounds, 3);
        if (o->percentiles) {
            printf("  A, all rounds:\n");
            reportPercentiles(&sa.all);
            printf("  B, all rounds:\n");
            reportPercentiles(&sb.all);
        }
        printf("\n");
    }
    fflush(stdout);
    seriesClear(&sa);
    seriesClear(&sb);
}
