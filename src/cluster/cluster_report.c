/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the replies to CLUSTER INFO, CLUSTER SLOTS and CLUSTER SHARDS. Main thread only. */
#include "cluster/cluster_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bus/election.h"
#include "bus/voters.h"
#include "cluster/cluster_priv.h"
#include "cluster/endpoint.h"
#include "cluster/server_bus.h"
#include "cluster/server_file.h"
#include "cluster/server_map.h"
#include "cluster/shared_state.h"
#include "engine/reply.h"
#include "repl/role.h"

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

static void printMessages(str *out, const uint64_t *counts, const char *direction) {
    uint64_t sum = 0;
    for (int type = 0; type < MESSAGE_TYPES; type++) {
        sum += counts[type];
        if (counts[type])
            strAppendFormat(out, "cluster_stats_messages_%s_%s:%llu\r\n",
                            messageTypeName((unsigned)type), direction,
                            (unsigned long long)counts[type]);
    }
    strAppendFormat(out, "cluster_stats_messages_%s:%llu\r\n", direction, (unsigned long long)sum);
}

static void printTraffic(str *out) {
    const busCounts *counts = &serverBus.counts;
    printMessages(out, counts->sent, "sent");
    printMessages(out, counts->received, "received");
    const struct {
        const char *name;
        uint64_t sent, received;
    } bytes[] = {{"bytes", serverBusSentBytes(), counts->bytes_received},
                 {"pubsub_bytes", counts->pubsub_sent, counts->pubsub_received},
                 {"module_bytes", counts->module_sent, counts->module_received}};
    for (size_t i = 0; i < COUNT_OF(bytes); i++)
        strAppendFormat(out, "cluster_stats_%s_sent:%llu\r\ncluster_stats_%s_received:%llu\r\n",
                        bytes[i].name, (unsigned long long)bytes[i].sent, bytes[i].name,
                        (unsigned long long)bytes[i].received);
    strAppendField(out, "total_cluster_links_buffer_limit_exceeded", serverBusLimitExceeded());
}

static void countLink(void *arg, const busLink *l) {
    int *counts = arg;
    if (l->node && l->is_open) counts[l->is_inbound]++;
}

static void printSaves(str *out) {
    bool failed;
    int64_t at_s = serverFileSavedAt(&failed);
    strAppendFormat(out, "cluster_config_save_status:%s\r\ncluster_config_last_save_time:%lld\r\n",
                    failed ? "err" : "ok", (long long)at_s);
}

/* While replicas vote, or are to. */
static void printVoters(str *out) {
    static const char *const rules[VOTER_RULES] = {
        [VOTERS_OWNERS] = "owners", [VOTERS_BOTH] = "both", [VOTERS_ALL] = "all"};
    const voterSet *set = &serverMap.voters;
    int count = 0;
    if (!clusterConf.bus.replicas_vote && set->rule == VOTERS_OWNERS) return;
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        count += !n->is_member && clusterNodeIsVoter(&serverMap, n);
    }
    strAppendFormat(out, "cluster_voters:%d\r\ncluster_voters_rule:%s\r\n", count + set->count,
                    rules[set->rule]);
}

/* With replication-quorum: the replicas that have none although their primaries have. */
static void printLacking(str *out) {
    const char *before = "";
    if (!serverMap.myself->stream) return;
    strAppendText(out, "cluster_nodes_without_quorum:");
    for (int i = 0; i < serverMap.node_count; i++) {
        const clusterNode *n = serverMap.nodes[i];
        if (!electionLacksQuorum(&serverMap, n)) continue;
        strAppendText(out, before);
        strAppend(out, n->id, NODE_ID_LEN);
        before = ",";
    }
    strAppendText(out, "\r\n");
}

