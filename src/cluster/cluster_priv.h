/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the cluster. Each field is named after its directive; only the configuration
 * registry writes them. */
#ifndef CLUSTER_CLUSTER_PRIV_H
#define CLUSTER_CLUSTER_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "bus/rules.h"
#include "bus/seeds.h"
#include "cluster/shared_config.h"
#include "config/config.h"

enum saveBehavior { SAVE_SYNC, SAVE_BEST_EFFORT };
enum endpointType { ENDPOINT_IP, ENDPOINT_HOSTNAME, ENDPOINT_UNKNOWN };

typedef struct clusterConfig {
    busRules bus; /* directives that the state machines in bus/ follow */
    /* The node. */
    bool cluster_enabled;
    char *cluster_config_file;
    int cluster_config_save_behavior; /* enum saveBehavior */
    int cluster_port;                 /* of the cluster bus; 0: port + 10000 */
    int cluster_databases;
    uint64_t cluster_link_sendbuf_limit; /* bytes, 0: no limit */
    bool cluster_slot_stats_enabled;
    char *cluster_bus_secret; /* empty: none */
    bool cluster_shared_acl, cluster_shared_functions;
    sharedNames cluster_shared_config;
    clusterSeeds cluster_seeds;
    /* Requests that are allowed while the cluster is down. */
    bool cluster_allow_reads_when_down, cluster_allow_pubsubshard_when_down;
    /* Announced properties of the node. */
    int cluster_preferred_endpoint_type; /* enum endpointType */
    char *cluster_announce_hostname, *cluster_announce_human_nodename, *cluster_announce_ip;
    int cluster_announce_port, cluster_announce_tls_port, cluster_announce_bus_port;
    char *cluster_announce_client_ipv4, *cluster_announce_client_ipv6;
    int cluster_announce_client_port, cluster_announce_client_tls_port;
    int cluster_replica_priority;
    /* Slot migration. */
    int64_t cluster_slot_migration_log_max_len;
    int64_t slot_migration_max_failover_repl_bytes; /* -1: no limit */
    int64_t slot_migration_pause_ms;
} clusterConfig;

extern clusterConfig clusterConf;
extern const configOption clusterOptions[];

/* feature.c: what follows from changes of the map: the role, hidden slots, the file. */
void clusterApplyChanges(void);
/* Takes what other nodes have sent and replies, from inside a long operation. */
void clusterAnswerNodes(void);

#endif
