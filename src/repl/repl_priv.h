/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of replication. A field is called as its directive; only the registry writes them, but
 * for the primary's address, which REPLICAOF changes too. */
#ifndef REPL_REPL_PRIV_H
#define REPL_REPL_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "config/config.h"

enum disklessLoad {
    DISKLESS_LOAD_DISABLED,
    DISKLESS_LOAD_ON_EMPTY_DB,
    DISKLESS_LOAD_SWAPDB,
    DISKLESS_LOAD_FLUSH_BEFORE_LOAD,
};
enum propagationError {
    PROPAGATION_ERROR_IGNORE,
    PROPAGATION_ERROR_PANIC,
    PROPAGATION_ERROR_PANIC_ON_REPLICAS
};

typedef struct replConfig {
    /* As a replica. */
    str primary_host; /* empty: we are a primary */
    int primary_port;
    str primaryauth, primaryuser;
    bool replica_serve_stale_data, replica_read_only, replica_ignore_maxmemory;
    bool replica_lazy_flush;
    int replica_priority;
    bool replica_announced;
    char *replica_announce_ip;
    int replica_announce_port;
    bool replica_ignore_disk_write_errors;
    int repl_diskless_load;         /* enum disklessLoad */
    int propagation_error_behavior; /* enum propagationError */
    bool import_mode;
    /* As a primary. */
    bool repl_diskless_sync;
    int repl_diskless_sync_delay; /* seconds */
    int repl_diskless_sync_max_replicas;
    bool dual_channel_replication_enabled;
    int repl_ping_replica_period;                    /* seconds */
    int64_t repl_backlog_size;                       /* bytes */
    int64_t repl_backlog_ttl;                        /* seconds */
    int min_replicas_to_write, min_replicas_max_lag; /* replicas, seconds */
    /* Both. */
    int repl_timeout; /* seconds */
    bool repl_disable_tcp_nodelay, repl_mptcp;
} replConfig;

extern replConfig replConf;
extern const configOption replOptions[];

#endif
