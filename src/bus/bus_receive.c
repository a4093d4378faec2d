/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handles each received message by its type. busTake() drops it if the sender has to be ignored;
 * otherwise it passes the message to the part of the bus that it concerns, and replies. */
#include "base/base.h"
#include "bus/bus_priv.h"
#include "bus/map_blacklist.h"
#include "bus/valid.h"

/* ------------------------------------------------------------------ handshakes */

/* The address of this node is the one by which others reach it. */
static void takeOwnAddress(clusterBus *b, const busLink *l, const message *m) {
    clusterNode *myself = b->map->myself;
    if (b->server.announces_ip || !l->is_inbound || !l->own_ip[0]) return;
    if (m->type != MESSAGE_MEET && myself->ip.len) return;
    if (sliceEqual(strSlice(&myself->ip), sliceOf(l->own_ip))) return;
    clusterMapSetText(b->map, &myself->ip, sliceOf(l->own_ip));
    logNotice("IP address for this node updated to %s", l->own_ip);
}

/* Limits the number of nodes in handshake, because each costs a connection and time in each tick. A
 * node that was refused sends MEET again. */
static bool hasRoomForHandshake(clusterBus *b) {
    enum { PENDING_MAX = 1000 };
    int pending = 0;
    for (int i = 0; i < b->map->node_count; i++)
        pending += (b->map->nodes[i]->flags & NODE_HANDSHAKE) != 0;
    check(pending < b->map->node_count);
    if (pending < PENDING_MAX) return true;
    if (logIsDue(&b->meets_complained_ms, b->now_ms, BUS_COMPLAINT_MS))
        logWarning("Ignoring MEET messages: %d handshakes are pending", pending);
    return false;
}

/* A MEET of a node that is not known: it is added, and introduces itself by its id later. One that
 * was forgotten and does not know it asks again and again, as nobody connects to it. It is not
 * added for that, not even when it is not forbidden any more. Its MEET has extensions, as it knows
 * this node; the first one after an order of a user has none, and brings it back. */
static void takeMeet(clusterBus *b, busLink *l, const message *m) {
    gossipRules gossip = busGossipRules(b);
    const messageHeader *h = &m->header;
    slice ip = h->ip.len ? h->ip : sliceOf(l->peer_ip), id = sliceMake(h->sender, NODE_ID_LEN);
    if (!validIsIp(ip) || !h->bus_port) return;
    if (clusterMapIsForbidden(b->map, id, b->now_ms)) return;
    if (m->extension_count && clusterMapWasForgotten(b->map, id)) return;
    /* A connection is that of one node. */
    if (l->met_ms && b->now_ms - l->met_ms <= busHandshakeMs(b)) return;
    if (!hasRoomForHandshake(b)) return;
    gossipReadMeet(b->map, m, &gossip, b->now_ms);
    if (!busMeet(b, ip, h->port, h->bus_port, b->now_ms)) return;
    l->met_ms = b->now_ms;
    clusterNode *added = b->map->nodes[b->map->node_count - 1];
    clusterMapSetPort(b->map, b->server.tls ? &added->tcp_port : &added->tls_port, h->other_port);
    /* It has begun: it need not be asked to meet. */
    clusterMapSetFlags(b->map, added, 0, NODE_MEET);
}

/* The first PONG of a node in handshake. False: nothing more of it is used. */
static bool completeHandshake(clusterBus *b, busLink *l, clusterNode *known, const message *m) {
    clusterNode *n = l->node;
    slice id = sliceMake(m->header.sender, NODE_ID_LEN);
    check(n->flags & NODE_HANDSHAKE);
    if (known) {
        logVerbose("Handshake: we already know node %s, updating the address if needed.",
                   clusterNodeLabel(known).text);
        slice ip = m->header.ip.len ? m->header.ip : strSlice(&n->ip);
        if (known != b->map->myself &&
            gossipReadAddress(b->map, known, &m->header, ip, b->server.tls))
            busMoved(b, known);
        clusterMapRemove(b->map, n);
        return false;
    }
    if (!validIsId(id)) {
        busEndLink(b, l);
        return false;
    }
    clusterMapSetId(b->map, n, m->header.sender);
    clusterMapSetFlags(b->map, n, 0, NODE_HANDSHAKE | NODE_MEET);
    n->moved_ms = b->now_ms;
    logDebug("Handshake with node %s completed.", clusterNodeLabel(n).text);
    return true;
}

