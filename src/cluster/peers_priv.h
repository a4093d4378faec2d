/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bus of this server passes this to peers.c. Main thread only. */
#ifndef CLUSTER_PEERS_PRIV_H
#define CLUSTER_PEERS_PRIV_H

#include "base/slice.h"
#include "bus/map.h"

/* A message for a module has arrived. */
void peersReceived(const clusterNode *from, uint64_t module_id, uint8_t type, slice payload);

#endif
