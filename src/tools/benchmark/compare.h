/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --compare: two servers, measured in turns. */
#ifndef TOOLS_BENCHMARK_COMPARE_H
#define TOOLS_BENCHMARK_COMPARE_H

#include "base/str.h"
#include "tools/benchmark/run.h"

/* Runs a workload on `a` and `b` alternately, and prints medians of the rates and latencies, their
 * ratio, the spread of the rounds, and whether the difference is beyond it. Adds them to the page
 * of --html. */
void compareRun(const benchOptions *o, const target *a, const target *b, const workload *w,
                str *page);

#endif
