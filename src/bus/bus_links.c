/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opens, accepts and closes links between nodes, and performs handshakes: the table in bus.h. Bytes
 * of a link are cut into messages here; bus_receive.c handles the messages. */
#include "base/base.h"
#include "base/random.h"
#include "bus/bus_priv.h"
#include "bus/valid.h"

enum {
    MEET_DOUBLINGS = 6, /* of the time between MEETs to a node that does not know this one */
    HANDSHAKE_MIN_MS = 1000,
    /* In large clusters a node that cannot be reached is tried less often. */
    LARGE_CLUSTER = 100,
    LARGE_RETRIES = 20, /* in a timeout */
    /* A link whose node is not known yet takes no messages longer than this, and others none longer
     * than a request may be. */
    UNKNOWN_MAX_BYTES = 1 << 20,
    KNOWN_MAX_BYTES = 1 << 30,
    /* All unfinished messages of senders that are not known: anybody may begin any number. */
    HELD_MAX_BYTES = 32 << 20,
};

int64_t busHandshakeMs(const clusterBus *b) {
    return b->rules.timeout_ms < HANDSHAKE_MIN_MS ? HANDSHAKE_MIN_MS : b->rules.timeout_ms;
}

nodeLinks *busLinksOf(clusterNode *n) {
    if (!n->links) n->links = memNew(nodeLinks);
    return n->links;
}

/* ------------------------------------------------------------------ beginning and end of a link */

static busLink *newLink(clusterBus *b) {
    busLink *l = memNew(busLink);
    l->created_ms = b->now_ms;
    listAppend(&b->links, &l->all);
    return l;
}

static void detach(clusterBus *b, busLink *l) {
    clusterNode *n = l->node;
    if (!n) return;
    check(n->links);
    if (l->is_inbound) {
        check(n->links->from == l);
        n->links->from = NULL;
        n->links->unreachable_ms = b->now_ms;
    } else {
        check(n->links->to == l);
        n->links->to = NULL;
        n->is_connected = false;
    }
    l->node = NULL;
}

/* Unlinks it; it is freed by busSweep(). */
static void retire(clusterBus *b, busLink *l) {
    check(!l->is_closed);
    detach(b, l);
    b->held -= l->held;
    l->held = 0;
    l->is_closed = true;
    l->is_open = false;
    listRemove(&b->links, &l->all);
    listAppend(&b->closed, &l->all);
}

void busEndLink(clusterBus *b, busLink *l) {
    if (l->is_closed) return;
    b->procs->close(b->arg, l);
    retire(b, l);
}

void busSweep(clusterBus *b) {
    for (listNode *n; (n = listFirst(&b->closed)) != NULL;) {
        busLink *l = CONTAINER_OF(n, busLink, all);
        listRemove(&b->closed, n);
        strFree(&l->input);
        memFree(l);
    }
}

void busDrop(clusterBus *b, busLink *l) {
    busEndLink(b, l);
    busSweep(b);
}

static void endIf(clusterBus *b, busLinkTest *is_unwanted) {
    for (listNode *at = listFirst(&b->links), *next; at; at = next) {
        next = listNext(&b->links, at);
        busLink *l = CONTAINER_OF(at, busLink, all);
        if (!is_unwanted || is_unwanted(b, l)) busEndLink(b, l);
    }
}

void busDropIf(clusterBus *b, busLinkTest *is_unwanted) {
    endIf(b, is_unwanted);
    busSweep(b);
}

busLink *busAccepted(clusterBus *b, void *carrier, int64_t now_ms) {
    busSetNow(b, now_ms);
    busLink *l = newLink(b);
    l->carrier = carrier;
    l->is_inbound = true;
    l->is_open = true;
    return l;
}

void busOpened(clusterBus *b, busLink *l, int64_t now_ms) {
    busSetNow(b, now_ms);
    check(!l->is_inbound);
    l->is_open = true;
    if (!l->node) {
        busProbeOpened(b, l);
        return;
    }
    l->node->is_connected = true;
    l->first_ping = l->answered_ping = busLinksOf(l->node)->pings;
    failureNotRefused(l->node);
    busPing(b, l->node);
}

