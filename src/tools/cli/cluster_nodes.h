/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The nodes of a cluster as CLUSTER NODES lists them: parsing, searching, printing. No connections
 * are used here. */
#ifndef TOOLS_CLI_CLUSTER_NODES_H
#define TOOLS_CLI_CLUSTER_NODES_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/cli/cluster_slots.h"

enum { NODE_ID_MAX = 40 };

/* A slot that is being moved, and the other node of the move. */
typedef struct openSlot {
    int slot;
    char peer[NODE_ID_MAX + 1];
} openSlot;

typedef struct openSlots {
    openSlot *list;
    int count;
} openSlots;

typedef struct clusterNode {
    char id[NODE_ID_MAX + 1];
    char primary[NODE_ID_MAX + 1]; /* "" for a primary */
    str host, flags;               /* flags without "myself" */
    int port, bus_port;            /* bus_port 0: the default */
    uint64_t epoch;
    bool is_replica;
    bool has_address; /* neither "noaddr" nor "handshake" */
    slotSet slots;
    openSlots migrating, importing;
    int replica_count;          /* set by clusterNodesCountReplicas() */
    struct valkeyContext *link; /* NULL: not connected */
} clusterNode;

/* An array of nodes that it owns. */
typedef struct clusterNodes {
    clusterNode **list;
    int count;
} clusterNodes;

clusterNode *clusterNodeNew(const char *host, int port, int bus_port);
/* Closes the connection, too. Accepts NULL. */
void clusterNodeFree(clusterNode *node);
void clusterNodesAdd(clusterNodes *nodes, clusterNode *node);
void clusterNodesClear(clusterNodes *nodes);

/* Splits "host:port" or "host:port@busport" of the command line; the last colon separates, so that
 * an IPv6 address needs no brackets. Ports are read like Valkey does it, with atoi(). False, and
 * nothing is changed, without a colon. The caller frees `host`. */
bool clusterNodeParseAddress(const char *text, str *host, int *port, int *bus_port);

/* Parses one line of CLUSTER NODES into an empty node; false if it is not valid. */
bool clusterNodeParseLine(slice line, clusterNode *out, bool *is_myself);
/* Parses a reply of CLUSTER NODES. Fills `self`, which keeps its host and port, and appends the
 * others. False if a line is not valid or none is of the node itself. */
bool clusterNodesParse(slice reply, clusterNode *self, clusterNodes *others);
/* Writes which slots belong to which node, equal for equal configurations, with open slots
 * ignored. */
bool clusterNodesSignature(slice reply, str *out);

/* The node whose id begins with `prefix`, ignoring case; `prefix` of the whole length finds the id
 * itself. */
clusterNode *clusterNodesFind(const clusterNodes *nodes, const char *prefix);
/* The node with this id, NULL if there is none. */
clusterNode *clusterNodesFindId(const clusterNodes *nodes, const char *id);
/* Counts the replicas of each primary. */
void clusterNodesCountReplicas(clusterNodes *nodes);

/* The lines that describe a node, each preceded by `indent` blanks. Without `with_slots` of a
 * replica only the primary is printed. */
void clusterNodeDescribe(const clusterNode *node, int indent, bool with_slots, str *out);

#endif
