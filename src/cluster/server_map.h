/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of this server: connects the map, which knows no files, clock and configuration, with
 * those. Main thread only. */
#ifndef CLUSTER_SERVER_MAP_H
#define CLUSTER_SERVER_MAP_H

#include "bus/cluster_state.h"
#include "bus/map.h"
#include "bus/map_saves.h"

/* Used only if the cluster is enabled. */
extern clusterMap serverMap;
extern clusterState serverClusterState;
extern mapSaves serverMapSaves;

/* Reads the configuration file, or creates a map of this node alone if there is none. */
status serverMapInit(reason *why) MUST_USE;
/* Takes what this node announces from the directives. */
void serverMapAnnounce(void);
/* For the rows of these directives: `apply` of cluster-announce-ip, and of the others. */
status serverMapApplyIp(reason *why);
status serverMapApplyAnnounced(reason *why);
/* Writes the configuration file, and waits for that. */
status serverMapSave(reason *why) MUST_USE;
/* Called after a cause of changes for which no client waits: messages of the bus, periodic jobs.
 * They are saved by a thread, and only what depends on them waits (bus/map_saves.h). */
void serverMapNote(void);
/* Called before such a cause: what has changed so far, commands have, and their replies wait. */
void serverMapNoteOrders(void);
/* Begins the save that is due, if none runs. */
void serverMapBeginSave(void);
/* For tests: saves do not begin, but for those that the server waits for. */
void serverMapHoldSaves(bool on);
/* Saves what has changed. If commands have changed something, the whole server waits until it is in
 * the file; `ordered`: what serverMapNote() was not called for is such a change. Called before
 * replies are sent. */
void serverMapApplyChanges(bool ordered);

#endif