static void noteRefused(const clusterBus *b, clusterNode *n) {
    failureRefused(n, b->now_ms);
    logVerbose("Connection with Node %.40s at %s:%d failed: Connection refused", n->id,
               strText(&n->ip), n->bus_port);
}

void busClosed(clusterBus *b, busLink *l, bool refused, int64_t now_ms) {
    busSetNow(b, now_ms);
    clusterNode *n = l->is_inbound ? NULL : l->node;
    if (refused && n) noteRefused(b, n);
    if (!refused && n && !l->is_open) failureNotRefused(n);
    retire(b, l);
    busSweep(b);
}

/* ------------------------------------------------------------------ nodes */

void busNodeRemoved(void *arg, clusterNode *n) {
    clusterBus *b = arg;
    check(n != b->map->myself);
    if (!n->links) return;
    if (n->links->to) busEndLink(b, n->links->to);
    if (n->links->from) busEndLink(b, n->links->from);
    memFree(n->links);
    n->links = NULL;
}

void busMoved(clusterBus *b, clusterNode *n) {
    clusterMapSetFlags(b->map, n, 0, NODE_NO_ADDRESS);
    logNotice("Address updated for node %s, now %s:%d", clusterNodeLabel(n).text, strText(&n->ip),
              clusterNodePort(n, b->server.tls));
    if (n->links && n->links->to) busEndLink(b, n->links->to);
    n->moved_ms = b->now_ms;
    if (b->map->myself->primary == n) b->procs->follow(b->arg, n);
}

bool busMeet(clusterBus *b, slice ip, int port, int bus_port, int64_t now_ms) {
    char id[NODE_ID_LEN];
    for (int i = 1; i < b->map->node_count; i++) {
        const clusterNode *n = b->map->nodes[i];
        if (n->flags & NODE_HANDSHAKE && n->bus_port == bus_port &&
            sliceEqual(strSlice(&n->ip), ip))
            return false;
    }
    busSetNow(b, now_ms);
    randomHex(id, NODE_ID_LEN);
    clusterNode *n = clusterMapAdd(b->map, id, now_ms);
    clusterMapSetText(b->map, &n->ip, ip);
    clusterMapSetPort(b->map, b->server.tls ? &n->tls_port : &n->tcp_port, port);
    clusterMapSetPort(b->map, &n->bus_port, bus_port);
    clusterMapSetFlags(b->map, n, NODE_HANDSHAKE | NODE_MEET, 0);
    return true;
}

/* ------------------------------------------------------------------ inbound links */

/* Two servers use one id, as one has a copy of the other's file. */
static void complain(clusterBus *b, const busLink *l, clusterNode *n) {
    if (!logIsDue(&n->links->complained_ms, b->now_ms, BUS_COMPLAINT_MS)) return;
    logWarning("Two servers say that they are node %s: one at %s:%d, and one that connects from "
               "%s:%d, which is ignored. One of them has a copy of the other's cluster "
               "configuration file.",
               clusterNodeLabel(n).text, strText(&n->ip), n->bus_port, l->peer_ip, l->peer_port);
}

/* Both links of the node work, and neither is silent. */
static bool isAlive(const clusterBus *b, const clusterNode *n) {
    const nodeLinks *links = n->links;
    return links && links->from && links->to && links->to->is_open && !links->tells_other &&
           !(n->flags & (NODE_MAYBE_FAILED | NODE_FAILED)) &&
           b->now_ms - n->pong_ms < b->rules.timeout_ms;
}

/* The sender is another server than the one that the node is known to be. */
static bool isSecond(const clusterBus *b, const busLink *l, const clusterNode *n,
                     const messageHeader *h) {
    slice ip = h->ip.len ? h->ip : sliceOf(l->peer_ip);
    bool elsewhere = h->bus_port != n->bus_port || !sliceEqual(ip, strSlice(&n->ip));
    return elsewhere && isAlive(b, n);
}

bool busBindLink(clusterBus *b, busLink *l, clusterNode *n, const messageHeader *h) {
    check(l->is_inbound);
    check(n != b->map->myself);
    if (isSecond(b, l, n, h)) {
        complain(b, l, n);
        busEndLink(b, l);
        return false;
    }
    detach(b, l);
    nodeLinks *links = busLinksOf(n);
    if (links->from) busEndLink(b, links->from);
    l->node = n;
    links->from = l;
    links->unreachable_ms = 0;
    links->meets = 0;
    logVerbose("Bound cluster node %s to connection of client %s:%d", clusterNodeLabel(n).text,
               l->peer_ip, l->peer_port);
    return true;
}

