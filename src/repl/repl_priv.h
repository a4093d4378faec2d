/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of replication. Each field is named after its directive. Only the configuration
 * registry writes them, except the address of the primary, which REPLICAOF changes, too. */
#ifndef REPL_REPL_PRIV_H
#define REPL_REPL_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "config/config.h"
#include "io/compress.h"

enum disklessLoad {
    DISKLESS_LOAD_DISABLED,
    DISKLESS_LOAD_ON_EMPTY_DB,
    DISKLESS_LOAD_SWAPDB,
    DISKLESS_LOAD_FLUSH_BEFORE_LOAD,
};
enum replCompression { REPL_COMPRESS_NO, REPL_COMPRESS_YES, REPL_COMPRESS_LZ4, REPL_COMPRESS_ZSTD };
enum quorumDurability { QUORUM_IN_MEMORY, QUORUM_ON_DISK };
enum refuseEmptyPrimary {
    REFUSE_EMPTY_NO,
    REFUSE_EMPTY_YES,    /* except a primary that has discarded its data by order */
    REFUSE_EMPTY_ALWAYS, /* also such a primary */
};
enum propagationError {
    PROPAGATION_ERROR_IGNORE,
    PROPAGATION_ERROR_PANIC,
    PROPAGATION_ERROR_PANIC_ON_REPLICAS,
    PROPAGATION_ERROR_STOP
};

typedef struct replConfig {
    /* For replicas. */
    str primary_host; /* empty for a primary */
    int primary_port;
    str primaryauth, primaryuser;
    bool replica_serve_stale_data, replica_read_only, replica_ignore_maxmemory;
    bool replica_lazy_flush;
    int replica_refuse_empty_primary; /* enum refuseEmptyPrimary */
    int replica_priority;
    bool replica_announced;
    char *replica_announce_ip;
    int replica_announce_port;
    bool replica_ignore_disk_write_errors;
    int repl_diskless_load;         /* enum disklessLoad */
    int propagation_error_behavior; /* enum propagationError */
    bool import_mode;
    /* For primaries. */
    bool repl_diskless_sync;
    int repl_diskless_sync_delay; /* seconds */
    int repl_diskless_sync_max_replicas;
    bool dual_channel_replication_enabled;
    int repl_ping_replica_period;                           /* seconds */
    int64_t repl_backlog_size;                              /* bytes */
    int64_t repl_backlog_ttl;                               /* seconds */
    int min_replicas_to_write, min_replicas_max_lag;        /* replicas, seconds */
    int replication_quorum;                                 /* replicas, 0: off */
    int replication_quorum_durability;                      /* enum quorumDurability */
    int replication_quorum_timeout, replication_read_lease; /* ms */
    int64_t replication_quorum_output_limit;                /* bytes */
    int outgoing_format;                                    /* rdbForm */
    /* For both. */
    int repl_timeout; /* seconds */
    bool repl_throttling_enabled;
    int repl_compression; /* enum replCompression */
    bool repl_disable_tcp_nodelay, repl_mptcp;
} replConfig;

extern replConfig replConf;
extern const configOption replOptions[];

#endif
