/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The view of a cluster: all nodes, each asked for its own slots, because nodes may disagree and
 * only the node itself lists its open slots. */
#include <string.h>

#include "base/alloc.h"
#include "tools/cli/cluster_priv.h"

static bool isText(const valkeyReply *reply) {
    return reply->type == VALKEY_REPLY_STRING || reply->type == VALKEY_REPLY_VERB ||
           reply->type == VALKEY_REPLY_STATUS;
}

/* True if the node runs in cluster mode. */
static bool checkMode(const clusterManager *m, clusterNode *node) {
    valkeyReply *reply = managerCommand(node, "INFO cluster");
    if (!reply) return false;
    const char *why = NULL;
    if (reply->type == VALKEY_REPLY_ERROR) {
        why = reply->str;
    } else if (!isText(reply) || !strstr(reply->str, "cluster_enabled:1")) {
        why = "is not configured as a cluster node.";
    }
    if (why)
        managerPrint(m, LEVEL_ERROR, "[ERR] Node %s:%d %s\n", strText(&node->host), node->port,
                     why);
    freeReplyObject(reply);
    return !why;
}

/* Fills a connected node from its CLUSTER NODES. */
static bool readNodes(const clusterManager *m, clusterNode *node, clusterNodes *others) {
    valkeyReply *reply = managerCommand(node, "CLUSTER NODES");
    bool valid = managerAccept(m, node, reply);
    if (valid) {
        valid = isText(reply) && clusterNodesParse(sliceMake(reply->str, reply->len), node, others);
        if (!valid) fprintf(stderr, "Error: invalid CLUSTER NODES reply\n");
    }
    freeReplyObject(reply);
    return valid;
}

bool managerLoadNode(const clusterManager *m, clusterNode *node, clusterNodes *others) {
    return managerConnect(m, node) && checkMode(m, node) && readNodes(m, node, others);
}

/* Connects to a node that another one listed, and replaces what that one said about it. */
static void loadListed(clusterManager *m, clusterNode *node) {
    if (!node->has_address) {
        clusterNodeFree(node);
        return;
    }
    clusterNodes known = {0};
    clusterNode *asked = clusterNodeNew(strText(&node->host), node->port, node->bus_port);
    if (!managerConnect(m, asked)) {
        clusterNodeFree(asked);
        clusterNodesAdd(&m->lost, node);
        if (!node->is_replica) m->lost_primaries++;
        return;
    }
    if (readNodes(m, asked, &known)) {
        clusterNodesAdd(&m->nodes, asked);
    } else {
        managerPrint(m, LEVEL_ERROR, "[ERR] Unable to load info for node %s:%d\n",
                     strText(&asked->host), asked->port);
        clusterNodeFree(asked);
    }
    clusterNodesClear(&known);
    clusterNodeFree(node);
}

bool managerLoad(clusterManager *m, const char *host, int port, int bus_port) {
    clusterNodes listed = {0};
    clusterNode *first = clusterNodeNew(host, port, bus_port);
    if (!managerLoadNode(m, first, &listed)) {
        clusterNodesClear(&listed);
        clusterNodeFree(first);
        return false;
    }
    clusterNodesAdd(&m->nodes, first);
    for (int i = 0; i < listed.count; i++) loadListed(m, listed.list[i]); /* takes the node */
    memFree(listed.list);
    clusterNodesCountReplicas(&m->nodes);
    for (int i = 0; i < m->nodes.count; i++) {
        const clusterNode *node = m->nodes.list[i];
        if (!node->is_replica || clusterNodesFindId(&m->nodes, node->primary)) continue;
        if (m->keeps_lost && clusterNodesFindId(&m->lost, node->primary)) continue;
        managerPrint(m, LEVEL_WARNING,
                     "*** WARNING: %s:%d claims to be replica of unknown node ID %s.\n",
                     strText(&node->host), node->port, node->primary);
    }
    return true;
}

void managerClear(clusterManager *m) {
    clusterNodesClear(&m->nodes);
    clusterNodesClear(&m->lost);
}

void managerInfo(clusterManager *m) {
    int primaries = 0;
    int64_t keys = 0;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica) continue;
        valkeyReply *reply = managerCommand(node, "DBSIZE");
        int64_t size = -1;
        if (managerAccept(m, node, reply) && reply->type == VALKEY_REPLY_INTEGER)
            size = reply->integer;
        freeReplyObject(reply);
        if (size < 0) continue;
        printf("%s:%d (%.8s...) -> %lld keys | %d slots | %d replicas.\n", strText(&node->host),
               node->port, node->id, (long long)size, node->slots.count, node->replica_count);
        keys += size;
        primaries++;
    }
    managerPrint(m, LEVEL_OK, "[OK] %lld keys in %d primaries.\n", (long long)keys, primaries);
    printf("%.2f keys per slot on average.\n", (double)keys / SLOT_COUNT);
}

void managerShowNodes(const clusterManager *m) {
    str text = STR_EMPTY;
    for (int i = 0; i < m->nodes.count; i++) clusterNodeDescribe(m->nodes.list[i], 0, true, &text);
    fputs(strText(&text), stdout);
    strFree(&text);
}

bool managerAgrees(clusterManager *m) {
    str first = STR_EMPTY, next = STR_EMPTY;
    bool agrees = true;
    for (int i = 0; i < m->nodes.count && agrees; i++) {
        str *text = i == 0 ? &first : &next;
        valkeyReply *reply = managerCommand(m->nodes.list[i], "CLUSTER NODES");
        strClear(text);
        agrees = managerAccept(m, m->nodes.list[i], reply) && isText(reply) &&
                 clusterNodesSignature(sliceMake(reply->str, reply->len), text);
        freeReplyObject(reply);
        if (i > 0 && !sliceEqual(strSlice(&first), strSlice(&next))) agrees = false;
    }
    strFree(&first);
    strFree(&next);
    return agrees;
}

clusterNode *managerPrimaryForReplica(const clusterManager *m) {
    clusterNode *best = NULL;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica) continue;
        if (!best || node->replica_count < best->replica_count) best = node;
    }
    return best;
}
