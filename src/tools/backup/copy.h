/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What --backup has to write: a full copy of a server in a folder of its own. One thread at a
 * time. */
#ifndef TOOLS_BACKUP_COPY_H
#define TOOLS_BACKUP_COPY_H

#include <stdbool.h>

#include "tools/backup/source.h"

/* One server, or one shard of a cluster, and where its backup goes. */
typedef struct backupJob {
    const cliOptions *options;
    const char *target;        /* the folder of this server or shard; "-": standard output */
    const char *shard, *slots; /* "": no cluster */
    partForm form;
    bool quiet; /* no progress */
} backupJob;

typedef struct copyResult {
    str folder; /* of the chain; empty for standard output */
    backupFull full;
    backupMark begin; /* the state at the time of `full`, if the stream is kept, too */
} copyResult;

/* Creates a folder and those above it. */
status folderCreateAll(const char *path, reason *why) MUST_USE;
/* Makes a full copy from a connected source. With `stays` its stream can be read afterwards.
 * `*exit_code` tells who failed. */
status copyMake(const backupJob *job, backupSource *source, bool stays, copyResult *out,
                int *exit_code, reason *why) MUST_USE;
/* The same for a source that has replied to sourceBegin() with a full copy. */
status copyReceive(const backupJob *job, backupSource *source, copyResult *out, int *exit_code,
                   reason *why) MUST_USE;
void copyResultClear(copyResult *result);
/* Runs the command of --upload for a file, if there is one: {} is replaced by its path. */
status uploadFile(const backupJob *job, const char *folder, const char *file, reason *why) MUST_USE;
/* Uploads a full copy, or one whose upload has failed before. What is owed is a file in its
 * folder. */
status copyUpload(const backupJob *job, const char *folder, const backupFull *full, bool begin,
                  reason *why) MUST_USE;
/* Prints a line with the time on standard error. */
void backupSay(const backupJob *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
