/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clusterMap: what a node knows of its cluster: nodes and their roles, owners of slots, epochs, and
 * who reported whom as failing. It is an instance without sockets, clock, files or configuration,
 * so that a simulation can have several; times are passed in. map_file.c has its text in the
 * configuration file, map_text.c that of CLUSTER NODES.
 *
 * Finding a node or the owner of a slot takes O(1); removing one O(nodes + slots / 64). One thread
 * at a time. */
#ifndef BUS_MAP_H
#define BUS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "bus/protocol.h"
#include "ds/hashtable.h"

typedef struct clusterNode clusterNode;

/* A node's report that another one is failing. */
typedef struct failReport {
    const clusterNode *from;
    int64_t at_ms;
} failReport;

struct clusterNode {
    char id[NODE_ID_LEN];
    char shard_id[NODE_ID_LEN];
    uint32_t flags; /* enum nodeFlag; the role is changed with clusterMapSetPrimary() alone */
    int index;      /* private: in the map's list */
    /* The node that it replicates; NULL for primaries, and for replicas of an unknown one. */
    clusterNode *primary;
    clusterNode **replicas; /* in the order of their ids, so that all nodes list them alike */
    int replica_count;
    uint64_t *slots; /* private: its set of slots; NULL if it never had one */
    int slot_count;
    uint64_t epoch;      /* of its slots */
    uint64_t ack_epoch;  /* of the last election in which it has voted for this node */
    uint64_t nack_epoch; /* of the last election in which it gives this node no vote */
    int64_t offset;      /* in the stream of replication */
    uint64_t stream;     /* a number for its id; 0: not told, as it has no replication-quorum */
    int64_t lacking_ms; /* since when electionLacksQuorum(); 0: it does not; -1: the log tells it */
    int replica_priority;            /* replicas with a lower one are elected first */
    bool takes_priority, takes_capa; /* understands a replica's priority; CAPA of ESTABLISH */
    nodeSharing sharing;             /* kept by the owner of the map, too */
    bool unclaims;                   /* it does not claim slots that it has granted */
    bool has_told;                   /* which slots it claims, since this node has started */
    bool has_told_shard; /* its shard_id is what it has told itself since this node started */
    int stale_count;     /* messages in a row that were older than what is known of its role */
    /* Its address, and what it tells about itself. A port of 0: none. */
    str ip, hostname, human_name, availability_zone, client_ipv4, client_ipv6;
    int tcp_port, tls_port, bus_port, client_tcp_port, client_tls_port;
    /* Times in ms; 0: never. */
    int64_t added_ms;
    int64_t ping_sent_ms, pong_ms, heard_ms; /* the first: of the PING that has no reply yet */
    int64_t failed_ms;                       /* since when it is marked as failed */
    int64_t orphaned_ms;                     /* since when a primary has no replica that works */
    /* Since when all connections to its bus port are refused, and when the last one was. */
    int64_t refused_ms, last_refused_ms;
    int64_t moved_ms; /* when its address has become known, since the start */
    /* For voters.h: it is a member of this node's set; and what it has told since this node has
     * started: the directive, its set, and its current epoch then. */
    bool is_member, tells_voters, has_told_voters, wants_vote;
    voterStamp voters;
    uint64_t voters_epoch;
    int64_t ahead_ms;    /* since when its set is later than that of this node; 0: it is not */
    failReport *reports; /* map_reports.c */
    int report_count;
    /* For the bus: its connections, whether the outbound one is up; what it shares. */
    struct nodeLinks *links;
    bool is_connected, shares_acl, shares_functions, shares_config;
};

/* What has to be done after changes; the owner of the map clears the bits that it has dealt
 * with. */
enum clusterMapChange {
    CLUSTER_MAP_SAVE = 1u << 0,      /* write the configuration file */
    CLUSTER_MAP_SYNC = 1u << 1,      /* and flush it to the disk before anything is sent */
    CLUSTER_MAP_STATE = 1u << 2,     /* update the state of the cluster */
    CLUSTER_MAP_OWN_SLOTS = 1u << 3, /* this node has got or lost slots */
};

