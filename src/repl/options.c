/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of replication. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/keyspace.h"
#include "format/rdb_settings.h"
#include "repl/followed.h"
#include "repl/quorum_server.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/role.h"
#include "repl/rules.h"
#include "repl/throttle.h"
#include "store/store.h"

replConfig replConf;

static const configWord load_words[] = {{"disabled", DISKLESS_LOAD_DISABLED},
                                        {"on-empty-db", DISKLESS_LOAD_ON_EMPTY_DB},
                                        {"swapdb", DISKLESS_LOAD_SWAPDB},
                                        {"flush-before-load", DISKLESS_LOAD_FLUSH_BEFORE_LOAD},
                                        {NULL, 0}};
static const configWord refuse_words[] = {
    {"no", REFUSE_EMPTY_NO}, {"yes", REFUSE_EMPTY_YES}, {"always", REFUSE_EMPTY_ALWAYS}, {NULL, 0}};
static const configWord durability_words[] = {
    {"memory", QUORUM_IN_MEMORY}, {"disk", QUORUM_ON_DISK}, {NULL, 0}};
static const configWord error_words[] = {{"ignore", PROPAGATION_ERROR_IGNORE},
                                         {"panic", PROPAGATION_ERROR_PANIC},
                                         {"panic-on-replicas", PROPAGATION_ERROR_PANIC_ON_REPLICAS},
                                         {"stop", PROPAGATION_ERROR_STOP},
                                         {NULL, 0}};

static const configWord compression_words[] = {{"no", REPL_COMPRESS_NO},
                                               {"yes", REPL_COMPRESS_YES},
                                               {"lz4", REPL_COMPRESS_LZ4},
                                               {"zstd", REPL_COMPRESS_ZSTD},
                                               {NULL, 0}};
static const configWord form_words[] = {
    {"valkey", RDB_FORM_VALKEY}, {"redis", RDB_FORM_REDIS}, {NULL, 0}};

static status applyOutgoingFormat(reason *why) {
    (void)why; /* cannot fail */
    rdbSetOutgoingForm((rdbForm)replConf.outgoing_format);
    if (replicasThis()->stream) replicasArmSink(); /* not while the server starts */
    return OK;
}

static compressCodec codecOf(int compression) {
    if (compression == REPL_COMPRESS_NO) return COMPRESS_NONE;
    return compression == REPL_COMPRESS_ZSTD ? COMPRESS_ZSTD : COMPRESS_LZ4;
}

compressCodec replCodec(void) { return codecOf(replConf.repl_compression); }

static status acceptCompression(slice text, int64_t number, reason *why) {
    (void)text;
    return compressRequire(codecOf((int)number), why);
}

static status applyImportMode(reason *why) {
    (void)why; /* cannot fail */
    keyspaceSetImportMode(replConf.import_mode);
    return OK;
}

/* Setting another value than `stop` orders to continue, if the link was stopped. */
static status applyErrorBehavior(reason *why) {
    (void)why; /* cannot fail */
    if (replConf.propagation_error_behavior != PROPAGATION_ERROR_STOP) replicaGoOn();
    return OK;
}

/* ------------------------------------------------------------------ replicaof */

static status setReplicaof(const slice *words, int count, bool more, reason *why) {
    (void)more; /* the last line applies */
    if (count != 2) return reasonSet(why, ERR_SYNTAX, "wrong number of arguments");
    if (sliceIs(words[0], "no") && sliceIs(words[1], "one")) {
        strFree(&replConf.primary_host);
        replConf.primary_port = 0;
        return OK;
    }
    int64_t port;
    if (!numberParseInt(words[1], &port) || port < 0 || port > CONFIG_PORT_MAX) {
        return reasonSet(why, ERR_RANGE, "Invalid primary port");
    }
    strFree(&replConf.primary_host);
    replConf.primary_host = strNew(words[0]);
    replConf.primary_port = (int)port;
    return OK;
}

