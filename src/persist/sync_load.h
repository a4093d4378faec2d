/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What replication needs of persistence: loading the dataset of a primary, the append only file
 * meanwhile, and where in a replication stream the file of the last start belongs. Main thread
 * only. */
#ifndef PERSIST_SYNC_LOAD_H
#define PERSIST_SYNC_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "format/rdb_reader.h"
#include "store/keyspace.h"

/* The load of a dataset that a primary sends. */
typedef struct syncLoad {
    rdbSource *source;
    const char *path; /* of a file; NULL: a socket */
    int64_t bytes;    /* size announced, 0: unknown */
    /* NULL: into the main keyspace. Else beside it; libraries of functions are collected in
     * `libraries`. Clients are refused with -LOADING, unless `serves` is set: then only commands
     * such as SAVE are. */
    keyspace *into;
    bool serves;    /* clients are served, with the old data; only with `into` */
    str *libraries; /* `library_count` of them, to be freed with memFree() */
    int library_count;
    /* The header was accepted: the caller empties what is replaced. */
    void (*accepted)(void *arg);
    /* After each 2 MB or so, and whenever clients are served. */
    void (*progress)(void *arg);
    /* The file is complete: checks what follows it in the reader. May be NULL. */
    status (*ended)(void *arg, rdbReader *r);
    /* All was loaded, and listeners are not told yet that the load has ended. May be NULL. */
    void (*loaded)(struct syncLoad *load);
    void *arg;
    /* A file without any key is refused, before `accepted` is called. */
    bool needs_key;
    bool has_no_key;      /* result: it was refused for that */
    bool lacks_databases; /* result: it has keys of databases that this server does not have */
    bool is_foreign;      /* result: it has values of types that this server does not have */
    bool was_accepted;    /* result: `accepted` was called, or would have been */
    bool short_read;      /* result: it failed because the source ended */
} syncLoad;
/* INFO's field about the last dataset of a primary that was refused, if the next one was not loaded
 * since. */
void persistPrintRefusal(str *out);
/* Loads until the end of the file. Failures are logged; the data loaded so far remains. */
status persistSyncLoad(syncLoad *load, reason *why) MUST_USE;

/* Until the load in progress is done, estimated; -1: unknown. */
int64_t persistSyncSecondsLeft(void);

/* Before a load: ends a running save of the dataset, and stops the append only file, whose history
 * ends here. */
void persistSyncBegin(void);
/* After a load, or after it failed: appends again if the configuration says so. `path` is the
 * complete file that was loaded, to be used as base; NULL: the dataset is written by a rewrite. */
void persistSyncEnd(const char *path);
/* The snapshot file in the working directory; borrowed. */
const char *persistSnapshotPath(void);
/* The file at persistSnapshotPath() is the dataset: nothing has to be saved. */
void persistSyncSaved(void);
/* True if there are save points: a complete snapshot is of use for this server, too. */
bool persistSavesItself(void);
/* rdb-del-sync-files applies: neither save points nor append only file. */
bool persistDeletesSyncFiles(void);
/* True while the append only file has the dataset: not before its first rewrite. Then: the numbers
 * of the last change appended, and of the last one on disk. */
bool persistAofIsOn(void);
uint64_t persistAofAppended(void);
uint64_t persistAofSynced(void);

/* Where in a replication stream the last file that was loaded at the start belongs. */
typedef struct persistOrigin {
    char id[41]; /* empty: unknown */
    int64_t offset;
    int db; /* selected in the stream; -1: unknown */
} persistOrigin;
persistOrigin persistLoadedOrigin(void);
/* True if the dataset of the start was that of an append only file: unless the machine has failed
 * it has each change that was replied to. */
bool persistLoadedAof(void);
/* True if there was a file at the start, if only without keys. */
bool persistLoadedDataset(void);
/* What it said of its birth (syncSetBirthProc()); empty: nothing. */
const char *persistLoadedBirth(void);
/* `found` is called while such a file is loaded, before a first change (an expired key that is
 * dropped) is propagated. */
void persistSetOriginProc(void (*found)(void));

#endif
