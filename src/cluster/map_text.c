/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line of a node, shared by CLUSTER NODES and the configuration file. */
#include <stdio.h>

#include "base/base.h"
#include "cluster/map.h"

int clusterNodePort(const clusterNode *n, bool tls) {
    if (tls) return n->tls_port ? n->tls_port : n->tcp_port;
    return n->tcp_port ? n->tcp_port : n->tls_port;
}

nodeLabel clusterNodeLabel(const clusterNode *n) {
    nodeLabel label;
    if (n->human_name.len) {
        snprintf(label.text, sizeof(label.text), "%.40s (%.80s)", n->id, strText(&n->human_name));
    } else {
        snprintf(label.text, sizeof(label.text), "%.40s (%.60s:%d)", n->id, strText(&n->ip),
                 clusterNodePort(n, false));
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
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (flags & words[i].flag) strAppendText(out, words[i].word);
    }
    strCut(out, out->len - 1); /* there is one at least: a node has a role */
}

static void appendField(str *out, const char *name, const str *value) {
    if (value->len) strAppendFormat(out, ",%s=%s", name, strText(value));
}

static void appendPort(str *out, const char *name, int port) {
    if (port) strAppendFormat(out, ",%s=%d", name, port);
}

/* In the order in which Valkey writes them. */
static void appendFileFields(str *out, const clusterNode *n, bool tls) {
    appendField(out, "availability-zone", &n->availability_zone);
    appendPort(out, "client-tls-port", n->client_tls_port);
    appendPort(out, "client-tcp-port", n->client_tcp_port);
    appendField(out, "client-ipv6", &n->client_ipv6);
    appendField(out, "client-ipv4", &n->client_ipv4);
    strAppendFormat(out, tls ? ",tcp-port=%d" : ",tls-port=%d", tls ? n->tcp_port : n->tls_port);
    appendField(out, "nodename", &n->human_name);
    strAppendFormat(out, ",shard-id=%.40s", n->shard_id);
}

static void appendAddress(str *out, const clusterNode *n, nodeTextStyle style, bool tls) {
    bool for_file = style == NODE_TEXT_FILE;
    int port = for_file ? (tls ? n->tls_port : n->tcp_port) : clusterNodePort(n, tls);
    strAppendFormat(out, "%s:%d@%d", strText(&n->ip), port, n->bus_port);
    if (for_file || n->hostname.len) strAppendFormat(out, ",%s", strText(&n->hostname));
    if (for_file) appendFileFields(out, n, tls);
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

void clusterNodeDescribe(str *out, const clusterMap *m, const clusterNode *n, nodeTextStyle style,
                         bool tls) {
    bool connected = style == NODE_TEXT_FILE || n == m->myself || n->is_connected;
    strAppendFormat(out, "%.40s ", n->id);
    appendAddress(out, n, style, tls);
    strAppendByte(out, ' ');
    appendFlags(out, n->flags);
    strAppendFormat(out, " %.*s", n->primary ? NODE_ID_LEN : 1, n->primary ? n->primary->id : "-");
    strAppendFormat(out, " %lld %lld %llu %s", (long long)n->ping_sent_ms, (long long)n->pong_ms,
                    (unsigned long long)n->epoch, connected ? "connected" : "disconnected");
    appendSlots(out, n);
    if (n == m->myself) appendOpenSlots(out, m);
}
