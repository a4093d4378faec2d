/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the engine. Each field is named after its directive; only the configuration
 * registry writes them. */
#ifndef ENGINE_ENGINE_PRIV_H
#define ENGINE_ENGINE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum maxmemoryPolicy {
    POLICY_VOLATILE_LRU,
    POLICY_VOLATILE_LFU,
    POLICY_VOLATILE_RANDOM,
    POLICY_VOLATILE_TTL,
    POLICY_ALLKEYS_LRU,
    POLICY_ALLKEYS_LFU,
    POLICY_ALLKEYS_RANDOM,
    POLICY_NOEVICTION,
};

enum valueCompression { COMPRESSION_NO, COMPRESSION_IDLE, COMPRESSION_ALWAYS };

enum allowed { ALLOWED_NO, ALLOWED_YES, ALLOWED_LOCAL };

typedef struct engineConfig {
    /* Memory: limit, eviction, active expiry. */
    int64_t maxmemory;         /* bytes, 0: no limit; negative: percent of the machine's memory */
    int64_t maxmemory_dataset; /* bytes, 0: no limit */
    int64_t value_compression_dict_memory; /* bytes */
    int maxmemory_policy, maxmemory_samples, maxmemory_eviction_tenacity;
    int lfu_log_factor;
    int lfu_decay_time; /* minutes */
    int active_expire_effort;
    /* Values compressed in memory: enum valueCompression; seconds; percent. */
    int value_compression;
    int64_t value_compression_min_bytes, value_compression_idle_seconds;
    int value_compression_cpu;
    /* Background freeing of values that no command deletes explicitly. */
    bool lazyfree_lazy_eviction, lazyfree_lazy_expire, lazyfree_lazy_server_del;
    bool lazyfree_lazy_user_flush; /* FLUSHALL, SCRIPT FLUSH and so on without SYNC or ASYNC */
    /* Tables, allocator. */
    bool activerehashing, jemalloc_bg_thread;
    /* Limits of requests. */
    int64_t proto_max_bulk_len;
    int prefetch_batch_max_size;
    int command_slice_us; /* of jobs, in each turn of the loop; 0: there are no jobs */
    /* Command log: times in microseconds, sizes in bytes, -1: off. */
    int64_t commandlog_execution_slower_than, commandlog_slow_execution_max_len;
    int64_t commandlog_request_larger_than, commandlog_large_request_max_len;
    int64_t commandlog_reply_larger_than, commandlog_large_reply_max_len;
    /* Latency. */
    int64_t latency_monitor_threshold; /* ms, 0: off */
    bool latency_tracking;
    double *latency_percentiles; /* each 0..100 */
    int latency_percentile_count;
    /* Restricted features: enum allowed. */
    int enable_protected_configs, enable_debug_command, enable_module_command;
    bool hide_user_data_from_log;
    bool extended_commands;
    /* Windows of hot keys. */
    int hotkeys_top_k, hotkeys_sampling_percentage, hotkeys_window_seconds;
} engineConfig;

extern engineConfig engineConf;
extern const configOption engineOptions[];

/* Periodic job of child.c: checks if the child has ended. */
void childPoll(int64_t budget_us);
/* For tickJob.is_busy. */
bool childIsPolled(void);
/* Fields of INFO stats. */
void childPrintStats(str *out);
void childResetStats(void);

/* Passes maxmemory-policy and the lfu-... directives to the store. */
status keyspaceApplyAccess(reason *why);
status keyspaceApplyLazyFree(reason *why);

#endif
