/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --html; see the header. */
#include "tools/benchmark/html.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/build_info.h"

enum {
    WIDTH = 460,
    HEIGHT = 240,
    LEFT = 56, /* for the labels of the axes */
    BOTTOM = 28,
    TOP = 12,
    CURVE_POINTS = 80,
};

static const char *const colors[] = {"#3b6fd4", "#d9822b"};

/* A plot: its ranges, as values on the axes. */
typedef struct plot {
    double x_max, y_min, y_max;
} plot;

static double placeX(const plot *p, double x) { return LEFT + x / p->x_max * (WIDTH - LEFT - 8); }

static double placeY(const plot *p, double y) {
    return HEIGHT - BOTTOM - (y - p->y_min) / (p->y_max - p->y_min) * (HEIGHT - BOTTOM - TOP);
}

static void escape(str *page, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<': strAppendText(page, "&lt;"); break;
        case '>': strAppendText(page, "&gt;"); break;
        case '&': strAppendText(page, "&amp;"); break;
        case '"': strAppendText(page, "&quot;"); break;
        default: strAppendByte(page, *text);
        }
    }
}

static void beginPlot(str *page, const char *title) {
    strAppendFormat(page,
                    "<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" width=\"%d\" "
                    "role=\"img\">\n",
                    title, WIDTH, HEIGHT, WIDTH);
}

