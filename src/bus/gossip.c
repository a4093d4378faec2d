/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the contents of PING, PONG and MEET messages: the header, entries about other nodes, and
 * extensions with texts about the sender. Applies the contents of received ones to the map.
 *
 * Invariant: a text from another node is stored only after valid.h has accepted it. An entry about
 * a node does not change its epoch, role or slots: these come from messages of the node itself. */
#include "bus/gossip.h"

#include <sys/socket.h>

#include "base/base.h"
#include "base/random.h"
#include "bus/map_blacklist.h"
#include "bus/valid.h"
#include "bus/voters.h"

enum {
    ENTRIES_MIN = 3,
    MOVED_MAX = 32, /* nodes with new addresses in one message, in addition to the others */
    NEWS_MS = 2000, /* the short form tells of PONGs for so long, while others may not know them */
};

/* ------------------------------------------------------------------ writing */

static uint16_t firstPort(const clusterNode *n, bool tls) {
    return (uint16_t)(tls ? n->tls_port : n->tcp_port);
}

static uint16_t otherPort(const clusterNode *n, bool tls) {
    return (uint16_t)(tls ? n->tcp_port : n->tls_port);
}

messageHeader gossipHeader(const clusterMap *m, const gossipRules *rules) {
    const clusterNode *n = m->myself;
    /* A replica tells the epoch and slots of its primary. */
    const clusterNode *primary = n->primary ? n->primary : n;
    const uint64_t *slots = primary == n ? m->claims : clusterNodeSlots(primary);
    return (messageHeader){.port = firstPort(n, rules->tls),
                           .other_port = otherPort(n, rules->tls),
                           .bus_port = (uint16_t)n->bus_port,
                           .node_flags = (uint16_t)(n->flags | rules->supported),
                           .state = !rules->cluster_ok,
                           .flags = rules->flags,
                           .own_flags = rules->own_flags,
                           .current_epoch = m->current_epoch,
                           .epoch = primary->epoch,
                           .offset = (uint64_t)n->offset,
                           .stream = n->stream,
                           .sender = n->id,
                           .primary = n->primary ? n->primary->id : NULL,
                           .slots = (const uint8_t *)slots,
                           .voters = m->voters.stamp,
                           .ip = rules->announces_ip ? strSlice(&n->ip) : SLICE("")};
}

static void writeEntry(messageWriter *w, const clusterNode *n, bool tls, bool with_address) {
    const gossipEntry entry = {.id = n->id,
                               .ping_sent_s = (uint32_t)(n->ping_sent_ms / 1000),
                               .pong_s = (uint32_t)(n->pong_ms / 1000),
                               .ip = with_address ? strSlice(&n->ip) : SLICE(""),
                               .port = firstPort(n, tls),
                               .other_port = otherPort(n, tls),
                               .bus_port = (uint16_t)n->bus_port,
                               .node_flags = (uint16_t)(n->flags & ~(uint32_t)NODE_MYSELF)};
    messageAddGossip(w, &entry);
}

static bool isTold(const clusterMap *m, const clusterNode *n, const clusterNode *to) {
    if (n == m->myself || n == to || n->flags & (NODE_HANDSHAKE | NODE_NO_ADDRESS)) return false;
    if (n->flags & NODE_MAYBE_FAILED) return true;
    return n->ip.len && (n->is_connected || n->slot_count > 0);
}

/* Consecutive nodes from a random one: each is told equally often, and none twice in a message. In
 * the short form most have no address: receivers know it, and new ones are told to all. */
