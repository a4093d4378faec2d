/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress of long tasks (job_progress.h). */
#include "tools/cli/job_progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { INTERVAL_MS = 1000 };

void jobProgressBegin(jobProgress *p, progressStyle style, const char *task, const char *unit,
                      uint64_t total) {
    if (style == PROGRESS_LINE && !isatty(STDERR_FILENO)) style = PROGRESS_NONE;
    int64_t now_ms = clockMonoMs();
    *p = (jobProgress){.style = style,
                       .task = task,
                       .unit = unit,
                       .total = total,
                       .started_ms = now_ms,
                       .printed_ms = now_ms};
}

void jobProgressInLine(jobProgress *p) { p->in_line = p->style == PROGRESS_LINE; }

static void printAmount(double amount, bool bytes) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int at = 0;
    while (amount >= 10000 && at < 4) {
        amount /= 1000;
        at++;
    }
    fprintf(stderr, at ? "%.1f %s%s" : "%.0f%s%s", amount, prefixes[at], bytes ? "B" : "");
}

static double leftSeconds(const jobProgress *p, double done, double rate) {
    return done < (double)p->total && rate > 0 ? ((double)p->total - done) / rate : 0;
}

static void printText(const jobProgress *p, double done, double rate) {
    bool bytes = !strcmp(p->unit, "bytes");
    fprintf(stderr, "%s: ", p->task);
    printAmount(floor(done), bytes);
    fprintf(stderr, bytes ? ", " : " %s, ", p->unit);
    printAmount(rate, bytes);
    fputs("/s", stderr);
    if (p->total) {
        fprintf(stderr, ", %.1f %%, %.0f s left", 100 * done / (double)p->total,
                leftSeconds(p, done, rate));
    }
}

static void printLine(const jobProgress *p, double done, double rate) {
    /* ESC 7 and 8 save and restore the cursor; lines that are too long are cut, not wrapped. */
    fputs(p->in_line ? "\0337\033[?7l  [" : "\r\033[K", stderr);
    printText(p, done, rate);
    if (p->in_line) fputs("]\033[K\033[?7h\0338", stderr);
}

static void printJson(const jobProgress *p, double done, double rate, bool end) {
    fprintf(stderr,
            "{\"task\":\"%s\",\"unit\":\"%s\",\"done\":%" PRIu64 ",\"total\":%" PRIu64
            ",\"rate\":%.1f,\"eta_seconds\":%.1f,\"finished\":%s}\n",
            p->task, p->unit, (uint64_t)done, p->total, rate, leftSeconds(p, done, rate),
            end ? "true" : "false");
}

static double rateOf(const jobProgress *p, double done, int64_t now_ms) {
    int64_t elapsed_ms = now_ms - p->started_ms;
    return elapsed_ms > 0 ? done * 1000 / (double)elapsed_ms : 0;
}

void jobProgressAt(jobProgress *p, uint64_t done) { jobProgressWithin(p, (double)done); }

void jobProgressWithin(jobProgress *p, double done) {
    if (p->style == PROGRESS_NONE) return;
    int64_t now_ms = clockMonoMs();
    /* A text in the line may be overwritten in part. */
    bool repeat = p->in_line && p->shown;
    if (!repeat && now_ms - p->printed_ms < INTERVAL_MS) return;
    p->printed_ms = now_ms;
    p->shown = p->visible = true;
    fflush(stdout);
    if (p->style == PROGRESS_JSON) {
        printJson(p, done, rateOf(p, done, now_ms), false);
    } else {
        printLine(p, done, rateOf(p, done, now_ms));
    }
}

void jobProgressHide(jobProgress *p) {
    if (!p->visible || p->style != PROGRESS_LINE) return;
    fflush(stdout);
    fputs(p->in_line ? "\033[K" : "\r\033[K", stderr);
    p->visible = false;
}

void jobProgressEnd(jobProgress *p, uint64_t done) {
    double all = (double)done;
    if (p->style == PROGRESS_JSON) printJson(p, all, rateOf(p, all, clockMonoMs()), true);
    jobProgressHide(p);
    p->shown = false;
}
