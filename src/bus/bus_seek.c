/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds nodes that are lost: those that do not answer at their known addresses, as after a restart
 * of the cluster with new addresses. This node sends a PING to the seeds, and to the host names
 * that lost nodes have announced. A node that replies is known at its new address from then on. It
 * learns this node's new address from the PING in turn, and tells it to others in gossip. */
#include "base/base.h"
#include "bus/bus_priv.h"

enum {
    LOST_MAX_MS = 500,
    LOST_DIVISOR = 10, /* of a timeout */
    PAUSE_DIVISOR = 4,
    PAUSE_MIN_MS = 250,
    PAUSE_MAX_MS = 5000,
};

/* ------------------------------------------------------------------ which nodes are lost */

bool busIsLost(const clusterBus *b, const clusterNode *n) {
    int64_t lost_ms = b->rules.timeout_ms / LOST_DIVISOR;
    if (lost_ms > LOST_MAX_MS) lost_ms = LOST_MAX_MS;
    if (n == b->map->myself || n->flags & NODE_HANDSHAKE || n->is_connected) return false;
    if (n->links && n->links->from) return false;
    if (!n->ip.len) return true;
    return n->ping_sent_ms && b->now_ms - n->ping_sent_ms >= lost_ms;
}

void busLoseAddress(clusterBus *b, clusterNode *n) {
    check(n != b->map->myself);
    clusterMapSetText(b->map, &n->ip, SLICE(""));
    clusterMapSetPort(b->map, &n->tcp_port, 0);
    clusterMapSetPort(b->map, &n->tls_port, 0);
    clusterMapSetPort(b->map, &n->bus_port, 0);
    if (n->links && n->links->to) busEndLink(b, n->links->to);
    /* It is marked as failing unless it is found in time. */
    failurePinged(n, b->now_ms);
}

/* ------------------------------------------------------------------ at one address */

static bool isKnownAddress(const clusterBus *b, slice ip, int bus_port) {
    for (int i = 0; i < b->map->node_count; i++) {
        const clusterNode *n = b->map->nodes[i];
        if (n->bus_port == bus_port && sliceEqual(strSlice(&n->ip), ip)) return true;
    }
    return false;
}

void busProbe(clusterBus *b, slice ip, int bus_port, int64_t now_ms) {
    char text[BUS_IP_MAX] = {0};
    busSetNow(b, now_ms);
    if (!ip.len || ip.len >= sizeof(text) || isKnownAddress(b, ip, bus_port)) return;
    memcpy(text, ip.ptr, ip.len);
    busLink *last = busLinkTo(b, text, bus_port, true);
    if (last) busEndLink(b, last);
    logDebug("Looking for lost nodes at %s:%d", text, bus_port);
    busConnectTo(b, NULL, ip, bus_port);
    busSweep(b);
}

void busProbeOpened(clusterBus *b, busLink *l) {
    str bytes = STR_EMPTY;
    check(!l->node);
    check(l->is_open);
    gossipRules rules = busGossipRules(b);
    gossipWrite(&bytes, b->map, &rules, MESSAGE_PING, NULL, false);
    busSend(b, l, MESSAGE_PING, &bytes);
    strFree(&bytes);
}

void busTakeProbed(clusterBus *b, busLink *l, clusterNode *sender, const message *m) {
    check(m->type == MESSAGE_PONG);
    check(!l->is_inbound);
    slice ip = m->header.ip.len ? m->header.ip : sliceOf(l->peer_ip);
    bool wanted = sender && sender != b->map->myself && !sender->is_connected &&
                  !(sender->flags & NODE_HANDSHAKE);
    if (wanted && gossipReadAddress(b->map, sender, &m->header, ip, b->server.tls))
        busMoved(b, sender);
    busEndLink(b, l);
}

/* ------------------------------------------------------------------ periodically */

static int64_t pauseMaxMs(const clusterBus *b) {
    int64_t most_ms = b->rules.timeout_ms / PAUSE_DIVISOR;
    if (most_ms < PAUSE_MIN_MS) return PAUSE_MIN_MS;
    return most_ms < PAUSE_MAX_MS ? most_ms : PAUSE_MAX_MS;
}

static void tryHost(clusterBus *b, seekTimer *t, slice host, int bus_port) {
    check(host.len > 0);
    if (!seekIsDue(t, b->now_ms) || !b->procs->lookUp(b->arg, host, bus_port)) return;
    seekBegun(t, pauseMaxMs(b), b->now_ms);
}

/* The port is not known to have changed. */
static int portOf(const clusterBus *b, const clusterNode *n) {
    return n->bus_port ? n->bus_port : b->map->myself->bus_port;
}

void busSeek(clusterBus *b) {
    clusterSeeds *seeds = b->server.seeds;
    bool lost = false;
    if (b->never_reconnects) return;
    for (int i = 1; i < b->map->node_count; i++) {
        clusterNode *n = b->map->nodes[i];
        if (busIsLost(b, n)) {
            lost = true;
            if (n->hostname.len)
                tryHost(b, &busLinksOf(n)->seek, strSlice(&n->hostname), portOf(b, n));
        } else if (n->links) {
            n->links->seek = (seekTimer){0};
        }
    }
    for (int i = 0; seeds && i < seeds->count; i++) {
        clusterSeed *seed = &seeds->items[i];
        check(seed->bus_port > 0);
        if (lost) {
            tryHost(b, &seed->timer, strSlice(&seed->host), seed->bus_port);
        } else {
            seed->timer = (seekTimer){0};
        }
    }
}
