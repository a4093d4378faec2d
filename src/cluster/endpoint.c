/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses the host that a redirection names to a client, by its connection and by
 * cluster-preferred-endpoint-type.
 *
 * Invariant: a command that a script or a module calls is redirected for the client that has sent
 * the outermost command. */
#include "cluster/endpoint.h"

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "net/net.h"

nodeViewer endpointViewerOf(const ctx *c) {
    while (c->outer) c = c->outer;
    return endpointViewer(c->who);
}

nodeViewer endpointViewer(const session *who) {
    check(who);
    if (who->flags & SESSION_INTERNAL) return (nodeViewer){.tls = netTlsForCluster()};
    str peer = STR_EMPTY;
    sessionPeer(who, &peer);
    nodeViewer viewer = {.tls = netIsTls(who), .ipv6 = peer.len && strText(&peer)[0] == '['};
    strFree(&peer);
    if (!serverMap.myself->ip.len) netLocalIp(who, viewer.own_ip, sizeof(viewer.own_ip));
    return viewer;
}

slice endpointHost(const clusterNode *n, const nodeViewer *viewer) {
    switch (clusterConf.cluster_preferred_endpoint_type) {
    case ENDPOINT_HOSTNAME: return n->hostname.len ? strSlice(&n->hostname) : SLICE("?");
    case ENDPOINT_UNKNOWN: return (slice){NULL, 0};
    default: return clusterNodeIpFor(n, viewer);
    }
}
