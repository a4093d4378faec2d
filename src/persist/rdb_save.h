/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing the dataset to an RDB file. In the main process or a forked child; one at a time. */
#ifndef PERSIST_RDB_SAVE_H
#define PERSIST_RDB_SAVE_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"
#include "format/rdb_file.h"
#include "io/compress.h"
#include "persist/sync.h"

/* Where the dataset has begun (psync/birth.h). */
#define RDB_BIRTH_FIELD SLICE("dataset-birth")
/* In builds with checks, files of snapshots without a fork have this field: storeDigestWithTimes()
 * of the dataset at their start, with which a load compares what it has loaded. */
#define RDB_DIGEST_FIELD SLICE("dataset-digest")
/* The text of slotStatesPrint(). */
#define RDB_SLOT_STATES_FIELD SLICE("cluster-slot-states")

/* What to write and where. */
typedef struct rdbSaveJob {
    const char *temporary; /* the path during writing */
    const char *name;      /* the final path */
    syncContent content;   /* `version` 0: rdbVersionOfDataset() */
    compressCodec codec;   /* of the whole file; not for commands */
    const slotMask *slots; /* of these slots alone; NULL: all. Borrowed until the save has ended */
    bool in_child;         /* reports progress to the parent */
    bool is_aof_base;
    bool as_commands; /* writes commands instead of the RDB format */
    bool syncs;       /* flushes to disk while it writes, not only at the end */
} rdbSaveJob;

/* The codec of files for a value of rdbcompression (enum rdbCompression), and for that of now. */
compressCodec rdbSaveCodecOf(int compression);
compressCodec rdbSaveCodec(void);

/* Writes all databases to a file, which is replaced only when the new one is complete and on
 * disk. */
status rdbSaveTo(const rdbSaveJob *job, reason *why) MUST_USE;
/* The same for a snapshot named `name` in the working directory. `content` NULL: everything, with
 * the codec of rdbcompression. */
status rdbSaveFile(const char *name, bool in_child, const syncContent *content,
                   reason *why) MUST_USE;
/* The same for a replica: to a descriptor, between `mark`s (persist/sync.h). */
status rdbSaveToPipe(int fd, const char *mark, const syncContent *content, reason *why) MUST_USE;

/* ------------------------------------------------------------------ parts, for a save in slices */

/* What the records of a save depend on. */
typedef struct rdbRecords {
    rdbWriter *writer;
    const rdbSaveJob *job;
    rdbAccess access;
    int version;
} rdbRecords;
/* The function registered with syncSetOriginProc(); false without one. */
bool rdbSaveFindOrigin(syncOrigin *out);
/* Whether a file of this job gets checksums: one of the whole, or with a codec those of its
 * frame. */
bool rdbSaveHasChecksum(const rdbSaveJob *job);
/* Whether its long strings are compressed one by one. */
bool rdbSaveCompressesStrings(const rdbSaveJob *job);
/* Writes what comes before the first database: the header and the libraries of functions. The
 * arguments are borrowed while records are written. */
void rdbRecordsBegin(rdbRecords *r, rdbWriter *w, const rdbSaveJob *job);
/* The following keys are in this database, which has so many. */
void rdbRecordsDb(rdbRecords *r, int db_id, uint64_t keys, uint64_t volatile_keys);
/* They are in this one, which was announced before. */
void rdbRecordsSelect(rdbRecords *r, int db_id);
/* What follows the keys. */
void rdbRecordsEnd(rdbRecords *r);
/* Writes a key. `db_id` is for the log. ERR_LIMIT (logged): the file's version has no type for the
 * value. */
status rdbRecordsKey(rdbRecords *r, int db_id, const robj *o) MUST_USE;

/* Removes the temporary file of a process that has ended. */
void rdbSaveRemoveTemporary(int process);

#endif
