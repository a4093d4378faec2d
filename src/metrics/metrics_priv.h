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
typedef struct httpRequest {
    slice method, path, accept, authorization; /* borrowed */
    bool keep_alive, has_body;
} httpRequest;
/* Parses the bytes of a request received so far. Returns the size of the header if it is complete,
 * 0 if more bytes are needed, -1 if this is not an HTTP request. */
int64_t httpParse(slice bytes, httpRequest *out);
/* True if the value of an Authorization header ("Basic ...") has name and password of a user who
 * may run INFO. */
bool httpIsAuthorized(slice authorization);
/* Decodes base64 with or without padding; the number of bytes, -1 if it is invalid or longer than
 * `cap`. */
int64_t httpDecodeBase64(slice text, char *dst, size_t cap);

/* ------------------------------------------------------------------ contents */

/* Appends the lines "name:value" of all INFO sections. */
void infoFieldsRead(str *out);
/* The same of the sections with these names; NULL ends the list. */
void infoFieldsReadSections(const char *const *names, str *out);
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

/* Prints all metrics as Prometheus text or OpenMetrics; if so wanted without parts of keys. */
void prometheusPrint(bool open_metrics, bool hide_user_data, str *out);
/* Prints the JSON object of /status.json. */
void statusPrint(str *out);
/* Its parts: the JSON arrays and objects of these names. `text` and `info` are all fields of
 * INFO. */
void statusPrintCommands(str *out);
void statusPrintErrors(str *out, slice text);
void statusPrintHotKeys(str *out, bool hide_user_data);
void statusPrintPersistence(str *out, const infoIndex *info);
void statusPrintReplication(str *out, const infoIndex *info, slice text);
void statusPrintCluster(str *out, const infoIndex *info);
/* Prints the JSON object of /memory.json: memory of keys, from a sample that is taken now. */
void memoryPrint(bool hide_user_data, str *out);

/* ------------------------------------------------------------------ history */

enum { HISTORY_INTERVAL_MS = 5000, HISTORY_SAMPLES = 180 };

/* Adds a sample; the tick job of this name calls it with the sections of INFO that it needs. Times
 * are wall clock and monotonic. Allocates the history (about 70 KB) on the first call. */
void historyAdd(slice info, int64_t time_ms, int64_t mono_us);
/* A tick job: adds a sample if metrics-port is set. */
void historyTick(int64_t budget_us);
/* The counters of INFO begin at 0 again. */
void historyResetStats(void);
void historyFree(void);
/* Prints the JSON object of /history.json. */
void historyPrint(str *out);
/* Calls per second of a command during the last interval; NAN if it is not known. */
double historyCommandRate(int command_id);

/* ------------------------------------------------------------------ JSON */

/* A number in JSON and its field of INFO. */
typedef struct jsonField {
    const char *name, *info_name;
} jsonField;

/* Prints a string. Non-ASCII bytes are printed as the code point of the same number, so any bytes
 * give valid JSON. */
void jsonText(str *out, slice text);
/* Prints "name":, preceded by a comma unless it is the first of its object. */
void jsonName(str *out, const char *name);
/* Prints "name": and the number in `text`, 0 if it is none. */
void jsonNumber(str *out, const char *name, slice text);
/* Prints a number rounded for people; null if it is not finite. */
void jsonDecimal(str *out, double number);
void jsonString(str *out, const char *name, slice text);
void jsonFields(str *out, const infoIndex *info, const jsonField *fields, size_t count);

/* The status page; generated from page.html by the Makefile. */
extern const unsigned char metricsPage[];
extern const size_t metricsPageSize;

#endif
