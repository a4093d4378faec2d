/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LATENCY HISTOGRAM as bars (histogram_view.h). */
#include "tools/cli/histogram_view.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/bars.h"

enum { BAR_MAX = 50, COLUMNS_BEFORE_BAR = 30, TIME_TEXT_MAX = 32 };

/* Keys and values one after the other, in RESP2 and RESP3. */
static bool isPairs(const valkeyReply *r) {
    return (r->type == VALKEY_REPLY_MAP || r->type == VALKEY_REPLY_ARRAY) && r->elements % 2 == 0;
}

/* The buckets of a command; NULL if the reply has another form. */
static const valkeyReply *bucketsOf(const valkeyReply *command) {
    if (!isPairs(command)) return NULL;
    for (size_t i = 0; i < command->elements; i += 2) {
        const valkeyReply *name = command->element[i], *value = command->element[i + 1];
        if (name->type != VALKEY_REPLY_STRING || strcmp(name->str, "histogram_usec") != 0) continue;
        if (!isPairs(value) || value->elements == 0) return NULL;
        for (size_t at = 0; at < value->elements; at++) {
            if (value->element[at]->type != VALKEY_REPLY_INTEGER) return NULL;
        }
        return value;
    }
    return NULL;
}

static void printTime(char *out, long long us) {
    if (us < 1000) {
        snprintf(out, TIME_TEXT_MAX, "%lld us", us);
    } else if (us < 1000000) {
        snprintf(out, TIME_TEXT_MAX, "%.*f ms",
                 us < 10000    ? 2
                 : us < 100000 ? 1
                               : 0,
                 (double)us / 1e3);
    } else {
        snprintf(out, TIME_TEXT_MAX, "%.2f s", (double)us / 1e6);
    }
}

/* The limit of the bucket that has the call at `percent`. */
static long long percentile(const valkeyReply *buckets, double percent) {
    size_t last = buckets->elements - 2;
    double rank = (double)buckets->element[last + 1]->integer * percent / 100;
    for (size_t i = 0; i < last; i += 2) {
        if ((double)buckets->element[i + 1]->integer >= rank) return buckets->element[i]->integer;
    }
    return buckets->element[last]->integer;
}

static void drawCommand(str *out, const valkeyReply *name, const valkeyReply *buckets,
                        histogramStyle style) {
    char p50[TIME_TEXT_MAX], p99[TIME_TEXT_MAX], limit[TIME_TEXT_MAX];
    const char *bold = style.colors ? "\033[1m" : "", *bar = style.colors ? "\033[36m" : "",
               *end = style.colors ? "\033[0m" : "";
    long long total = buckets->element[buckets->elements - 1]->integer, before = 0, most = 1;
    for (size_t i = 0; i < buckets->elements; i += 2) {
        long long count = buckets->element[i + 1]->integer - before;
        if (count > most) most = count;
        before += count;
    }
    printTime(p50, percentile(buckets, 50));
    printTime(p99, percentile(buckets, 99));
    strAppendFormat(out, "%s%s%s  %lld call%s, p50 <= %s, p99 <= %s\n", bold, name->str, end, total,
                    total == 1 ? "" : "s", p50, p99);
    int width = style.columns - COLUMNS_BEFORE_BAR;
    if (width > BAR_MAX) width = BAR_MAX;
    before = 0;
    for (size_t i = 0; i < buckets->elements; i += 2) {
        long long count = buckets->element[i + 1]->integer - before;
        before += count;
        printTime(limit, buckets->element[i]->integer);
        strAppendFormat(out, "  <= %8s %12lld", limit, count);
        if (width > 0 && count > 0) {
            strAppendFormat(out, "  %s", bar);
            barsAppend(out, (double)count / (double)most, width, style.blocks);
            strAppendText(out, end);
        }
        strAppendByte(out, '\n');
    }
}

bool histogramDraw(str *out, const valkeyReply *reply, histogramStyle style) {
    if (!isPairs(reply) || reply->elements == 0) return false;
    for (size_t i = 0; i < reply->elements; i += 2) {
        if (reply->element[i]->type != VALKEY_REPLY_STRING || !bucketsOf(reply->element[i + 1]))
            return false;
    }
    for (size_t i = 0; i < reply->elements; i += 2) {
        if (i > 0) strAppendByte(out, '\n');
        drawCommand(out, reply->element[i], bucketsOf(reply->element[i + 1]), style);
    }
    return true;
}
