/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failed checks and panics: writes to the log, calls the registered crash report, aborts.
 * Invariant: neither function returns. A failure inside the crash report is logged but does not
 * start a second report. ANY_THREAD. */
#include "base/assert.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

static void (*begin_proc)(void);
static assertProc *crash_proc;
static int crashing; /* set by the first thread that fails */

void assertSetProcs(void (*begin)(void), assertProc *proc) {
    begin_proc = begin;
    crash_proc = proc;
}

static void __attribute__((noreturn))
crash(bool first, const char *what, const char *file, int line) {
    if (first && crash_proc) crash_proc(what, file, line);
    abort();
}

static bool crashBegin(void) {
    bool first = !__atomic_exchange_n(&crashing, 1, __ATOMIC_ACQ_REL);
    if (first && begin_proc) begin_proc();
    return first;
}

static _Thread_local bool is_worker;

bool threadIsMain(void) { return !is_worker; }

void threadSetWorker(void) { is_worker = true; }

void assertFailed(const char *cond, const char *file, int line) {
    bool first = crashBegin();
    logWarning(first ? "=== ASSERTION FAILED ===" : "=== RECURSIVE ASSERTION FAILED ===");
    logWarning("==> %s:%d '%s' is not true", file, line, cond);
    crash(first, cond, file, line);
}

void panicAt(const char *file, int line, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    bool first = crashBegin();
    logWarning("------------------------------------------------");
    logWarning("!!! Software Failure. Press left mouse button to continue");
    logWarning("Guru Meditation: %s #%s:%d", message, file, line);
    crash(first, message, file, line);
}
