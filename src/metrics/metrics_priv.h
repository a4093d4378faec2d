/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of the metrics port. */
#ifndef METRICS_METRICS_PRIV_H
#define METRICS_METRICS_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/str.h"
#include "config/config.h"

typedef struct metricsConfig {
    int port;  /* 0: disabled */
    bool auth; /* requests need a user that may run INFO */
    bool tls;  /* HTTPS, with the certificate and the rules of tls-port */
} metricsConfig;

extern metricsConfig metricsConf;
extern const configOption metricsOptions[];

/* Reopens the port after metrics-port has changed. */
status metricsRelisten(reason *why);

/* ------------------------------------------------------------------ HTTP */

typedef struct httpResponse {
    int code; /* status code */
    const char *type;
    slice page; /* a static body; if empty, `body` is used */
    str body;
} httpResponse;

/* Produces the response to a GET of `path` (without the query). `accept` is the value of the Accept
 * header, empty if there is none. The caller frees the body of the response. */
void routeRespond(slice path, slice accept, httpResponse *out);
/* Parses the bytes of a request received so far. Returns the size of the header if it is complete,
 * 0 if more bytes are needed, -1 if this is not an HTTP request. */
typedef struct httpRequest {
    slice method, path, accept, authorization;
    bool keep_alive, has_body;
} httpRequest;
int64_t httpParse(slice bytes, httpRequest *out);
/* True if the value of an Authorization header ("Basic ...") names a user that may see the
 * pages. */
bool httpIsAuthorized(slice authorization);
/* Decodes base64 with or without padding; the number of bytes, -1 if it is invalid or longer than
 * `cap`. */
int64_t httpDecodeBase64(slice text, char *dst, size_t cap);

/* ------------------------------------------------------------------ contents */

/* Appends the lines "name:value" of all INFO sections. */
void infoFieldsRead(str *out);
/* Removes the next field from `text`; false at the end. Section titles are skipped. */
bool infoFieldsNext(slice *text, slice *name, slice *value);
/* Fields sorted by name, for many lookups; the slices point into the text. */
typedef struct infoIndex {
    struct infoField *fields;
    int count;
} infoIndex;
void infoIndexInit(infoIndex *index, slice text);
void infoIndexClear(infoIndex *index);
/* The value of a field, empty if there is none. O(log n). */
slice infoIndexFind(const infoIndex *index, const char *name);
/* The value after `name=` in a `text` of parts separated by `separator`; empty if there is none. */
slice infoSubfield(slice text, const char *name, char separator);
/* The value of `key` in "a=1,b=2", empty if there is none. */
static inline slice infoPart(slice value, const char *key) { return infoSubfield(value, key, ','); }

/* Prints all metrics as Prometheus text or OpenMetrics. */
void prometheusPrint(bool open_metrics, str *out);
/* Prints the JSON object of /status.json. */
void statusPrint(str *out);

/* The status page; generated from page.html by the Makefile. */
extern const unsigned char metricsPage[];
extern const size_t metricsPageSize;

#endif
