/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The paths of the metrics port. They are documented in README.md. */
#include "acl/acl.h"
#include "base/base.h"
#include "engine/hot.h"
#include "metrics/metrics_priv.h"

static void respondText(httpResponse *out, int code, const char *text) {
    out->code = code;
    out->type = "text/plain; charset=utf-8";
    out->page = sliceOf(text);
}

static void respondPage(slice accept, httpResponse *out) {
    (void)accept; /* there is only one format */
    out->type = "text/html; charset=utf-8";
    out->page = sliceMake((const char *)metricsPage, metricsPageSize);
}

static void respondStatus(slice accept, httpResponse *out) {
    (void)accept; /* there is only one format */
    out->type = "application/json";
    statusPrint(&out->body);
}

static void respondHistory(slice accept, httpResponse *out) {
    (void)accept; /* there is only one format */
    out->type = "application/json";
    historyPrint(&out->body);
}

static void respondMemory(slice accept, httpResponse *out) {
    (void)accept; /* there is only one format */
    out->type = "application/json";
    memoryPrint(aclDefaultNeedsPassword(), &out->body);
}

static bool contains(slice text, const char *word) {
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++) {
        if (!memcmp(text.ptr + i, word, len)) return true;
    }
    return false;
}

static void respondMetrics(slice accept, httpResponse *out) {
    bool open_metrics = contains(accept, "application/openmetrics-text");
    out->type = open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8";
    prometheusPrint(open_metrics, aclDefaultNeedsPassword(), &out->body);
}

/* A response of any kind shows that the event loop is running. */
static void respondAlive(slice accept, httpResponse *out) {
    (void)accept;
    respondText(out, 200, "ok\n");
}

static void respondReady(slice accept, httpResponse *out) {
    (void)accept;
    if (engineHot.loading) {
        respondText(out, 503, "loading\n");
    } else {
        respondText(out, 200, "ok\n");
    }
}

void routeRespond(slice path, slice accept, httpResponse *out) {
    hotCheck(threadIsMain());
    static const struct {
        const char *path;
        void (*response)(slice accept, httpResponse *out);
    } routes[] = {
        {"/", respondPage},
        {"/status.json", respondStatus},
        {"/history.json", respondHistory},
        {"/memory.json", respondMemory},
        {"/metrics", respondMetrics},
        {"/livez", respondAlive},
        {"/readyz", respondReady},
    };
    *out = (httpResponse){.code = 200};
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!sliceEqual(path, sliceOf(routes[i].path))) continue;
        routes[i].response(accept, out);
        return;
    }
    respondText(
        out, 404,
        "Not found. Available: /, /metrics, /status.json, /history.json, /memory.json, /livez, "
        "/readyz.\n");
}
