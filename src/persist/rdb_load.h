/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading an RDB file into the main keyspace. While it runs clients are served with -LOADING. Main thread only. */
#ifndef PERSIST_RDB_LOAD_H
#define PERSIST_RDB_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

enum rdbLoadFlag {
    RDB_LOAD_KEEP_EXPIRED = 1, /* keys that have expired are loaded: somebody else deletes them */
    RDB_LOAD_OVER = 2,         /* a key that exists is replaced; without it the load fails */
};

/* Loads the file into the databases, which are not emptied before. ERR_NOT_FOUND: no such file. On failure part of
 * the keys may have been loaded; the reason is in `why` and was logged. */
status rdbLoadFile(const char *path, unsigned flags, reason *why) MUST_USE;
/* INFO's fields about the load in progress. */
void rdbLoadPrintInfo(str *out);

#endif