/* ------------------------------------------------------------------ periodically */

/* True for a link on which nothing is received, even if the node is heard on its own link: a device
 * between the nodes may have dropped this connection alone, and requests for votes would be lost on
 * it. */
static bool isSilent(const clusterBus *b, const clusterNode *n, const busLink *l) {
    int64_t whole_ms = b->rules.timeout_ms, half_ms = whole_ms / 2, now_ms = b->now_ms;
    if (now_ms - l->created_ms <= whole_ms || !n->ping_sent_ms) return false;
    if (now_ms - n->ping_sent_ms > whole_ms && now_ms - l->heard_ms > whole_ms) return true;
    return now_ms - n->ping_sent_ms > half_ms && now_ms - n->heard_ms > half_ms;
}

static int64_t retryMs(const clusterBus *b, const clusterNode *n) {
    int64_t interval = b->rules.timeout_ms / LARGE_RETRIES;
    bool often = b->map->node_count < LARGE_CLUSTER || (n->links && n->links->from) ||
                 (b->rules.refused_timeout_ms && n->refused_ms);
    return often || interval < BUS_TICK_MS ? BUS_TICK_MS : interval;
}

void busConnectTo(clusterBus *b, clusterNode *n, slice ip, int port) {
    check(ip.len < BUS_IP_MAX);
    busLink *l = newLink(b);
    memcpy(l->peer_ip, ip.ptr, ip.len);
    l->peer_port = port;
    l->node = n;
    if (n) busLinksOf(n)->to = l;
    busConnect result = b->procs->connect(b->arg, l);
    if (result == BUS_REFUSED && n) noteRefused(b, n);
    if (result == BUS_IMPOSSIBLE && n) failureNotRefused(n);
    if (result != BUS_CONNECTING) retire(b, l);
}

busLink *busLinkTo(clusterBus *b, const char *ip, int port, bool without_node) {
    for (listNode *at = listFirst(&b->links); at; at = listNext(&b->links, at)) {
        busLink *l = CONTAINER_OF(at, busLink, all);
        if (l->is_inbound || l->peer_port != port || strcmp(l->peer_ip, ip) != 0) continue;
        check(!l->is_closed);
        if (!l->node || !without_node) return l;
    }
    return NULL;
}

static void openLink(clusterBus *b, clusterNode *n) {
    nodeLinks *links = busLinksOf(n);
    if (b->never_reconnects || b->now_ms - links->tried_ms < retryMs(b, n)) return;
    links->tried_ms = b->now_ms;
    /* A node that cannot be reached is one that does not reply. */
    failurePinged(n, b->now_ms);
    busConnectTo(b, n, strSlice(&n->ip), n->bus_port);
}

/* A node that answers, but does not connect to this one, does not know it. It may have forgotten it
 * for good: it is asked ever more rarely. */
static void meetAgain(clusterBus *b, clusterNode *n) {
    nodeLinks *links = n->links;
    if (links->from || !n->is_connected || !(n->flags & NODE_HAS_LIGHT_MODULE)) return;
    if (n->flags & (NODE_MEET | NODE_HANDSHAKE | NODE_MAYBE_FAILED | NODE_FAILED)) return;
    if (!links->unreachable_ms) links->unreachable_ms = b->now_ms;
    if (b->now_ms - links->unreachable_ms <= busHandshakeMs(b) << links->meets) return;
    links->unreachable_ms = b->now_ms;
    if (links->meets < MEET_DOUBLINGS) links->meets++;
    busMeetAgain(b, n);
}

static bool hasGivenUp(const clusterBus *b, const clusterNode *n) {
    return n->flags & NODE_HANDSHAKE && b->now_ms - n->added_ms > busHandshakeMs(b);
}

static void keepNode(clusterBus *b, clusterNode *n) {
    if (hasGivenUp(b, n)) {
        logWarning("Clusterbus handshake timeout %s:%d", strText(&n->ip), n->bus_port);
        clusterMapRemove(b->map, n);
        return;
    }
    if (n->flags & NODE_NO_ADDRESS || !n->ip.len) return;
    if (n->links && n->links->to && isSilent(b, n, n->links->to)) busEndLink(b, n->links->to);
    if (!n->links || !n->links->to) {
        openLink(b, n);
    } else {
        meetAgain(b, n);
    }
}