/* Prints fields that Valkey does not have. */
static void printOwnFields(str *out) {
    int links[2] = {0, 0}, reports = 0;
    busEachLink(&serverBus, countLink, links);
    for (int i = 0; i < serverMap.node_count; i++)
        reports += busCountReports(&serverBus, serverMap.nodes[i], serverBusNowMs());
    strAppendFormat(out, "cluster_my_slots:%d\r\ncluster_unsynced_primaries_fail:%d\r\n",
                    serverMap.myself->slot_count, electionCountUnsynced(&serverMap));
    strAppendFormat(out, "cluster_failure_reports:%d\r\n", reports);
    strAppendFormat(out, "cluster_links_outbound:%d\r\ncluster_links_inbound:%d\r\n", links[0],
                    links[1]);
    printVoters(out);
    printLacking(out);
    sharedPrintInfo(out);
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
    strAppendField(out, "cluster_current_epoch", m->current_epoch);
    strAppendField(out, "cluster_my_epoch", (primary ? primary->epoch : 0));
    printTraffic(out);
    printSaves(out);
    printOwnFields(out);
}

/* ------------------------------------------------------------------ SLOTS */

static void replyPair(ctx *c, const char *name, slice value) {
    replyBulkText(c, name);
    replyBulk(c, value);
}

/* Endpoint, port, id, and further addresses of the node. */
static void replyNode(ctx *c, const clusterNode *n, const nodeViewer *viewer) {
    int type = clusterConf.cluster_preferred_endpoint_type;
    slice endpoint = endpointHost(n, viewer), hostname = strSlice(&n->hostname);
    slice zone = strSlice(&n->availability_zone);
    bool tells_ip = type != ENDPOINT_IP, tells_name = type != ENDPOINT_HOSTNAME && hostname.len;
    replyArray(c, 4);
    if (endpoint.ptr) {
        replyBulk(c, endpoint);
    } else {
        replyNull(c);
    }
    replyInteger(c, clusterNodePortFor(n, viewer));
    replyBulk(c, clusterNodeId(n));
    replyMap(c, tells_ip + tells_name + (zone.len > 0));
    if (tells_ip) replyPair(c, "ip", clusterNodeIpFor(n, viewer));
    if (tells_name) replyPair(c, "hostname", hostname);
    if (zone.len) replyPair(c, "availability-zone", zone);
}

static int64_t offsetOf(const clusterNode *n) {
    return n == serverMap.myself ? replOffset() : n->offset;
}

/* Clients are not sent to a replica that has failed or has no data. */
static bool servesReads(const clusterNode *n) { return !(n->flags & NODE_FAILED) && offsetOf(n); }

static void replyRange(ctx *c, int first, int last, const nodeViewer *viewer) {
    const clusterNode *owner = clusterMapOwner(&serverMap, first);
    check(owner);
    check(first <= last);
    int64_t replicas = 0;
    for (int i = 0; i < owner->replica_count; i++) replicas += servesReads(owner->replicas[i]);
    replyArray(c, 3 + replicas);
    replyInteger(c, first);
    replyInteger(c, last);
    replyNode(c, owner, viewer);
    for (int i = 0; i < owner->replica_count; i++) {
        if (servesReads(owner->replicas[i])) replyNode(c, owner->replicas[i], viewer);
    }
}

void clusterReplySlots(ctx *c) {
    const nodeViewer viewer = endpointViewerOf(c);
    clusterNode *const *owner = serverMap.owner;
    int64_t count = 0;
    respDeferred head = respDeferBegin(c->out);
    for (int first = 0, last; first < SLOT_COUNT; first = last + 1) {
        for (last = first; last + 1 < SLOT_COUNT && owner[last + 1] == owner[first];) last++;
        if (!owner[first]) continue;
        replyRange(c, first, last, &viewer);
        count++;
    }
    respDeferEnd(c->out, head, '*', c->proto, count);
}

/* ------------------------------------------------------------------ SHARDS */

