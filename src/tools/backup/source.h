/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server that is backed up: a connection that gets its stream as a replica does, and another
 * one that asks it for its time and offset. One thread at a time. */
#ifndef TOOLS_BACKUP_SOURCE_H
#define TOOLS_BACKUP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <valkey/valkey.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "tools/backup/catalog.h"
#include "tools/cli/connection.h"
#include "tools/cli/full_sync.h"

typedef struct sourceAddress {
    str host;
    int port;
} sourceAddress;

typedef struct backupSource {
    const cliOptions *options;
    valkeyContext *control, *stream; /* NULL: not connected */
    sourceAddress at;                /* the server that is connected */
    /* Those that have had the same data: the one named by the user first. */
    sourceAddress *known;
    int known_count;
    bool is_primary;
    bool knows_backups; /* it does not count a reader of a backup as a replica */
    bool has_replicas;
    str server, version; /* "valkey", "9.1.2" */
    /* The stream. */
    fullSync *sync;
    char repl_id[REPL_ID_LEN + 1];
    int64_t offset; /* of the last byte that was received, or of the full copy */
} backupSource;

void sourceInit(backupSource *s, const cliOptions *options, const char *host, int port);
void sourceClear(backupSource *s);
void sourceDisconnect(backupSource *s);
/* Connects to one of the known servers: a replica whose link is up, unless `any` asks for the one
 * that was named first. */
status sourceConnect(backupSource *s, bool any, reason *why) MUST_USE;
/* Asks the connected server again which others have the same data. */
status sourceRefresh(backupSource *s, reason *why) MUST_USE;
/* Asks for the time of the server and the offset of its stream. ERR_AGAIN: they are of no use now,
 * as the server has lost its primary or follows another stream. */
status sourceMark(backupSource *s, backupMark *out, reason *why) MUST_USE;
/* Sends a command on the control connection; a reply that is an error is a failure. The caller
 * frees the reply. */
status sourceCommand(backupSource *s, valkeyReply **out, reason *why, const char *format,
                     ...) MUST_USE;

/* Asks for the stream after `from` of this id, or with `id` NULL for a full copy.
 * `*continues`: the stream follows; else a full copy, whose offset is set, follows by
 * sourceReceive(). `stays` false: nothing is wanted after the full copy. */
status sourceBegin(backupSource *s, const char *id, int64_t from, bool stays, bool *continues,
                   reason *why) MUST_USE;
/* Receives the full copy. False if the connection fails or the sink does. */
bool sourceReceive(backupSource *s, const fullSyncSink *sink, jobProgress *progress);
/* Waits for bytes of the stream, at most so long. *len may be 0. The bytes are valid until the next
 * call. */
status sourceRead(backupSource *s, int timeout_ms, const char **bytes, size_t *len,
                  reason *why) MUST_USE;
/* Tells the server that this reader lives, with an offset that satisfies no WAIT. */
status sourceAcknowledge(backupSource *s, reason *why) MUST_USE;

#endif
