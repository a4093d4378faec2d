/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rewriting the append only file: a forked child writes the dataset as a new base file, while
 * changes go to a new incremental file. When it has succeeded, both replace all files before them.
 * Main thread only. */
#ifndef PERSIST_AOF_REWRITE_H
#define PERSIST_AOF_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

/* Begins. Failures are logged. With an append only file the child is forked later, when the files
 * are prepared: BLOCK_OFFSET is notified when aofRewriteIsStarting() may end. */
status aofRewriteStart(void) MUST_USE;
/* True until the child is forked, or that has failed. */
bool aofRewriteIsStarting(void);
/* True if the last start has failed. */
bool aofRewriteStartFailed(void);
bool aofRewriteIsScheduled(void);
/* Starts a rewrite as soon as no other child is running, however many have failed before. */
void aofRewriteSchedule(void);
bool aofRewriteIsRunning(void);
/* CONFIG SET appendonly yes: changes are appended from the first rewrite on, which starts now or
 * later. */
status aofSwitchOn(reason *why) MUST_USE;
void aofSwitchOff(void);

/* A tick: scheduled and automatic rewrites. */
void aofRewriteTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool aofRewriteIsWanted(void);
/* Implements on_child. */
void aofRewriteChildEvent(childEvent e, int kind, int exit_code, int signal);
/* Called at shutdown: kills a running rewrite; then everything is written and flushed. */
status aofAtShutdown(uint32_t flags, reason *why) MUST_USE;
void aofRewritePrintInfo(str *out);

#endif
