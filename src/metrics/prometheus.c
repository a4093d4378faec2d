/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Metrics as Prometheus text and OpenMetrics, with the names used by redis_exporter, so that its
 * dashboards and alerts work. Every metric is a field of INFO; missing fields are omitted. */
#define _GNU_SOURCE /* memmem() */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "config/config.h"
#include "engine/lifecycle.h"
#include "metrics/metrics_priv.h"

typedef enum metricKind { GAUGE, COUNTER } metricKind;

/* An INFO field and the name of its metric without "redis_"; NULL means the same name. */
typedef struct metricName {
    const char *infoField, *name;
    metricKind kind;
    const char *help; /* a sentence without the full stop */
} metricName;

static const metricName names[] = {
    /* Server and clients. */
    {"uptime_in_seconds", NULL, GAUGE, "Seconds since the start"},
    {"process_id", NULL, GAUGE, "Process id"},
    {"io_threads_active", NULL, GAUGE, "1 if I/O threads are in use"},
    {"connected_clients", NULL, GAUGE, "Connected clients without replicas"},
    {"cluster_connections", NULL, GAUGE, "Connections of the cluster bus"},
    {"maxclients", "max_clients", GAUGE, "Clients that may be connected at the same time"},
    {"blocked_clients", NULL, GAUGE, "Clients that wait in a blocking command"},
    {"tracking_clients", NULL, GAUGE, "Clients with client side caching"},
    {"pubsub_clients", NULL, GAUGE, "Clients that have subscribed to channels"},
    {"watching_clients", NULL, GAUGE, "Clients that watch keys"},
    {"clients_in_timeout_table", NULL, GAUGE,
     "Always 0: clients with a timeout are in no table here"},
    {"total_watched_keys", NULL, GAUGE, "Keys that clients watch"},
    {"total_blocking_keys", NULL, GAUGE, "Keys that blocked clients wait for"},
    {"total_blocking_keys_on_nokey", NULL, GAUGE, "Keys whose deletion would wake blocked clients"},
    {"client_recent_max_input_buffer", "client_recent_max_input_buffer_bytes", GAUGE,
     "Largest input buffer of the clients recently"},
    {"client_recent_max_output_buffer", "client_recent_max_output_buffer_bytes", GAUGE,
     "Largest output buffer of the clients recently"},
    /* Memory. */
    {"used_memory", "memory_used_bytes", GAUGE, "Memory that the server has allocated"},
    {"used_memory_rss", "memory_used_rss_bytes", GAUGE, "Resident memory of the process"},
    {"used_memory_peak", "memory_used_peak_bytes", GAUGE, "Largest used memory so far"},
    {"used_memory_overhead", "memory_used_overhead_bytes", GAUGE,
     "Memory of buffers, tables and others that is not data"},
    {"used_memory_startup", "memory_used_startup_bytes", GAUGE, "Memory used by the empty server"},
    {"used_memory_dataset", "memory_used_dataset_bytes", GAUGE, "Memory of the data"},
    {"used_memory_lua", "memory_used_lua_bytes", GAUGE, "Memory of the Lua interpreter of EVAL"},
    {"used_memory_vm_eval", "memory_used_vm_eval_bytes", GAUGE,
     "Memory of the interpreters of EVAL"},
    {"used_memory_vm_functions", "memory_used_vm_functions_bytes", GAUGE,
     "Memory of the interpreters of functions"},
    {"used_memory_scripts", "memory_used_scripts_bytes", GAUGE, "Memory of scripts and functions"},
    {"used_memory_scripts_eval", "memory_used_scripts_eval_bytes", GAUGE,
     "Memory of cached scripts of EVAL"},
    {"used_memory_functions", "memory_used_functions_bytes", GAUGE, "Memory of functions"},
    {"number_of_cached_scripts", NULL, GAUGE, "Cached scripts of EVAL"},
    {"number_of_functions", NULL, GAUGE, "Functions that were loaded"},
    {"number_of_libraries", NULL, GAUGE, "Libraries of functions"},
    {"maxmemory", "memory_max_bytes", GAUGE, "Limit of used memory, 0: none"},
    {"total_system_memory", "total_system_memory_bytes", GAUGE, "Memory of the machine"},
    {"allocator_active", "allocator_active_bytes", GAUGE,
     "Memory in pages that the allocator uses"},
    {"allocator_allocated", "allocator_allocated_bytes", GAUGE,
     "Memory allocated from the allocator"},
    {"allocator_resident", "allocator_resident_bytes", GAUGE, "Resident memory of the allocator"},
    {"allocator_muzzy", "allocator_muzzy_bytes", GAUGE,
     "Memory that the allocator has given back and the kernel may still hold"},
    {"allocator_frag_ratio", NULL, GAUGE, "Active by allocated memory of the allocator"},
    {"allocator_frag_bytes", NULL, GAUGE, "Active less allocated memory of the allocator"},
    {"allocator_rss_ratio", NULL, GAUGE, "Resident by active memory of the allocator"},
    {"allocator_rss_bytes", NULL, GAUGE, "Resident less active memory of the allocator"},
    {"rss_overhead_ratio", NULL, GAUGE, "Resident memory of the process by that of the allocator"},
    {"rss_overhead_bytes", NULL, GAUGE,
     "Resident memory of the process less that of the allocator"},
    {"mem_fragmentation_ratio", NULL, GAUGE, "Resident memory of the process by used memory"},
    {"mem_fragmentation_bytes", NULL, GAUGE, "Resident memory of the process less used memory"},
    {"mem_clients_normal", NULL, GAUGE, "Memory of clients that are no replicas"},
    {"mem_clients_slaves", NULL, GAUGE, "Memory of connections of replicas"},
    {"mem_not_counted_for_evict", "mem_not_counted_for_eviction_bytes", GAUGE,
     "Memory that does not count for maxmemory"},
    {"mem_total_replication_buffers", "mem_total_replication_buffers_bytes", GAUGE,
     "Memory of the replication backlog and buffers of replicas"},
    {"hash_shapes", NULL, GAUGE, "Lists of field names that hashes share"},
    {"hash_shapes_hashes", NULL, GAUGE, "Hashes that share their field names"},
    {"hash_shapes_bytes", NULL, GAUGE, "Memory of shared field names"},
    {"hash_shapes_saved_bytes", NULL, GAUGE, "Memory saved by shared field names"},
    {"hash_shapes_made", "hash_shapes_made_total", COUNTER, "Lists of shared field names created"},
    {"hash_shapes_refused", "hash_shapes_refused_total", COUNTER,
     "Lists of field names not shared because the limit was reached"},
    {"compressed_values", NULL, GAUGE, "Values that are compressed in memory"},
    {"compressed_values_bytes", NULL, GAUGE, "Bytes of compressed values before compression"},
    {"compressed_values_packed_bytes", NULL, GAUGE, "Bytes that compressed values take"},
    {"value_dictionaries", NULL, GAUGE, "Dictionaries of compressed values"},
    {"value_dictionaries_bytes", NULL, GAUGE, "Memory of dictionaries of compressed values"},
    {"value_dictionaries_trained", "value_dictionaries_trained_total", COUNTER,
     "Dictionaries trained from values"},
    {"value_dictionaries_accepted", "value_dictionaries_accepted_total", COUNTER,
     "Trained dictionaries that were good enough to be used"},
    {"value_dictionaries_without_memory", "value_dictionaries_without_memory_total", COUNTER,
     "Trainings left out because dictionaries use all memory they may"},
    {"values_compressed", "values_compressed_total", COUNTER, "Values compressed in memory"},
    {"values_not_compressible", "values_not_compressible_total", COUNTER,
     "Values that compression made too little smaller"},
    {"values_expanded_to_read", "values_expanded_to_read_total", COUNTER,
     "Compressed values expanded for a read"},
    {"values_stored_plain_again", "values_stored_plain_again_total", COUNTER,
     "Compressed values stored plain again"},
    {"lazyfree_pending_objects", NULL, GAUGE, "Objects that a thread has yet to free"},
    {"lazyfreed_objects", NULL, GAUGE, "Objects that a thread has freed"},
    {"active_defrag_running", NULL, GAUGE,
     "Percentage of CPU time that compaction of memory uses now"},
    {"migrate_cached_sockets", "migrate_cached_sockets_total", GAUGE,
     "Open connections of MIGRATE"},
    /* Persistence. */
    {"loading", "loading_dump_file", GAUGE, "1 while a file is being loaded"},
    {"async_loading", NULL, GAUGE, "1 while a dataset is being loaded beside the old one"},
    {"rdb_changes_since_last_save", NULL, GAUGE, "Changes since the last save"},
    {"rdb_bgsave_in_progress", NULL, GAUGE, "1 while a background save runs"},
    {"rdb_last_save_time", "rdb_last_save_timestamp_seconds", GAUGE,
     "Unix time of the last successful save"},
    {"rdb_last_bgsave_status", NULL, GAUGE, "1 if the last background save succeeded"},
    {"rdb_last_bgsave_time_sec", "rdb_last_bgsave_duration_sec", GAUGE,
     "Seconds that the last background save took, -1: none"},
    {"rdb_current_bgsave_time_sec", "rdb_current_bgsave_duration_sec", GAUGE,
     "Seconds since the running background save began, -1: none runs"},
    {"rdb_saves", "rdb_saves_total", COUNTER, "Saves since the start"},
    {"rdb_last_cow_size", "rdb_last_cow_size_bytes", GAUGE,
     "Memory duplicated during the last save"},
    {"rdb_last_load_keys_expired", "rdb_last_load_expired_keys", GAUGE,
     "Expired keys left out by the last load"},
    {"rdb_last_load_keys_loaded", "rdb_last_load_loaded_keys", GAUGE, "Keys read by the last load"},
    {"aof_enabled", NULL, GAUGE, "1 if the append only file is on"},
    {"aof_rewrite_in_progress", NULL, GAUGE, "1 while the append only file is being rewritten"},
    {"aof_rewrite_scheduled", NULL, GAUGE, "1 if a rewrite was requested and has not begun yet"},
    {"aof_last_rewrite_time_sec", "aof_last_rewrite_duration_sec", GAUGE,
     "Seconds that the last rewrite took, -1: none"},
    {"aof_current_rewrite_time_sec", "aof_current_rewrite_duration_sec", GAUGE,
     "Seconds since the running rewrite began, -1: none runs"},
    {"aof_last_bgrewrite_status", NULL, GAUGE, "1 if the last rewrite succeeded"},
    {"aof_last_write_status", NULL, GAUGE, "1 if the last write to the append only file succeeded"},
    {"aof_last_cow_size", "aof_last_cow_size_bytes", GAUGE,
     "Memory duplicated during the last rewrite"},
    {"aof_current_size", "aof_current_size_bytes", GAUGE, "Size of the append only file"},
    {"aof_base_size", "aof_base_size_bytes", GAUGE,
     "Size of the append only file after the last rewrite or at the start"},
    {"aof_pending_rewrite", NULL, GAUGE, "1 if a rewrite begins when the running save has ended"},
    {"aof_buffer_length", NULL, GAUGE, "Bytes not yet written to the append only file"},
    {"aof_pending_bio_fsync", NULL, GAUGE,
     "Fsyncs of the append only file that a thread has yet to make"},
    {"aof_delayed_fsync", NULL, GAUGE, "Writes that were delayed by a running fsync"},
    /* Activity. */
    {"total_connections_received", "connections_received_total", COUNTER, "Connections accepted"},
    {"total_commands_processed", "commands_processed_total", COUNTER, "Commands executed"},
    {"instantaneous_ops_per_sec", NULL, GAUGE, "Commands per second now"},
    {"instantaneous_input_kbps", NULL, GAUGE, "Kilobytes received per second now"},
    {"instantaneous_output_kbps", NULL, GAUGE, "Kilobytes sent per second now"},
    {"total_net_input_bytes", "net_input_bytes_total", COUNTER, "Bytes received"},
    {"total_net_output_bytes", "net_output_bytes_total", COUNTER, "Bytes sent"},
    {"total_net_repl_input_bytes", "net_repl_input_bytes_total", COUNTER,
     "Bytes received for replication"},
    {"total_net_repl_output_bytes", "net_repl_output_bytes_total", COUNTER,
     "Bytes sent for replication"},
    {"total_net_cluster_slot_import_bytes", "net_cluster_slot_import_bytes_total", COUNTER,
     "Bytes received by slot migrations"},
    {"total_net_cluster_slot_export_bytes", "net_cluster_slot_export_bytes_total", COUNTER,
     "Bytes sent by slot migrations"},
    {"rejected_connections", "rejected_connections_total", COUNTER,
     "Connections refused because of maxclients"},
    {"rejected_priority_connections", "rejected_priority_connections_total", COUNTER,
     "Connections refused because places for priority clients were taken"},
    {"connected_priority_clients", NULL, GAUGE, "Connected clients with priority"},
    {"total_reads_processed", "total_reads_processed", COUNTER, "Reads from clients"},
    {"total_writes_processed", "total_writes_processed", COUNTER, "Writes to clients"},
    {"total_error_replies", NULL, COUNTER, "Error replies"},
    {"unexpected_error_replies", NULL, COUNTER,
     "Error replies to commands of a primary or of the append only file"},
    {"jobs_running", NULL, GAUGE, "Commands that run in slices now"},
    {"jobs_done", "jobs_done_total", COUNTER, "Commands that have run in slices"},
    {"jobs_aborted", "jobs_aborted_total", COUNTER,
     "Commands in slices that ended as their client was gone"},
    {"jobs_in_one_piece", "jobs_in_one_piece_total", COUNTER,
     "Commands in slices that were ended in one piece before a change"},
    {"job_longest_slice_usec", NULL, GAUGE, "Microseconds of the longest slice"},
    {"job_writes_held", "job_writes_held_total", COUNTER,
     "Requests that waited for commands in slices"},
    {"job_longest_wait_usec", NULL, GAUGE, "Microseconds that a request waited for such a command"},
    {"expired_keys", "expired_keys_total", COUNTER, "Keys that have expired"},
    {"expired_stale_perc", "expired_stale_percentage", GAUGE,
     "Estimated percentage of keys that have expired and are not removed yet"},
    {"expired_keys_with_volatile_items_stale_perc", NULL, GAUGE,
     "Estimated percentage of hashes with expired fields not removed yet"},
    {"expired_time_cap_reached_count", "expired_time_cap_reached_total", COUNTER,
     "Expiry cycles that were ended by their limit of time"},
    {"expire_cycle_cpu_milliseconds", "expire_cycle_cpu_time_ms_total", COUNTER,
     "Milliseconds spent in expiry cycles"},
    {"evicted_keys", "evicted_keys_total", COUNTER, "Keys evicted because of maxmemory"},
    {"evicted_clients", "evicted_clients_total", COUNTER,
     "Clients disconnected because of maxmemory-clients"},
    {"evicted_scripts", "evicted_scripts_total", COUNTER,
     "Cached scripts of EVAL that were evicted"},
    {"total_eviction_exceeded_time", "eviction_exceeded_time_ms_total", COUNTER,
     "Milliseconds during which used memory was above maxmemory"},
    {"current_eviction_exceeded_time", "current_eviction_exceeded_time_ms", GAUGE,
     "Milliseconds since used memory is above maxmemory, 0: it is not"},
    {"keyspace_hits", "keyspace_hits_total", COUNTER, "Lookups that found their key"},
    {"keyspace_misses", "keyspace_misses_total", COUNTER, "Lookups that found no key"},
    {"pubsub_channels", NULL, GAUGE, "Channels with subscribers"},
    {"pubsub_patterns", NULL, GAUGE, "Patterns with subscribers"},
    {"pubsubshard_channels", NULL, GAUGE, "Channels of shards with subscribers"},
    {"latest_fork_usec", NULL, GAUGE, "Microseconds that the last fork took"},
    {"tracking_total_keys", NULL, GAUGE, "Keys tracked for client side caching"},
    {"tracking_total_items", NULL, GAUGE,
     "Pairs of key and client tracked for client side caching"},
    {"tracking_total_prefixes", NULL, GAUGE, "Prefixes tracked for client side caching"},
    {"acl_access_denied_auth", "acl_access_denied_auth_total", COUNTER, "Failed logins"},
    {"acl_access_denied_cmd", "acl_access_denied_cmd_total", COUNTER,
     "Commands refused by ACL rules"},
    {"acl_access_denied_key", "acl_access_denied_key_total", COUNTER,
     "Commands refused because of a key by ACL rules"},
    {"acl_access_denied_channel", "acl_access_denied_channel_total", COUNTER,
     "Commands refused because of a channel by ACL rules"},
    {"dump_payload_sanitizations", NULL, COUNTER,
     "Payloads of RESTORE that were validated in full"},
    /* Replication and cluster. */
    {"connected_slaves", NULL, GAUGE, "Connected replicas"},
    {"master_repl_offset", NULL, GAUGE, "Offset of the replication stream"},
    {"second_repl_offset", NULL, GAUGE,
     "Offset up to which the previous stream id is valid, -1: none"},
    {"repl_backlog_size", "replication_backlog_bytes", GAUGE, "Limit of the replication backlog"},
    {"repl_backlog_active", "repl_backlog_is_active", GAUGE, "1 if there is a replication backlog"},
    {"repl_backlog_first_byte_offset", NULL, GAUGE, "Offset of the first byte of the backlog"},
    {"repl_backlog_histlen", "repl_backlog_history_bytes", GAUGE,
     "Bytes in the replication backlog"},
    {"replication_quorum", NULL, GAUGE, "Replicas that have to confirm a change before its reply"},
    {"replication_quorum_reachable", NULL, GAUGE,
     "Replicas that can be reached and confirm changes at each turn"},
    {"replication_quorum_unconfirmed_bytes", NULL, GAUGE,
     "Bytes of the stream that too few replicas have confirmed"},
    {"replication_quorum_held_clients", NULL, GAUGE, "Clients whose replies wait for replicas"},
    {"replication_quorum_held_bytes", NULL, GAUGE, "Bytes of replies that wait for replicas"},
    {"replication_quorum_refused_requests", "replication_quorum_refused_requests_total", COUNTER,
     "Requests refused because too few replicas could be reached"},
    {"replication_quorum_expired_clients", "replication_quorum_expired_clients_total", COUNTER,
     "Clients disconnected because confirmation took too long"},
    {"slave_expires_tracked_keys", NULL, GAUGE,
     "Keys with a TTL that clients have written to this replica"},
    {"slave_priority", NULL, GAUGE, "Priority of this replica for Sentinel"},
    {"slave_repl_offset", NULL, GAUGE, "Offset that this replica has applied"},
    {"sync_full", "replica_resyncs_full", GAUGE, "Full synchronisations of replicas"},
    {"sync_partial_ok", "replica_partial_resync_accepted", GAUGE,
     "Partial synchronisations of replicas"},
    {"sync_partial_err", "replica_partial_resync_denied", GAUGE,
     "Requests for a partial synchronisation that could not be met"},
    {"master_link_status", "master_link_up", GAUGE, "1 if the link to the primary is up"},
    {"master_link_refused", NULL, GAUGE, "1 if the primary refuses to synchronise this replica"},
    {"master_stream_errors", NULL, GAUGE, "Commands of the primary that failed here"},
    {"stream_commands_dropped", NULL, COUNTER, "Commands of the primary that were left out"},
    {"aof_load_errors", NULL, GAUGE, "Commands of the append only file that failed at its load"},
    {"replicas_keep_lost_data", NULL, GAUGE,
     "1 if a replica keeps data that this primary has lost"},
    {"repl_throttle_rate", NULL, GAUGE,
     "Bytes of the stream per second to which writes are limited for replicas now"},
    {"repl_throttle_activation_events", "repl_throttle_activation_events_total", COUNTER,
     "Times that writes were slowed down for replicas"},
    {"repl_throttle_total_commands", "repl_throttled_commands_total", COUNTER,
     "Commands that were slowed down for replicas"},
    {"master_last_io_seconds_ago", NULL, GAUGE, "Seconds since the primary was last heard"},
    {"master_sync_in_progress", NULL, GAUGE, "1 during a full synchronisation with the primary"},
    {"cluster_enabled", NULL, GAUGE, "1 in cluster mode"},
    {"cluster_state", NULL, GAUGE, "1 if the cluster serves requests"},
    {"cluster_slots_assigned", NULL, GAUGE, "Slots that have an owner"},
    {"cluster_slots_ok", NULL, GAUGE, "Slots whose owner works"},
    {"cluster_slots_pfail", NULL, GAUGE, "Slots whose owner does not answer this node"},
    {"cluster_slots_fail", NULL, GAUGE, "Slots whose owner has failed"},
    {"cluster_my_slots", NULL, GAUGE, "Slots of this node"},
    {"cluster_known_nodes", NULL, GAUGE, "Nodes that this node knows"},
    {"cluster_size", NULL, GAUGE, "Primaries with slots"},
    {"cluster_nodes_pfail", NULL, GAUGE, "Nodes that do not answer this node"},
    {"cluster_nodes_fail", NULL, GAUGE, "Nodes that have failed"},
    {"cluster_voting_nodes_pfail", NULL, GAUGE, "Voters that do not answer this node"},
    {"cluster_voting_nodes_fail", NULL, GAUGE, "Voters that have failed"},
    {"cluster_unsynced_primaries_fail", NULL, GAUGE,
     "Failed primaries whose replicas have no data yet"},
    {"cluster_failure_reports", NULL, GAUGE, "Failure reports that count now"},
    {"cluster_current_epoch", NULL, GAUGE, "Current epoch of the cluster"},
    {"cluster_my_epoch", NULL, GAUGE, "Epoch of the slots of this node"},
    {"cluster_links_outbound", NULL, GAUGE, "Links to other nodes"},
    {"cluster_links_inbound", NULL, GAUGE, "Links from other nodes"},
    {"mem_cluster_links", "mem_cluster_links_bytes", GAUGE,
     "Memory of the links of the cluster bus"},
    {"cluster_stats_messages_sent", "cluster_messages_sent_total", COUNTER,
     "Messages sent on the cluster bus"},
    {"cluster_stats_messages_received", "cluster_messages_received_total", COUNTER,
     "Messages received on the cluster bus"},
    {"cluster_stats_bytes_sent", "cluster_bytes_sent_total", COUNTER,
     "Bytes sent on the cluster bus"},
    {"cluster_stats_bytes_received", "cluster_bytes_received_total", COUNTER,
     "Bytes received on the cluster bus"},
    {"total_cluster_links_buffer_limit_exceeded", "cluster_links_buffer_limit_exceeded_total",
     COUNTER, "Links closed because of cluster-link-sendbuf-limit"},
    /* Sentinel. */
    {"sentinel_masters", NULL, GAUGE, "Primaries that this Sentinel watches"},
    {"sentinel_tilt", NULL, GAUGE, "1 while this Sentinel does not trust its clock"},
    {"sentinel_total_tilt", NULL, COUNTER, "Times that this Sentinel did not trust its clock"},
    {"sentinel_running_scripts", NULL, GAUGE, "Scripts that run"},
    {"sentinel_scripts_queue_length", NULL, GAUGE, "Scripts that run or wait"},
    {"sentinel_simulate_failure_flags", NULL, GAUGE,
     "Failures that SENTINEL SIMULATE-FAILURE has ordered"},
    /* CPU. */
    {"used_cpu_sys", "cpu_sys_seconds_total", COUNTER, "System CPU time"},
    {"used_cpu_user", "cpu_user_seconds_total", COUNTER, "User CPU time"},
    {"used_cpu_sys_children", "cpu_sys_children_seconds_total", COUNTER,
     "System CPU time of child processes"},
    {"used_cpu_user_children", "cpu_user_children_seconds_total", COUNTER,
     "User CPU time of child processes"},
    {"used_cpu_sys_main_thread", "cpu_sys_main_thread_seconds_total", COUNTER,
     "System CPU time of the main thread"},
    {"used_cpu_user_main_thread", "cpu_user_main_thread_seconds_total", COUNTER,
     "User CPU time of the main thread"},
};

