/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots, and the nodes that serve them. Main thread only. */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "engine/hooks.h"

extern const feature clusterFeature;
/* Sends requests to the node that serves their slot; armed when the cluster is enabled. */
extern const gate clusterRedirectGate;

/* cluster-enabled, and how many databases a node then has. */
bool clusterIsEnabled(void);
int clusterDatabases(void);

#endif
