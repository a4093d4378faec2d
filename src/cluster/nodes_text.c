/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text representation of nodes: addresses, endpoints, and the line shared by CLUSTER NODES and the
 * configuration file. Properties of this node are read from the directives each time. Main thread
 * only. */
#include "base/base.h"
#include "cluster/cluster_priv.h"
#include "cluster/nodes.h"
#include "net/net.h"

enum { BUS_PORT_OFFSET = 10000 };

/* For this node the configured text, for others the one it announced. */
static slice announcedText(const clusterNode *n, const char *own, const str *others) {
    return n->flags & NODE_MYSELF && own[0] ? sliceOf(own) : strSlice(others);
}

slice nodeIp(const clusterNode *n) {
    return announcedText(n, clusterConf.cluster_announce_ip, &n->ip);
}

slice nodeHostname(const clusterNode *n) {
    return announcedText(n, clusterConf.cluster_announce_hostname, &n->hostname);
}

slice nodeHumanName(const clusterNode *n) {
    return announcedText(n, clusterConf.cluster_announce_human_nodename, &n->human_name);
}

int nodePort(const clusterNode *n) {
    if (!(n->flags & NODE_MYSELF)) return n->port;
    return clusterConf.cluster_announce_port ? clusterConf.cluster_announce_port : netPort();
}

int nodeBusPort(const clusterNode *n) {
    if (!(n->flags & NODE_MYSELF)) return n->bus_port;
    if (clusterConf.cluster_announce_bus_port) return clusterConf.cluster_announce_bus_port;
    return clusterConf.cluster_port ? clusterConf.cluster_port : netPort() + BUS_PORT_OFFSET;
}

slice nodeEndpoint(const clusterNode *n) {
    switch (clusterConf.cluster_preferred_endpoint_type) {
    case ENDPOINT_HOSTNAME: return nodeHostname(n).len ? nodeHostname(n) : SLICE("?");
    case ENDPOINT_UNKNOWN: return (slice){NULL, 0};
    default: return nodeIp(n);
    }
}

static void appendFlags(str *out, uint32_t flags) {
    static const struct {
        uint32_t flag;
        const char *word;
    } words[] = {
        {NODE_MYSELF, "myself,"},     {NODE_PRIMARY, "master,"},
        {NODE_REPLICA, "slave,"},     {NODE_MAYBE_FAILED, "fail?,"},
        {NODE_FAILED, "fail,"},       {NODE_HANDSHAKE, "handshake,"},
        {NODE_NO_ADDRESS, "noaddr,"}, {NODE_NO_FAILOVER, "nofailover,"},
    };
    if (!flags) strAppendText(out, "noflags,");
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (flags & words[i].flag) strAppendText(out, words[i].word);
    }
    strCut(out, out->len - 1);
}

static void appendAddress(str *out, const clusterNode *n, bool for_file) {
    strAppendSlice(out, nodeIp(n));
    strAppendFormat(out, ":%d@%d", nodePort(n), nodeBusPort(n));
    if (for_file || nodeHostname(n).len) {
        strAppendByte(out, ',');
        strAppendSlice(out, nodeHostname(n));
    }
    if (!for_file) return;
    strAppendFormat(out, ",tls-port=%d", n->tls_port);
    if (nodeHumanName(n).len) {
        strAppendText(out, ",nodename=");
        strAppendSlice(out, nodeHumanName(n));
    }
    strAppendFormat(out, ",shard-id=%.40s", n->shard_id);
}

static void appendSlots(str *out, const clusterNode *n) {
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (slotOwner(slot) != n) continue;
        int first = slot;
        while (slot + 1 < SLOT_COUNT && slotOwner(slot + 1) == n) slot++;
        strAppendFormat(out, first == slot ? " %d" : " %d-%d", first, slot);
    }
}

void nodeDescribe(str *out, const clusterNode *n, bool for_file) {
    strAppendFormat(out, "%.40s ", n->id);
    appendAddress(out, n, for_file);
    strAppendByte(out, ' ');
    appendFlags(out, n->flags);
    strAppendFormat(out, " %.*s", n->primary ? NODE_ID_LEN : 1, n->primary ? n->primary->id : "-");
    /* Only this node is connected, as there is no cluster bus. */
    strAppendFormat(out, " %lld %lld %llu %s", (long long)n->ping_sent_ms, (long long)n->pong_ms,
                    (unsigned long long)n->epoch,
                    n->flags & NODE_MYSELF || for_file ? "connected" : "disconnected");
    if (n->slot_count) appendSlots(out, n);
}