typedef struct printer {
    bool open_metrics, hide_user_data;
    slice fields;
    infoIndex index; /* of `fields` */
    str *out;
} printer;

/* Prints the lines of help and type. In OpenMetrics they have the counter's name without "_total",
 * and only names with that suffix are counters. */
static void printType(printer *p, const char *name, metricKind kind, const char *help) {
    static const char ending[] = "_total";
    size_t len = strlen(name), cut = sizeof(ending) - 1;
    bool ends = len > cut && !strcmp(name + len - cut, ending);
    const char *type = kind == COUNTER ? "counter" : "gauge";
    if (p->open_metrics) {
        if (kind == COUNTER && !ends) type = "unknown";
        if (kind == COUNTER && ends) len -= cut;
    }
    strAppendFormat(p->out, "# HELP redis_%.*s %s\n", (int)len, name, help);
    strAppendFormat(p->out, "# TYPE redis_%.*s %s\n", (int)len, name, type);
}

/* A label. Three bytes must be escaped in its value; other bytes are printed unchanged. */
static void appendLabel(str *out, const char *label, slice value) {
    strAppendFormat(out, "%s=\"", label);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.ptr[i];
        if (byte == '"' || byte == '\\') strAppendByte(out, '\\');
        if (byte == '\n') {
            strAppendText(out, "\\n");
        } else {
            strAppendByte(out, byte < 0x20 || byte >= 0x7f ? '?' : (char)byte);
        }
    }
    strAppendByte(out, '"');
}

