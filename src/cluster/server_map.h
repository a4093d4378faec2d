/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of this server: connects the map, which knows no files, clock and configuration, with
 * those. Main thread only. */
#ifndef CLUSTER_SERVER_MAP_H
#define CLUSTER_SERVER_MAP_H

#include "bus/cluster_state.h"
#include "bus/map.h"

/* Used only if the cluster is enabled. */
extern clusterMap serverMap;
extern clusterState serverClusterState;

/* Reads the configuration file, or creates a map of this node alone if there is none. */
status serverMapInit(reason *why) MUST_USE;
/* Takes what this node announces from the directives. */
void serverMapAnnounce(void);
/* For the rows of these directives: `apply` of cluster-announce-ip, and of the others. */
status serverMapApplyIp(reason *why);
status serverMapApplyAnnounced(reason *why);
status serverMapSave(reason *why) MUST_USE;
/* If something has changed, updates the state and writes the configuration file. Called before
 * replies are sent. */
void serverMapApplyChanges(void);

#endif
