/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A line on a terminal that shows the progress of a long task: share, rate, remaining time. Nothing
 * is printed when standard error is not a terminal, or during the first second. One thread. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool terminal, shown;
    uint64_t total_bytes;
    int64_t started_ms, printed_ms;
} progress;

void progressBegin(progress *p, uint64_t total_bytes);
/* Cheap enough to call for each record. */
void progressAt(progress *p, uint64_t done_bytes);
/* Clears the line. */
void progressEnd(progress *p);

#endif