static bool isNumber(slice text) {
    double number;
    return text.len && !isspace((unsigned char)text.ptr[0]) && numberParseDouble(text, &number);
}

/* The value as a number: words such as "ok" are 1, "fail" 0. Empty if it has no number. */
static slice numberOf(slice value) {
    if (isNumber(value)) return value;
    if (sliceIs(value, "ok") || sliceIs(value, "up")) return SLICE("1");
    if (sliceIs(value, "err") || sliceIs(value, "fail") || sliceIs(value, "down"))
        return SLICE("0");
    return SLICE("");
}

static void printPlain(printer *p, const char *name, metricKind kind, const char *help,
                       slice value) {
    printType(p, name, kind, help);
    strAppendFormat(p->out, "redis_%s %.*s\n", name, (int)value.len, value.ptr);
}

static void printNumber(printer *p, const char *name, metricKind kind, const char *help,
                        double number) {
    char text[NUMBER_TEXT_MAX];
    size_t len = (size_t)numberPrintDouble(text, number);
    printPlain(p, name, kind, help, sliceMake(text, len));
}

static void printNames(printer *p) {
    char help[160];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        check(names[i].help);
        slice value = numberOf(infoIndexFind(&p->index, names[i].infoField));
        if (!value.len) continue;
        const char *name = names[i].name ? names[i].name : names[i].infoField;
        snprintf(help, sizeof(help), "%s (%s of INFO).", names[i].help, names[i].infoField);
        printPlain(p, name, names[i].kind, help, value);
    }
}

