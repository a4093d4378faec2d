/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The owners of slots, for folders that send requests to them (owners.h). Main thread only. */
#include "cluster/owners.h"

#include "cluster/bus_names.h"
#include "cluster/cluster_priv.h"
#include "cluster/scan_cursor.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "cluster/shared_state.h"

const clusterNode *clusterOwner(int slot) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    const clusterNode *owner = serverClusterState.ok ? clusterMapOwner(&serverMap, slot) : NULL;
    return owner && owner->flags & NODE_FAILED ? NULL : owner;
}

bool clusterServesSlot(int slot) {
    return serverClusterState.ok && clusterMapIsSettled(&serverMap, slot);
}

bool clusterSharesSlot(int slot) { return serverRoleServes(slot); }

bool clusterIsMyself(const clusterNode *n) { return n == serverMap.myself; }

const clusterNode *clusterNodeOfId(slice id) { return clusterMapFind(&serverMap, id); }

static bool isAt(const clusterNode *n, slice host, int port) {
    if (port != n->tcp_port && port != n->tls_port && port != n->client_tcp_port &&
        port != n->client_tls_port)
        return false;
    const str *names[] = {&n->ip, &n->hostname, &n->client_ipv4, &n->client_ipv6};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i]->len && sliceEqual(strSlice(names[i]), host)) return true;
    return false;
}

const clusterNode *clusterNodeAt(slice host, int port) {
    for (int i = 0; port > 0 && i < serverMap.node_count; i++)
        if (isAt(serverMap.nodes[i], host, port)) return serverMap.nodes[i];
    return NULL;
}

int clusterOwners(const clusterNode **out, int max) {
    int count = 0;
    for (int i = 0; i < serverMap.node_count; i++) {
        if (!clusterNodeVotes(serverMap.nodes[i])) continue;
        if (count < max) out[count] = serverMap.nodes[i];
        count++;
    }
    return count;
}

int clusterOthers(const clusterNode **out, int max) {
    int count = 0;
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        const uint32_t gone = NODE_FAILED | NODE_MAYBE_FAILED | NODE_HANDSHAKE | NODE_NO_ADDRESS;
        if (n == serverMap.myself || n->flags & gone) continue;
        if (count < max) out[count] = n;
        count++;
    }
    return count;
}

const char *clusterNodeAddress(const clusterNode *n) {
    if (clusterIsMyself(n) && !n->ip.len) return "127.0.0.1";
    return busNameAddress(strText(&n->ip), serverBusNowMs());
}

slice clusterSlotTag(int slot) { return scanTag(slot); }

const clusterNode *clusterOwnerOfShard(slice shard_id) {
    check(shard_id.len == NODE_ID_LEN);
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        if (clusterNodeVotes(n) && memcmp(n->shard_id, shard_id.ptr, NODE_ID_LEN) == 0) return n;
    }
    return NULL;
}

bool clusterSharesFunctions(void) { return sharedAnnouncesFunctions(); }

slice clusterSecret(void) { return sliceOf(clusterConf.cluster_bus_secret); }
