/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated node of a cluster: the map and the state machines of src/cluster, with links over the
 * simulated network that carry the real messages of the bus. */
#ifndef TESTS_SIM_CLUSTER_NODE_H
#define TESTS_SIM_CLUSTER_NODE_H

#include "cluster/cluster_state.h"
#include "cluster/election.h"
#include "cluster/failure.h"
#include "cluster/gossip.h"
#include "cluster/topology.h"
#include "network.h"

enum {
    SIM_NODES = 6,
    SIM_NODE_STEP_MS = 10,
    SIM_NODE_TIMEOUT_MS = 2000,
    SIM_BUS_PORT = 17000, /* plus the host */
};

/* A link that this node has opened, with what has arrived of an incomplete message. */
typedef struct simLink {
    wire *wire;
    str input;
    int64_t opened_ms, tried_ms;
    bool greeted; /* the first PING was sent */
} simLink;

typedef struct simNode {
    int host;
    bool running;
    clusterMap map;
    clusterState state;
    election election;
    int64_t started_ms;
    simLink links[SIM_NODES]; /* by host */
    str disk;                 /* the configuration file */
    /* The greatest that it had, over restarts. */
    uint64_t current_epoch, own_epoch, vote_epoch;
    bool failed_seen; /* it has marked a node as failing */
} simNode;

extern simNode sim_nodes[SIM_NODES];

/* Called for every vote and every won election. */
void simNodeVoted(const simNode *voter, uint64_t epoch);
void simNodeWon(const simNode *winner, uint64_t epoch);

/* A new node that knows nobody. */
void simNodeInit(simNode *n, int host);
void simNodeClear(simNode *n);
/* Reads the file. */
void simNodeStart(simNode *n);
void simNodeStop(simNode *n);
/* `n` introduces itself to `other`. */
void simNodeMeet(simNode *n, const simNode *other);
void simNodeStep(simNode *n);

typedef struct simNodeCounts {
    uint64_t messages, bytes, updates, fails, links, restarts, takeovers, elections, wins, votes,
        moves, fixed_slots, separations, failures_found;
} simNodeCounts;
extern simNodeCounts node_counts;

#endif