/* A certificate that is not there has no metric, so that 0 means that one has expired. */
static void printCertificates(printer *p) {
    static const char *const owners[] = {"server", "server_alt", "client", "ca"};
    for (size_t i = 0; i < COUNT_OF(owners); i++) {
        char serial[64], name[64];
        snprintf(serial, sizeof(serial), "tls_%s_cert_serial", owners[i]);
        snprintf(name, sizeof(name), "tls_%s_cert_expires_in_seconds", owners[i]);
        slice value = numberOf(infoIndexFind(&p->index, name));
        if (!value.len || sliceIs(infoIndexFind(&p->index, serial), "none")) continue;
        printPlain(p, name, GAUGE, "Seconds until the certificate expires; 0: it has expired.",
                   value);
    }
}

/* One metric per field that begins with `prefix`: the rest of the field name is the label, the part
 * `key` times `factor` is the value. */
static void printFamily(printer *p, const char *name, metricKind kind, const char *prefix,
                        const char *label, const char *key, double factor) {
    char help[128];
    snprintf(help, sizeof(help), "%s of the fields %s... of INFO.", key, prefix);
    slice text = p->fields, infoField, value;
    size_t prefix_len = strlen(prefix);
    bool has_type = false;
    while (infoFieldsNext(&text, &infoField, &value)) {
        if (infoField.len <= prefix_len || memcmp(infoField.ptr, prefix, prefix_len)) continue;
        double number;
        if (!numberParseDouble(infoPart(value, key), &number)) continue;
        if (!has_type) printType(p, name, kind, help);
        has_type = true;
        slice rest = sliceMake(infoField.ptr + prefix_len, infoField.len - prefix_len);
        char digits[NUMBER_TEXT_MAX];
        numberPrintDouble(digits, number * factor);
        strAppendFormat(p->out, "redis_%s{", name);
        appendLabel(p->out, label, rest);
        strAppendFormat(p->out, "} %s\n", digits);
    }
}