/* By shard; in each the primary first, then as they were found. */
static int compareNodes(const void *a, const void *b) {
    const clusterNode *x = *(clusterNode *const *)a, *y = *(clusterNode *const *)b;
    int order = memcmp(x->shard_id, y->shard_id, NODE_ID_LEN);
    if (order == 0) order = (int)(y->flags & NODE_PRIMARY) - (int)(x->flags & NODE_PRIMARY);
    return order ? order : x->index - y->index;
}

/* The nodes whose handshake is over, sorted. */
static clusterNode **sortedNodes(int *count) {
    clusterNode **nodes = memAlloc((size_t)serverMap.node_count * sizeof(clusterNode *));
    *count = 0;
    for (int i = 0; i < serverMap.node_count; i++) {
        if (!(serverMap.nodes[i]->flags & NODE_HANDSHAKE)) nodes[(*count)++] = serverMap.nodes[i];
    }
    check(*count > 0); /* this node at least */
    qsort(nodes, (size_t)*count, sizeof(clusterNode *), compareNodes);
    return nodes;
}

static void replyShardSlots(ctx *c, clusterNode *const *nodes, int count) {
    int64_t ends = 0;
    replyBulkText(c, "slots");
    respDeferred head = respDeferBegin(c->out);
    for (int i = 0; i < count; i++) {
        int last;
        for (int first = clusterNodeNextSlots(nodes[i], 0, &last); first >= 0;
             first = clusterNodeNextSlots(nodes[i], last + 1, &last)) {
            replyInteger(c, first);
            replyInteger(c, last);
            ends += 2;
        }
    }
    respDeferEnd(c->out, head, '*', c->proto, ends);
}

static const char *healthOf(const clusterNode *n) {
    if (n->flags & NODE_FAILED) return "fail";
    return n->flags & NODE_REPLICA && !offsetOf(n) ? "loading" : "online";
}

static void replyPort(ctx *c, const char *name, int port) {
    if (!port) return;
    replyBulkText(c, name);
    replyInteger(c, port);
}

static void replyShardNode(ctx *c, const clusterNode *n, const nodeViewer *viewer) {
    slice endpoint = endpointHost(n, viewer), hostname = strSlice(&n->hostname);
    slice zone = strSlice(&n->availability_zone);
    int tcp = clusterNodeTcpPortForClients(n), tls = clusterNodeTlsPortForClients(n);
    replyMap(c, 6 + (tcp > 0) + (tls > 0) + (hostname.len > 0) + (zone.len > 0));
    replyPair(c, "id", clusterNodeId(n));
    replyPort(c, "port", tcp);
    replyPort(c, "tls-port", tls);
    replyPair(c, "ip", clusterNodeIpFor(n, viewer));
    replyPair(c, "endpoint", endpoint.ptr ? endpoint : SLICE(""));
    if (hostname.len) replyPair(c, "hostname", hostname);
    replyPair(c, "role", n->flags & NODE_PRIMARY ? SLICE("master") : SLICE("replica"));
    replyBulkText(c, "replication-offset");
    replyInteger(c, offsetOf(n));
    replyPair(c, "health", sliceOf(healthOf(n)));
    if (zone.len) replyPair(c, "availability-zone", zone);
}

void clusterReplyShards(ctx *c) {
    const nodeViewer viewer = endpointViewerOf(c);
    int count, first, end;
    clusterNode **nodes = sortedNodes(&count);
    int64_t shards = 0;
    respDeferred head = respDeferBegin(c->out);
    for (first = 0; first < count; first = end) {
        for (end = first + 1; end < count; end++) {
            if (!clusterNodesShareShard(nodes[first], nodes[end])) break;
        }
        replyMap(c, 3);
        replyShardSlots(c, nodes + first, end - first);
        replyBulkText(c, "nodes");
        replyArray(c, end - first);
        for (int i = first; i < end; i++) replyShardNode(c, nodes[i], &viewer);
        replyPair(c, "id", sliceMake(nodes[first]->shard_id, NODE_ID_LEN));
        shards++;
    }
    respDeferEnd(c->out, head, '*', c->proto, shards);
    memFree(nodes);
}
