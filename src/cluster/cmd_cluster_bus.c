/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of CLUSTER that act on other nodes through the bus: MEET, REPLICATE, FAILOVER, LINKS.
 * Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "bus/open_slots.h"
#include "cluster/cluster_priv.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "engine/reply.h"
#include "io/net_addr.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "repl/role.h"
#include "store/store.h"

/* ------------------------------------------------------------------ MEET */

/* A port that is an argument. False: the error was replied. */
static bool portArg(ctx *c, int at, bool bus, int *out) {
    int64_t port;
    if (!numberParseInt(c->argv[at], &port)) {
        replyErrorFormat(c, "ERR Invalid %s port specified: %.*s", bus ? "bus" : "base",
                         (int)c->argv[at].len, c->argv[at].ptr);
        return false;
    }
    if (port <= 0 || port > CONFIG_PORT_MAX) {
        replyErrorFormat(c, "ERR %s number is out of range", bus ? "Cluster bus port" : "Port");
        return false;
    }
    *out = (int)port;
    return true;
}

/* CLUSTER MEET ip port [bus-port]: begins a handshake with a node. Reply: OK. */
void clusterMeetCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    int port, bus_port;
    if (!clusterIsNode(c)) return;
    if (c->argc > 5) {
        replyErrorSubcommand(c);
        return;
    }
    if (!portArg(c, 3, false, &port)) return;
    bus_port = port + CLUSTER_BUS_PORT_OFFSET;
    if (c->argc == 5 && !portArg(c, 4, true, &bus_port)) return;
    if (bus_port > CONFIG_PORT_MAX) {
        replyError(c, SLICE("ERR Cluster bus port number is out of range"));
        return;
    }
    str ip = strNew(c->argv[2]);
    bool valid = ip.len < NODE_IP_MAX && netAddrIsValid(strText(&ip));
    if (valid) {
        (void)busMeet(&serverBus, strSlice(&ip), port, bus_port, serverBusNowMs()); /* or has */
        str client = clusterClientOf(c);
        logNotice("Cluster meet %s:%d (user request from '%s').", strText(&ip), port,
                  strText(&client));
        strFree(&client);
        replyOk(c);
    } else {
        replyErrorFormat(c, "ERR Invalid node address specified: %s:%d", strText(&ip), port);
    }
    strFree(&ip);
}

/* ------------------------------------------------------------------ REPLICATE */

/* This node becomes a primary without data in a shard of its own. */
static void followNoOne(ctx *c) {
    char shard_id[NODE_ID_LEN];
    clusterNode *myself = serverMap.myself;
    if (myself->flags & NODE_REPLICA) {
        str client = clusterClientOf(c);
        logNotice("Stop replication and turning myself into empty primary (request from '%s').",
                  strText(&client));
        strFree(&client);
        clusterMapMakePrimary(&serverMap, myself);
        openSlotsClear(&serverMap);
        randomHex(shard_id, NODE_ID_LEN);
        clusterMapSetShard(&serverMap, myself, shard_id);
        logNotice("Moving myself to a new shard %.40s.", shard_id);
        serverRoleEmpty();
        serverRoleChanged();
        pubsubSlotsChanged(serverRoleServes);
    }
    replyOk(c);
}

/* CLUSTER REPLICATE node-id | NO ONE: changes the role of this node. Reply: OK. */
void clusterReplicateCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    if (!clusterIsNode(c)) return;
    const clusterNode *myself = serverMap.myself;
    if (c->argc == 4 && ctxArgIs(c, 2, "no") && ctxArgIs(c, 3, "one")) {
        followNoOne(c);
        return;
    }
    if (c->argc != 3) {
        replyErrorSubcommand(c);
        return;
    }
    clusterNode *n = clusterNodeArg(c);
    if (!n) return;
    if (n == myself) {
        replyError(c, SLICE("ERR Can't replicate myself"));
    } else if (n->flags & NODE_REPLICA) {
        replyError(c, SLICE("ERR I can only replicate a master, not a replica."));
    } else if (myself->flags & NODE_PRIMARY &&
               (myself->slot_count || keyspaceKeyCount(keyspaceMain()))) {
        replyError(c,
                   SLICE("ERR To set a master the node must be empty and without assigned slots."));
    } else {
        if (myself->primary != n) {
            busFollow(&serverBus, n, serverBusNowMs());
            pubsubSlotsChanged(serverRoleServes);
        }
        serverRoleOrdered();
        replyOk(c);
    }
}

