/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of the cluster that its state machines follow. The registry of directives writes
 * them into the owner's configuration, the owner copies the struct into its bus, and the machines
 * read it there: a new directive is a field here and a row in cluster/options.c.
 *
 * Every field can change at any time between two calls. */
#ifndef BUS_RULES_H
#define BUS_RULES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct busRules {
    int64_t timeout_ms;                    /* cluster-node-timeout */
    int64_t ping_interval_ms;              /* cluster-ping-interval; 0: half a timeout */
    int64_t refused_timeout_ms;            /* cluster-refused-timeout; 0: refused connections have
                                            * no special meaning */
    int64_t forget_seconds;                /* cluster-blacklist-ttl */
    int gossip_percent;                    /* cluster-message-gossip-perc: of the nodes */
    int migration_barrier;                 /* cluster-migration-barrier */
    int validity_factor;                   /* cluster-replica-validity-factor */
    int manual_timeout_ms;                 /* cluster-manual-failover-timeout */
    bool full_coverage, replica_migration; /* cluster-require-..., cluster-allow-... */
    bool no_failover, replicas_vote;       /* cluster-replica-no-failover, cluster-replicas-vote */
} busRules;

/* The timeout for elections: the node timeout, but at most 5 seconds with cluster-refused-timeout.
 * With that directive the node timeout only bounds the wait for a silent node, which may be
 * minutes, and elections must not wait for so long. */
static inline int64_t busRulesFailoverMs(const busRules *r) {
    enum { FAILOVER_MAX_MS = 5000 };
    bool shorter = r->refused_timeout_ms && r->timeout_ms > FAILOVER_MAX_MS;
    return shorter ? FAILOVER_MAX_MS : r->timeout_ms;
}

#endif
