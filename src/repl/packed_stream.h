/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of replication, compressed for one replica (repl-compression): a head, then a frame
 * that ends with the connection. The backlog and all offsets are those of the plain stream. Main
 * thread only. */
#ifndef REPL_PACKED_STREAM_H
#define REPL_PACKED_STREAM_H

#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"
#include "psync/primary.h"

/* The environment's functions for replicas with a codec. Without memory the replica is closed. */
void packedStreamAdd(replPeer *to, slice bytes);
void packedStreamSend(replPeer *to);
/* Appends the fields of the line of INFO about a replica; nothing if its codec is PEER_PLAIN. */
void packedStreamPrintInfo(const replPeer *peer, str *out);
/* Appends the sums of all replicas since the last reset. */
void packedStreamPrintTotals(str *out);
void packedStreamResetTotals(void);

#endif
