/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER INFO, SLOTS, SHARDS. Main thread only. */
#include "cluster/cluster_report.h"

#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_map.h"
#include "engine/reply.h"

/* ------------------------------------------------------------------ INFO */

static int countNodes(uint32_t flag, bool voting) {
    int count = 0;
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        if (voting && !clusterNodeVotes(n)) continue;
        count += (n->flags & flag) != 0;
    }
    return count;
}

void clusterPrintInfo(str *out) {
    const clusterMap *m = &serverMap;
    int maybe = clusterMapCountSlots(m, NODE_MAYBE_FAILED);
    int failed = clusterMapCountSlots(m, NODE_FAILED);
    strAppendFormat(out, "cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\n",
                    serverClusterState.ok ? "ok" : "fail", m->slots_assigned,
                    m->slots_assigned - maybe - failed);
    strAppendFormat(out, "cluster_slots_pfail:%d\r\ncluster_slots_fail:%d\r\n", maybe, failed);
    strAppendFormat(out, "cluster_nodes_pfail:%d\r\ncluster_nodes_fail:%d\r\n",
                    countNodes(NODE_MAYBE_FAILED, false), countNodes(NODE_FAILED, false));
    strAppendFormat(out, "cluster_voting_nodes_pfail:%d\r\ncluster_voting_nodes_fail:%d\r\n",
                    countNodes(NODE_MAYBE_FAILED, true), countNodes(NODE_FAILED, true));
    strAppendFormat(out, "cluster_known_nodes:%d\r\ncluster_size:%d\r\n", m->node_count,
                    serverClusterState.size);
    const clusterNode *primary = clusterNodePrimary(m->myself);
    strAppendFormat(out, "cluster_current_epoch:%llu\r\ncluster_my_epoch:%llu\r\n",
                    (unsigned long long)m->current_epoch,
                    (unsigned long long)(primary ? primary->epoch : 0));
    /* The cluster bus does not exist yet. */
    static const char *const traffic[] = {"stats_messages", "stats_bytes", "stats_pubsub_bytes",
                                          "stats_module_bytes"};
    for (size_t i = 0; i < COUNT_OF(traffic); i++) {
        strAppendFormat(out, "cluster_%s_sent:0\r\ncluster_%s_received:0\r\n", traffic[i],
                        traffic[i]);
    }
    strAppendText(out, "total_cluster_links_buffer_limit_exceeded:0\r\n");
}

/* ------------------------------------------------------------------ SLOTS */

static void replyPair(ctx *c, const char *name, slice value) {
    replyBulkText(c, name);
    replyBulk(c, value);
}

/* Endpoint, port, id, and further addresses of the node. */
static void replyNode(ctx *c, const clusterNode *n) {
    int type = clusterConf.cluster_preferred_endpoint_type;
    slice endpoint = serverMapEndpoint(n), hostname = strSlice(&n->hostname);
    bool tells_ip = type != ENDPOINT_IP, tells_name = type != ENDPOINT_HOSTNAME && hostname.len;
    replyArray(c, 4);
    if (endpoint.ptr) {
        replyBulk(c, endpoint);
    } else {
        replyNull(c);
    }
    replyInteger(c, serverMapPort(n));
    replyBulk(c, clusterNodeId(n));
    replyMap(c, tells_ip + tells_name);
    if (tells_ip) replyPair(c, "ip", strSlice(&n->ip));
    if (tells_name) replyPair(c, "hostname", hostname);
}

/* The last slot of the range that starts at `first` and has one owner. */
static int lastOfRun(int first) {
    int last = first;
    while (last + 1 < SLOT_COUNT && serverMap.owner[last + 1] == serverMap.owner[first]) last++;
    return last;
}

void clusterReplySlots(ctx *c) {
    int64_t count = 0;
    respDeferred head = respDeferBegin(c->out);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!clusterMapOwner(&serverMap, slot)) continue;
        int last = lastOfRun(slot);
        replyArray(c, 3);
        replyInteger(c, slot);
        replyInteger(c, last);
        replyNode(c, clusterMapOwner(&serverMap, slot));
        count++;
        slot = last;
    }
    respDeferEnd(c->out, head, '*', c->proto, count);
}

/* ------------------------------------------------------------------ SHARDS */

static bool isOfShard(const clusterNode *n, const char *shard_id) {
    return memcmp(n->shard_id, shard_id, NODE_ID_LEN) == 0;
}

static void replyShardSlots(ctx *c, const char *shard_id) {
    int64_t count = 0;
    replyBulkText(c, "slots");
    respDeferred head = respDeferBegin(c->out);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const clusterNode *owner = clusterMapOwner(&serverMap, slot);
        if (!owner || !isOfShard(owner, shard_id)) continue;
        replyInteger(c, slot);
        slot = lastOfRun(slot);
        replyInteger(c, slot);
        count += 2;
    }
    respDeferEnd(c->out, head, '*', c->proto, count);
}

/* A replica that was never reached has no data to offer. */
static const char *healthOf(const clusterNode *n) {
    if (n->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) return "fail";
    return n->flags & NODE_PRIMARY ? "online" : "loading";
}

static void replyShardNode(ctx *c, const clusterNode *n) {
    slice endpoint = serverMapEndpoint(n), hostname = strSlice(&n->hostname);
    replyMap(c, hostname.len ? 8 : 7);
    replyPair(c, "id", clusterNodeId(n));
    replyBulkText(c, "port");
    replyInteger(c, serverMapPort(n));
    replyPair(c, "ip", strSlice(&n->ip));
    replyPair(c, "endpoint", endpoint.ptr ? endpoint : SLICE(""));
    if (hostname.len) replyPair(c, "hostname", hostname);
    replyPair(c, "role", n->flags & NODE_PRIMARY ? SLICE("master") : SLICE("replica"));
    replyBulkText(c, "replication-offset");
    replyInteger(c, 0);
    replyPair(c, "health", sliceOf(healthOf(n)));
}

/* True if a node before `index` belongs to the same shard. */
static bool isAlreadyListed(int index) {
    for (int i = 0; i < index; i++) {
        if (isOfShard(serverMap.nodes[i], serverMap.nodes[index]->shard_id)) return true;
    }
    return false;
}

void clusterReplyShards(ctx *c) {
    int64_t count = 0;
    respDeferred shards = respDeferBegin(c->out);
    for (int i = 0; i < serverMap.node_count; i++) {
        if (isAlreadyListed(i)) continue;
        const char *shard_id = serverMap.nodes[i]->shard_id;
        int64_t members = 0;
        replyMap(c, 3);
        replyShardSlots(c, shard_id);
        replyBulkText(c, "nodes");
        respDeferred list = respDeferBegin(c->out);
        for (int primary = 1; primary >= 0; primary--) {
            for (int k = i; k < serverMap.node_count; k++) {
                bool is_primary = serverMap.nodes[k]->flags & NODE_PRIMARY;
                if (!isOfShard(serverMap.nodes[k], shard_id) || is_primary != primary) continue;
                replyShardNode(c, serverMap.nodes[k]);
                members++;
            }
        }
        respDeferEnd(c->out, list, '*', c->proto, members);
        replyPair(c, "id", sliceMake(shard_id, NODE_ID_LEN));
        count++;
    }
    respDeferEnd(c->out, shards, '*', c->proto, count);
}