/* "user_maxmemory_0:used=1,limit=2,...,name=alice", with prefix "user_maxmemory_". The name is the
 * rest of the line, because it may contain commas. */
static void printUsers(printer *p, const char *name, metricKind kind, const char *prefix,
                       const char *key, double factor) {
    static const char before[] = ",name=";
    char help[128];
    snprintf(help, sizeof(help), "%s of the fields %s... of INFO.", key, prefix);
    hotCheck(p->out);
    size_t prefix_len = strlen(prefix);
    slice text = p->fields, field, value;
    bool has_type = false;
    while (infoFieldsNext(&text, &field, &value)) {
        if (field.len <= prefix_len || memcmp(field.ptr, prefix, prefix_len) != 0) continue;
        double number;
        const char *at = memmem(value.ptr, value.len, before, sizeof(before) - 1);
        if (!at || !numberParseDouble(infoPart(value, key), &number)) continue;
        at += sizeof(before) - 1;
        if (!has_type) printType(p, name, kind, help);
        has_type = true;
        strAppendFormat(p->out, "redis_%s{", name);
        appendLabel(p->out, "user", sliceMake(at, (size_t)(value.ptr + value.len - at)));
        char digits[NUMBER_TEXT_MAX];
        numberPrintDouble(digits, number * factor);
        strAppendFormat(p->out, "} %s\n", digits);
    }
}