static void gridX(str *page, const plot *p, double x, const char *label) {
    double at = placeX(p, x);
    strAppendFormat(page,
                    "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"grid\"/>"
                    "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                    at, TOP, at, HEIGHT - BOTTOM, at, HEIGHT - 10, label);
}

static void gridY(str *page, const plot *p, double y, const char *label) {
    double at = placeY(p, y);
    strAppendFormat(page,
                    "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" class=\"grid\"/>"
                    "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                    LEFT, at, WIDTH - 8, at, LEFT - 6, at + 4, label);
}

static void beginLine(str *page) { strAppendText(page, "<polyline points=\""); }

static void addPoint(str *page, const plot *p, double x, double y) {
    strAppendFormat(page, "%.1f,%.1f ", placeX(p, x), placeY(p, y));
}

static void endLine(str *page, int color) {
    strAppendFormat(page, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", colors[color]);
}

/* ------------------------------------------------------------------ latencies by percentile */

static double logMs(int64_t us) { return log10((double)(us > 0 ? us : 1) / 1000); }

/* The places of percentiles are -log10 of what is above them: 0, 1 for 90 %, 2 for 99 %. */
static void plotLatencies(str *page, const htmlSeries *series, int count) {
    static const char *const labels[] = {"0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"};
    plot p = {.x_max = 1, .y_min = 9, .y_max = -9};
    for (int s = 0; s < count; s++) {
        const latency *l = series[s].all;
        double decades = l->total > 10 ? log10((double)l->total) : 1;
        p.x_max = fmax(p.x_max, fmin(decades, 5));
        p.y_min = fmin(p.y_min, floor(logMs(latencyMin(l))));
        p.y_max = fmax(p.y_max, ceil(logMs(latencyMax(l))));
    }
    if (p.y_max <= p.y_min) p.y_max = p.y_min + 1;
    beginPlot(page, "Latency by percentile (ms)");
    for (int x = 0; x <= (int)p.x_max; x++) gridX(page, &p, x, labels[x]);
    for (double y = p.y_min; y <= p.y_max; y++) {
        char label[32];
        snprintf(label, sizeof(label), "%g", pow(10, y));
        gridY(page, &p, y, label);
    }
    for (int s = 0; s < count; s++) {
        beginLine(page);
        for (int i = 0; i <= CURVE_POINTS; i++) {
            double x = p.x_max * i / CURVE_POINTS;
            double percent = 100 * (1 - pow(10, -x));
            addPoint(page, &p, x, logMs(latencyPercentile(series[s].all, percent)));
        }
        endLine(page, s);
    }
    strAppendText(page, "</svg></figure>\n");
}

/* ------------------------------------------------------------------ requests per second */

/* The next of 1, 2, 5, 10, 20, ... that is not less. */
static double roundUp(double value) {
    double power = pow(10, floor(log10(value)));
    double steps[] = {1, 2, 5, 10};
    for (int i = 0; i < 4; i++) {
        if (steps[i] * power >= value) return steps[i] * power;
    }
    return value;
}

static void plotRates(str *page, const htmlSeries *series, int count) {
    plot p = {.x_max = 1, .y_max = 1};
    for (int s = 0; s < count; s++) {
        p.x_max = fmax(p.x_max, series[s].rate_count - 1);
        for (int i = 0; i < series[s].rate_count; i++) p.y_max = fmax(p.y_max, series[s].rates[i]);
    }
    p.y_max = roundUp(p.y_max);
    beginPlot(page, count > 1 ? "Requests per second in each round"
                              : "Requests per second in each quarter of a second");
    for (int i = 0; i <= 4; i++) {
        char label[32];
        snprintf(label, sizeof(label), "%.0f", p.y_max * i / 4);
        gridY(page, &p, p.y_max * i / 4, label);
    }
    for (int s = 0; s < count; s++) {
        beginLine(page);
        for (int i = 0; i < series[s].rate_count; i++) addPoint(page, &p, i, series[s].rates[i]);
        endLine(page, s);
    }
    strAppendText(page, "</svg></figure>\n");
}

/* ------------------------------------------------------------------ the page */

static void addTable(str *page, const htmlSeries *series, int count) {
    static const double percents[] = {50, 95, 99, 99.9};
    strAppendText(page, "<table><tr><th>server</th><th>requests/s</th><th>mean (ms)</th>"
                        "<th>p50</th><th>p95</th><th>p99</th><th>p99.9</th><th>max</th></tr>\n");
    for (int s = 0; s < count; s++) {
        const latency *l = series[s].all;
        strAppendFormat(page, "<tr><td><span style=\"color:%s\">&#9632;</span> ", colors[s]);
        escape(page, series[s].name);
        strAppendFormat(page, "</td><td>%.0f</td><td>%.3f</td>", series[s].rate,
                        latencyMean(l) / 1000);
        for (int i = 0; i < 4; i++)
            strAppendFormat(page, "<td>%.3f</td>",
                            (double)latencyPercentile(l, percents[i]) / 1000);
        strAppendFormat(page, "<td>%.3f</td></tr>\n", (double)latencyMax(l) / 1000);
    }
    strAppendText(page, "</table>\n");
}

void htmlAdd(str *page, const char *title, const htmlSeries *series, int count,
             const char *remark) {
    strAppendText(page, "<h2>");
    escape(page, title);
    strAppendText(page, "</h2>\n");
    addTable(page, series, count);
    if (remark) {
        strAppendText(page, "<p>");
        escape(page, remark);
        strAppendText(page, "</p>\n");
    }
    strAppendText(page, "<div>\n");
    plotLatencies(page, series, count);
    if (series[0].rate_count > 1) plotRates(page, series, count);
    strAppendText(page, "</div>\n");
}

static void addHead(str *page, const benchOptions *o) {
    char when[64];
    time_t now = time(NULL);
    struct tm parts;
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime_r(&now, &parts));
    strAppendText(page,
                  "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
                  "<title>valkey-benchmark</title>\n<style>"
                  "body{font:15px sans-serif;margin:2em auto;max-width:62em;padding:0 1em}"
                  "table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;"
                  "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
                  "div{display:flex;flex-wrap:wrap}figure{margin:1em 1em 1em 0}"
                  "figcaption{font-weight:bold}svg text{font-size:11px;fill:#555}"
                  ".grid{stroke:#ddd}</style>\n<h1>valkey-benchmark</h1>\n");
    strAppendFormat(page,
                    "<p>%s, version %s; %d connections, pipeline %d, %lld bytes of data, "
                    "%d threads</p>\n",
                    when, SERVER_VERSION, o->clients, o->pipeline, (long long)o->data_size,
                    o->threads > 0 ? o->threads : 1);
}

void htmlWrite(const str *page, const benchOptions *o) {
    str text = STR_EMPTY;
    addHead(&text, o);
    strAppendSlice(&text, strSlice(page));
    strAppendText(&text, "</html>\n");
    FILE *file = fopen(o->html, "w");
    bool written = file && fwrite(strText(&text), 1, text.len, file) == text.len;
    if (file && fclose(file) != 0) written = false;
    if (!written) {
        fprintf(stderr, "Could not write %s: %s\n", o->html, strerror(errno));
        exit(1);
    }
    strFree(&text);
}
