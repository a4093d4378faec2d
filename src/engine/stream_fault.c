/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failed commands of streams and files (stream_fault.h). Invariant: `last` is empty if and only if
 * `count` is 0. Because its text comes from other servers or files, `last` has no line break and a
 * bounded length. */
#include "engine/stream_fault.h"

#include "base/base.h"
#include "base/log.h"

enum { LOG_MS = 60 * 1000, COMMAND_BYTES_MAX = 64, TEXT_BYTES_MAX = 256 };

static struct {
    uint64_t count, unlogged;
    int64_t logged_ms;
    str last;
} faults[FAULT_SOURCES];

/* Appends at most `max` bytes of a text, with control characters replaced by blanks, so that the
 * line of INFO does not end. */
static void appendLine(str *to, slice text, size_t max) {
    hotCheck(max > 0);
    size_t from = to->len;
    strAppend(to, text.ptr, sizeMin(text.len, max));
    for (size_t i = from; i < to->len; i++) {
        if ((unsigned char)to->ptr[i] < ' ') to->ptr[i] = ' ';
    }
}

bool streamFaultNote(faultSource source, slice command, slice error, uint64_t *unlogged) {
    hotCheck(threadIsMain());
    check(source < FAULT_SOURCES);
    faults[source].count++;
    strClear(&faults[source].last);
    appendLine(&faults[source].last, command.len ? command : SLICE("<unknown>"), COMMAND_BYTES_MAX);
    strAppendText(&faults[source].last, ": ");
    appendLine(&faults[source].last, error, TEXT_BYTES_MAX);
    *unlogged = faults[source].unlogged;
    bool is_due = logIsDue(&faults[source].logged_ms, clockMonoMs(), LOG_MS);
    faults[source].unlogged = is_due ? 0 : faults[source].unlogged + 1;
    return is_due;
}

void streamFaultRestore(faultSource source, slice last) {
    check(source < FAULT_SOURCES);
    check(last.len > 0);
    if (faults[source].count) return;
    faults[source].count = 1;
    appendLine(&faults[source].last, last, COMMAND_BYTES_MAX + TEXT_BYTES_MAX);
}

void streamFaultForget(faultSource source) {
    check(source < FAULT_SOURCES);
    faults[source].count = faults[source].unlogged = 0;
    faults[source].logged_ms = 0;
    strFree(&faults[source].last);
}

uint64_t streamFaultCount(faultSource source) {
    check(source < FAULT_SOURCES);
    return faults[source].count;
}

slice streamFaultLast(faultSource source) {
    check(source < FAULT_SOURCES);
    return strSlice(&faults[source].last);
}
