/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How nodes exchange what they share. The messages are those of a module (bus/message.h) with an id
 * that no module has, so nodes of Valkey ignore them; they are sent only to nodes that have told
 * that they share, and only over proven links.
 *
 *   DIGEST   every second: the digest of the sender's state. If it is that of the receiver,
 *            that is all
 *   SUMMARY  to the sender of another digest: the hashes of all entries
 *   ENTRIES  entries that the summary does not list; also sent to all when a command has changed
 *            them
 *   END      all entries that the summary lacked were sent
 *
 * Each node asks one other at a time. A content is sent in messages of at most 64 KB; what was cut
 * or lost is asked for after the next digest. Main thread only. */
#ifndef CLUSTER_SHARED_LINK_H
#define CLUSTER_SHARED_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "bus/map.h"
#include "bus/shared_state.h"

/* The eight characters "FWshared". */
#define SHARED_MODULE_ID UINT64_C(0x6465726168735746)

/* A message has arrived on a proven link. */
void sharedLinkReceived(clusterNode *from, uint8_t type, slice payload);
/* Sends an entry to all nodes that share. */
void sharedLinkPush(const sharedEntry *e);
/* Sends the digest to those that it is due for. */
void sharedLinkTick(int64_t now_ms);
/* True if a node that works, or of which nothing is known so far, may have what this one lacks. */
bool sharedLinkIsBehind(void);
/* Drops the parts of incomplete contents, and which nodes have answered so far. */
void sharedLinkForget(void);

#endif
