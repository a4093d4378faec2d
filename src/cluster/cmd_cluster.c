/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of CLUSTER that report on the cluster, CLUSTER HELP, and READONLY, READWRITE, ASKING.
 * Main thread only. */
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/cluster_report.h"
#include "cluster/cmd_cluster.h"
#include "cluster/endpoint.h"
#include "cluster/open_requests.h"
#include "cluster/procs.h"
#include "cluster/server_map.h"
#include "engine/reply.h"
#include "net/net.h"

bool clusterIsNode(ctx *c) {
    if (clusterIsEnabled()) return true;
    replyError(c, SLICE("ERR This instance has cluster support disabled"));
    return false;
}

/* ------------------------------------------------------------------ reports */

/* CLUSTER MYID. */
void clusterMyidCommand(ctx *c) {
    if (clusterIsNode(c)) replyBulk(c, clusterNodeId(serverMap.myself));
}

/* CLUSTER MYSHARDID. */
void clusterMyshardidCommand(ctx *c) {
    if (clusterIsNode(c)) replyBulk(c, sliceMake(serverMap.myself->shard_id, NODE_ID_LEN));
}

/* CLUSTER NODES. Reply: one line per node. */
void clusterNodesCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    const nodeViewer viewer = endpointViewerOf(c);
    str text = STR_EMPTY;
    for (int i = 0; i < serverMap.node_count; i++) {
        clusterNodeDescribe(&text, &serverMap, serverMap.nodes[i], &viewer);
        strAppendByte(&text, '\n');
    }
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* CLUSTER REPLICAS node-id (and SLAVES). Reply: the lines of the replicas as in CLUSTER NODES. */
void clusterReplicasCommand(ctx *c) {
    hotCheck(c->argc == 3);
    if (!clusterIsNode(c)) return;
    const clusterNode *primary = clusterNodeArg(c);
    if (!primary) return;
    if (primary->flags & NODE_REPLICA) {
        replyError(c, SLICE("ERR The specified node is not a master"));
        return;
    }
    const nodeViewer viewer = endpointViewerOf(c);
    replyArray(c, primary->replica_count);
    for (int i = 0; i < primary->replica_count; i++) {
        str text = STR_EMPTY;
        clusterNodeDescribe(&text, &serverMap, primary->replicas[i], &viewer);
        replyBulk(c, strSlice(&text));
        strFree(&text);
    }
}

void clusterSlavesCommand(ctx *c) { clusterReplicasCommand(c); }

/* CLUSTER INFO. Reply: lines of text. */
void clusterInfoCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    str text = STR_EMPTY;
    clusterPrintInfo(&text);
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* CLUSTER SLOTS. Reply: slot ranges, each with the nodes that serve it. */
void clusterSlotsCommand(ctx *c) {
    if (clusterIsNode(c)) clusterReplySlots(c);
}

/* CLUSTER SHARDS. Reply: shards, each with its slot ranges and nodes. */
void clusterShardsCommand(ctx *c) {
    if (clusterIsNode(c)) clusterReplyShards(c);
}

static const char *const help_lines[] = {
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "MYID",
    "    Return the node id.",
    "MYSHARDID",
    "    Return the node's shard id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port@bus-port[,hostname]> <flags> <primary> <pings> <pongs> <epoch> "
    "<link> <slot> ...",
    "REPLICAS <node-id>",
    "    Return <node-id> replicas.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, primary and replicas IP addresses, ports and ids",
    "SLOT-STATS",
    "    Return an array of slot usage statistics for slots assigned to the current node.",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "ADDSLOTS <slot> [<slot> ...]",
    "    Assign slots to current node.",
    "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Assign slots which are between <start-slot> and <end-slot> to current node.",
    "BUMPEPOCH",
    "    Advance the cluster config epoch.",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return number of failure reports for <node-id>.",
    "DELSLOTS <slot> [<slot> ...]",
    "    Delete slots information from current node.",
    "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Delete slots information which are between <start-slot> and <end-slot> from "
    "current node.",
    "FAILOVER [FORCE|TAKEOVER]",
    "    Promote current replica node to being a master.",
    "FORGET <node-id>",
    "    Remove a node from the cluster.",
    "FLUSHSLOTS",
    "    Delete current node own slots information.",
    "MEET <ip> <port> [<bus-port>]",
    "    Connect nodes into a working cluster.",
    "REPLICATE <node-id>",
    "    Configure current node as replica to <node-id>.",
    "RESET [HARD|SOFT]",
    "    Reset current node (default: soft).",
    "SET-CONFIG-EPOCH <epoch>",
    "    Set config epoch of current node.",
    "SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
    "    Set slot state.",
    "SAVECONFIG",
    "    Force saving cluster configuration on disk.",
    "LINKS",
    "    Return information about all network links between this node and its peers.",
    "    Output format is an array where each array element is a map containing "
    "attributes of a link",
    "MIGRATESLOTS SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id "
    "[SLOTSRANGE start-slot end-slot [start-slot end-slot ...] NODE node-id ...]",
    "    Migrate the specified slot ranges from this node to the specified node.",
    "CANCELSLOTMIGRATIONS ALL",
    "    Cancel all migrations.",
    "GETSLOTMIGRATIONS",
    "    Get information about ongoing and recently finished slot imports and exports.",
    NULL,
};

/* CLUSTER HELP. */
void clusterHelpCommand(ctx *c) {
    if (clusterIsNode(c)) replyHelp(c, help_lines);
}

/* ------------------------------------------------------------------ connections */

str clusterClientOf(const ctx *c) {
    str client = STR_EMPTY;
    (void)netDescribeOrderer(c->who, &client); /* scripts have no connection */
    return client;
}

/* READONLY: permits reads from a replica on this connection. Reply: OK. */
void readonlyCommand(ctx *c) {
    c->who->flags |= SESSION_READONLY;
    replyOk(c);
}

/* READWRITE. Reply: OK. */
void readwriteCommand(ctx *c) {
    c->who->flags &= ~SESSION_READONLY;
    replyOk(c);
}

/* ASKING: the next command, or transaction, is for slots that this node imports. Reply: OK. */
void askingCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    if (!(c->who->flags & SESSION_INTERNAL)) openRequestsAsking(c->who);
    replyOk(c);
}
