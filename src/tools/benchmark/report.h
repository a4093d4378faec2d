/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints results in the forms of Valkey's benchmark, and further figures. */
#ifndef TOOLS_BENCHMARK_REPORT_H
#define TOOLS_BENCHMARK_REPORT_H

#include "tools/benchmark/run.h"

/* The first line of CSV output. */
void reportCsvHeader(void);
/* One result, as the options say. */
void reportResult(const benchOptions *o, const target *t, const workload *w, const runResult *r);
double reportRate(const runResult *r);
/* Percentiles up to p99.99, and a plot of the distribution. */
void reportPercentiles(const latency *l);
void reportPlot(const latency *l);

#endif