static void writeEntries(messageWriter *w, const clusterMap *m, const gossipRules *rules,
                         const clusterNode *to) {
    int wanted = m->node_count * rules->percent / 100;
    if (wanted < ENTRIES_MIN) wanted = ENTRIES_MIN;
    if (wanted > m->node_count - 2) wanted = m->node_count - 2;
    int told = 0, moved = 0, start = (int)randomUniform((uint64_t)m->node_count);
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[(start + i) % m->node_count];
        if (!isTold(m, n, to)) continue;
        /* All that may be failing are told, so that reports reach the majority soon. */
        bool fails = n->flags & NODE_MAYBE_FAILED;
        bool is_new = n->is_connected && n->moved_ms && n->moved_ms >= rules->moved_since_ms &&
                      moved++ < MOVED_MAX;
        bool is_news =
            !w->is_short || n->flags & NODE_FAILED || rules->now_ms - n->pong_ms < NEWS_MS;
        if (!fails && !is_new && (!is_news || wanted-- <= 0)) continue;
        writeEntry(w, n, rules->tls, !w->is_short || is_new || told++ < ENTRIES_MIN);
    }
}

static messageExtensions extensionsOf(const clusterMap *m, const gossipRules *rules,
                                      const clusterNode *to) {
    const clusterNode *n = m->myself;
    messageExtensions e = {.hostname = strSlice(&n->hostname),
                           .human_name = strSlice(&n->human_name),
                           .availability_zone = strSlice(&n->availability_zone),
                           .client_ipv4 = strSlice(&n->client_ipv4),
                           .client_ipv6 = strSlice(&n->client_ipv6),
                           .client_tcp_port = (uint16_t)n->client_tcp_port,
                           .client_tls_port = (uint16_t)n->client_tls_port,
                           .replica_priority = to->takes_priority ? n->replica_priority : 0,
                           .shard_id = n->shard_id};
    int64_t left_ms;
    for (int i = 0; i < m->forbidden_count && e.forgotten_count < MESSAGE_FORGOTTEN_MAX; i++) {
        const char *id = clusterMapForbidden(m, i, rules->now_ms, &left_ms);
        if (left_ms >= 1000)
            e.forgotten[e.forgotten_count++] =
                (forgottenNode){.id = id, .ttl_s = (uint64_t)left_ms / 1000};
    }
    return e;
}

void gossipWrite(str *out, const clusterMap *m, const gossipRules *rules, messageType type,
                 const clusterNode *to, bool is_short) {
    messageHeader h = gossipHeader(m, rules);
    h.flags |= MESSAGE_HAS_EXTENSIONS;
    if (is_short) h.slots_hash = messageHashSlots(h.slots);
    messageWriter w = is_short ? messageBeginShort(out, type, &h) : messageBegin(out, type, &h);
    writeEntries(&w, m, rules, to);
    if (to && to->flags & NODE_HAS_EXTENSIONS) {
        const messageExtensions e = extensionsOf(m, rules, to);
        messageAddExtensions(&w, &e);
        if (to->tells_voters && voterStampCompare(to->voters, m->voters.stamp) < 0)
            messageAddVoters(&w, &m->voters);
    }
    messageEnd(&w);
}

/* ------------------------------------------------------------------ reading */

/* `port` is that of TLS with tls-cluster, `other_port` the one without. */
static void setAddress(clusterMap *m, clusterNode *n, bool tls, slice ip, uint16_t port,
                       uint16_t other_port, uint16_t bus_port) {
    clusterMapSetText(m, &n->ip, ip);
    clusterMapSetPort(m, tls ? &n->tls_port : &n->tcp_port, port);
    clusterMapSetPort(m, tls ? &n->tcp_port : &n->tls_port, other_port);
    clusterMapSetPort(m, &n->bus_port, bus_port);
}

static void addNode(clusterMap *m, const gossipEntry *entry, bool tls, int64_t now_ms) {
    /* Roles and failures are found out from the node itself. */
    const uint32_t taken = NODE_NO_FAILOVER;
    clusterNode *n = clusterMapAdd(m, entry->id, now_ms);
    setAddress(m, n, tls, entry->ip, entry->port, entry->other_port, entry->bus_port);
    clusterMapSetFlags(m, n, entry->node_flags & taken, 0);
    n->moved_ms = now_ms;
}

