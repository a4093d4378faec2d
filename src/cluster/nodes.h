/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The known nodes of the cluster and the assignment of slots to nodes. Main thread only. */
#ifndef CLUSTER_NODES_H
#define CLUSTER_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/str.h"

enum { NODE_ID_LEN = 40 };

enum nodeFlag {
    NODE_MYSELF = 1u << 0,
    NODE_PRIMARY = 1u << 1,
    NODE_REPLICA = 1u << 2,
    NODE_MAYBE_FAILED = 1u << 3,
    NODE_FAILED = 1u << 4,
    NODE_HANDSHAKE = 1u << 5,
    NODE_NO_ADDRESS = 1u << 6,
    NODE_NO_FAILOVER = 1u << 7,
};

typedef struct clusterNode {
    char id[NODE_ID_LEN]; /* hex digits without a NUL, as is the shard id */
    char shard_id[NODE_ID_LEN];
    uint32_t flags;
    struct clusterNode *primary;  /* for replicas; NULL if unknown */
    str ip, hostname, human_name; /* of other nodes; those of this node are in the directives */
    int port, bus_port, tls_port;
    uint64_t epoch;
    int64_t ping_sent_ms, pong_ms;
    int slot_count;
} clusterNode;

/* Creates a table with this node only, with a random id. Called once, if the cluster is enabled. */
void nodesInit(void);
void nodesFree(void);

clusterNode *nodeMyself(void);
int nodeCount(void);
clusterNode *nodeAt(int index);
/* The node with that id, or NULL. */
clusterNode *nodeFind(slice id);
/* Adds a node; the id must be new. */
clusterNode *nodeAdd(const char id[NODE_ID_LEN]);
/* The primary of a node: itself, or the one it replicates; NULL if unknown. */
clusterNode *nodePrimaryOf(clusterNode *n);

/* The node that serves a slot, NULL if unassigned. */
clusterNode *slotOwner(int slot);
/* True if this node owns the slot. */
bool slotIsMine(int slot);
void slotSetOwner(int slot, clusterNode *owner);
int slotsAssigned(void);

/* Epochs: the latest known epoch of the cluster, and that of our last vote. */
uint64_t nodesEpoch(void);
uint64_t nodesVoteEpoch(void);
void nodesSetEpochs(uint64_t current, uint64_t vote);
/* Gives this node an epoch greater than all others. False if it already had the greatest. */
bool nodesBumpEpoch(void);

/* Forgets all other nodes, unassigns all slots and gives this node, as a primary, a new shard. `hard`: it also gets a
 * new id, and all epochs become 0. */
void nodesReset(bool hard);

/* True if the cluster serves requests, as of the last nodesUpdateState(). */
bool nodesAreOk(void);
/* Updates the cluster state. It is ok if all slots are covered (if required), the majority of
 * primaries is reachable, and some time has passed since it was not. */
void nodesUpdateState(int64_t now_ms);
/* Number of primaries with slots, as of the last nodesUpdateState(). */
int nodesSize(void);

/* Marks that the configuration file must be written. */
void nodesChanged(void);
/* If something has changed, updates the state and writes the configuration file. Called before
 * replies are sent. */
void nodesApplyChanges(void);

/* ---- nodes_file.c ---- */

/* Reads the configuration file. *found is false if there is none. ERR_SYNTAX: it is corrupt. */
status nodesLoad(const char *path, bool *found, reason *why) MUST_USE;
status nodesSave(const char *path, reason *why) MUST_USE;

/* ---- nodes_text.c ---- */

/* Address, port and bus port for other nodes. */
slice nodeIp(const clusterNode *n);
slice nodeHostname(const clusterNode *n);
slice nodeHumanName(const clusterNode *n);
int nodePort(const clusterNode *n);
int nodeBusPort(const clusterNode *n);
/* Appends one line without its end, as in CLUSTER NODES or, with `for_file`, in the configuration
 * file. */
void nodeDescribe(str *out, const clusterNode *n, bool for_file);
/* The address or name that clients should connect to, depending on cluster-preferred-endpoint-type;
 * ptr NULL for unknown. */
slice nodeEndpoint(const clusterNode *n);

#endif
