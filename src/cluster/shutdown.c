/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHUTDOWN of a node of a cluster. With SAFE a primary that votes refuses to shut down.
 * With FAILOVER the primary orders a replica that has all changes to replace it. The order is a
 * command in the replication stream that names this replica; all replicas receive it. It is the
 * last command of the stream, added after the wait for replicas (repl/shutdown_wait.h) and when
 * nothing can refuse the shutdown any more. So this server is never replaced while it serves. */
#include "cluster/shutdown.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/server_map.h"
#include "repl/role.h"
#include "resp/resp.h"

enum { ORDER_KNOWN_SINCE = 0x090000 }; /* the first version of replicas that knows the order */

typedef struct candidates {
    char chosen[NODE_ID_LEN]; /* the last one that has everything */
    bool found, legacy;
} candidates;

static bool judgePeer(const replPeerInfo *peer, void *arg) {
    candidates *c = arg;
    if (!peer->online) return true;
    if (peer->version && peer->version < ORDER_KNOWN_SINCE) c->legacy = true;
    if (peer->has_all && peer->node_id.len == NODE_ID_LEN) {
        memcpy(c->chosen, peer->node_id.ptr, NODE_ID_LEN);
        c->found = true;
    }
    return true;
}

static void order(const candidates *c) {
    if (c->legacy) {
        logWarning("Unable to perform auto failover on shutdown since there are legacy replicas.");
    } else if (!c->found) {
        logWarning("Unable to find a replica to perform the auto failover on shutdown.");
    } else {
        logNotice("Perform auto failover to replica %.40s on shutdown.", c->chosen);
        const slice words[] = {SLICE("CLUSTER"), SLICE("FAILOVER"), SLICE("FORCE"),
                               SLICE("REPLICAID"), sliceMake(c->chosen, NODE_ID_LEN)};
        size_t len;
        char *bytes = respRequest(COUNT_OF(words), words, &len);
        const slice span = sliceMake(bytes, len);
        replForward(0, &span, 1, 0); /* at once: the command that shuts down does not end */
        memFree(bytes);
    }
}

status clusterBeforeShutdown(uint32_t flags, reason *why) {
    if (!clusterIsEnabled() || !serverMap.myself) return OK;
    if (flags & SHUTDOWN_SAFE && !(flags & SHUTDOWN_FORCE) && clusterNodeVotes(serverMap.myself))
        return reasonSet(why, ERR_DENIED,
                         "This is a voting primary. Shutting down may cause the cluster to go "
                         "down. Can't exit.");
    return OK;
}

void clusterAtExit(uint32_t flags) {
    if (!clusterIsEnabled() || !serverMap.myself) return;
    if (!(flags & SHUTDOWN_FAILOVER) || replIsReplica()) return;
    candidates c = {.found = false};
    replPeersEach(judgePeer, &c);
    order(&c);
}
