/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The interface of the cluster for modules: lists the nodes, reports about them, and sends and
 * receives messages of modules. */
#include "cluster/peers.h"

#include "base/base.h"
#include "bus/map.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/endpoint.h"
#include "cluster/held_messages.h"
#include "cluster/peers_priv.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"

static struct {
    clusterPeerReceiveProc *receive;
    bool no_failover;
} peers;

static bool isComplete(const clusterNode *n) { return !(n->flags & NODE_HANDSHAKE); }
static slice idOf(const clusterNode *n) { return sliceMake(n->id, NODE_ID_LEN); }

void clusterPeersEach(void (*proc)(slice id, void *arg), void *arg) {
    if (!clusterIsEnabled()) return;
    for (int i = 0; i < serverMap.node_count; i++) {
        if (isComplete(serverMap.nodes[i])) proc(idOf(serverMap.nodes[i]), arg);
    }
}

int clusterPeerCount(void) { return clusterIsEnabled() ? serverMap.node_count : 0; }

slice clusterPeerMyself(void) {
    if (!clusterIsEnabled()) return sliceMake(NULL, 0);
    return idOf(serverMap.myself);
}

/* The node, or NULL. */
static clusterNode *find(slice id) {
    if (!clusterIsEnabled() || id.len != NODE_ID_LEN) return NULL;
    clusterNode *n = clusterMapFind(&serverMap, id);
    return n && isComplete(n) ? n : NULL;
}

bool clusterPeerRead(slice id, const session *viewer, clusterPeer *out) {
    const clusterNode *n = find(id);
    if (!n) return false;
    nodeViewer as = viewer ? endpointViewer(viewer) : (nodeViewer){.tls = false};
    hotCheck(n->flags & (NODE_PRIMARY | NODE_REPLICA));
    *out = (clusterPeer){.ip = strNew(viewer ? clusterNodeIpFor(n, &as) : strSlice(&n->ip)),
                         .primary_id = n->primary ? idOf(n->primary) : SLICE(""),
                         .port = clusterNodePortFor(n, &as),
                         .myself = n == serverMap.myself,
                         .primary = n->flags & NODE_PRIMARY,
                         .replica = n->flags & NODE_REPLICA,
                         .maybe_failed = n->flags & NODE_MAYBE_FAILED,
                         .failed = n->flags & NODE_FAILED,
                         .no_failover = n->flags & NODE_NO_FAILOVER};
    return true;
}

/* ------------------------------------------------------------------ messages */

bool clusterPeerSend(slice id, uint64_t module_id, uint8_t type, slice payload) {
    if (!clusterIsEnabled()) return false;
    const clusterNode *to = id.len ? find(id) : NULL;
    if (id.len && !to) return false;
    hotCheck(to != serverMap.myself || id.len);
    return heldMessageSend(to, module_id, type, payload);
}

void clusterPeerSetReceiver(clusterPeerReceiveProc *proc) { peers.receive = proc; }

void peersReceived(const clusterNode *from, uint64_t module_id, uint8_t type, slice payload) {
    hotCheck(clusterIsEnabled());
    if (peers.receive) peers.receive(idOf(from), module_id, type, payload);
}

/* ------------------------------------------------------------------ prohibitions */

void clusterPeersForbid(bool failover, bool redirection) {
    hotCheck(threadIsMain());
    if (!clusterIsEnabled()) return;
    if (failover) {
        peers.no_failover = true;
        serverBusTakeRules();
    }
    if (redirection) gateArm(&clusterRedirectGate, false);
}

bool clusterPeersForbidFailover(void) { return peers.no_failover; }
