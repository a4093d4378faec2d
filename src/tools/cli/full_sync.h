/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The full synchronisation that a primary sends to its replicas: a line that announces the
 * snapshot, and the snapshot, which has a length or ends with a marker. Works with any connection,
 * TLS included. One thread. */
#ifndef TOOLS_CLI_FULL_SYNC_H
#define TOOLS_CLI_FULL_SYNC_H

#include <stdbool.h>
#include <stdint.h>
#include <valkey/valkey.h>

#include "tools/cli/job_progress.h"

enum { FULL_SYNC_MARKER_LEN = 40, FULL_SYNC_PART_BYTES = 64 * 1024 };

typedef struct fullSync {
    char line[1024]; /* the last line of the server, without its end */
    bool has_marker;
    char marker[FULL_SYNC_MARKER_LEN];
    uint64_t length; /* of the snapshot, without a marker */
    char buffer[FULL_SYNC_MARKER_LEN + FULL_SYNC_PART_BYTES];
    size_t buffered; /* bytes that were received and not taken */
} fullSync;

/* What a reader that keeps a whole dataset announces with REPLCONF: without the words of a type a
 * server leaves out what older servers cannot read, or fails. Servers ignore words that they do not
 * know. */
#define FULL_SYNC_CAPABILITIES "capa eof capa member-ttls capa path-hashes"

/* Sends what was appended to the context. False after a failure, which is in the context. */
bool fullSyncSend(valkeyContext *context);
/* Reads a line of the reply to SYNC or PSYNC, which may take as long as the server needs to prepare
 * a snapshot. False if the connection fails and after Ctrl-C. */
bool fullSyncReadLine(valkeyContext *context, fullSync *s);
/* True if the last line announces a snapshot, whose end is then in `s`. */
bool fullSyncHasSnapshot(fullSync *s);
/* Where a snapshot goes. */
typedef struct fullSyncSink {
    bool (*write)(void *arg, const char *bytes, size_t len); /* false: stop */
    void *arg;
} fullSyncSink;

/* Receives the snapshot, passes it on (NULL: nowhere) and counts its bytes in `*received`. Returns
 * false if the connection fails, after Ctrl-C, and if the sink does. `p` may be NULL. */
bool fullSyncReceive(valkeyContext *context, fullSync *s, const fullSyncSink *sink, jobProgress *p,
                     uint64_t *received);
/* Passes bytes that were received after the last line or the snapshot to the context's reader. */
void fullSyncPassRest(valkeyContext *context, fullSync *s);
/* Sends SYNC and writes the snapshot to the file `path`, "-" for standard output. Prints on
 * standard error what it does and what fails; returns false then. The connection cannot be used
 * afterwards. */
bool fullSyncSave(valkeyContext *context, const char *path, progressStyle style);

#endif