static bool mayBeAdded(clusterMap *m, const gossipEntry *entry, int64_t now_ms) {
    slice id = sliceMake(entry->id, NODE_ID_LEN);
    if (!validIsId(id) || entry->node_flags & (NODE_NO_ADDRESS | NODE_HANDSHAKE)) return false;
    if (!entry->ip.len || !validIsIp(entry->ip) || !entry->bus_port) return false;
    return !clusterMapIsForbidden(m, id, now_ms);
}

/* Takes the new address of a node that this one cannot reach, from a sender that can reach it. */
static void takeAddress(clusterMap *m, clusterNode *about, const gossipEntry *entry,
                        const gossipRules *rules) {
    const uint32_t lost = NODE_MAYBE_FAILED | NODE_FAILED | NODE_NO_ADDRESS;
    if (about == m->myself || entry->node_flags & lost) return;
    /* The node has replied to the sender's last PING, so the address is not an old one. */
    if (entry->ping_sent_s || !entry->pong_s) return;
    if (!entry->ip.len || !validIsIp(entry->ip) || !entry->bus_port) return;
    if (sliceEqual(entry->ip, strSlice(&about->ip)) && entry->bus_port == about->bus_port &&
        entry->port == firstPort(about, rules->tls))
        return;
    if (!rules->mayMove(rules->arg, about, about->flags & lost)) return;
    setAddress(m, about, rules->tls, entry->ip, entry->port, entry->other_port, entry->bus_port);
    rules->moved(rules->arg, about);
}

void gossipRead(clusterMap *m, clusterNode *from, const message *msg, const failureRules *failure,
                const gossipRules *rules, int64_t now_ms) {
    char id[NODE_ID_LEN];
    size_t at = 0;
    for (int i = 0; i < msg->gossip_count; i++) {
        gossipEntry entry = messageNextGossip(msg, &at, id);
        clusterNode *about = clusterMapFind(m, sliceMake(entry.id, NODE_ID_LEN));
        if (about) {
            failureGossip(m, from, about, &entry, failure, now_ms);
            takeAddress(m, about, &entry, rules);
        } else if (mayBeAdded(m, &entry, now_ms)) {
            addNode(m, &entry, rules->tls, now_ms);
        }
    }
}

void gossipReadMeet(clusterMap *m, const message *msg, const gossipRules *rules, int64_t now_ms) {
    enum { SILENT_MAX = 1000 };
    char id[NODE_ID_LEN];
    size_t at = 0;
    int silent = 0;
    for (int i = 0; i < m->node_count; i++) silent += !m->nodes[i]->pong_ms;
    for (int i = 0; i < msg->gossip_count; i++) {
        gossipEntry entry = messageNextGossip(msg, &at, id);
        if (clusterMapFind(m, sliceMake(entry.id, NODE_ID_LEN))) continue;
        if (silent >= SILENT_MAX || !mayBeAdded(m, &entry, now_ms)) continue;
        addNode(m, &entry, rules->tls, now_ms);
        silent++;
    }
}

static void forget(clusterMap *m, const clusterNode *from, const forgottenNode *f,
                   const failureRules *failure, int64_t now_ms) {
    enum { TTL_MAX_S = 1 << 30 };
    slice id = sliceMake(f->id, NODE_ID_LEN);
    clusterNode *n = clusterMapFind(m, id);
    if (!validIsId(id) || n == m->myself || n == from) return;
    if (n && n == m->myself->primary) {
        failureForgotten(m, from, n, failure, now_ms);
        return;
    }
    int64_t ttl_s = f->ttl_s > TTL_MAX_S ? TTL_MAX_S : (int64_t)f->ttl_s;
    /* Repetitions that are late must not prolong it. */
    if (!clusterMapIsForbidden(m, id, now_ms)) clusterMapForbid(m, id, now_ms + ttl_s * 1000);
    if (n) clusterMapRemove(m, n);
}