/* "value_dictionary_0:db=0,keys=user:*,current=yes,values=1,...,id=7". A class of keys has several
 * while its values move to a newer one, so the number of the dictionary is a label, too. */
static void printDictionaries(printer *p, const char *name, const char *key, const char *help) {
    static const char prefix[] = "value_dictionary_";
    slice text = p->fields, field, value;
    bool has_type = false;
    hotCheck(p->out);
    while (infoFieldsNext(&text, &field, &value)) {
        if (field.len < sizeof(prefix) || memcmp(field.ptr, prefix, sizeof(prefix) - 1)) continue;
        slice number = infoPart(value, key);
        if (!isNumber(number)) continue;
        if (!has_type) printType(p, name, GAUGE, help);
        has_type = true;
        strAppendFormat(p->out, "redis_%s{", name);
        appendLabel(p->out, "db", infoPart(value, "db"));
        strAppendByte(p->out, ',');
        if (!p->hide_user_data) {
            appendLabel(p->out, "keys", infoPart(value, "keys"));
            strAppendByte(p->out, ',');
        }
        appendLabel(p->out, "dictionary", infoPart(value, "id"));
        strAppendFormat(p->out, "} %.*s\n", (int)number.len, number.ptr);
    }
}

/* True for "db0", "db1" ...: the only fields that begin with "db" and a digit. */
static bool isDatabase(slice infoField) {
    if (infoField.len < 3 || memcmp(infoField.ptr, "db", 2)) return false;
    for (size_t i = 2; i < infoField.len; i++) {
        if (!isdigit((unsigned char)infoField.ptr[i])) return false;
    }
    return true;
}

static void printKeyspace(printer *p, const char *name, const char *key, double factor) {
    slice text = p->fields, infoField, value;
    char help[128];
    snprintf(help, sizeof(help), "%s of the databases, from INFO keyspace.", key);
    printType(p, name, GAUGE, help);
    while (infoFieldsNext(&text, &infoField, &value)) {
        double number;
        if (!isDatabase(infoField) || !numberParseDouble(infoPart(value, key), &number)) continue;
        char digits[NUMBER_TEXT_MAX];
        numberPrintDouble(digits, number * factor);
        strAppendFormat(p->out, "redis_%s{", name);
        appendLabel(p->out, "db", infoField);
        strAppendFormat(p->out, "} %s\n", digits);
    }
}

/* "latency_percentiles_usec_get:p50=1.003,p99=2.007" */
static void printLatencies(printer *p) {
    static const char prefix[] = "latency_percentiles_usec_";
    slice text = p->fields, infoField, value;
    printType(p, "latency_percentiles_usec", GAUGE,
              "Percentiles of the time of each command in microseconds, from INFO latencystats.");
    while (infoFieldsNext(&text, &infoField, &value)) {
        if (infoField.len < sizeof(prefix) || memcmp(infoField.ptr, prefix, sizeof(prefix) - 1))
            continue;
        while (value.len) {
            const char *comma = memchr(value.ptr, ',', value.len);
            slice part = sliceMake(value.ptr, comma ? (size_t)(comma - value.ptr) : value.len);
            const char *equal = part.len ? memchr(part.ptr, '=', part.len) : NULL;
            double percent;
            slice number =
                equal ? sliceMake(part.ptr + 1, (size_t)(equal - part.ptr - 1)) : SLICE("");
            if (numberParseDouble(number, &percent)) {
                char quantile[NUMBER_TEXT_MAX];
                numberPrintDouble(quantile, percent / 100);
                strAppendText(p->out, "redis_latency_percentiles_usec{");
                appendLabel(p->out, "cmd",
                            sliceMake(infoField.ptr + sizeof(prefix) - 1,
                                      infoField.len - sizeof(prefix) + 1));
                strAppendFormat(p->out, ",quantile=\"%s\"} %.*s\n", quantile,
                                (int)(part.ptr + part.len - equal - 1), equal + 1);
            }
            size_t used = part.len + (comma != NULL);
            value = sliceMake(value.ptr + used, value.len - used);
        }
    }
}

