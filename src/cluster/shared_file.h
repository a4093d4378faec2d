/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file of shared users and functions: that of the map with the suffix ".shared"
 * (nodes.conf.shared), which only its owner can read, as it contains hashes of passwords. It is
 * replaced as a whole by the thread that writes nodes.conf. No reply waits for that: a change is on
 * the other nodes, too, and one that is lost with this node and before it was sent was never in
 * effect elsewhere. Main thread only. */
#ifndef CLUSTER_SHARED_FILE_H
#define CLUSTER_SHARED_FILE_H

#include "bus/shared_state.h"

/* Reads the file into an empty state. A file that is damaged is kept aside as ".shared.old", and
 * the state stays empty. */
void sharedFileRead(sharedState *s);
/* Writes the state, now or when the save that runs has ended. */
void sharedFileSave(const sharedState *s);
/* Writes it and waits for that. */
void sharedFileSaveNow(const sharedState *s);

#endif
