/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots: when and in which process the dataset is saved, and the result of the last save. Main
 * thread only. */
#ifndef PERSIST_SNAPSHOT_H
#define PERSIST_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

/* Saves in this process. ERR_EXISTS: a child is already saving. */
status snapshotSave(reason *why) MUST_USE;
/* Saves in a forked child. ERR_EXISTS: a child is already saving; ERR_AGAIN: another child is
 * running. */
status snapshotStart(reason *why) MUST_USE;
/* Saves as soon as no other child is running. */
void snapshotSchedule(void);
/* Kills a running save (*running is set), or cancels a scheduled one; false if there is neither. */
bool snapshotCancel(bool *running);
bool snapshotIsRunning(void);
/* Kills a running save, because the dataset is going to be replaced by that of a primary. */
void snapshotKill(void);
/* Unix time in seconds of the last successful save, or of the start. */
int64_t snapshotLastSave(void);
/* Marks the dataset as saved: it equals a file. */
void snapshotNoteLoaded(void);

/* All databases were emptied by a command: a running save is killed, and if there are save points
 * the empty dataset is saved. */
void snapshotFlushed(void);
/* True if a shutdown with these flags saves the dataset. */
bool snapshotIsSavedAtShutdown(uint32_t flags);
/* Called at shutdown: saves the dataset if there are save points. */
status snapshotAtShutdown(uint32_t flags, reason *why) MUST_USE;
void snapshotPrintInfo(str *out);
void snapshotInit(void);
/* Called after a change of `save` or stop-writes-on-bgsave-error. */
void snapshotUpdateGate(void);
/* A tick: save points, scheduled saves. */
void snapshotTick(int64_t budget_us);
/* For tickJob.is_busy: a save point is due within seconds. */
bool snapshotIsNear(void);
/* Implements on_child. */
void snapshotChildEvent(childEvent e, int kind, int exit_code, int signal);

#endif
