/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A load of the dataset in progress: refuses the commands of clients with -LOADING, serves clients between two keys,
 * and reports progress. Main thread only. */
#ifndef PERSIST_LOADING_H
#define PERSIST_LOADING_H

#include <stdint.h>

#include "base/str.h"

/* Begins a load of `bytes` in total, possibly from several files. `path` is for hook 5. */
void loadingBegin(const char *path, int64_t bytes);
/* Between two keys or commands: `done` bytes of the current file are loaded. Serves clients from time to time, which
 * may move objects. */
void loadingProgress(uint64_t done);
/* The current file is loaded. */
void loadingNextFile(void);
void loadingEnd(const char *path);
/* key-load-delay; once per key. */
void loadingDelayKey(void);
/* INFO's fields about the load in progress; nothing without one. */
void loadingPrintInfo(str *out);

#endif