enum openKind {
    SLOT_MIGRATING,
    SLOT_IMPORTING,
    /* Imported, and taken by order, while the source may claim it still: it may keep it, if its
     * epoch is greater, and then has none of its keys. Nobody sees this mark. */
    SLOT_TAKEN,
    SLOT_OPEN_KINDS
};

typedef struct clusterMap {
    clusterNode *myself;
    clusterNode **nodes; /* the first one is this node */
    int node_count;
    uint32_t changed; /* enum clusterMapChange */
    uint64_t current_epoch, vote_epoch;
    int slots_assigned;
    uint64_t mine[SLOT_WORDS]; /* the slots of this node */
    /* Those of them that it does not give to another node: all their keys are here. */
    uint64_t settled[SLOT_WORDS];
    /* Slots that their owner does not claim any more; they stay with it until another node claims
     * them. Among the slots of this node: those that it has granted to another one. */
    uint64_t unclaimed[SLOT_WORDS];
    uint64_t claims[SLOT_WORDS]; /* the slots of this node that it claims */
    clusterNode *owner[SLOT_COUNT];
    hashtable ids; /* private: nodes by id */
    /* Private: slots that this node gives to others or takes over, by kind; NULL: none so far. */
    clusterNode **open[SLOT_OPEN_KINDS];
    int open_count[SLOT_OPEN_KINDS];
    int last_given; /* 1 + the last slot of this replica's primary, given away by order; 0: none */
    /* When the sources of those of SLOT_TAKEN have stopped to claim them; 0: they claim some. */
    int64_t taken_ms;
    /* Slots about which this primary has changed its marks without an order: its replicas are told
     * by orders. */
    uint64_t untold[SLOT_WORDS];
    bool has_untold;
    int64_t misfit_ms; /* since when this replica has marks that do not fit; 0: none */
    struct forbiddenNode *forbidden; /* map_blacklist.c */
    int forbidden_count;
    /* True if this node has granted the slot to another one, whose claim with that epoch is good
     * although the own one may be greater; may be NULL. */
    bool (*is_granted)(const void *arg, const clusterNode *to, int slot, uint64_t epoch);
    const void *is_granted_arg;
    /* With replication-quorum: the primary that this replica has told to have failed, and the
     * current epoch then; or that it has replaced, elected in that epoch (bus_hold.c). 0: none. */
    char held_for[NODE_ID_LEN];
    uint64_t held_epoch;
    /* The same of a primary that has paused writes, as this replica has the order to replace it. */
    char paused_for[NODE_ID_LEN];
    uint64_t paused_epoch;
    voterSet voters;       /* voters.h */
    bool has_heard_voters; /* other nodes have told of sets, or of the directive, since the start */
    void (*on_remove)(void *arg, clusterNode *n); /* before a node is removed; may be NULL */
    void *on_remove_arg;
} clusterMap;

/* ---- the map ---- */

/* A map of this node only, a primary with a random id and shard id. The map must not be moved
 * afterwards. */
void clusterMapInit(clusterMap *m, int64_t now_ms);
void clusterMapClear(clusterMap *m);
/* Forgets all other nodes, unassigns all slots and gives this node, as a primary, a new shard.
 * `hard`: it also gets a new id, and all epochs become 0. A node that has got a set of voters
 * (voters.h) gets a new id in any case. */
void clusterMapReset(clusterMap *m, bool hard);
/* Checks all invariants. NULL if they hold, else the violated one. For tests. */
const char *clusterMapVerify(const clusterMap *m);

/* ---- nodes ---- */

/* The node with that id, or NULL. */
clusterNode *clusterMapFind(const clusterMap *m, slice id);
/* Adds a primary without slots, in a shard of its own; the id must be new. */
clusterNode *clusterMapAdd(clusterMap *m, const char id[NODE_ID_LEN], int64_t now_ms);
/* Removes and frees a node, not this one. Its slots are unassigned, its replicas have no known
 * primary. */
