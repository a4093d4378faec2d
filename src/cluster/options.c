/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of the cluster. Main thread only. */
#include <limits.h>
#include <sys/socket.h>

#include "base/base.h"
#include "bus/protocol.h"
#include "bus/valid.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "cluster/shared_config.h"
#include "cluster/shared_state.h"
#include "cluster/slot_stats.h"

clusterConfig clusterConf;

static const configWord save_words[] = {
    {"sync", SAVE_SYNC}, {"best-effort", SAVE_BEST_EFFORT}, {NULL, 0}};
static const configWord endpoint_words[] = {{"ip", ENDPOINT_IP},
                                            {"hostname", ENDPOINT_HOSTNAME},
                                            {"unknown-endpoint", ENDPOINT_UNKNOWN},
                                            {NULL, 0}};

/* ------------------------------------------------------------------ validation of announced
 * values */

static status acceptFile(slice text, int64_t number, reason *why) {
    (void)number;
    if (text.len) return OK;
    return reasonSet(why, ERR_SYNTAX, "cluster-config-file can't be empty");
}

static status acceptIp(slice text, int64_t number, reason *why) {
    (void)number;
    if (text.len >= NODE_IP_MAX)
        return reasonSet(why, ERR_LIMIT, "cluster-announce-ip is too long");
    if (!validIsPlain(text))
        return reasonSet(why, ERR_SYNTAX, "cluster-announce-ip contains invalid character");
    return OK;
}

static status acceptNodename(slice text, int64_t number, reason *why) {
    (void)number;
    if (validIsPlain(text)) return OK;
    return reasonSet(why, ERR_SYNTAX, "Announced human node name contained invalid character");
}

static status acceptHostname(slice text, int64_t number, reason *why) {
    (void)number;
    if (text.len >= NODE_HOSTNAME_MAX)
        return reasonSet(why, ERR_LIMIT, "Hostnames must be less than 256 characters");
    if (validIsHostnameChars(text)) return OK;
    return reasonSet(why, ERR_SYNTAX,
                     "Hostnames may only contain alphanumeric characters, hyphens or dots");
}

static status acceptIpv4(slice text, int64_t number, reason *why) {
    (void)number;
    return validIsAddress(AF_INET, text) ? OK : reasonSet(why, ERR_SYNTAX, "Invalid IPv4 address");
}

static status acceptIpv6(slice text, int64_t number, reason *why) {
    (void)number;
    return validIsAddress(AF_INET6, text) ? OK : reasonSet(why, ERR_SYNTAX, "Invalid IPv6 address");
}

/* ------------------------------------------------------------------ cluster-seeds */

static status setSeeds(const slice *words, int count, bool more, reason *why) {
    clusterSeeds set = {.items = NULL};
    if (count == 1 && !words[0].len) count = 0;
    status st = seedsAdd(more ? &clusterConf.cluster_seeds : &set, words, count, why);
    if (st != OK) seedsClear(&set);
    if (st != OK || more) return st;
    seedsClear(&clusterConf.cluster_seeds);
    clusterConf.cluster_seeds = set;
    return OK;
}

static void getSeeds(str *out) { seedsPrint(&clusterConf.cluster_seeds, out); }

static const configSpecial seeds = {.set = setSeeds, .get = getSeeds};

/* ------------------------------------------------------------------ the table */

