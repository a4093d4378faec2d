/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare: two servers, measured in turns, so that what disturbs the machine disturbs both. */
#include "tools/benchmark/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "tools/benchmark/html.h"
#include "tools/benchmark/report.h"

enum { ROUNDS_SUGGESTED_MAX = 500 };

/* The two servers for people. */
typedef struct comparedNames {
    char a[256], b[256];
} comparedNames;

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

/* ------------------------------------------------------------------ judgement */

/* The value that Student's t exceeds on either side with 5 %, for `count` values. */
static double studentT(int count) {
    static const double values[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26};
    enum { VALUES = sizeof(values) / sizeof(*values) };
    if (count - 2 < VALUES) return values[count - 2];
    return count < 20 ? 2.2 : 2.0;
}

/* Says whether the rates differ, from the ratios of the rounds, whose logarithms are taken as
 * normally distributed. The rates are in the order of the rounds. */
static void judge(str *out, const double *a, const double *b, int rounds, double round_s) {
    const double worthwhile = 0.02; /* a difference that matters */
    double mean = 0, squares = 0;
    if (rounds < 3) {
        strAppendText(out, "too few rounds to judge: at least 3 are needed (--rounds)");
        return;
    }
    for (int i = 0; i < rounds; i++) mean += log(a[i] / b[i]) / rounds;
    for (int i = 0; i < rounds; i++) squares += pow(log(a[i] / b[i]) - mean, 2);
    double deviation = sqrt(squares / (rounds - 1));
    double half = studentT(rounds) * deviation / sqrt(rounds);
    double low = exp(mean - half), high = exp(mean + half);
    if (low > 1 || high < 1) {
        strAppendFormat(out, "%s handles more requests: A/B is %.3f to %.3f (95 %% sure)",
                        low > 1 ? "A" : "B", low, high);
    } else if (half <= worthwhile) {
        strAppendFormat(out, "no difference of more than %.1f %% (95 %% sure)", half * 100);
    } else {
        double needed = ceil(pow(2.1 * deviation / worthwhile, 2));
        if (needed <= rounds) needed = rounds + 1;
        strAppendFormat(out,
                        "too noisy to judge: A/B is %.3f to %.3f (95 %% sure), as it differs by "
                        "%.1f %% between rounds; for %.0f %%: ",
                        low, high, deviation * 100, worthwhile * 100);
        if (needed <= ROUNDS_SUGGESTED_MAX) {
            strAppendFormat(out, "--rounds %.0f, %.0f seconds", needed, needed * round_s);
        } else {
            strAppendText(out, "longer rounds, or a machine that does nothing else");
        }
    }
}

static void printCsv(const workload *w, series *a, series *b, int rounds) {
    double ra = median(a->rate, rounds), rb = median(b->rate, rounds);
    printf(
        "\"%s\",\"%.2f\",\"%.2f\",\"%.3f\",\"%.1f\",\"%.1f\",\"%.3f\",\"%.3f\",\"%.3f\",\"%.3f\"\n",
        w->title, ra, rb, rb > 0 ? ra / rb : 0, spread(a->rate, rounds, ra),
        spread(b->rate, rounds, rb), median(a->p50, rounds), median(b->p50, rounds),
        median(a->p99, rounds), median(b->p99, rounds));
}

static void printComparison(const benchOptions *o, const workload *w, series *a, series *b,
                            const comparedNames *names, const str *judgement) {
    printf("====== %s ======\n  %d rounds each, medians; A: %s, B: %s\n", w->title, o->rounds,
           names->a, names->b);
    printf("  %-18s %14s %14s %8s   %s\n", "", "A", "B", "A/B", "spread");
    printRow("requests/s", a->rate, b->rate, o->rounds, 0);
    printRow("p50 (msec)", a->p50, b->p50, o->rounds, 3);
    printRow("p99 (msec)", a->p99, b->p99, o->rounds, 3);
    printf("  %s\n", strText(judgement));
    if (o->percentiles) {
        printf("  A, all rounds:\n");
        reportPercentiles(&a->all);
        printf("  B, all rounds:\n");
        reportPercentiles(&b->all);
    }
    printf("\n");
}

/* Rates are in the order of the rounds here, and are sorted by what is printed. */
static void addToPage(str *page, const benchOptions *o, const workload *w, const series *a,
                      const series *b, const comparedNames *names, const str *judgement) {
    htmlSeries both[2] = {{names->a, 0, &a->all, a->rate, o->rounds},
                          {names->b, 0, &b->all, b->rate, o->rounds}};
    for (int i = 0; i < 2; i++) {
        for (int round = 0; round < o->rounds; round++)
            both[i].rate += both[i].rates[round] / o->rounds;
    }
    htmlAdd(page, w->title, both, 2, strText(judgement));
}

void compareRun(const benchOptions *o, const target *a, const target *b, const workload *w,
                str *page) {
    benchOptions fine = *o;
    fine.percentiles = true; /* latencies with a resolution of 1 us */
    series sa, sb;
    comparedNames names;
    str judgement = STR_EMPTY;
    seriesInit(&sa, o);
    seriesInit(&sb, o);
    snprintf(names.a, sizeof(names.a), "%s", targetName(&a->nodes[0].at));
    snprintf(names.b, sizeof(names.b), "%s", targetName(&b->nodes[0].at));
    int64_t started_ms = clockMonoMs();
    for (int round = 0; round < o->rounds; round++) {
        /* The order alternates, too. */
        for (int turn = 0; turn < 2; turn++) {
            bool first = turn == round % 2;
            measure(first ? &sa : &sb, round, &fine, first ? a : b, w);
        }
    }
    double round_s = (double)(clockMonoMs() - started_ms) / 1000 / o->rounds;
    judge(&judgement, sa.rate, sb.rate, o->rounds, round_s);
    if (o->html) addToPage(page, o, w, &sa, &sb, &names, &judgement);
    if (o->csv) {
        printCsv(w, &sa, &sb, o->rounds);
    } else {
        printComparison(o, w, &sa, &sb, &names, &judgement);
    }
    fflush(stdout);
    strFree(&judgement);
    seriesClear(&sa);
    seriesClear(&sb);
}
