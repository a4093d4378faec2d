/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the engine: memory, freeing, command log, latency, restricted features, which
 * commands there are. Main thread only. */
#include "engine/options.h"

#include <limits.h>

#include "base/base.h"
#include "engine/compress_values.h"
#include "base/number.h"
#include "engine/command.h"
#include "config/config.h"
#include "engine/engine_priv.h"
#include "engine/hotkeys_priv.h"
#include "engine/job.h"
#include "engine/memory.h"
#include "engine/hot.h"
#include "engine/measure.h"
#include "engine/reply.h"

engineConfig engineConf;

/* ------------------------------------------------------------------ enum values */

static const configWord compression_words[] = {
    {"no", COMPRESSION_NO}, {"idle", COMPRESSION_IDLE}, {"always", COMPRESSION_ALWAYS}, {NULL, 0}};
static const configWord policy_words[] = {
    {"volatile-lru", POLICY_VOLATILE_LRU},
    {"volatile-lfu", POLICY_VOLATILE_LFU},
    {"volatile-random", POLICY_VOLATILE_RANDOM},
    {"volatile-ttl", POLICY_VOLATILE_TTL},
    {"allkeys-lru", POLICY_ALLKEYS_LRU},
    {"allkeys-lfu", POLICY_ALLKEYS_LFU},
    {"allkeys-random", POLICY_ALLKEYS_RANDOM},
    {"noeviction", POLICY_NOEVICTION},
    {NULL, 0},
};
static const configWord allowed_words[] = {
    {"no", ALLOWED_NO}, {"yes", ALLOWED_YES}, {"local", ALLOWED_LOCAL}, {NULL, 0}};

/* ------------------------------------------------------------------ latency percentiles */

