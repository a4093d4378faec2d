/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of snapshots and the append only file. Each field is named after its directive; only
 * the configuration registry writes them. */
#ifndef PERSIST_PERSIST_PRIV_H
#define PERSIST_PERSIST_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

/* Save if `seconds` have passed since the last save and at least `changes` were made. */
typedef struct savePoint {
    int64_t seconds, changes;
} savePoint;

enum appendFsync { FSYNC_EVERYSEC, FSYNC_ALWAYS, FSYNC_NO };
enum rdbVersionCheck { RDB_VERSION_STRICT, RDB_VERSION_RELAXED };

/* How files are compressed: not, each long string by LZF (two names), or as a whole. */
enum rdbCompression {
    RDB_COMPRESS_NO,
    RDB_COMPRESS_YES,
    RDB_COMPRESS_LZF,
    RDB_COMPRESS_LZ4,
    RDB_COMPRESS_ZSTD
};

enum foreignValues { FOREIGN_REFUSE, FOREIGN_SKIP };

enum snapshotMode { SNAPSHOT_AUTO, SNAPSHOT_INLINE, SNAPSHOT_FORK };
enum bgsaveMethod { BGSAVE_FORK, BGSAVE_FORKLESS };
enum excessAction { EXCESS_WAIT, EXCESS_CANCEL };

typedef struct persistConfig {
    /* Snapshots. */
    savePoint *save_points;
    int save_point_count;
    char *dbfilename;   /* without a path */
    int rdbcompression; /* enum rdbCompression */
    bool rdbchecksum;
    int rdb_version_check; /* enum rdbVersionCheck */
    int foreign_values;    /* enum foreignValues */
    bool rdb_del_sync_files, rdb_save_incremental_fsync, stop_writes_on_bgsave_error;
    char *bgsave_cpulist;
    int snapshot_mode; /* enum snapshotMode */
    bool forkless_infrastructure_enabled;
    int bgsave_default_method; /* enum bgsaveMethod */
    int64_t snapshot_excess_limit;
    int snapshot_excess_action; /* enum excessAction */
    /* Append only file. */
    bool appendonly;
    char *appendfilename, *appenddirname; /* without paths */
    int appendfsync;                      /* enum appendFsync */
    bool no_appendfsync_on_rewrite;
    int auto_aof_rewrite_percentage;
    int64_t auto_aof_rewrite_min_size;
    bool aof_load_truncated, aof_use_rdb_preamble, aof_timestamp_enabled;
    bool aof_rewrite_incremental_fsync;
    char *aof_rewrite_cpulist;
    bool aof_disable_auto_gc;
    /* For tests: delay per key in microseconds, or keys per microsecond if negative; bytes. */
    int key_load_delay, rdb_key_save_delay, loading_process_events_interval_bytes;
} persistConfig;

extern persistConfig persistConf;
extern const configOption persistOptions[];

#endif
