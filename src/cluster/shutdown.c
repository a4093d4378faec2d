/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHUTDOWN SAFE is refused by a primary that votes. SHUTDOWN FAILOVER orders a replica that has
 * everything to replace this primary, by a command in the stream of replication, which all replicas
 * receive and which names the one. The wait for replicas (repl/shutdown_wait.h) comes before it and
 * after it, so the order has arrived when this server ends. */
#include "cluster/shutdown.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/server_map.h"
#include "engine/propagate.h"
#include "repl/role.h"

enum { ORDER_KNOWN_SINCE = 0x090000 }; /* the first version of replicas that knows the order */

typedef struct candidates {
    char chosen[NODE_ID_LEN]; /* the last one that has everything */
    bool found, lagging, legacy;
} candidates;

static bool judgePeer(const replPeerInfo *peer, void *arg) {
    candidates *c = arg;
    if (!peer->online) return true;
    if (peer->version && peer->version < ORDER_KNOWN_SINCE) c->legacy = true;
    if (peer->offset != replOffset()) {
        c->lagging = true;
    } else if (peer->node_id.len == NODE_ID_LEN) {
        memcpy(c->chosen, peer->node_id.ptr, NODE_ID_LEN);
        c->found = true;
    }
    return true;
}

/* False: there is none. */
static bool order(const candidates *c) {
    if (c->legacy) {
        logWarning("Unable to perform auto failover on shutdown since there are legacy replicas.");
    } else if (!c->found) {
        logWarning("Unable to find a replica to perform the auto failover on shutdown.");
    } else {
        logNotice("Perform auto failover to replica %.40s on shutdown.", c->chosen);
        const slice words[] = {SLICE("CLUSTER"), SLICE("FAILOVER"), SLICE("FORCE"),
                               SLICE("REPLICAID"), sliceMake(c->chosen, NODE_ID_LEN)};
        propagateUnitBegin();
        propagateCopy((propagateTo){.db_id = 0, .targets = PROPAGATE_REPLICAS, .slot = -1},
                      COUNT_OF(words), words);
        propagateUnitEnd();
        return true;
    }
    return false;
}

status clusterBeforeShutdown(uint32_t flags, reason *why) {
    static bool is_ordered;
    if (!clusterIsEnabled() || !serverMap.myself) return OK;
    if (flags & SHUTDOWN_SAFE && !(flags & SHUTDOWN_FORCE) && clusterNodeVotes(serverMap.myself))
        return reasonSet(why, ERR_DENIED,
                         "This is a voting primary. Shutting down may cause the cluster to go "
                         "down. Can't exit.");
    if (replIsReplica()) is_ordered = false; /* an earlier shutdown was aborted after the order */
    if (!(flags & SHUTDOWN_FAILOVER) || replIsReplica() || is_ordered) return OK;
    candidates c = {.found = false};
    replPeersEach(judgePeer, &c);
    if (c.lagging && !(flags & SHUTDOWN_NOW)) return OK; /* called again when they have caught up */
    is_ordered = true;
    /* The order is in the stream after the present command; only then replicas lag. */
    return order(&c) && !(flags & SHUTDOWN_NOW) ? ERR_AGAIN : OK;
}
