/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading an RDB file into the main keyspace. Main thread only. */
#ifndef PERSIST_RDB_LOAD_H
#define PERSIST_RDB_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "engine/hooks.h"
#include "persist/sync_load.h"

enum rdbLoadFlag {
    RDB_LOAD_KEEP_EXPIRED = 1, /* expired keys are loaded: the primary deletes them */
    RDB_LOAD_OVER = 2,         /* existing keys are replaced; without it they make the load fail */
    RDB_LOAD_CONTINUES = 4,    /* commands of the server that wrote the file follow */
};

/* Loads the file into the databases without emptying them. ERR_NOT_FOUND: no such file. On failure
 * a part of the keys may have been loaded; the reason is logged and stored in `why`. */
status rdbLoadFile(const char *path, unsigned flags, reason *why) MUST_USE;
/* Reads only the magic and version of the file; the reason of a refusal is logged. */
status rdbLoadCheckHeader(const char *path, reason *why) MUST_USE;
/* Loads the RDB part at the start of an append only file, expired keys included. Between
 * loadingBegin() and loadingEnd(). *end is the offset of what follows it. */
status rdbLoadPreamble(const char *path, uint64_t *end, reason *why) MUST_USE;
/* persistSyncLoad(): see sync_load.h. */
status rdbLoadSync(syncLoad *load, reason *why) MUST_USE;
/* Puts in place what was read so far, before clients are served while a value is being read. False:
 * that is going on now, so nobody can be served. */
bool rdbLoadPlace(void);
/* The replication fields of the last file. */
persistOrigin rdbLoadOrigin(void);
/* What the last file said of its birth (psync/birth.h); empty: nothing. */
const char *rdbLoadBirth(void);
/* The append only file says where the dataset belongs. */
void rdbLoadSetOrigin(const persistOrigin *origin);
/* See persistSetOriginProc(). */
void rdbLoadSetOriginProc(void (*found)(void));
/* INFO's fields about the last load. */
void rdbLoadPrintInfo(str *out);

#endif
