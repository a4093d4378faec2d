/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The nodes of the cluster as modules see them, and messages between modules of different nodes.
 * Main thread only. */
#ifndef CLUSTER_PEERS_H
#define CLUSTER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "engine/session.h"

/* The ids of all nodes, this one included, without those whose handshake is not complete; 40
 * characters each. `proc` gets them one by one. No effect without cluster. */
void clusterPeersEach(void (*proc)(slice id, void *arg), void *arg);
/* Number of known nodes; 0 without cluster. */
int clusterPeerCount(void);
/* The id of this node; ptr NULL without cluster. */
slice clusterPeerMyself(void);

typedef struct clusterPeer {
    str ip;           /* owned by the caller */
    slice primary_id; /* of a replica; else empty */
    int port;
    bool myself, primary, replica, maybe_failed, failed, no_failover;
} clusterPeer;
/* What a client should be told of a node; `viewer` NULL: other nodes. False: it is unknown, or its
 * handshake is not complete. */
bool clusterPeerRead(slice id, const session *viewer, clusterPeer *out);

/* Sends a message to a node, or to all with an empty id. False: there is no such node, or no link
 * to it. */
bool clusterPeerSend(slice id, uint64_t module_id, uint8_t type, slice payload);
/* Registers the function that receives what other nodes send; NULL: none. */
typedef void clusterPeerReceiveProc(slice sender_id, uint64_t module_id, uint8_t type,
                                    slice payload);
void clusterPeerSetReceiver(clusterPeerReceiveProc *proc);

/* Until the restart: this node, as a replica, does not take over, or no request is redirected. */
void clusterPeersForbid(bool failover, bool redirection);
bool clusterPeersForbidFailover(void);

#endif
