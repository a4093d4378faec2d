/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys of the private server, brought into a running server or cluster, or given other expiry times
 * where they are. One thread. */
#ifndef TOOLS_BACKUP_TRANSFER_H
#define TOOLS_BACKUP_TRANSFER_H

#include "tools/backup/private_server.h"

typedef enum ttlMode { TTL_KEEP, TTL_SHIFT, TTL_DROP } ttlMode;

typedef struct transferTarget {
    valkeyContext *server; /* NULL: a cluster */
    struct valkeyClusterContext *cluster;
    const char *address; /* borrowed, for messages */
} transferTarget;

typedef struct transferCounts {
    uint64_t keys, expired, existing;
} transferCounts;

/* Connects to "host:port" with the options' login. With `must_be_empty` it must have no keys. */
status transferConnect(transferTarget *t, const cliOptions *options, const char *address,
                       bool must_be_empty, reason *why) MUST_USE;
void transferDisconnect(transferTarget *t);
/* Brings the keys that match options->backup.keys (all without it), and all functions without it.
 * `shift_ms` is added to expiry times in TTL_SHIFT. */
status transferKeys(transferTarget *t, privateServer *from, const cliOptions *options, ttlMode ttl,
                    int64_t shift_ms, transferCounts *counts, reason *why) MUST_USE;
/* Changes the expiry times of all keys of the private server. */
status transferShiftTimes(privateServer *s, ttlMode ttl, int64_t shift_ms, uint64_t *changed,
                          reason *why) MUST_USE;

#endif
