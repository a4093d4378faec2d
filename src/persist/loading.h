/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load of the dataset in progress: refuses the commands of clients with -LOADING, serves clients
 * between two keys, and reports progress. Main thread only. */
#ifndef PERSIST_LOADING_H
#define PERSIST_LOADING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/server_event.h"

/* Begins a load of `bytes` in total, possibly from several files. `path` is for on_db. */
void loadingBegin(serverDatasetSource source, const char *path, int64_t bytes);
/* Between two keys or commands: `done` bytes of the current file are loaded. Serves clients from
 * time to time, which may move objects. */
void loadingProgress(uint64_t done);
/* The two steps of loadingProgress(): true if clients are to be served; serves them. */
bool loadingAdvance(uint64_t done);
void loadingServe(void);
/* The current file is loaded. */
void loadingNextFile(void);
void loadingEnd(const char *path, bool success);
/* What is read now has the format of the append only file, or that of a snapshot: its beginning may
 * have. */
void loadingSetFormat(bool is_aof);
/* Begins a load beside the dataset that clients use. Ends with loadingEnd(). */
void loadingBeginBeside(int64_t bytes);
bool loadingIsBeside(void);
/* Is called before clients are served, until loadingEnd(). */
typedef void loadingServeProc(void *arg);
void loadingSetObserver(loadingServeProc *proc, void *arg);
/* The file tells how much memory the server used that saved it; measures the progress of a load of
 * unknown size. */
void loadingNoteUsedMemory(int64_t bytes);
/* key-load-delay; once per key. */
void loadingDelayKey(void);
/* INFO's fields about the load in progress; nothing without one. */
void loadingPrintInfo(str *out);

#endif