static void getReplicaof(str *out) {
    if (replConf.primary_host.len == 0) return;
    strAppendSlice(out, strSlice(&replConf.primary_host));
    strAppendFormat(out, " %d", replConf.primary_port);
}

/* A primary has no replicaof line, and in a cluster the roles are in its own file. */
static void rewriteReplicaof(configLines *lines) {
    hotCheck(replConf.primary_host.len == 0 || replConf.primary_port > 0);
    if (replConf.primary_host.len == 0 || storeIsSlotted()) return;
    str rest = STR_EMPTY;
    configAppendWord(&rest, strSlice(&replConf.primary_host));
    strAppendFormat(&rest, " %d", replConf.primary_port);
    configLinesAdd(lines, strSlice(&rest));
    strFree(&rest);
}

static const configSpecial primary_address = {
    .set = setReplicaof, .get = getReplicaof, .rewrite = rewriteReplicaof, .reset = "no one"};

enum { BACKLOG_BYTES_MIN = 16 * 1024 };

/* Any size is accepted, as in Valkey; a smaller backlog could not hold one block. */
static status applyBacklogSize(reason *why) {
    hotCheck(replConf.repl_backlog_size >= 0);
    if (replConf.repl_backlog_size < BACKLOG_BYTES_MIN)
        replConf.repl_backlog_size = BACKLOG_BYTES_MIN;
    return replicasApplySettings(why);
}

/* ------------------------------------------------------------------ the table */