/* ------------------------------------------------------------------ FAILOVER */

/* The options; false: the error was replied. FORCE REPLICAID comes from a primary that shuts down:
 * all of its replicas receive it, and it is for one of them. */
static bool parseFailover(ctx *c, manualOrder *order, bool *for_other) {
    *order = MANUAL_PLAIN;
    *for_other = false;
    if (c->argc == 5 && c->origin == ORIGIN_PRIMARY && ctxArgIs(c, 2, "force") &&
        ctxArgIs(c, 3, "replicaid")) {
        *order = MANUAL_FORCE_BY_PRIMARY;
        *for_other = !sliceEqual(c->argv[4], clusterNodeId(serverMap.myself));
        return true;
    }
    for (int i = 2; i < c->argc; i++) {
        if (ctxArgIs(c, i, "takeover")) {
            *order = MANUAL_TAKEOVER;
        } else if (ctxArgIs(c, i, "force")) {
            if (*order == MANUAL_PLAIN) *order = MANUAL_FORCE;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* Refuses CLUSTER FAILOVER if the data of this replica are known to differ. True: the error was
 * replied. Elections that no user has ordered are not checked. */
static bool refusesFailover(ctx *c) {
    str why = STR_EMPTY;
    bool refuses = replRefusesPromotion(&why);
    if (refuses)
        replyErrorFormat(c, "DIVERGED %s. CLUSTER FAILOVER FORCE does it nevertheless",
                         strText(&why));
    strFree(&why);
    return refuses;
}

/* CLUSTER FAILOVER [FORCE|TAKEOVER]: this replica replaces its primary. Reply: OK when it has
 * begun. */
void clusterFailoverCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    manualOrder order;
    bool for_other;
    if (!clusterIsNode(c) || !parseFailover(c, &order, &for_other)) return;
    if (order == MANUAL_PLAIN && refusesFailover(c)) return;
    const char *error = NULL;
    if (!for_other) {
        str client = clusterClientOf(c);
        serverBusTakeRules();
        error = busFailover(&serverBus, order, strSlice(&client), serverBusNowMs());
        strFree(&client);
    }
    if (error && order != MANUAL_FORCE_BY_PRIMARY) { /* nobody reads replies to the stream */
        replyErrorFormat(c, "ERR %s", error);
    } else {
        replyOk(c);
    }
}

/* ------------------------------------------------------------------ LINKS */

typedef struct linkReplies {
    ctx *c;
    int count;
} linkReplies;

/* NULL: none. */
static void replyLink(linkReplies *r, const busLink *l) {
    if (!l) return;
    r->count++;
    replyMap(r->c, 6);
    replyBulkText(r->c, "direction");
    replyBulkText(r->c, l->is_inbound ? "from" : "to");
    replyBulkText(r->c, "node");
    replyBulk(r->c, clusterNodeId(l->node));
    replyBulkText(r->c, "create-time");
    replyInteger(r->c, l->created_ms);
    replyBulkText(r->c, "events");
    replyBulkText(r->c, l->unsent ? "rw" : "r");
    replyBulkText(r->c, "send-buffer-allocated");
    replyInteger(r->c, (int64_t)l->allocated);
    replyBulkText(r->c, "send-buffer-used");
    replyInteger(r->c, (int64_t)l->unsent);
}

/* CLUSTER LINKS. Reply: of each other node the connection to it, then that from it. */
void clusterLinksCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    linkReplies r = {.c = c};
    respDeferred head = respDeferBegin(c->out);
    for (int i = 1; i < serverMap.node_count; i++) {
        const nodeLinks *links = serverMap.nodes[i]->links;
        if (!links) continue;
        replyLink(&r, links->to);
        replyLink(&r, links->from);
    }
    respDeferEnd(c->out, head, '*', c->proto, r.count);
}