/* Another server listens at the address of the node, and is no node that is known: the node was
 * reset, or has lost its file. */
static void takeStranger(clusterBus *b, clusterNode *n) {
    clusterMapSetFlags(b->map, n, NODE_NO_ADDRESS | NODE_FAILED, NODE_MAYBE_FAILED);
    n->failed_ms = b->now_ms;
    busTellFailed(b, n);
}

/* A PONG on the link of the node with another id. If the sender is known, addresses of nodes have
 * changed, and the node may be at another one. */
static void takeOtherId(clusterBus *b, busLink *l, clusterNode *sender, const message *m) {
    clusterNode *n = l->node;
    check(n != sender);
    logNotice("PONG contains mismatching sender ID. About node %s in shard %.40s added %lld ms "
              "ago, having flags %u",
              clusterNodeLabel(n).text, n->shard_id, (long long)(b->now_ms - n->added_ms),
              n->flags);
    busLoseAddress(b, n);
    if (sender && sender != b->map->myself) {
        busTakeProbed(b, l, sender, m);
    } else {
        takeStranger(b, n);
    }
}

/* ------------------------------------------------------------------ PING, PONG, MEET */

/* A PONG on the link that this node has opened. False: nothing more of it is used. */
static bool takePong(clusterBus *b, busLink *l, clusterNode **sender, const message *m) {
    clusterNode *n = l->node;
    l->answered_ping++;
    if (n->flags & NODE_HANDSHAKE) {
        if (!completeHandshake(b, l, *sender, m)) return false;
        *sender = n;
    } else if (*sender != n) {
        takeOtherId(b, l, *sender, m);
        return false;
    }
    failureRules failure = busFailureRules(b);
    failurePong(b->map, n, &failure, b->now_ms);
    clusterMapSetFlags(b->map, n, 0, NODE_MEET);
    n->links->tells_other = m->header.bus_port != n->bus_port ||
                            (m->header.ip.len && !sliceEqual(m->header.ip, strSlice(&n->ip)));
    return true;
}

/* A PING or MEET on a link that a known node has opened. */
static void takePing(clusterBus *b, busLink *l, clusterNode *sender, const message *m) {
    nodeLinks *links = busLinksOf(sender);
    if (!links->is_confirmed && !(sender->flags & NODE_HANDSHAKE)) {
        links->is_confirmed = true;
        logNotice("Successfully completed handshake with %s", clusterNodeLabel(sender).text);
    }
    if (gossipReadAddress(b->map, sender, &m->header, sliceOf(l->peer_ip), b->server.tls))
        busMoved(b, sender);
    if (m->type == MESSAGE_MEET && links->to &&
        b->now_ms - sender->added_ms > b->rules.timeout_ms) {
        logNotice("Freeing outbound link to node %s after receiving a MEET packet from this known "
                  "node",
                  clusterNodeLabel(sender).text);
        busEndLink(b, links->to);
    }
}

/* Which PING of this node the message answers. */
static manualReply replyOf(const busLink *l, const message *m) {
    if (m->type != MESSAGE_PONG || l->is_inbound) return (manualReply){0};
    return (manualReply){.ping = l->answered_ping, .link_began = l->first_ping};
}

/* Notes that the sender has replied to a PING. A reply that asks for the full form does not count:
 * its sender has not taken the claims of the PING. */
static void noteAnswer(clusterNode *sender, manualReply reply, const messageHeader *h) {
    if (!reply.ping || h->own_flags & MESSAGE_WANTS_FULL) return;
    nodeLinks *links = busLinksOf(sender);
    if (links->answered <= links->asked) {
        links->answered_epoch = h->current_epoch;
        links->answered_voters = h->voters;
        links->answered_as_owner = clusterNodeVotes(sender);
    }
    links->answered = reply.ping;
}

