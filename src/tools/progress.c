/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line of progress (progress.h). */
#include "tools/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum { INTERVAL_MS = 1000 };

void progressBegin(progress *p, uint64_t total_bytes) {
    int64_t now_ms = clockWallMs();
    *p = (progress){.terminal = isatty(STDERR_FILENO),
                    .total_bytes = total_bytes,
                    .started_ms = now_ms,
                    .printed_ms = now_ms};
}

void progressAt(progress *p, uint64_t done_bytes) {
    if (!p->terminal) return;
    int64_t now_ms = clockWallMs();
    if (now_ms - p->printed_ms < INTERVAL_MS) return;
    p->printed_ms = now_ms;
    p->shown = true;
    double rate = (double)done_bytes / (double)(now_ms - p->started_ms) * 1000;
    double left_s = done_bytes < p->total_bytes ? (double)(p->total_bytes - done_bytes) / rate : 0;
    double percent = p->total_bytes ? 100.0 * (double)done_bytes / (double)p->total_bytes : 0;
    fflush(stdout);
    fprintf(stderr, "\r%5.1f %%, %.0f MB/s, %.0f s left \033[K", percent, rate / 1e6, left_s);
}

void progressEnd(progress *p) {
    if (p->shown) fprintf(stderr, "\r\033[K");
    p->shown = false;
}
