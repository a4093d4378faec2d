/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots: when the dataset is saved, by whom, and how the last save ended. Main thread only. */
#ifndef PERSIST_SNAPSHOT_H
#define PERSIST_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

/* Saves in this process. ERR_EXISTS: a child saves already. */
status snapshotSave(reason *why) MUST_USE;
/* Saves in a forked child. ERR_EXISTS: a child saves already; ERR_AGAIN: another child is running. */
status snapshotStart(reason *why) MUST_USE;
/* Saves as soon as no other child is running. */
void snapshotSchedule(void);
/* Ends a running save (*running), or takes back a scheduled one; false: there is neither. */
bool snapshotCancel(bool *running);
bool snapshotIsRunning(void);
/* Unix time in seconds of the last successful save, or of the start. */
int64_t snapshotLastSave(void);
/* The dataset equals a file: counts as saved. */
void snapshotNoteLoaded(void);

/* Directives asked at the end of the process: with save points the dataset is saved. */
status snapshotAtShutdown(uint32_t flags, reason *why) MUST_USE;
void snapshotPrintInfo(str *out);
void snapshotInit(void);
/* After a change of `save` or stop-writes-on-bgsave-error. */
void snapshotUpdateGate(void);
/* Hook 7: save points, scheduled saves. */
void snapshotTick(int64_t budget_us);
/* Hook 9. */
void snapshotChildEvent(childEvent e, int kind, int exit_code, int signal);

#endif
