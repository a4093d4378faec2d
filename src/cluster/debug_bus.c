/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of the bus for DEBUG and INFO (engineClusterProcs): the number of links, and switches
 * for tests. Main thread only. */
#include "cluster/debug_bus.h"

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/slot_migration.h"
#include "engine/lifecycle.h"
#include "net/net.h"

static void dropMessages(int64_t type) {
    bool known = type >= BUS_DROP_ALL && type < MESSAGE_TYPES;
    serverBus.dropped_type = known ? (int)type : MESSAGE_TYPES; /* none has that type */
}

static void closeAtDrop(bool on) { serverBus.drop_closes = on; }
static void setReconnects(bool on) { serverBus.never_reconnects = !on; }
static void setRandomPings(bool on) { serverBus.never_pings_random = !on; }

static status killLinks(slice node_id, bool to, bool from) {
    clusterNode *n = clusterMapFind(&serverMap, node_id);
    if (!n) return ERR_NOT_FOUND;
    if (n == serverMap.myself) return ERR_DENIED;
    if (to && n->links && n->links->to) busDrop(&serverBus, n->links->to);
    if (from && n->links && n->links->from) busDrop(&serverBus, n->links->from);
    return OK;
}

static bool replicaPriority(slice node_id, int *out) {
    const clusterNode *n = clusterMapFind(&serverMap, node_id);
    if (n) *out = n->replica_priority;
    return n != NULL;
}

static void describeNodes(str *out) {
    const nodeViewer viewer = {.tls = netTlsForCluster()};
    for (int i = 0; i < serverMap.node_count; i++) {
        clusterNodeDescribe(out, &serverMap, serverMap.nodes[i], &viewer);
        strAppendByte(out, '\n');
    }
}

/* As in Valkey: two to each other node, also while they are in the making. */
static int expectedLinks(void) {
    check(serverMap.node_count > 0);
    return 2 * (serverMap.node_count - 1);
}

static const engineClusterProcs procs = {.links = expectedLinks,
                                         .describe = describeNodes,
                                         .links_memory = serverBusMemory,
                                         .drop_messages = dropMessages,
                                         .close_at_drop = closeAtDrop,
                                         .set_reconnects = setReconnects,
                                         .set_random_pings = setRandomPings,
                                         .kill_links = killLinks,
                                         .replica_priority = replicaPriority,
                                         .slot_links_memory = slotMigrationMemory,
                                         .answer = clusterAnswerNodes,
                                         .hold_slots = slotMigrationHold,
                                         .hold_saves = serverMapHoldSaves};

void debugBusInit(void) {
    check(serverBus.map);
    engineSetClusterProcs(&procs);
}
