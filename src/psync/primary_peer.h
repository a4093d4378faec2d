/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How logs and reports name a replica, and which connections are replicas. */
#ifndef PSYNC_PRIMARY_PEER_H
#define PSYNC_PRIMARY_PEER_H

#include "psync/primary.h"

/* The replica's "host:port" in `name`, which the caller frees. */
const char *primaryPeerName(const replPrimary *p, const replPeer *peer, str *name);
/* False for a reader that stores the stream elsewhere (REPLCONF backup 1). It gets all that a
 * replica gets, and nothing depends on it: it confirms no writes, is no target of a failover, and
 * neither counts nor is listed. */
static inline bool peerIsReplica(const replPeer *peer) { return !peer->is_backup; }
/* Number of replicas in any state. */
size_t primaryReplicaCount(const replPrimary *p);

#endif
