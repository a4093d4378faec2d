/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decisions of the cluster manager that need no connection: which node gets which slots, which
 * replica follows which primary, which slots move. Results depend on the arguments alone. */
#ifndef TOOLS_CLI_CLUSTER_PLAN_H
#define TOOLS_CLI_CLUSTER_PLAN_H

#include "tools/cli/cluster_nodes.h"

/* Fills `order` (as many places as nodes) with the nodes in turns of their hosts: the first of each
 * host, the second of each, and so on. */
void planInterleave(const clusterNodes *nodes, clusterNode **order);
/* Gives each of the nodes an equal range of slots, in order. */
void planShareSlots(clusterNode **primaries, int count);

/* A replica and the primary it was assigned to. */
typedef struct replicaChoice {
    clusterNode *replica, *primary;
    bool is_extra; /* more than the requested number per primary */
} replicaChoice;

/* Assigns the nodes after the first `primary_count` of `order` to these: `per_primary` to each,
 * then the rest one by one, on other hosts than their primary where possible. `choices` has room
 * for all of them; returns their number. */
int planReplicas(clusterNode **order, int count, int primary_count, int per_primary,
                 replicaChoice *choices);
/* The cost of having replicas on the host of their primary (10,000 each) or of a fellow replica (1
 * per pair). */
int planAffinity(const replicaChoice *choices, int count);
enum { AFFINITY_PRIMARY = 10000 };
/* Exchanges primaries between replicas to reduce that cost, and returns it. */
int planSpread(replicaChoice *choices, int count);

/* A slot that moves. */
typedef struct slotMove {
    clusterNode *source;
    int slot;
} slotMove;

/* Chooses `wanted` slots of the sources, in proportion to what each has. The caller frees `*moves`
 * with memFree(). Returns their number, at most what the sources have. */
int planReshard(clusterNode *const *sources, int source_count, int wanted, slotMove **moves);

/* A node's part in rebalancing. */
typedef struct nodeShare {
    clusterNode *node;
    double weight;
    int balance; /* slots that the node has more than its share */
} nodeShare;

/* Computes the balances and sorts by them, those that receive first. True if a node differs from
 * its share by more than `threshold_percent`. The balances sum up to 0 or, if slots are not
 * covered, less. */
bool planBalance(nodeShare *shares, int count, double threshold_percent);
/* The next pair of a giving and a receiving node and the number of slots to move, which is
 * subtracted from both; 0 when nothing is left to move. */
int planNextTransfer(nodeShare *shares, int count, clusterNode **source, clusterNode **target);

/* What is known about a slot that no node of the cluster serves, or that is open. */
typedef struct slotHolder {
    clusterNode *node;
    int64_t keys; /* in the slot */
} slotHolder;

/* The holder with most keys, the first of equal ones; NULL if there is none. */
clusterNode *planOwnerByKeys(const slotHolder *holders, int count);

#endif
