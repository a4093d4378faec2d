/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated node of a cluster: clusterBus (src/bus/bus.h) with links over the simulated
 * network, a file, and a dataset that follows that of its primary (cluster_data.h). */
#ifndef TESTS_SIM_CLUSTER_NODE_H
#define TESTS_SIM_CLUSTER_NODE_H

#include "bus/bus.h"
#include "bus/map_saves.h"
#include "network.h"

enum {
    SIM_NODES_MAX = 80,
    SIM_NODE_STEP_MS = 10,
    SIM_NODE_TIMEOUT_MS = 2000,
    SIM_MANUAL_TIMEOUT_MS = 5000,
    SIM_FORGET_MS = 5000,
    SIM_SAVE_MAX_MS = 900, /* a message waits for two saves at most */
    SIM_BUS_PORT = 17000,  /* plus the host, and more after moves */
    SIM_SEEDS = 2,         /* the first hosts */
};

/* The dataset of a node: cluster_data.c. */
typedef struct simData {
    int version;            /* -1: none, as its first synchronisation is under way */
    int confirmed;          /* the last version that the primary knows this replica has; -1: none */
    int source;             /* the host whose stream arrives; -1: none */
    uint64_t stream;        /* the id of the stream in which `version` has its offset */
    uint64_t source_stream; /* that of `source` when they were linked */
    int64_t syncs_ms;    /* a full synchronisation with `source` ends then; 0: none is under way */
    int64_t same_ms;     /* by the node's clock: when it last had the primary's data */
    int64_t end_at_link; /* of the primary's stream when they were linked */
    bool has_caught_up;  /* since it follows this primary and since its start */
    int64_t stalled_until_ms; /* nothing of the stream arrives, of which it notices nothing */
    bool holds_acks;          /* by order of the bus: what follows held_from */
    int64_t held_from;
    uint64_t keys[SLOT_WORDS]; /* the slots that have keys */
    uint64_t keys_id;          /* of this set: a replica with the same one has the same set */
} simData;

/* What never goes back in a map: epochs, and the set of voters. */
typedef struct simEpochs {
    uint64_t current, own, vote;
    voterStamp voters;
} simEpochs;

/* Messages that a node has made: `bytes` of them, which begin in its `out`. They leave when the
 * changes up to `number` are saved; 0: the step in which they were made has not ended. */
typedef struct simHeld {
    busLink *link;
    size_t bytes;
    uint64_t number;
} simHeld;

typedef struct simNode {
    int host;
    int bus_port; /* its address: all hosts have the same IP */
    bool running;
    bool was_newer; /* it has run as a version that understands refused votes */
    clusterMap map;
    clusterState state;
    clusterBus bus;
    simData data;
    clusterSeeds seeds;
    str disk, old_disk; /* the configuration file, and a copy of an earlier one */
    /* The save that runs, if one does: what it writes, the epochs in it, and when it ends. */
    mapSaves saves;
    str writing;
    simEpochs writing_epochs, saved_epochs;
    int64_t save_ends_ms;
    simHeld *held;
    size_t held_count, held_cap;
    str out;
    int64_t next_tick_ms;
    int64_t paused_until_ms; /* writes, with a lease reads, too; by its clock */
    int64_t started_ms;      /* the time of the simulation */
    int64_t ahead_ms;        /* its clock: as that of the host was at its start, and steady */
    /* The last plain manual failover that it was ordered: when, and the host of its primary. */
    int64_t ordered_ms;
    int ordered_from;
    bool by_takeover;           /* what promotes it */
    bool has_order;             /* an operator is giving it one */
    char followed[NODE_ID_LEN]; /* the primary that it follows, zeros: none */
    simEpochs epochs;           /* the greatest that it had, over restarts that have lost no save */
    bool failed_seen;           /* it has marked a node as failing */
} simNode;

/* One more than a cluster has: cluster_cases.c. */
extern simNode sim_nodes[SIM_NODES_MAX + 1];
extern int sim_node_count;

/* A new node that knows nobody. */
void simNodeInit(simNode *n, int host);
void simNodeClear(simNode *n);
typedef enum simFile { SIM_FILE, SIM_OLD_FILE, SIM_NO_FILE } simFile;
/* Reads its file, an earlier copy of it, or begins anew. */
void simNodeStart(simNode *n, simFile file);
void simNodeStop(simNode *n);
/* Whether it has cluster-replicas-vote is decided anew. */
void simNodeChooseVote(simNode *n);
/* Gives addresses that no node has had to a stopped node, or to all, which are stopped, or those
 * of others. */
void simNodeMove(simNode *n);
void simNodesSwap(void);
/* True if it runs and is not paused: it can be given orders. */
bool simNodeActs(const simNode *n);
/* True if the file says that the slot, which the node owns, is its own. */
bool simNodeHasSaved(const simNode *n, int slot);
/* Its epoch in the file. Nobody is told of a greater one, and it is lost if the process ends. */
uint64_t simNodeSavedEpoch(const simNode *n);
/* After an order: saves the map, sends what may leave, and checks the node. */
void simNodeFinish(simNode *n);
int64_t simNodeClock(const simNode *n);
/* What all nodes do in a step of the clock. */
void simNodesStep(void);
/* The running node with that id; NULL: none. */
simNode *simNodeOf(const clusterNode *node);

/* What a scenario adds to the nodes; NULL: nothing. */
typedef struct simNodeParts {
    void (*started)(simNode *n);
    void (*stopping)(simNode *n);
    /* In each step in which the node acts. */
    void (*step)(simNode *n);
    void (*promoted)(simNode *n);
    void (*slotsLost)(simNode *n);
    /* The dataset of a replica is now that of version `to`, which includes its former one; or that
     * of its primary, `from` NULL: an empty one. */
    void (*advanced)(simNode *n, int to);
    void (*copied)(simNode *n, const simNode *from);
    /* After each step. */
    void (*checked)(void);
} simNodeParts;
extern const simNodeParts *sim_node_parts;

typedef struct simNodeCounts {
    uint64_t messages, bytes, updates, fails, links, restarts, lost_files, old_files, takeovers,
        elections, wins, votes, refusals, moves, fixed_slots, separations, failures_found, orders,
        meets, forgets, resets, migrations, writes, syncs, clock_steps, new_addresses, probes,
        short_messages, voter_sets, slow_saves, lost_saves;
} simNodeCounts;
extern simNodeCounts node_counts;

/* What the rules of all nodes of a run have in common. */
extern bool sim_replica_migration;
extern bool sim_has_seeds;
extern int sim_full_percent; /* of the nodes, clusterBus.as_older */
extern int64_t sim_refused_timeout_ms;
/* Percent of the nodes that have cluster-replicas-vote; each start decides anew. */
extern int sim_voting_percent;
extern int sim_quorum; /* replication-quorum; 0: off */
extern int64_t sim_read_lease_ms;
extern int sim_drift_ppm; /* of one clock against the next one's */

#endif