/* "cluster_stats_messages_ping_sent:5". The sums of all types have no type in their names. */
static void printMessages(printer *p, const char *name, const char *ending) {
    static const char prefix[] = "cluster_stats_messages_";
    slice text = p->fields, infoField, value;
    size_t prefix_len = sizeof(prefix) - 1, ending_len = strlen(ending);
    bool has_type = false;
    while (infoFieldsNext(&text, &infoField, &value)) {
        if (infoField.len <= prefix_len + ending_len || !isNumber(value)) continue;
        if (memcmp(infoField.ptr, prefix, prefix_len) ||
            memcmp(infoField.ptr + infoField.len - ending_len, ending, ending_len))
            continue;
        if (!has_type) printType(p, name, COUNTER, "Messages of the cluster bus by type.");
        has_type = true;
        strAppendFormat(p->out, "redis_%s{", name);
        appendLabel(p->out, "type",
                    sliceMake(infoField.ptr + prefix_len, infoField.len - prefix_len - ending_len));
        strAppendFormat(p->out, "} %.*s\n", (int)value.len, value.ptr);
    }
}

/* "slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1,type=..." */
static void printReplicas(printer *p, const char *name, const char *key) {
    static const char prefix[] = "slave";
    slice text = p->fields, field, value;
    size_t prefix_len = sizeof(prefix) - 1;
    bool has_type = false;
    while (infoFieldsNext(&text, &field, &value)) {
        if (field.len <= prefix_len || memcmp(field.ptr, prefix, prefix_len)) continue;
        slice number = infoPart(value, key);
        if (!isdigit((unsigned char)field.ptr[prefix_len]) || !isNumber(number)) continue;
        if (!has_type) printType(p, name, GAUGE, "Replicas that this server sees, from INFO.");
        has_type = true;
        strAppendFormat(p->out, "redis_%s{", name);
        appendLabel(p->out, "slave_ip", infoPart(value, "ip"));
        strAppendByte(p->out, ',');
        appendLabel(p->out, "slave_port", infoPart(value, "port"));
        strAppendByte(p->out, ',');
        appendLabel(p->out, "slave_state", infoPart(value, "state"));
        strAppendFormat(p->out, "} %.*s\n", (int)number.len, number.ptr);
    }
}

/* A sample of a primary that Sentinel watches; `label`, if any, is one more part of the field. */
static void printPrimary(printer *p, const char *name, slice field, const char *label,
                         slice value) {
    hotCheck(field.len > 0);
    strAppendFormat(p->out, "redis_sentinel_%s{", name);
    appendLabel(p->out, "master_name", infoPart(field, "name"));
    strAppendByte(p->out, ',');
    appendLabel(p->out, "master_address", infoPart(field, "address"));
    if (label) {
        strAppendByte(p->out, ',');
        appendLabel(p->out, label, infoPart(field, label));
    }
    strAppendFormat(p->out, "} %.*s\n", (int)value.len, value.ptr);
}

/* "sentinel_primary_0:name=mym,address=...", one for each primary. */
static void printPrimaries(printer *p) {
    static const char prefix[] = "sentinel_primary_";
    static const struct {
        const char *name, *key, *label; /* without a key: 1 */
    } samples[] = {
        {"master_status", NULL, "status"},
        {"master_slaves", "replicas", NULL},
        {"master_ok_slaves", "ok_replicas", NULL},
        {"master_sentinels", "sentinels", NULL},
        {"master_ok_sentinels", "ok_sentinels", NULL},
        {"master_ckquorum_status", "ckquorum", NULL},
        {"master_setting_ckquorum", "quorum", NULL},
        {"master_config_epoch", "config_epoch", NULL},
        {"master_failover_state", NULL, "state"},
        {"master_last_failover_timestamp_seconds", "switched", "why"},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        slice text = p->fields, name, value;
        bool has_type = false;
        while (infoFieldsNext(&text, &name, &value)) {
            if (name.len < sizeof(prefix) || memcmp(name.ptr, prefix, sizeof(prefix) - 1)) continue;
            if (!has_type)
                strAppendFormat(p->out,
                                "# HELP redis_sentinel_%s Watched primaries, from INFO sentinel.\n"
                                "# TYPE redis_sentinel_%s gauge\n",
                                samples[i].name, samples[i].name);
            has_type = true;
            printPrimary(p, samples[i].name, value, samples[i].label,
                         samples[i].key ? infoPart(value, samples[i].key) : SLICE("1"));
        }
    }
}

/* "sentinel_instance_0:primary=mym,kind=slave,address=...,up=1" */
static void printWatchedInstances(printer *p) {
    static const char prefix[] = "sentinel_instance_";
    slice text = p->fields, name, value;
    bool has_type = false;
    while (infoFieldsNext(&text, &name, &value)) {
        if (name.len < sizeof(prefix) || memcmp(name.ptr, prefix, sizeof(prefix) - 1)) continue;
        if (!has_type)
            printType(p, "sentinel_instance_up", GAUGE,
                      "1 if the Sentinel reaches the replica or the other Sentinel.");
        has_type = true;
        slice up = infoPart(value, "up");
        strAppendText(p->out, "redis_sentinel_instance_up{");
        appendLabel(p->out, "master_name", infoPart(value, "primary"));
        strAppendByte(p->out, ',');
        appendLabel(p->out, "kind", infoPart(value, "kind"));
        strAppendByte(p->out, ',');
        appendLabel(p->out, "address", infoPart(value, "address"));
        strAppendFormat(p->out, "} %.*s\n", (int)up.len, up.ptr);
    }
}

