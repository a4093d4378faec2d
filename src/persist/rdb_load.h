/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading an RDB file into the main keyspace. While it runs, commands of clients are refused with -LOADING. Main thread
 * only. */
#ifndef PERSIST_RDB_LOAD_H
#define PERSIST_RDB_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"

enum rdbLoadFlag {
    RDB_LOAD_KEEP_EXPIRED = 1, /* expired keys are loaded: the primary deletes them */
    RDB_LOAD_OVER = 2,         /* existing keys are replaced; without it they make the load fail */
};

/* Loads the file into the databases without emptying them. ERR_NOT_FOUND: no such file. On failure a part of the keys
 * may have been loaded; the reason is logged and stored in `why`. */
status rdbLoadFile(const char *path, unsigned flags, reason *why) MUST_USE;
/* INFO's fields about the load in progress. */
void rdbLoadPrintInfo(str *out);

#endif