/* An unknown sender whose connection says nothing is not kept for ever. */
static bool isUnknownForLong(clusterBus *b, const busLink *l) {
    return !l->node && b->now_ms - l->created_ms > 2 * busHandshakeMs(b);
}

void busKeepLinks(clusterBus *b) {
    for (int i = b->map->node_count - 1; i > 0; i--) keepNode(b, b->map->nodes[i]);
    endIf(b, isUnknownForLong);
}

/* ------------------------------------------------------------------ bytes */

static void refuse(clusterBus *b, busLink *l) {
    logWarning("Bad message length or signature received on the Cluster bus from %s:%d", l->peer_ip,
               l->peer_port);
    busEndLink(b, l);
}

static bool isKnown(const busLink *l) { return l->node && !(l->node->flags & NODE_HANDSHAKE); }

static size_t mostBytes(const busLink *l) {
    return isKnown(l) ? KNOWN_MAX_BYTES : UNKNOWN_MAX_BYTES;
}

/* Not necessarily the one that has received last: that may be the only one that means well. */
static void endLargest(clusterBus *b) {
    busLink *largest = NULL;
    for (listNode *at = listFirst(&b->links); at; at = listNext(&b->links, at)) {
        busLink *l = CONTAINER_OF(at, busLink, all);
        if (!largest || l->held > largest->held) largest = l;
    }
    check(largest && largest->held);
    if (logIsDue(&b->held_complained_ms, b->now_ms, BUS_COMPLAINT_MS))
        logWarning("Too many unfinished messages of unknown senders on the Cluster bus: closing "
                   "the connection from %s:%d, and others that have sent as much",
                   largest->peer_ip, largest->peer_port);
    busEndLink(b, largest);
}

/* After its input or its node may have changed. */
static void accountInput(clusterBus *b, busLink *l) {
    if (l->is_closed) return;
    check(b->held >= l->held);
    b->held -= l->held;
    l->held = isKnown(l) ? 0 : l->input.cap;
    b->held += l->held;
    while (b->held > HELD_MAX_BYTES) endLargest(b);
}

static void takeBytes(clusterBus *b, busLink *l, slice whole) {
    message m;
    reason why;
    unsigned type = messageTypeOf(whole);
    b->counts.bytes_received += whole.len;
    if (type < MESSAGE_TYPES) b->counts.received[type]++;
    status st = messageRead(whole, &m, &why);
    if (st == OK) {
        busTake(b, l, &m);
    } else if (st == ERR_SYNTAX) {
        logWarning("%s", why.text);
    }
}

/* Takes the complete messages; returns the number of bytes used. */
static size_t takeMessages(clusterBus *b, busLink *l, slice bytes) {
    size_t at = 0, size;
    while (!l->is_closed) {
        slice rest = sliceMake(bytes.ptr + at, bytes.len - at);
        status st = messagePeek(rest, &size);
        if (st == ERR_SYNTAX || (st == OK && size > mostBytes(l))) refuse(b, l);
        if (st != OK || size > rest.len || l->is_closed) break;
        takeBytes(b, l, sliceMake(rest.ptr, size));
        at += size;
    }
    return at;
}

void busReceived(clusterBus *b, busLink *l, slice bytes, int64_t now_ms) {
    check(!l->is_closed);
    check(l->is_open);
    busSetNow(b, now_ms);
    l->heard_ms = now_ms;
    if (l->node) failureHeard(l->node, now_ms);
    if (l->input.len) {
        strAppendSlice(&l->input, bytes);
        size_t used = takeMessages(b, l, strSlice(&l->input));
        size_t rest = l->input.len - used;
        if (used) memmove(l->input.ptr, l->input.ptr + used, rest);
        if (used && rest) strCut(&l->input, rest);
        if (!rest) strFree(&l->input);
    } else {
        size_t used = takeMessages(b, l, bytes);
        if (!l->is_closed && used < bytes.len)
            strAppend(&l->input, bytes.ptr + used, bytes.len - used);
    }
    accountInput(b, l);
    busSweep(b);
}
