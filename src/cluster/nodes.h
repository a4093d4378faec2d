/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The nodes this one knows, and who serves which slot. Main thread only. */
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
    char id[NODE_ID_LEN]; /* hex digits, no NUL; so is the shard's */
    char shard_id[NODE_ID_LEN];
    uint32_t flags;
    struct clusterNode *primary;  /* of a replica; NULL when unknown */
    str ip, hostname, human_name; /* of the others: our own are what the directives say */
    int port, bus_port, tls_port;
    uint64_t epoch;
    int64_t ping_sent_ms, pong_ms;
    int slot_count;
} clusterNode;

/* Makes a table with one node, this one, whose name is random. Once, when the cluster is enabled. */
void nodesInit(void);
void nodesFree(void);

clusterNode *nodeMyself(void);
int nodeCount(void);
clusterNode *nodeAt(int index);
/* The node of that name, or NULL. */
clusterNode *nodeFind(slice id);
/* Adds a node; the name must be new. */
clusterNode *nodeAdd(const char id[NODE_ID_LEN]);
/* The primary a node belongs to: itself, or the one it copies; NULL when unknown. */
clusterNode *nodePrimaryOf(clusterNode *n);

/* Who serves a slot, NULL for nobody. */
clusterNode *slotOwner(int slot);
/* Whether this node owns it. */
bool slotIsMine(int slot);
void slotSetOwner(int slot, clusterNode *owner);
int slotsAssigned(void);

/* The epochs: of the cluster as far as we have heard, of our last vote. */
uint64_t nodesEpoch(void);
uint64_t nodesVoteEpoch(void);
void nodesSetEpochs(uint64_t current, uint64_t vote);
/* Gives this node an epoch greater than all others, if it has not the greatest. False: it had. */
bool nodesBumpEpoch(void);

/* Whether the cluster serves requests, as worked out by the last nodesJudge(). */
bool nodesAreOk(void);
/* Works it out: all slots covered if that is asked for, most primaries reachable, and some time passed since
 * they were not. */
void nodesJudge(int64_t now_ms);
/* Primaries with slots, at that time. */
int nodesSize(void);

/* Something the configuration file must know has changed. */
void nodesChanged(void);
/* Judges and saves if something has changed; before replies go out. */
void nodesSettle(void);

/* ---- nodes_file.c ---- */

/* Reads the configuration file; false when there is none. ERR_SYNTAX: it is damaged. */
status nodesLoad(const char *path, bool *found, reason *why) MUST_USE;
status nodesSave(const char *path, reason *why) MUST_USE;

/* ---- nodes_text.c ---- */

/* Address, port and bus port others reach a node at. */
slice nodeIp(const clusterNode *n);
slice nodeHostname(const clusterNode *n);
slice nodeHumanName(const clusterNode *n);
int nodePort(const clusterNode *n);
int nodeBusPort(const clusterNode *n);
/* One line, without its end, as CLUSTER NODES shows it or (`for_file`) as the file keeps it. */
void nodeDescribe(str *out, const clusterNode *n, bool for_file);
/* What clients are told to connect to: address or name, as cluster-preferred-endpoint-type says; ptr NULL
 * when they are not told. */
slice nodeEndpoint(const clusterNode *n);

#endif
