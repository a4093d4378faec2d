/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owners of slots, for folders that send requests to them. Nodes are borrowed until the end of
 * the turn. To be called only if the cluster is enabled. Main thread only. */
#ifndef CLUSTER_OWNERS_H
#define CLUSTER_OWNERS_H

#include "bus/map.h"

/* The node that serves a slot as this node knows it; NULL: there is none, or it has failed, or this
 * node is in a state in which it must not say (CLUSTERDOWN). */
const clusterNode *clusterOwner(int slot);
/* True if requests on the slot are executed here, without looking where its keys are. */
bool clusterServesSlot(int slot);
/* True if this node, or the one that it replicates, has the slot: messages of its shard channels
 * come here. */
bool clusterSharesSlot(int slot);
bool clusterIsMyself(const clusterNode *n);
/* The node with that id; NULL: it is not known. */
const clusterNode *clusterNodeOfId(slice id);
/* The node that clients reach at that host, an address or a name, and port; NULL: none. */
const clusterNode *clusterNodeAt(slice host, int port);
/* The primaries with slots; stores at most `max`, returns their number. */
int clusterOwners(const clusterNode **out, int max);
/* The primary with slots of a shard; NULL: there is none. */
const clusterNode *clusterOwnerOfShard(slice shard_id);
/* The other nodes, primaries and replicas, that are not marked as failed, and that this node does
 * not suspect either; stores at most `max`, returns their number. */
int clusterOthers(const clusterNode **out, int max);
/* The literal address of a node for connections of this one; NULL: it is being looked up, ask
 * again. Valid until the next call. */
const char *clusterNodeAddress(const clusterNode *n);
/* A short text of which the slot is that of "{text}"; borrowed for ever. */
slice clusterSlotTag(int slot);
/* True if nodes tell each other of changes of functions: cluster-shared-functions. */
bool clusterSharesFunctions(void);
/* cluster-bus-secret; empty: none. Borrowed until the configuration changes. */
slice clusterSecret(void);

#endif
