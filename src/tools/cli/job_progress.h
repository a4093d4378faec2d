/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress of long tasks on standard error: a line with rate and remaining time on a terminal, or
 * an object of JSON per second and one at the end. Nothing is printed in the first second. One
 * thread. */
#ifndef TOOLS_CLI_JOB_PROGRESS_H
#define TOOLS_CLI_JOB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum progressStyle {
    PROGRESS_LINE, /* on standard error, if that is a terminal */
    PROGRESS_JSON, /* an object per line on standard error */
    PROGRESS_NONE,
} progressStyle;

typedef struct jobProgress {
    progressStyle style;
    const char *task, *unit; /* borrowed: "rdb", "bytes" */
    uint64_t total;          /* 0: not known */
    int64_t started_ms, printed_ms;
    bool in_line;        /* the line is shared with standard output: see jobProgressInLine() */
    bool shown, visible; /* ever, and now */
} jobProgress;

void jobProgressBegin(jobProgress *p, progressStyle style, const char *task, const char *unit,
                      uint64_t total);
/* From now on, the text is at the end of the current line of the terminal and the cursor stays
 * where it is, so that what the task prints on standard output overwrites it. */
void jobProgressInLine(jobProgress *p);
/* Cheap enough to call for each key. */
void jobProgressAt(jobProgress *p, uint64_t done);
/* The same with the part of a unit that is done: it counts for the rate and the remaining time. */
void jobProgressWithin(jobProgress *p, double done);
/* Removes the text, before something else is printed; the next one follows as usual. */
void jobProgressHide(jobProgress *p);
/* Removes the text; with JSON prints the final state. */
void jobProgressEnd(jobProgress *p, uint64_t done);

#endif
