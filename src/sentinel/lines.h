/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lines "sentinel ..." of a configuration file.
 *
 * Invariant: what sentinelLinesWrite() writes, sentinelLineTake() reads back to the same state; all
 * values are validated before they are stored. */
#ifndef SENTINEL_LINES_H
#define SENTINEL_LINES_H

#include "monitor/view.h"

/* When a line is taken: in the order of these numbers, below SENTINEL_LINE_RANKS. `words` are those
 * after "sentinel". */
enum { SENTINEL_LINE_RANKS = 4 };
int sentinelLineRank(const slice *words, int count);
status sentinelLineTake(sentinelView *v, const slice *words, int count, reason *why) MUST_USE;
/* How many of the words tell lines apart. */
int sentinelLineKeyWords(const slice *words, int count);
/* Passes each line to `add`, without the word "sentinel"; also those of defaults, which need not be
 * written. */
void sentinelLinesWrite(const sentinelView *v, void (*add)(void *arg, slice line, bool is_default),
                        void *arg);

/* Numbers as they are read from lines: digits with what follows ignored; 0 without any. */
int64_t sentinelReadNumber(slice text);
/* Adds, replaces or (if both are the same) removes the name of a command. */
void sentinelRename(sentinelInstance *primary, slice from, slice to);
/* True if the file exists and can be executed. */
bool sentinelScriptIsValid(slice path);

#endif
