/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The append only file: what is appended, when it is written and flushed to disk, and what happens
 * if that fails. Main thread only. */
#ifndef PERSIST_AOF_H
#define PERSIST_AOF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"
#include "io/append_file.h"

typedef enum aofState {
    AOF_IS_OFF,
    AOF_IS_ON,
    AOF_IS_WAITING, /* switched on, but the first rewrite has not succeeded yet */
} aofState;
aofState aofStateNow(void);

/* Starts appending to `take` at server start: its content, and that of the files before it, has
 * been loaded. */
void aofBegin(appendFile *take);
/* Switches on at run time: changes are appended from the next rewrite on. */
void aofBeginWaiting(void);
/* Writes and flushes what is pending, closes the file and stops. */
void aofEnd(void);

/* A rewrite begins: writes what is pending to the current file, which is then flushed and closed in
 * the background, and continues in `take`. Fails, and `take` remains the caller's, if not
 * everything could be written. */
status aofSwitchFile(appendFile *take, reason *why) MUST_USE;
/* A rewrite of all data has succeeded, so earlier failures of fsync have no consequences any more.
 * In AOF_IS_WAITING: continues as AOF_IS_ON. */
void aofRewritten(void);
/* The rewrite failed in AOF_IS_WAITING: forgets its incremental file. */
void aofDropFile(void);

/* Writes pending changes, and flushes them to disk if it is time. `force`: does not wait for a
 * flush under way. */
void aofFlush(bool force);
/* Writes and flushes everything, waiting for the disk. */
status aofFlushAll(reason *why) MUST_USE;
/* True if all changes are written. */
bool aofIsWritten(void);
/* Calls `proc` once, at the end of a turn, as soon as all changes are written and no command is
 * running; it may switch to another file then. NULL: it is not called any more. */
void aofWhenWritten(void (*proc)(void));
/* At the end of a clean shutdown, before aofFlushAll(): the position in the replication stream
 * becomes the last line of the file. */
void aofNotePosition(void);
/* True while a failed fsync has not been made good by a rewrite. */
bool aofNeedsRewrite(void);
/* True while pending changes cannot be written. */
bool aofWriteFails(void);

/* Size of the files in bytes, and their size after the last rewrite or at the start. */
int64_t aofSize(void);
int64_t aofSizeAfterRewrite(void);
void aofSetSizes(int64_t size, int64_t after_rewrite);

/* The number of the last change that was appended. */
uint64_t aofAppendedNumber(void);
/* The number (propagateCount()) of the last change that is known to be on disk. */
uint64_t aofSyncedNumber(void);

/* Called about ten times per second. */
void aofTick(int64_t budget_us);
/* For tickJob.is_busy: not everything is on disk. */
bool aofIsBehind(void);
/* INFO: the state of the last write; pending bytes and counters. */
void aofPrintStatus(str *out);
void aofPrintSizes(str *out);
void aofResetStats(void);
/* Memory of pending changes in bytes; time spent in writing since the start in us. */
size_t aofBufferBytes(void);
uint64_t aofWriteUs(void);

extern const gate aofErrorGate;
extern const sink aofSink;

/* For gates after a failure: commands that write, or run a queue of commands that may, and PING, by
 * which clients notice. */
bool persistSelectsWrites(const commandSpec *spec);

#endif