void clusterMapRemove(clusterMap *m, clusterNode *n);
/* Changes the id of a node; the new one must not be in use. */
void clusterMapSetId(clusterMap *m, clusterNode *n, const char id[NODE_ID_LEN]);
/* Makes `n` a replica of `primary` (NULL: it is not known) and a member of its shard. Its slots
 * stay. */
void clusterMapSetPrimary(clusterMap *m, clusterNode *n, clusterNode *primary);
void clusterMapMakePrimary(clusterMap *m, clusterNode *n);
/* The replicas of a node move with it. */
void clusterMapSetShard(clusterMap *m, clusterNode *n, const char shard_id[NODE_ID_LEN]);
/* A text of a node; it is copied. */
void clusterMapSetText(clusterMap *m, str *to, slice text);
/* A port of a node. */
void clusterMapSetPort(clusterMap *m, int *to, int port);
void clusterMapSetReplicaPriority(clusterMap *m, clusterNode *n, int priority);
/* Sets and clears flags other than the role. */
void clusterMapSetFlags(clusterMap *m, clusterNode *n, uint32_t set, uint32_t cleared);

/* The primary of a node: itself, or the one it replicates; NULL if unknown. */
static inline clusterNode *clusterNodePrimary(clusterNode *n) {
    return n->flags & NODE_REPLICA ? n->primary : n;
}
/* True if both are known to be in one shard. */
static inline bool clusterNodesShareShard(const clusterNode *a, const clusterNode *b) {
    return memcmp(a->shard_id, b->shard_id, NODE_ID_LEN) == 0;
}
/* The number of nodes that vote. */
int clusterMapCountVoters(const clusterMap *m);
/* True for the nodes whose opinion counts: primaries with slots. */
static inline bool clusterNodeVotes(const clusterNode *n) {
    return n->flags & NODE_PRIMARY && n->slot_count > 0;
}
/* True if the node has replicas that work, and none of them has got any data. */
bool clusterNodeIsUnsynced(const clusterNode *n);
static inline slice clusterNodeId(const clusterNode *n) { return sliceMake(n->id, NODE_ID_LEN); }

/* ---- slots ---- */

/* The node that owns a slot, NULL if it is unassigned. */
static inline clusterNode *clusterMapOwner(const clusterMap *m, int slot) { return m->owner[slot]; }
/* True if this node owns the slot. */
static inline bool clusterMapIsMine(const clusterMap *m, int slot) {
    return m->mine[slot / 64] >> (slot % 64) & 1;
}
/* True if this node owns the slot and does not give it to another node. */
static inline bool clusterMapIsSettled(const clusterMap *m, int slot) {
    return m->settled[slot / 64] >> (slot % 64) & 1;
}
/* NULL: unassigns it. */
void clusterMapSetOwner(clusterMap *m, int slot, clusterNode *owner);
/* Gives all slots of a node to another one; NULL: unassigns them. */
void clusterMapMoveSlots(clusterMap *m, const clusterNode *from, clusterNode *to);
/* True if the node owns the slot. */
bool clusterNodeOwns(const clusterNode *n, int slot);
/* The slots of a node as they are in messages and in memory: SLOT_WORDS words; never NULL. */
const uint64_t *clusterNodeSlots(const clusterNode *n);
/* Those of them that the node claims, in `out`. */
void clusterMapClaimsOf(const clusterMap *m, const clusterNode *n, uint64_t out[SLOT_WORDS]);
/* The first slot of the node at or after `from`, with the end of its run in *last; -1: none. */
int clusterNodeNextSlots(const clusterNode *n, int from, int *last);
/* Marks that a slot's owner does, or does not, claim it. */
void clusterMapSetClaimed(clusterMap *m, int slot, bool claimed);
/* The same for 64 slots from 64 * word on, those in `owned`, which have one owner. */
void clusterMapSetClaims(clusterMap *m, int word, uint64_t owned, uint64_t claimed);
bool clusterMapIsClaimed(const clusterMap *m, int slot);
/* True if this node has slots that it does not claim: another one may own them already. */
bool clusterMapHasUnclaimed(const clusterMap *m);
/* The node to which this node gives a slot, or from which it gets it; NULL: none. */
clusterNode *clusterMapOpenSlot(const clusterMap *m, enum openKind kind, int slot);
void clusterMapSetOpenSlot(clusterMap *m, enum openKind kind, int slot, clusterNode *peer);
/* True if any slot is being moved from or to this node. */
static inline bool clusterMapHasOpenSlots(const clusterMap *m) {
    return m->open_count[SLOT_MIGRATING] || m->open_count[SLOT_IMPORTING];
}

