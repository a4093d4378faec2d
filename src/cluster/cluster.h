/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cluster slots and the nodes that serve them. Main thread only. */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "engine/hooks.h"

extern const feature clusterFeature;
/* Redirects requests to the node that serves their slot; armed if the cluster is enabled. */
extern const gate clusterRedirectGate;
/* Refuses keys of other slots on a connection over which slots are imported; armed for those. */
extern const gate slotImportGate;

/* Whether cluster-enabled is set, and the number of databases in cluster mode. */
bool clusterIsEnabled(void);
int clusterDatabases(void);
/* True if this node is a replica by its configuration file: also one that follows nobody yet, as
 * the address of its primary is not known. */
bool clusterIsReplica(void);
/* To be called at the start when the users have been loaded, and when the dataset has been. */
void clusterAfterUsers(void);
void clusterAfterLoad(void);
/* The process ends, nothing refuses any more: for SHUTDOWN FAILOVER adds an order to a replica to
 * the stream, which is to be sent before the exit. `flags` are those of engine/hooks.h. */
void clusterAtExit(uint32_t flags);

#endif
