/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The configuration file of this node, cluster-config-file, and what belongs to it:
 *
 *   nodes.conf       the map; its last line has a checksum
 *   nodes.conf.bak   a copy, written with each save that is flushed to the disk
 *   nodes.conf.old   the text that a start did not use
 *   nodes.conf.lock  locked while the server runs
 *
 * Invariants: epochs, votes and owners of slots are on the disk, in both files, before anything
 * that depends on them is sent, and a node that uses the copy has not lost them. The lock is on a
 * file that is never renamed, so it holds as long as the process. Main thread only. */
#ifndef CLUSTER_SERVER_FILE_H
#define CLUSTER_SERVER_FILE_H

#include "bus/map.h"

/* Takes the lock and reads the file, or its copy, into a new map. *found is false if there is
 * none: the map is not initialised then. *intact: file and copy are equal and complete. */
status serverFileOpen(clusterMap *m, bool *found, bool *intact, reason *why) MUST_USE;
/* Writes the map; `flush`: and its copy, both to the disk. A failure is logged; `why` has the words
 * of the system. */
status serverFileWrite(const clusterMap *m, bool flush, reason *why) MUST_USE;
/* The same, and what cluster-config-save-behavior says about a failure: the process ends, or goes
 * on, and then the next write is flushed if this one had to be. */
void serverFileKeep(const clusterMap *m, bool flush);
/* In a forked child, which must not keep the lock longer than the server. */
void serverFileInChild(void);

#endif