const configOption replOptions[] = {
    /* For replicas. */
    CONFIG_SPECIAL("replicaof", &primary_address, "no one",
                   .flags = CONFIG_IMMUTABLE | CONFIG_MULTI_WORD, .alias = "slaveof"),
    CONFIG_STRING("primaryauth", replConf.primaryauth, "", .flags = CONFIG_SENSITIVE,
                  .alias = "masterauth"),
    CONFIG_STRING("primaryuser", replConf.primaryuser, "", .flags = CONFIG_SENSITIVE,
                  .alias = "masteruser"),
    CONFIG_BOOL("replica-serve-stale-data", replConf.replica_serve_stale_data, true,
                .alias = "slave-serve-stale-data", .apply = rulesApply),
    CONFIG_BOOL("replica-read-only", replConf.replica_read_only, true,
                .flags = CONFIG_IN_CRASH_REPORT, .alias = "slave-read-only", .apply = rulesApply),
    CONFIG_BOOL("replica-ignore-maxmemory", replConf.replica_ignore_maxmemory, true,
                .alias = "slave-ignore-maxmemory", .apply = rulesApply),
    CONFIG_BOOL("replica-lazy-flush", replConf.replica_lazy_flush, true,
                .alias = "slave-lazy-flush"),
    CONFIG_ENUM("replica-refuse-empty-primary", replConf.replica_refuse_empty_primary, refuse_words,
                REFUSE_EMPTY_YES, .apply = followedApply),
    CONFIG_INT("replica-priority", replConf.replica_priority, 100, 0, INT_MAX,
               .alias = "slave-priority"),
    CONFIG_BOOL("replica-announced", replConf.replica_announced, true),
    CONFIG_STRING("replica-announce-ip", replConf.replica_announce_ip, "",
                  .alias = "slave-announce-ip"),
    CONFIG_INT("replica-announce-port", replConf.replica_announce_port, 0, 0, CONFIG_PORT_MAX,
               .alias = "slave-announce-port"),
    CONFIG_BOOL("replica-ignore-disk-write-errors", replConf.replica_ignore_disk_write_errors,
                false),
    CONFIG_ENUM("repl-diskless-load", replConf.repl_diskless_load, load_words,
                DISKLESS_LOAD_DISABLED, .flags = CONFIG_NOT_WHILE_LOADING | CONFIG_IN_CRASH_REPORT),
    CONFIG_ENUM("propagation-error-behavior", replConf.propagation_error_behavior, error_words,
                PROPAGATION_ERROR_IGNORE, .apply = applyErrorBehavior),
    CONFIG_BOOL("import-mode", replConf.import_mode, false,
                .flags = CONFIG_IN_CRASH_REPORT | CONFIG_APPLY_AT_START, .apply = applyImportMode),
    /* For primaries. */
    CONFIG_BOOL("repl-diskless-sync", replConf.repl_diskless_sync, true,
                .flags = CONFIG_IN_CRASH_REPORT, .apply = replicasApplySettings),
    CONFIG_INT("repl-diskless-sync-delay", replConf.repl_diskless_sync_delay, 5, 0, INT_MAX,
               .apply = replicasApplySettings),
    CONFIG_INT("repl-diskless-sync-max-replicas", replConf.repl_diskless_sync_max_replicas, 0, 0,
               INT_MAX, .apply = replicasApplySettings),
    CONFIG_BOOL("dual-channel-replication-enabled", replConf.dual_channel_replication_enabled,
                false, .flags = CONFIG_IN_CRASH_REPORT, .apply = replicasApplySettings),
    CONFIG_BOOL("repl-throttling-enabled", replConf.repl_throttling_enabled, false,
                .apply = throttleApply),
    CONFIG_INT("repl-ping-replica-period", replConf.repl_ping_replica_period, 10, 1, INT_MAX,
               .alias = "repl-ping-slave-period", .apply = replicasApplySettings),
    CONFIG_MEMORY("repl-backlog-size", replConf.repl_backlog_size, 10 * CONFIG_MB, 1, INT64_MAX,
                  .flags = CONFIG_APPLY_AT_START, .apply = applyBacklogSize),
    CONFIG_INT("repl-backlog-ttl", replConf.repl_backlog_ttl, 3600, 0, INT64_MAX,
               .apply = replicasApplySettings),
    CONFIG_INT("min-replicas-to-write", replConf.min_replicas_to_write, 0, 0, INT_MAX,
               .alias = "min-slaves-to-write", .apply = replicasApplySettings),
    CONFIG_INT("min-replicas-max-lag", replConf.min_replicas_max_lag, 10, 0, INT_MAX,
               .alias = "min-slaves-max-lag", .apply = replicasApplySettings),
    CONFIG_ENUM("outgoing-format", replConf.outgoing_format, form_words, RDB_FORM_VALKEY,
                .flags = CONFIG_APPLY_AT_START, .apply = applyOutgoingFormat),
    CONFIG_INT("replication-quorum", replConf.replication_quorum, 0, 0, 32, .apply = quorumApply),
    CONFIG_ENUM("replication-quorum-durability", replConf.replication_quorum_durability,
                durability_words, QUORUM_IN_MEMORY, .apply = quorumApply),
    CONFIG_INT("replication-quorum-timeout", replConf.replication_quorum_timeout, 5000, 1, INT_MAX,
               .apply = quorumApply),
    CONFIG_MEMORY("replication-quorum-output-limit", replConf.replication_quorum_output_limit,
                  256 * CONFIG_MB, 1, INT64_MAX),
    CONFIG_INT("replication-read-lease", replConf.replication_read_lease, 0, 0, INT_MAX,
               .apply = quorumApply),
    /* For both. */
    CONFIG_INT("repl-timeout", replConf.repl_timeout, 60, 1, INT_MAX,
               .apply = replicasApplySettings),
    CONFIG_ENUM("repl-compression", replConf.repl_compression, compression_words, REPL_COMPRESS_NO,
                .accept = acceptCompression, .apply = replicasApplySettings),
    CONFIG_BOOL("repl-disable-tcp-nodelay", replConf.repl_disable_tcp_nodelay, false),
    CONFIG_BOOL("repl-mptcp", replConf.repl_mptcp, false, .flags = CONFIG_IMMUTABLE),
    CONFIG_END,
};