const configOption clusterOptions[] = {
    /* The node. */
    CONFIG_BOOL("cluster-enabled", clusterConf.cluster_enabled, false, .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("cluster-config-file", clusterConf.cluster_config_file, "nodes.conf",
                  .flags = CONFIG_IMMUTABLE, .accept = acceptFile),
    CONFIG_ENUM("cluster-config-save-behavior", clusterConf.cluster_config_save_behavior,
                save_words, SAVE_SYNC),
    CONFIG_INT("cluster-node-timeout", clusterConf.bus.timeout_ms, 15000, 0, INT64_MAX),
    CONFIG_INT("cluster-refused-timeout", clusterConf.bus.refused_timeout_ms, 0, 0, INT_MAX),
    CONFIG_INT("cluster-port", clusterConf.cluster_port, 0, 0, CONFIG_PORT_MAX,
               .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("cluster-databases", clusterConf.cluster_databases, 1, 1, INT_MAX,
               .flags = CONFIG_IMMUTABLE),
    CONFIG_MEMORY_UNSIGNED("cluster-link-sendbuf-limit", clusterConf.cluster_link_sendbuf_limit, 0),
    CONFIG_INT("cluster-blacklist-ttl", clusterConf.bus.forget_seconds, 60, INT64_MIN, INT64_MAX),
    CONFIG_INT("cluster-ping-interval", clusterConf.bus.ping_interval_ms, 0, 0, INT64_MAX,
               .flags = CONFIG_HIDDEN),
    CONFIG_INT("cluster-message-gossip-perc", clusterConf.bus.gossip_percent, 10, 1, 100,
               .flags = CONFIG_HIDDEN),
    CONFIG_BOOL("cluster-slot-stats-enabled", clusterConf.cluster_slot_stats_enabled, false,
                .apply = slotStatsApply),
    CONFIG_STRING("cluster-bus-secret", clusterConf.cluster_bus_secret, "",
                  .flags = CONFIG_SENSITIVE),
    CONFIG_BOOL("cluster-shared-acl", clusterConf.cluster_shared_acl, false,
                .apply = sharedApplyDirective),
    CONFIG_BOOL("cluster-shared-functions", clusterConf.cluster_shared_functions, false,
                .apply = sharedApplyDirective),
    CONFIG_SPECIAL("cluster-shared-config", &sharedConfigNames, "", .flags = CONFIG_MULTI_WORD,
                   .apply = sharedApplyDirective),
    CONFIG_SPECIAL("cluster-seeds", &seeds, "", .flags = CONFIG_MULTI_WORD),
    /* Failover and coverage. */
    CONFIG_INT("cluster-replica-validity-factor", clusterConf.bus.validity_factor, 10, 0, INT_MAX,
               .alias = "cluster-slave-validity-factor"),
    CONFIG_INT("cluster-replica-priority", clusterConf.cluster_replica_priority, 0, 0, INT_MAX,
               .apply = serverMapApplyAnnounced),
    CONFIG_INT("cluster-migration-barrier", clusterConf.bus.migration_barrier, 1, 0, INT_MAX),
    CONFIG_BOOL("cluster-allow-replica-migration", clusterConf.bus.replica_migration, true),
    CONFIG_BOOL("cluster-require-full-coverage", clusterConf.bus.full_coverage, true),
    CONFIG_BOOL("cluster-replica-no-failover", clusterConf.bus.no_failover, false,
                .alias = "cluster-slave-no-failover"),
    CONFIG_BOOL("cluster-replicas-vote", clusterConf.bus.replicas_vote, false),
    CONFIG_INT("cluster-manual-failover-timeout", clusterConf.bus.manual_timeout_ms, 5000, 1,
               INT_MAX),
    CONFIG_BOOL("cluster-allow-reads-when-down", clusterConf.cluster_allow_reads_when_down, false),
    CONFIG_BOOL("cluster-allow-pubsubshard-when-down",
                clusterConf.cluster_allow_pubsubshard_when_down, true),
    /* Announced properties of the node. */
    CONFIG_ENUM("cluster-preferred-endpoint-type", clusterConf.cluster_preferred_endpoint_type,
                endpoint_words, ENDPOINT_IP),
    CONFIG_STRING("cluster-announce-hostname", clusterConf.cluster_announce_hostname, "",
                  .accept = acceptHostname, .apply = serverMapApplyAnnounced),
    CONFIG_STRING("cluster-announce-human-nodename", clusterConf.cluster_announce_human_nodename,
                  "", .accept = acceptNodename, .apply = serverMapApplyAnnounced),
    CONFIG_STRING("cluster-announce-ip", clusterConf.cluster_announce_ip, "", .accept = acceptIp,
                  .apply = serverMapApplyIp),
    CONFIG_INT("cluster-announce-port", clusterConf.cluster_announce_port, 0, 0, CONFIG_PORT_MAX,
               .apply = serverMapApplyAnnounced),
    CONFIG_INT("cluster-announce-tls-port", clusterConf.cluster_announce_tls_port, 0, 0,
               CONFIG_PORT_MAX, .apply = serverMapApplyAnnounced),
    CONFIG_INT("cluster-announce-bus-port", clusterConf.cluster_announce_bus_port, 0, 0,
               CONFIG_PORT_MAX, .apply = serverMapApplyAnnounced),
    CONFIG_STRING("cluster-announce-client-ipv4", clusterConf.cluster_announce_client_ipv4, "",
                  .accept = acceptIpv4, .apply = serverMapApplyAnnounced),
    CONFIG_STRING("cluster-announce-client-ipv6", clusterConf.cluster_announce_client_ipv6, "",
                  .accept = acceptIpv6, .apply = serverMapApplyAnnounced),
    CONFIG_INT("cluster-announce-client-port", clusterConf.cluster_announce_client_port, 0, 0,
               CONFIG_PORT_MAX, .apply = serverMapApplyAnnounced),
    CONFIG_INT("cluster-announce-client-tls-port", clusterConf.cluster_announce_client_tls_port, 0,
               0, CONFIG_PORT_MAX, .apply = serverMapApplyAnnounced),
    /* Slot migration. */
    CONFIG_INT("cluster-slot-migration-log-max-len", clusterConf.cluster_slot_migration_log_max_len,
               1000, 0, INT64_MAX),
    CONFIG_MEMORY("slot-migration-max-failover-repl-bytes",
                  clusterConf.slot_migration_max_failover_repl_bytes, 0, -1, INT64_MAX),
    CONFIG_INT("slot-migration-pause-ms", clusterConf.slot_migration_pause_ms, 500, 1, 60000),
    CONFIG_END,
};
