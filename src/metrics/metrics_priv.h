/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the metrics port share. */
#ifndef METRICS_METRICS_PRIV_H
#define METRICS_METRICS_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/str.h"
#include "config/config.h"

typedef struct metricsConfig {
    int port; /* 0 = none */
} metricsConfig;

extern metricsConfig metricsConf;
extern const configOption metricsOptions[];

/* Opens the port anew after metrics-port has changed. */
status metricsRelisten(reason *why);

/* ------------------------------------------------------------------ HTTP */

typedef struct httpAnswer {
    int code; /* 200, ... */
    const char *type;
    slice page; /* a body that lives for ever; else `body` */
    str body;
} httpAnswer;

/* Answers a GET of `path` (without query). `accept` is the header's value, empty when there is none. The answer's
 * body is the caller's to free. */
void routeAnswer(slice path, slice accept, httpAnswer *out);
/* What a request's bytes hold so far. Returns its size when the head is complete, 0 when more must come, -1 when it
 * is no request. */
typedef struct httpRequest {
    slice method, path, accept;
    bool keep_alive, has_body;
} httpRequest;
int64_t httpParse(slice bytes, httpRequest *out);

/* ------------------------------------------------------------------ contents */

/* The lines "name:value" of all INFO sections, appended. */
void factsRead(str *out);
/* Takes the next fact off `text`; false at the end. Titles are skipped. */
bool factsNext(slice *text, slice *name, slice *value);
/* Facts in the order of their names, to find many; its slices point into the text. */
typedef struct factsIndex {
    struct fact *facts;
    int count;
} factsIndex;
void factsIndexInit(factsIndex *index, slice text);
void factsIndexClear(factsIndex *index);
/* The value of one fact, empty when there is none. O(log n) steps. */
slice factsFind(const factsIndex *index, const char *name);
/* What follows `name=` in one of the parts of `text`, which `separator` parts; empty when there is none. */
slice factsField(slice text, const char *name, char separator);
/* The part "key=..." of a value "a=1,b=2", empty when there is none. */
static inline slice factsPart(slice value, const char *key) { return factsField(value, key, ','); }

/* Prometheus text, or OpenMetrics. */
void prometheusPrint(bool open_metrics, str *out);
/* The object the status page asks for. */
void statusPrint(str *out);

/* The status page; made of page.html by the build. */
extern const unsigned char metricsPage[];
extern const size_t metricsPageSize;

#endif
