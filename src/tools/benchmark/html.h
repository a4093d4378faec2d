/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --html: a page with tables and plots (SVG) that needs nothing from elsewhere. One thread. */
#ifndef TOOLS_BENCHMARK_HTML_H
#define TOOLS_BENCHMARK_HTML_H

#include "base/str.h"
#include "tools/benchmark/latency.h"
#include "tools/benchmark/options.h"

/* What one server did in a test. */
typedef struct htmlSeries {
    const char *name;    /* of the server */
    double rate;         /* requests per second */
    const latency *all;  /* of all requests */
    const double *rates; /* over time, or per round */
    int rate_count;
} htmlSeries;

/* Adds a test to the page: `count` servers, and what there is to be said about them (may be
 * NULL). */
void htmlAdd(str *page, const char *title, const htmlSeries *series, int count, const char *remark);
/* Writes the page into the file of the options. Ends the program with an error if that fails. */
void htmlWrite(const str *page, const benchOptions *o);

#endif