/* ---- epochs ---- */

/* Epochs: the latest one known in the cluster, and that of this node's last vote. They never
 * decrease, but in a reset. */
void clusterMapSetEpochs(clusterMap *m, uint64_t current, uint64_t vote);
void clusterMapSetNodeEpoch(clusterMap *m, clusterNode *n, uint64_t epoch);
/* The epoch that follows all known ones. There is none after the greatest number, which no cluster
 * reaches by counting; then it is that number. */
uint64_t clusterMapNextEpoch(const clusterMap *m);
/* The greatest epoch in the map. */
uint64_t clusterMapGreatestEpoch(const clusterMap *m);
/* Gives this node an epoch greater than all others. False if it already had the greatest. */
bool clusterMapBumpEpoch(clusterMap *m);

/* `id` NULL: nothing is held, writes are not paused. */
void clusterMapSetHold(clusterMap *m, const char *id, uint64_t epoch);
void clusterMapSetPause(clusterMap *m, const char *id, uint64_t epoch);

/* ---- map_reports.c: who reported a node as failing ---- */

/* Notes the report; true if it is new, false if it renews one. */
bool clusterNodeReport(clusterNode *about, const clusterNode *from, int64_t now_ms);
/* Withdraws a report; false if there was none. */
bool clusterNodeUnreport(clusterNode *about, const clusterNode *from);
bool clusterNodeHasReport(const clusterNode *about, const clusterNode *from);
/* Removes reports older than `max_age_ms` and returns the number of others. */
int clusterNodeCountReports(clusterNode *about, int64_t now_ms, int64_t max_age_ms);

/* ---- map_file.c ---- */

/* Reads the text of the configuration file into a new map. `tls`: the first port of a node is that
 * of TLS, as tls-cluster says. ERR_SYNTAX: `why` has the line; the map is then to be cleared. */
status clusterMapParse(clusterMap *m, slice text, bool tls, int64_t now_ms, reason *why) MUST_USE;
void clusterMapPrint(const clusterMap *m, bool tls, str *out);

/* ---- map_text.c ---- */

/* A client that is told the addresses of nodes: whether it uses TLS, and IPv6; and the address by
 * which it has reached this node, for as long as this node does not know its own. */
typedef struct nodeViewer {
    bool tls, ipv6;
    char own_ip[48]; /* empty: not needed or not known */
} nodeViewer;

/* Appends one line without its end, as CLUSTER NODES shows it to a client; or as it is in the
 * configuration file. */
void clusterNodeDescribe(str *out, const clusterMap *m, const clusterNode *n,
                         const nodeViewer *viewer);
void clusterNodePrint(str *out, const clusterMap *m, const clusterNode *n, bool tls);
/* How a node is named in logs: its id, and its name or address. */
typedef struct nodeLabel {
    char text[NODE_ID_LEN + 128];
} nodeLabel;
nodeLabel clusterNodeLabel(const clusterNode *n);
/* The port for clients, with or without TLS; the other one if there is only that. */
int clusterNodePort(const clusterNode *n, bool tls);
/* The address that a client is told, which may be one for clients only. Their port without and with
 * TLS: 0: none. */
slice clusterNodeIpFor(const clusterNode *n, const nodeViewer *viewer);
int clusterNodeTcpPortForClients(const clusterNode *n);
int clusterNodeTlsPortForClients(const clusterNode *n);
int clusterNodePortFor(const clusterNode *n, const nodeViewer *viewer);

#endif
