/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots for replicas: a forked child writes the dataset to the snapshot file or to a pipe. Main
 * thread only. */
#ifndef PERSIST_SYNC_H
#define PERSIST_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/blob.h"
#include "base/error.h"
#include "engine/session.h"
#include "io/compress.h"
#include "io/pipe.h"

/* The content and the form of a dataset that is written for replicas. */
typedef struct syncContent {
    /* The version of the RDB format: RDB_VERSION, RDB_VERSION_REDIS_MAX for older replicas, or
     * RDB_VERSION_REDIS_TIMES for Redis 7.4 and later. */
    int version;
    bool no_keys, no_functions;
    bool no_checksum;    /* the file has none, whatever rdbchecksum says */
    bool slot_states;    /* also which slots are being moved */
    bool released_types; /* only types that Valkey has: members without their TTLs */
    compressCodec codec; /* of the whole */
} syncContent;

/* Starts a child that writes to the snapshot file, as BGSAVE does. It ends with on_child, kind
 * CHILD_RDB_SAVE. ERR_EXISTS, ERR_AGAIN: there is a child already. */
status syncSaveToFile(const syncContent *content, reason *why) MUST_USE;
/* Starts a child that writes `$EOF:<mark>`, a line end, the dataset and `mark` into `data`; `mark`
 * has SYNC_MARK_LEN characters. Before it ends it waits until the parent has closed its end of
 * `end`, because everything was read. The child's ends of both pipes are closed in the parent, the
 * others stay the caller's. */
enum { SYNC_MARK_LEN = 40 };
typedef struct syncPipe {
    bytePipe data, end; /* `data.write_fd` may be a connection */
    const char *mark;
    bool is_connection;
} syncPipe;
status syncSaveToPipe(syncPipe *to, const syncContent *content, reason *why) MUST_USE;
/* The same in this process, without a child and pipes (persist/inline_save.h): the dataset is taken
 * with syncTakeInline(), between no marks. The end is on_child as for a child, after everything was
 * taken. */
status syncSaveInline(const syncContent *content, reason *why) MUST_USE;
/* Whether the next one is to be made like that. */
bool syncIsInline(void);
/* The next bytes for the replicas, which the caller releases; NULL: none now. The loop is woken
 * when there are more. */
blob *syncTakeInline(void);
/* True while too much is put aside because bytes are not taken: the slowest replicas are to be
 * disconnected. */
bool syncInlineIsPressed(void);
/* Stops the child of one of these, which is no longer wanted: it does not count as a failed save.
 * on_child is called before this returns. */
void syncStop(void);
/* The codec that rdbcompression gives to the snapshot file. */
compressCodec syncFileCodec(void);
/* rdbchecksum */
bool syncFileHasChecksum(void);
/* The path of the snapshot file; borrowed. */
const char *syncFile(void);
/* True if the file that was made or received for a replication is to be removed again:
 * rdb-del-sync-files, without save points and append only file. */
bool syncFileIsUnwanted(void);

/* What WAITAOF asks about replicas. */
typedef struct syncReplicas {
    bool (*is_replica)(void);
    int64_t (*offset_of)(const session *s); /* in the stream, after the session's last change */
    int (*count_fsynced)(int64_t offset);   /* replicas that have the stream on disk up to there */
    void (*want_acks)(void);
} syncReplicas;
/* Registers them. Without, there are no replicas. */
void syncSetReplicas(const syncReplicas *replicas);

/* Output that is held until changes are in the append only file, or on disk; changes have the
 * numbers of propagateCount(). */
typedef struct syncHold {
    /* From now on, until end(): what tells of a change waits until confirm() has had its number.
     * What precedes `number` is safe. */
    void (*begin)(uint64_t number);
    void (*confirm)(uint64_t number);
    void (*end)(void);
    bool (*is_strict)(void); /* a disk that does not keep up is waited for, too */
    /* A flush begins that covers all changes so far; more is known to be on disk. Also without
     * begin(). */
    void (*flush_begins)(void);
    void (*flushed)(void);
} syncHold;
/* Registers them. Without, no output is held. */
void syncSetHold(const syncHold *functions);

/* The position in the replication stream that the dataset corresponds to; written to files. */
typedef struct syncOrigin {
    const char *id; /* borrowed */
    int64_t offset;
    int db; /* selected in the stream; -1: none, SELECT comes next */
    /* Another one with each new content of `id`. */
    uint32_t id_number;
    bool applies; /* the stream is applied here: this is a replica */
    /* False while others' changes are being applied that the offset does not count yet. */
    bool settled;
} syncOrigin;
/* Registers the function that supplies it; false: files have no such fields. */
void syncSetOriginProc(bool (*proc)(syncOrigin *out));
/* Where the dataset has begun: an id that is kept in its files (psync/birth.h); empty: unknown. */
void syncSetBirthProc(const char *(*proc)(void));
/* The stream has got a change that the append only file does not get: until its next rewrite the
 * file has no position in the stream. */
void syncForbidAofPosition(void);

#endif