/* A text that is not valid counts as none. */
static void setText(clusterMap *m, str *to, slice text, bool valid) {
    clusterMapSetText(m, to, valid ? text : SLICE(""));
}

/* The term is an epoch: none is greater than those that are known. */
static void readVoters(clusterMap *m, slice bytes) {
    voterSet set;
    if (!messageReadVoters(bytes, &set)) return;
    if (set.stamp.term <= m->current_epoch) (void)votersInstall(m, &set);
    memFree(set.ids);
}

/* A primary of which this node has only heard, as it is down, is in the shard of its replicas. */
static void takeShard(clusterMap *m, clusterNode *from, const char *shard_id) {
    clusterNode *primary = from->primary;
    bool for_primary = primary && primary != m->myself && !primary->has_told_shard;
    from->has_told_shard = true;
    clusterMapSetShard(m, for_primary ? primary : from, shard_id);
}

void gossipReadExtensions(clusterMap *m, clusterNode *from, const message *msg,
                          const failureRules *failure, int64_t now_ms) {
    messageExtensions e;
    messageReadExtensions(msg, &e);
    if (e.unknown_type >= 0) logWarning("Received unknown extension type %d", e.unknown_type);
    setText(m, &from->hostname, e.hostname, validIsHostname(e.hostname));
    setText(m, &from->human_name, e.human_name, validIsPlain(e.human_name));
    setText(m, &from->availability_zone, e.availability_zone, validIsFileText(e.availability_zone));
    setText(m, &from->client_ipv4, e.client_ipv4, validIsAddress(AF_INET, e.client_ipv4));
    setText(m, &from->client_ipv6, e.client_ipv6, validIsAddress(AF_INET6, e.client_ipv6));
    clusterMapSetPort(m, &from->client_tcp_port, e.client_tcp_port);
    clusterMapSetPort(m, &from->client_tls_port, e.client_tls_port);
    clusterMapSetReplicaPriority(m, from, e.replica_priority);
    if (e.shard_id && validIsId(sliceMake(e.shard_id, NODE_ID_LEN))) takeShard(m, from, e.shard_id);
    for (int i = 0; i < e.forgotten_count; i++) forget(m, from, &e.forgotten[i], failure, now_ms);
    if (e.voters.len) readVoters(m, e.voters);
}

void gossipReadFlags(clusterMap *m, clusterNode *from, const messageHeader *h) {
    const uint32_t told = NODE_NO_FAILOVER | NODE_HAS_EXTENSIONS | NODE_HAS_LIGHT_PUBLISH |
                          NODE_HAS_LIGHT_MODULE | NODE_MIGRATE_TO | NODE_PRIMARY_FAILED;
    clusterMapSetFlags(m, from, h->node_flags & told, ~(uint32_t)h->node_flags & told);
    from->takes_priority = h->own_flags & MESSAGE_TAKES_PRIORITY;
    from->takes_capa = h->own_flags & MESSAGE_TAKES_CAPA;
    from->shares_acl = h->own_flags & MESSAGE_SHARES_ACL;
    from->shares_functions = h->own_flags & MESSAGE_SHARES_FUNCTIONS;
    from->shares_config = h->own_flags & MESSAGE_SHARES_CONFIG;
    if (!from->shares_acl && !from->shares_functions && !from->shares_config) {
        from->sharing = SHARING_NONE;
    } else if (from->sharing < SHARING_BEGUN) {
        from->sharing = SHARING_BEGUN;
    }
}

bool gossipReadAddress(clusterMap *m, clusterNode *from, const messageHeader *h, slice peer_ip,
                       bool tls) {
    slice ip = h->ip.len ? h->ip : peer_ip;
    if (!validIsIp(ip)) return false;
    bool same = sliceEqual(ip, strSlice(&from->ip)) && from->bus_port == h->bus_port &&
                firstPort(from, tls) == h->port && otherPort(from, tls) == h->other_port;
    if (same) return false;
    setAddress(m, from, tls, ip, h->port, h->other_port, h->bus_port);
    return true;
}
