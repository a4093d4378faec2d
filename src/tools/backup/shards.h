/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shards of the cluster that is backed up. One thread. */
#ifndef TOOLS_BACKUP_SHARDS_H
#define TOOLS_BACKUP_SHARDS_H

#include "tools/backup/source.h"

typedef struct backupShard {
    str name;  /* "shard-" and the id of the shard, or of its primary */
    str slots; /* "0-5460 7000-7000" */
    str host;  /* of the primary */
    int port;
} backupShard;

typedef struct backupShards {
    backupShard *list; /* by name */
    int count;
    str moving; /* which slots are being moved, as a sentence; empty: none are */
    str owners; /* names and slots of all: differs after a move */
} backupShards;

/* Asks a server. `*is_cluster` false: it is none, and the list is empty. */
status shardsLoad(const cliOptions *options, bool *is_cluster, backupShards *out,
                  reason *why) MUST_USE;
void shardsClear(backupShards *shards);

#endif
