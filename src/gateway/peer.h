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
/* The reply of a call on a link of its own has come: the link is free again or, if `holder` is not
 * NULL, reserved for `holder`. No effect on shared links. */
void peerRelease(gatewayPeer *p, const void *holder);
/* The link that is reserved for `holder`; NULL: there is none, or it has ended. */
gatewayPeer *peerHeldBy(const void *holder);
/* Closes the link that is reserved for `holder`. */
void peerDrop(const void *holder);
/* Removes the call of that owner from its link, which is closed; NULL: there is none. Only for
 * calls on a link of their own. */
gatewayCall *peerTakeBack(const void *owner);
/* True if the link leads to this node. */
bool peerIs(const gatewayPeer *p, const clusterNode *n);
/* Adds a call; it is sent at the end of the turn. */
void peerAdd(gatewayPeer *p, gatewayCall *c);
/* True if so much waits to be sent that no more should be added. */
bool peerIsFull(const gatewayPeer *p);
/* Writes what has been added. At the end of a turn. */
void peersFlush(void);
/* Closes links of nodes that have failed or are not known any more, and idle ones. */
void peersTick(void);
/* Only the first `count` prefixes of broadcast mode hold: the others have to be told again. */
void peersCutPrefixes(int count);
void peersCloseAll(void);
/* Lines of INFO. */
void peersPrint(str *out);
int peerCount(void);

#endif
