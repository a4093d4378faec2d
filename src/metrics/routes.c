/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which path gives what. The same paths are documented in README.md. */
#include "base/base.h"
#include "engine/hot.h"
#include "metrics/metrics_priv.h"

static void answerText(httpAnswer *out, int code, const char *text) {
    out->code = code;
    out->type = "text/plain; charset=utf-8";
    out->page = sliceOf(text);
}

static void answerPage(slice accept, httpAnswer *out) {
    (void)accept; /* there is one form */
    out->type = "text/html; charset=utf-8";
    out->page = sliceMake((const char *)metricsPage, metricsPageSize);
}

static void answerStatus(slice accept, httpAnswer *out) {
    (void)accept; /* the same */
    out->type = "application/json";
    statusPrint(&out->body);
}

static bool contains(slice text, const char *word) {
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= text.len; i++) {
        if (!memcmp(text.ptr + i, word, len)) return true;
    }
    return false;
}

static void answerMetrics(slice accept, httpAnswer *out) {
    bool open_metrics = contains(accept, "application/openmetrics-text");
    out->type = open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8";
    prometheusPrint(open_metrics, &out->body);
}

/* Whoever can ask has shown that the loop turns. */
static void answerAlive(slice accept, httpAnswer *out) {
    (void)accept;
    answerText(out, 200, "ok\n");
}

static void answerReady(slice accept, httpAnswer *out) {
    (void)accept;
    if (engineHot.loading) {
        answerText(out, 503, "loading\n");
    } else {
        answerText(out, 200, "ok\n");
    }
}

void routeAnswer(slice path, slice accept, httpAnswer *out) {
    static const struct {
        const char *path;
        void (*answer)(slice accept, httpAnswer *out);
    } routes[] = {
        {"/", answerPage},       {"/status.json", answerStatus}, {"/metrics", answerMetrics},
        {"/livez", answerAlive}, {"/readyz", answerReady},
    };
    *out = (httpAnswer){.code = 200};
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!sliceEqual(path, sliceOf(routes[i].path))) continue;
        routes[i].answer(accept, out);
        return;
    }
    answerText(out, 404, "There is /, /metrics, /status.json, /livez and /readyz.\n");
}
