/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints and parses the line that describes a node. CLUSTER NODES and the configuration file use
 * the same form. */
#include <stdio.h>

#include "base/base.h"
#include "bus/map.h"

int clusterNodePort(const clusterNode *n, bool tls) {
    if (tls) return n->tls_port ? n->tls_port : n->tcp_port;
    return n->tcp_port ? n->tcp_port : n->tls_port;
}

slice clusterNodeIpFor(const clusterNode *n, const nodeViewer *viewer) {
    const str *own = viewer->ipv6 ? &n->client_ipv6 : &n->client_ipv4;
    if (n->flags & NODE_MYSELF && !own->len && !n->ip.len) return sliceOf(viewer->own_ip);
    return strSlice(own->len ? own : &n->ip);
}

/* A node without the port announces none for clients either. */
int clusterNodeTcpPortForClients(const clusterNode *n) {
    return n->tcp_port && n->client_tcp_port ? n->client_tcp_port : n->tcp_port;
}

int clusterNodeTlsPortForClients(const clusterNode *n) {
    return n->tls_port && n->client_tls_port ? n->client_tls_port : n->tls_port;
}

int clusterNodePortFor(const clusterNode *n, const nodeViewer *viewer) {
    int tcp = clusterNodeTcpPortForClients(n), tls = clusterNodeTlsPortForClients(n);
    if (viewer->tls) return tls ? tls : tcp;
    return tcp ? tcp : tls;
}

nodeLabel clusterNodeLabel(const clusterNode *n) {
    nodeLabel label;
    if (n->human_name.len) {
        snprintf(label.text, sizeof(label.text), "%.40s (%.80s)", n->id, strText(&n->human_name));
    } else {
        bool ip6 = n->ip.len && memchr(n->ip.ptr, ':', n->ip.len);
        snprintf(label.text, sizeof(label.text), ip6 ? "%.40s ([%.60s]:%d)" : "%.40s (%.60s:%d)",
                 n->id, strText(&n->ip), clusterNodePort(n, false));
    }
    return label;
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
    /* The role of a node is not known before its handshake. */
    if (flags & NODE_HANDSHAKE) flags &= ~(uint32_t)(NODE_PRIMARY | NODE_REPLICA);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (flags & words[i].flag) strAppendText(out, words[i].word);
    }
    strCut(out, out->len - 1); /* there is one at least: the role or the handshake */
}

static void appendField(str *out, const char *name, const str *value) {
    if (value->len) strAppendFormat(out, ",%s=%s", name, strText(value));
}

static void appendNumber(str *out, const char *name, int number) {
    if (number) strAppendFormat(out, ",%s=%d", name, number);
}

/* In the order in which Valkey writes them. */
static void appendFileFields(str *out, const clusterNode *n, bool tls) {
    appendNumber(out, "replica-priority", n->replica_priority);
    appendField(out, "availability-zone", &n->availability_zone);
    appendNumber(out, "client-tls-port", n->client_tls_port);
    appendNumber(out, "client-tcp-port", n->client_tcp_port);
    appendField(out, "client-ipv6", &n->client_ipv6);
    appendField(out, "client-ipv4", &n->client_ipv4);
    strAppendFormat(out, tls ? ",tcp-port=%d" : ",tls-port=%d", tls ? n->tcp_port : n->tls_port);
    appendField(out, "nodename", &n->human_name);
    strAppendFormat(out, ",shard-id=%.40s", n->shard_id);
}

static void appendSlots(str *out, const clusterNode *n) {
    int last;
    for (int first = clusterNodeNextSlots(n, 0, &last); first >= 0;
         first = clusterNodeNextSlots(n, last + 1, &last))
        strAppendFormat(out, first == last ? " %d" : " %d-%d", first, last);
}

static void appendOpenSlots(str *out, const clusterMap *m) {
    if (!m->open_count[SLOT_MIGRATING] && !m->open_count[SLOT_IMPORTING]) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const clusterNode *to = clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
        const clusterNode *from = clusterMapOpenSlot(m, SLOT_IMPORTING, slot);
        if (to) strAppendFormat(out, " [%d->-%.40s]", slot, to->id);
        if (from) strAppendFormat(out, " [%d-<-%.40s]", slot, from->id);
    }
}

static void appendAddress(str *out, const clusterNode *n, slice ip, int port) {
    strAppendFormat(out, "%.40s %.*s:%d@%d", n->id, (int)ip.len, ip.ptr, port, n->bus_port);
}

static void appendRest(str *out, const clusterMap *m, const clusterNode *n, uint64_t epoch) {
    bool connected = n == m->myself || n->is_connected;
    strAppendByte(out, ' ');
    appendFlags(out, n->flags);
    strAppendFormat(out, " %.*s", n->primary ? NODE_ID_LEN : 1, n->primary ? n->primary->id : "-");
    strAppendFormat(out, " %lld %lld %llu %s", (long long)n->ping_sent_ms, (long long)n->pong_ms,
                    (unsigned long long)epoch, connected ? "connected" : "disconnected");
    appendSlots(out, n);
    if (n == m->myself) appendOpenSlots(out, m);
}

void clusterNodeDescribe(str *out, const clusterMap *m, const clusterNode *n,
                         const nodeViewer *viewer) {
    appendAddress(out, n, clusterNodeIpFor(n, viewer), clusterNodePortFor(n, viewer));
    if (n->hostname.len) strAppendFormat(out, ",%s", strText(&n->hostname));
    /* Slots, and so epochs, are those of a primary. */
    appendRest(out, m, n, n->primary ? n->primary->epoch : n->epoch);
}

void clusterNodePrint(str *out, const clusterMap *m, const clusterNode *n, bool tls) {
    appendAddress(out, n, strSlice(&n->ip), tls ? n->tls_port : n->tcp_port);
    strAppendFormat(out, ",%s", strText(&n->hostname));
    appendFileFields(out, n, tls);
    appendRest(out, m, n, n->epoch);
}
