/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links to other nodes: one per node, opened when it is needed. Requests of a turn leave in one
 * write; replies come in the order of the requests. Main thread only. */
#ifndef GATEWAY_PEER_H
#define GATEWAY_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "bus/map.h"
#include "gateway/call.h"

/* The link to a node, which is opened if there is none; NULL: it cannot be reached now. */
gatewayPeer *peerTo(const clusterNode *n);
/* A link to a node that no other call uses, until peerRelease(); NULL: it cannot be reached, or
 * there are PEERS_ALONE_MAX such links to it. */
enum { PEERS_ALONE_MAX = 256 };
gatewayPeer *peerAlone(const clusterNode *n);
/* The reply of a call has come: a link of its own is free again, or is `holder`'s from now on. No
 * effect on other links. */
void peerRelease(gatewayPeer *p, const void *holder);
/* The link that is held by `holder`; NULL: it has ended, or there is none. */
gatewayPeer *peerHeldBy(const void *holder);
/* Ends it. */
void peerDrop(const void *holder);
/* Takes the call with that owner from its link, which is for one call and ends; NULL: there is
 * none. */
gatewayCall *peerTakeBack(const void *owner);
/* True if the node is that of the link. */
bool peerIs(const gatewayPeer *p, const clusterNode *n);
/* Adds a call; it is sent at the end of the turn. */
void peerAdd(gatewayPeer *p, gatewayCall *c);
/* True if so much waits to be sent that no more should be added. */
bool peerIsFull(const gatewayPeer *p);
/* Writes what has been added. At the end of a turn. */
void peersFlush(void);
/* Closes links of nodes that have failed or are not known any more, and idle ones. */
void peersTick(void);
void peersCloseAll(void);
/* Lines of INFO. */
void peersPrint(str *out);
int peerCount(void);

#endif