static void takeClaims(clusterBus *b, busLink *l, clusterNode *sender, const message *m) {
    failureRules failure = busFailureRules(b);
    gossipRules gossip = busGossipRules(b);
    gossipReadFlags(b->map, sender, &m->header);
    topologyActs acts = topologyHeader(b->map, sender, &m->header, &b->rules);
    if (acts.is_stale) return;
    noteAnswer(sender, replyOf(l, m), &m->header);
    if (sender->flags & NODE_PRIMARY) electionClaim(&b->election, b->map, sender, m->header.epoch);
    if (acts.update) busUpdate(b, sender, acts.update);
    busApplyTopology(b, &acts);
    manualActs manual = manualFailoverHeader(&b->manual, b->map, sender, &m->header, replyOf(l, m),
                                             busStreamOffset(b));
    busActOnManual(b, &manual);
    gossipRead(b->map, sender, m, &failure, &gossip, b->now_ms);
    voterStamp voters = b->map->voters.stamp;
    gossipReadExtensions(b->map, sender, m, &failure, b->now_ms);
    if (voterStampCompare(voters, b->map->voters.stamp) != 0) busTellAll(b, b->now_ms);
}

/* ------------------------------------------------------------------ the short form */

/* The slots that the sender of a message in the short form claims, if this node knows them. */
static bool findSlots(const clusterMap *map, const message *m, uint64_t slots[SLOT_WORDS]) {
    const char *id = m->header.primary ? m->header.primary : m->header.sender;
    const clusterNode *claimer = clusterMapFind(map, sliceMake(id, NODE_ID_LEN));
    check(m->is_short);
    if (!claimer) return false;
    memcpy(slots, clusterNodeSlots(claimer), SLOT_BYTES);
    for (int word = 0; word < SLOT_WORDS; word++) slots[word] &= ~map->unclaimed[word];
    return messageHashSlots(slots) == m->header.slots_hash;
}

/* Agrees with the sender on the short or the full form of messages. `is_known`: the slots of the
 * message are known. */
static void agreeOnForm(clusterBus *b, clusterNode *sender, const message *m, bool is_known) {
    nodeLinks *links = busLinksOf(sender);
    bool asks = !is_known && b->now_ms - links->asked_full_ms >= BUS_TICK_MS;
    links->wants_full = !is_known;
    if (asks) links->asked_full_ms = b->now_ms;
    if (m->header.own_flags & MESSAGE_WANTS_FULL) {
        links->full_until_ms = b->now_ms + b->rules.timeout_ms;
        if (m->type == MESSAGE_PONG) busPongTo(b, sender);
    }
    if (asks && m->type == MESSAGE_PONG) busPing(b, sender); /* else the PONG asks */
}

static void takeTopology(clusterBus *b, busLink *l, clusterNode *sender, const message *m) {
    uint64_t slots[SLOT_WORDS];
    message whole = *m;
    bool is_known = !m->is_short || findSlots(b->map, m, slots);
    if (m->is_short && is_known) whole.header.slots = (const uint8_t *)slots;
    if (sender && sender != b->map->myself) agreeOnForm(b, sender, m, is_known);
    if (m->type != MESSAGE_PONG) takeOwnAddress(b, l, m);
    if (m->type == MESSAGE_MEET && !sender) takeMeet(b, l, m);
    if (m->type == MESSAGE_PONG && !l->is_inbound && !takePong(b, l, &sender, m)) return;
    if (m->type != MESSAGE_PONG) busPong(b, l, sender);
    if (!sender) return;
    if (m->type != MESSAGE_PONG && l->is_inbound) takePing(b, l, sender, m);
    if (is_known) takeClaims(b, l, sender, &whole);
}

/* ------------------------------------------------------------------ others */