static status setPercentiles(const slice *words, int count, bool more, reason *why) {
    (void)more; /* the last line applies */
    double *list = memNewArray(double, (size_t)count + 1);
    status st = OK;
    for (int i = 0; i < count && st == OK; i++) {
        if (!numberParseDouble(words[i], &list[i])) {
            st = reasonSet(why, ERR_SYNTAX, "Invalid latency-tracking-info-percentiles parameters");
        } else if (list[i] < 0 || list[i] > 100) {
            st = reasonSet(
                why, ERR_RANGE,
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
        }
    }
    if (st != OK) {
        memFree(list);
        return st;
    }
    memFree(engineConf.latency_percentiles);
    engineConf.latency_percentiles = list;
    engineConf.latency_percentile_count = count;
    return OK;
}

static void getPercentiles(str *out) {
    for (int i = 0; i < engineConf.latency_percentile_count; i++) {
        if (i) strAppendByte(out, ' ');
        strAppendFormat(out, "%.6f", engineConf.latency_percentiles[i]);
        while (out->ptr[out->len - 1] == '0') strCut(out, out->len - 1);
        if (out->ptr[out->len - 1] == '.') strCut(out, out->len - 1);
    }
}

static const configSpecial percentiles = {.set = setPercentiles, .get = getPercentiles};

/* ------------------------------------------------------------------ which commands there are */

static status applyExtended(reason *why) {
    (void)why; /* cannot fail */
    if (!engineConf.extended_commands) commandHideExtensions();
    return OK;
}

/* The command table is installed before the configuration is read, so an invalid name is an error
 * in its line. Hidden commands are hidden after the last line. */
static status takeRename(const slice *words, int count, reason *why) {
    hotCheck(count == 2);
    (void)count; /* the registry checks for two words */
    status st = commandRename(words[0], words[1]);
    if (st == ERR_NOT_FOUND) return reasonSet(why, st, "No such command in rename-command");
    if (st == ERR_EXISTS) return reasonSet(why, st, "Target command name already exists");
    return st;
}

static const configFileOnly rename_command = {.words_min = 2, .words_max = 2, .take = takeRename};

/* ------------------------------------------------------------------ applying values */

static status applyLatencyTracking(reason *why) {
    (void)why; /* cannot fail */
    engineHot.latency_tracking = engineConf.latency_tracking;
    return OK;
}

static status applyBackgroundThread(reason *why) {
    (void)why; /* cannot fail */
    memSetBackgroundThread(engineConf.jemalloc_bg_thread);
    return OK;
}

/* ------------------------------------------------------------------ queries */

static bool denied_in_scripts = true;

void engineSetDeniedInScripts(bool denied) { denied_in_scripts = denied; }
bool engineDeniedInScripts(void) { return denied_in_scripts; }

bool enginePermits(engineRestricted door, const session *s) {
    int allowed = door == RESTRICTED_CONFIGS ? engineConf.enable_protected_configs
                  : door == RESTRICTED_DEBUG ? engineConf.enable_debug_command
                                             : engineConf.enable_module_command;
    if (allowed == ALLOWED_LOCAL) return (s->flags & SESSION_LOCAL) != 0;
    return allowed == ALLOWED_YES;
}

uint64_t engineMaxmemory(void) { return memoryLimit(); }

gateVerdict optionsCheckRestricted(ctx *c, engineRestricted feature, const char *command,
                                   const char *directive) {
    if (enginePermits(feature, c->who)) return GATE_PASS;
    replyErrorFormat(
        c,
        "ERR %s command not allowed. If the %s option is set to \"local\", you can run "
        "it from a local connection, otherwise you need to set this option in the "
        "configuration file, and then restart the server.",
        command, directive);
    return GATE_REFUSED;
}

int64_t engineBulkMax(void) { return engineConf.proto_max_bulk_len; }

bool engineHidesUserData(void) { return engineConf.hide_user_data_from_log; }

/* ------------------------------------------------------------------ the table */

const configOption engineOptions[] = {
    /* Memory: limit, eviction, active expiry. */
    CONFIG_MEMORY_LIMIT("maxmemory", engineConf.maxmemory, .apply = memoryApplyLimit),
    CONFIG_MEMORY("maxmemory-dataset", engineConf.maxmemory_dataset, 0, 0, INT64_MAX,
                  .apply = memoryApplyDatasetLimit),
    CONFIG_MEMORY("value-compression-dict-memory", engineConf.value_compression_dict_memory,
                  32 * 1024 * 1024, 1024 * 1024, INT64_MAX),
    CONFIG_ENUM("maxmemory-policy", engineConf.maxmemory_policy, policy_words, POLICY_NOEVICTION,
                .apply = keyspaceApplyAccess),
    CONFIG_INT("maxmemory-samples", engineConf.maxmemory_samples, 5, 1, 64),
    CONFIG_INT("maxmemory-eviction-tenacity", engineConf.maxmemory_eviction_tenacity, 10, 0, 100),
    CONFIG_INT("lfu-log-factor", engineConf.lfu_log_factor, 10, 0, INT_MAX,
               .apply = keyspaceApplyAccess),
    CONFIG_INT("lfu-decay-time", engineConf.lfu_decay_time, 1, 0, INT_MAX,
               .apply = keyspaceApplyAccess),
    CONFIG_INT("active-expire-effort", engineConf.active_expire_effort, 1, 1, 10),
    /* Values compressed in memory. */
    CONFIG_ENUM("value-compression", engineConf.value_compression, compression_words,
                COMPRESSION_NO, .flags = CONFIG_IN_CRASH_REPORT, .accept = compressValuesAccept,
                .apply = compressValuesApply),
    CONFIG_INT("value-compression-min-bytes", engineConf.value_compression_min_bytes, 64, 32,
               131072),
    CONFIG_INT("value-compression-idle-seconds", engineConf.value_compression_idle_seconds, 60, 1,
               1000000),
    CONFIG_INT("value-compression-cpu", engineConf.value_compression_cpu, 5, 1, 50),
    /* Background freeing of values that no command deletes explicitly. */
    CONFIG_BOOL("lazyfree-lazy-eviction", engineConf.lazyfree_lazy_eviction, true,
                .flags = CONFIG_IN_CRASH_REPORT),
    CONFIG_BOOL("lazyfree-lazy-expire", engineConf.lazyfree_lazy_expire, true,
                .flags = CONFIG_IN_CRASH_REPORT, .apply = keyspaceApplyLazyFree),
    CONFIG_BOOL("lazyfree-lazy-user-flush", engineConf.lazyfree_lazy_user_flush, true,
                .flags = CONFIG_IN_CRASH_REPORT),
    CONFIG_BOOL("lazyfree-lazy-server-del", engineConf.lazyfree_lazy_server_del, true,
                .flags = CONFIG_IN_CRASH_REPORT, .apply = keyspaceApplyLazyFree),
    /* Tables, allocator. */
    CONFIG_BOOL("activerehashing", engineConf.activerehashing, true),
    CONFIG_BOOL("jemalloc-bg-thread", engineConf.jemalloc_bg_thread, true,
                .flags = CONFIG_APPLY_AT_START, .apply = applyBackgroundThread),
    /* Limits of requests. */
    CONFIG_MEMORY("proto-max-bulk-len", engineConf.proto_max_bulk_len, 512 * CONFIG_MB, CONFIG_MB,
                  INT64_MAX, .flags = CONFIG_IN_CRASH_REPORT),
    CONFIG_INT("prefetch-batch-max-size", engineConf.prefetch_batch_max_size, 16, 0, 128,
               .no_effect = "the size of batches is fixed here"),
    /* Command log. */
    CONFIG_INT("commandlog-execution-slower-than", engineConf.commandlog_execution_slower_than,
               10000, -1, INT64_MAX, .alias = "slowlog-log-slower-than",
               .flags = CONFIG_APPLY_AT_START, .apply = measureApply),
    CONFIG_INT("commandlog-slow-execution-max-len", engineConf.commandlog_slow_execution_max_len,
               128, 0, INT64_MAX, .alias = "slowlog-max-len", .flags = CONFIG_APPLY_AT_START,
               .apply = measureApply),
    CONFIG_INT("commandlog-request-larger-than", engineConf.commandlog_request_larger_than,
               CONFIG_MB, -1, INT64_MAX, .flags = CONFIG_APPLY_AT_START, .apply = measureApply),
    CONFIG_INT("commandlog-large-request-max-len", engineConf.commandlog_large_request_max_len, 128,
               0, INT64_MAX, .flags = CONFIG_APPLY_AT_START, .apply = measureApply),
    CONFIG_INT("commandlog-reply-larger-than", engineConf.commandlog_reply_larger_than, CONFIG_MB,
               -1, INT64_MAX, .flags = CONFIG_APPLY_AT_START, .apply = measureApply),
    CONFIG_INT("commandlog-large-reply-max-len", engineConf.commandlog_large_reply_max_len, 128, 0,
               INT64_MAX, .flags = CONFIG_APPLY_AT_START, .apply = measureApply),
    /* Latency. */
    CONFIG_INT("command-slice-us", engineConf.command_slice_us, 500, 0, 1000000,
               .flags = CONFIG_APPLY_AT_START, .apply = jobApply),
    CONFIG_INT("hotkeys-top-k", engineConf.hotkeys_top_k, 0, 0, 1000,
               .flags = CONFIG_APPLY_AT_START, .apply = hotkeysWindowApply),
    CONFIG_INT("hotkeys-sampling-percentage", engineConf.hotkeys_sampling_percentage, 1, 1, 100,
               .apply = hotkeysWindowApply),
    CONFIG_INT("hotkeys-window-seconds", engineConf.hotkeys_window_seconds, 1, 1, 300,
               .apply = hotkeysWindowApply),
    CONFIG_INT("latency-monitor-threshold", engineConf.latency_monitor_threshold, 0, 0, INT64_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = measureApply),
    CONFIG_BOOL("latency-tracking", engineConf.latency_tracking, true,
                .flags = CONFIG_APPLY_AT_START, .apply = applyLatencyTracking),
    CONFIG_SPECIAL("latency-tracking-info-percentiles", &percentiles, "50 99 99.9",
                   .flags = CONFIG_MULTI_WORD | CONFIG_ALWAYS_WRITTEN),
    /* Restricted features. */
    CONFIG_ENUM("enable-protected-configs", engineConf.enable_protected_configs, allowed_words,
                ALLOWED_NO, .flags = CONFIG_IMMUTABLE | CONFIG_PROTECTED),
    CONFIG_ENUM("enable-debug-command", engineConf.enable_debug_command, allowed_words, ALLOWED_NO,
                .flags = CONFIG_IMMUTABLE),
    CONFIG_ENUM("enable-module-command", engineConf.enable_module_command, allowed_words,
                ALLOWED_NO, .flags = CONFIG_IMMUTABLE),
    CONFIG_BOOL("hide-user-data-from-log", engineConf.hide_user_data_from_log, true),
    CONFIG_BOOL("extended-commands", engineConf.extended_commands, true,
                .flags = CONFIG_IMMUTABLE | CONFIG_HIDDEN | CONFIG_APPLY_AT_START,
                .apply = applyExtended),
    CONFIG_FILE_ONLY("rename-command", &rename_command),
    /* Directives of older versions. */
    CONFIG_IGNORED("dynamic-hz"),
    CONFIG_IGNORED("events-per-io-thread"),
    CONFIG_IGNORED("io-threads-do-reads"),
    CONFIG_IGNORED("list-max-ziplist-entries"),
    CONFIG_IGNORED("list-max-ziplist-value"),
    CONFIG_IGNORED("lua-replicate-commands"),
    CONFIG_IGNORED("sanitize-dump-payload"),
    CONFIG_END,
};
