/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How logs and reports name a replica. */
#ifndef PSYNC_PRIMARY_PEER_H
#define PSYNC_PRIMARY_PEER_H

#include "psync/primary.h"

/* The replica's "host:port" in `name`, which the caller frees. */
const char *primaryPeerName(const replPrimary *p, const replPeer *peer, str *name);

#endif