static void printInstance(printer *p) {
    static const struct {
        const char *label, *info_field;
    } labels[] = {
        {"role", "role"},
        {"redis_version", "redis_version"},
        {"valkey_version", "valkey_version"},
        {"redis_build_id", "redis_build_id"},
        {"redis_mode", NULL},
        {"os", "os"},
        {"maxmemory_policy", "maxmemory_policy"},
        {"tcp_port", "tcp_port"},
        {"run_id", "run_id"},
        {"process_id", "process_id"},
        {"master_replid", "master_replid"},
    };
    engineIdentity server; /* INFO's field of the mode has two names */
    engineIdentify(&server);
    printType(p, "instance_info", GAUGE, "What the server is; the value is always 1.");
    strAppendText(p->out, "redis_instance_info{");
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        if (i) strAppendByte(p->out, ',');
        const char *field = labels[i].info_field;
        appendLabel(p->out, labels[i].label,
                    field ? infoIndexFind(&p->index, field) : sliceOf(server.mode));
    }
    strAppendText(p->out, "} 1\n");
}

static void printSetting(printer *p, const char *directive, const char *name) {
    const configOption *o = configFind(sliceOf(directive));
    if (!o) return;
    str value = STR_EMPTY;
    configGet(o, &value);
    char help[128];
    snprintf(help, sizeof(help), "The directive %s.", directive);
    if (isNumber(strSlice(&value))) printPlain(p, name, GAUGE, help, strSlice(&value));
    strFree(&value);
}

static void printStart(printer *p) {
    double uptime, now;
    if (!numberParseDouble(infoIndexFind(&p->index, "uptime_in_seconds"), &uptime)) return;
    if (!numberParseDouble(infoIndexFind(&p->index, "server_time_usec"), &now)) return;
    double started = now / 1e6 - uptime;
    printNumber(p, "start_time_seconds", GAUGE, "When the server was started, Unix time.",
                (double)(int64_t)started);
}

void prometheusPrint(bool open_metrics, bool hide_user_data, str *out) {
    hotCheck(threadIsMain());
    str fields = STR_EMPTY;
    infoFieldsRead(&fields);
    printer p = {.open_metrics = open_metrics,
                 .hide_user_data = hide_user_data,
                 .fields = strSlice(&fields),
                 .out = out};
    infoIndexInit(&p.index, p.fields);
    printPlain(&p, "up", GAUGE, "Always 1: the server has replied.", SLICE("1"));
    printInstance(&p);
    printStart(&p);
    printNames(&p);
    printCertificates(&p);
    printSetting(&p, "maxclients", "config_maxclients");
    printSetting(&p, "maxmemory", "config_maxmemory");
    printKeyspace(&p, "db_keys", "keys", 1);
    printKeyspace(&p, "db_keys_expiring", "expires", 1);
    printKeyspace(&p, "db_avg_ttl_seconds", "avg_ttl", 0.001);
    printFamily(&p, "db_memory_used_bytes", GAUGE, "maxmemory_", "db", "used", 1);
    printFamily(&p, "db_memory_max_bytes", GAUGE, "maxmemory_", "db", "limit", 1);
    printFamily(&p, "db_evicted_keys_total", COUNTER, "maxmemory_", "db", "evicted", 1);
    printFamily(&p, "db_refused_requests_total", COUNTER, "maxmemory_", "db", "refused", 1);
    printFamily(&p, "db_cpu_seconds_total", COUNTER, "cpu_", "db", "used_usec", 1e-6);
    printFamily(&p, "db_cpu_share_ratio", GAUGE, "cpu_", "db", "share", 0.01);
    printFamily(&p, "db_held_requests_total", COUNTER, "cpu_", "db", "held", 1);
    printUsers(&p, "user_memory_used_bytes", GAUGE, "user_maxmemory_", "used", 1);
    printUsers(&p, "user_memory_max_bytes", GAUGE, "user_maxmemory_", "limit", 1);
    printUsers(&p, "user_refused_requests_total", COUNTER, "user_maxmemory_", "refused", 1);
    printUsers(&p, "user_cpu_seconds_total", COUNTER, "user_cpu_", "used_usec", 1e-6);
    printUsers(&p, "user_cpu_share_ratio", GAUGE, "user_cpu_", "share", 0.01);
    printUsers(&p, "user_held_requests_total", COUNTER, "user_cpu_", "held", 1);
    printDictionaries(&p, "value_dictionary_values", "values",
                      "Values that are compressed with the dictionary, from INFO memory.");
    printDictionaries(&p, "value_dictionary_ratio", "ratio",
                      "Packed bytes per plain byte of all values compressed with it.");
    printDictionaries(&p, "value_dictionary_recent_ratio", "recent_ratio",
                      "Packed bytes per plain byte of the last values compressed with it.");
    printDictionaries(&p, "value_dictionary_bytes", "bytes", "Memory of the dictionary.");
    printFamily(&p, "commands_total", COUNTER, "cmdstat_", "cmd", "calls", 1);
    printFamily(&p, "commands_duration_seconds_total", COUNTER, "cmdstat_", "cmd", "usec", 1e-6);
    printFamily(&p, "commands_rejected_calls_total", COUNTER, "cmdstat_", "cmd", "rejected_calls",
                1);
    printFamily(&p, "commands_failed_calls_total", COUNTER, "cmdstat_", "cmd", "failed_calls", 1);
    printFamily(&p, "errors_total", COUNTER, "errorstat_", "err", "count", 1);
    printLatencies(&p);
    printReplicas(&p, "connected_slave_offset_bytes", "offset");
    printReplicas(&p, "connected_slave_lag_seconds", "lag");
    printMessages(&p, "cluster_messages_by_type_sent_total", "_sent");
    printMessages(&p, "cluster_messages_by_type_received_total", "_received");
    printPrimaries(&p);
    printWatchedInstances(&p);
    if (open_metrics) strAppendText(out, "# EOF\n");
    infoIndexClear(&p.index);
    strFree(&fields);
}