static void takeFail(clusterBus *b, clusterNode *sender, const message *m) {
    clusterNode *about = clusterMapFind(b->map, sliceMake(m->id, NODE_ID_LEN));
    if (!sender) {
        logNotice("Ignoring FAIL message from unknown node %.40s about %.40s", m->header.sender,
                  m->id);
    } else if (about) {
        failureReceived(b->map, sender, about, b->now_ms);
    }
}

static void takeRequest(clusterBus *b, clusterNode *sender, const messageHeader *h) {
    if (h->own_flags & MESSAGE_ABOUT_VOTERS) {
        if (votersRequest(b->map, sender, h, b->started_ms, b->now_ms))
            busSendEmpty(b, sender, MESSAGE_AUTH_ACK, 0);
        return;
    }
    electionVerdict v = electionRequest(b->map, sender, h, b->started_ms, b->now_ms);
    if (v.update) busUpdate(b, sender, v.update);
    /* The map is saved before it is sent. */
    if (v.granted) busSendEmpty(b, sender, MESSAGE_AUTH_ACK, 0);
    if (v.nack && h->node_flags & NODE_TAKES_NACK && !b->as_older)
        busSendNack(b, sender, h->current_epoch, v.nack);
}

static void takeManual(clusterBus *b, clusterNode *sender) {
    manualActs acts =
        manualFailoverRequested(&b->manual, b->map, sender, b->rules.manual_timeout_ms, b->now_ms);
    busActOnManual(b, &acts);
}

static void takeVote(clusterBus *b, clusterNode *sender, const messageHeader *h) {
    if (h->current_epoch == b->voters_change.term) {
        busActOnVoters(b, votersVote(&b->voters_change, b->map, sender, h));
        return;
    }
    busTakeOffset(b);
    busActOnElection(b, electionVote(&b->election, b->map, sender, h, b->now_ms));
}

static void takeUpdate(clusterBus *b, clusterNode *sender, const message *m) {
    topologyActs acts = topologyUpdate(b->map, sender, m, &b->rules);
    const clusterNode *about = clusterMapFind(b->map, sliceMake(m->id, NODE_ID_LEN));
    if (about) electionClaim(&b->election, b->map, about, about->epoch);
    busApplyTopology(b, &acts);
}

static void takeOther(clusterBus *b, const busLink *l, clusterNode *sender, const message *m) {
    size_t size = m->body.len + (m->is_light ? MESSAGE_LIGHT_BYTES : MESSAGE_HEADER_BYTES);
    switch (m->type) {
    case MESSAGE_FAIL: takeFail(b, sender, m); break;
    case MESSAGE_PUBLISH:
    case MESSAGE_PUBLISH_SHARD:
        if (!sender) break;
        b->counts.pubsub_received += size;
        b->procs->publish(b->arg, m->type == MESSAGE_PUBLISH_SHARD, m->channel, m->text);
        break;
    case MESSAGE_MODULE:
        if (!sender) break;
        b->counts.module_received += size;
        b->procs->module(b->arg, l, sender, m);
        break;
    case MESSAGE_AUTH_REQUEST:
        if (sender) takeRequest(b, sender, &m->header);
        break;
    case MESSAGE_AUTH_ACK:
        if (sender) takeVote(b, sender, &m->header);
        break;
    case MESSAGE_AUTH_NACK:
        if (sender) electionNack(&b->election, b->map, sender, m->epoch, m->nack);
        break;
    case MESSAGE_MANUAL_FAILOVER:
        if (sender) takeManual(b, sender);
        break;
    case MESSAGE_UPDATE:
        if (sender) takeUpdate(b, sender, m);
        break;
    default: logWarning("Received unknown packet type: %u", m->type); break;
    }
}

/* ------------------------------------------------------------------ the sender */

/* A server with the id of this one. */
static void complainOfCopy(clusterBus *b, busLink *l) {
    busLink *other_end = busLinkTo(b, l->own_ip, b->map->myself->bus_port, false);
    if (other_end) { /* this server itself, at an address that another node had */
        if (other_end->node) busLoseAddress(b, other_end->node);
        busEndLink(b, other_end);
        busEndLink(b, l);
        return;
    }
    if (logIsDue(&b->self_complained_ms, b->now_ms, BUS_COMPLAINT_MS))
        logWarning("A server at %s:%d has the id of this node, %.40s: one of the two has a copy of "
                   "the other's cluster configuration file.",
                   l->peer_ip, l->peer_port, b->map->myself->id);
    busEndLink(b, l);
}

/* The node that has sent a message with a full header; NULL: it is not known. False: the link has
 * been ended. */
static bool findSender(clusterBus *b, busLink *l, const message *m, clusterNode **out) {
    clusterNode *n = clusterMapFind(b->map, sliceMake(m->header.sender, NODE_ID_LEN));
    *out = n;
    if (!l->is_inbound) return true; /* takePong() compares */
    if (n == b->map->myself) {
        complainOfCopy(b, l);
        return false;
    }
    if (!n || n->flags & NODE_HANDSHAKE || l->node == n) return true;
    return busBindLink(b, l, n, &m->header);
}

static bool isDropped(clusterBus *b, busLink *l, const message *m) {
    if (b->dropped_type == BUS_DROP_NONE) return false;
    if (b->dropped_type != BUS_DROP_ALL && b->dropped_type != m->type) return false;
    logWarning("Dropping packet of type %s that matches debug drop filter",
               messageTypeName(m->type));
    if (b->drop_closes) busEndLink(b, l);
    return true;
}

/* The node that has sent a light message, which does not name it. The sender of the full message
 * before it may have become known since. NULL: it is not known, and the message is ignored as a
 * full one would be: the other end need not know that. False: the link has been ended. */
static bool findLightSender(clusterBus *b, busLink *l, const message *m, clusterNode **out) {
    const messageHeader nothing = {0};
    check(m->is_light);
    if (!l->is_greeted) {
        logNotice("Closing link for node %s that sent a lightweight message of type %s as its "
                  "first message on the link",
                  l->node ? clusterNodeLabel(l->node).text : "<unknown> (<unknown>)",
                  messageTypeName(m->type));
        busEndLink(b, l);
        return false;
    }
    if (!l->node && l->is_inbound) {
        clusterNode *n = clusterMapFind(b->map, sliceMake(l->greeted_by, NODE_ID_LEN));
        bool is_known = n && n != b->map->myself && !(n->flags & NODE_HANDSHAKE);
        if (is_known && !busLinksOf(n)->from && !busBindLink(b, l, n, &nothing)) return false;
    }
    *out = l->node;
    return true;
}

void busTake(clusterBus *b, busLink *l, const message *m) {
    clusterNode *sender = l->node;
    check(!l->is_closed);
    if (isDropped(b, l, m)) return;
    if (m->is_light) {
        if (!findLightSender(b, l, m, &sender)) return;
    } else {
        if (!findSender(b, l, m, &sender)) return;
        if (m->is_short && (!l->node || !l->is_greeted)) { /* it comes after a full one only */
            busEndLink(b, l);
            return;
        }
        l->is_greeted = true;
        if (!l->node) memcpy(l->greeted_by, m->header.sender, NODE_ID_LEN);
        if (!m->is_short) l->takes_short = m->header.own_flags & MESSAGE_TAKES_SHORT;
        if (sender && !m->is_short) sender->unclaims = m->header.own_flags & MESSAGE_UNCLAIMS;
        if (sender && sender != b->map->myself) votersHeard(b->map, sender, &m->header, b->now_ms);
    }
    if (!l->is_inbound && !l->node) {
        if (m->type == MESSAGE_PONG) busTakeProbed(b, l, sender, m);
        return;
    }
    if (sender == b->map->myself && m->type != MESSAGE_PONG) return;
    if (sender) failureHeard(sender, b->now_ms);
    if (m->type <= MESSAGE_MEET) {
        takeTopology(b, l, sender, m);
    } else {
        takeOther(b, l, sender, m);
    }
}
