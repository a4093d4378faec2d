/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builds the messages of the bus and sends them to one node or to all: PING, PONG, MEET, FAIL,
 * UPDATE, requests for votes and their replies, PUBLISH, messages of modules. */
#include "base/base.h"
#include "base/hash.h"
#include "bus/bus_priv.h"

void busSend(clusterBus *b, busLink *l, messageType type, const str *bytes) {
    check(type < MESSAGE_TYPES);
    if (!l->is_open || l->is_closed || b->server.is_silent) return;
    b->counts.sent[type]++;
    b->procs->send(b->arg, l, bytes);
}

void busSendTo(clusterBus *b, const clusterNode *to, messageType type, const str *bytes) {
    check(to != b->map->myself);
    if (to->links && to->links->to) busSend(b, to->links->to, type, bytes);
}

messageHeader busHeader(clusterBus *b) {
    gossipRules rules = busGossipRules(b);
    busTakeOffset(b);
    return gossipHeader(b->map, &rules);
}

/* ------------------------------------------------------------------ PING, PONG, MEET */

/* Hashes the slots that messages of this node claim, with the id of the node that owns them. The id
 * is part of the hash because a promoted replica claims the same slots as before, now as its own:
 * receivers have to get the full form again. */
static uint64_t hashClaims(const clusterMap *m) {
    const clusterNode *claimer = clusterNodePrimary(m->myself);
    const uint64_t *slots = claimer == m->myself ? m->claims : clusterNodeSlots(claimer);
    return messageHashSlots(slots) ^ hashBytes(claimer->id, NODE_ID_LEN);
}

/* Writes a message for `to` over the link `l`; `to` is NULL while the node at the other end is
 * unknown. The message has the short form if an earlier full message on this link had the same
 * claims and the receiver has not asked for a full one since. */
static void write(clusterBus *b, str *out, busLink *l, messageType type, const clusterNode *to) {
    gossipRules rules = busGossipRules(b);
    const nodeLinks *links = to ? to->links : NULL;
    bool is_short = false;
    /* Only the replica for which this primary has paused may be elected, so no other node is sent
     * the flag that says so. */
    if (rules.flags && to != manualFailoverPeer(&b->manual, b->map)) rules.flags = 0;
    busTakeOffset(b);
    if (l->is_open && type != MESSAGE_MEET && !b->as_older) {
        uint64_t hash = hashClaims(b->map);
        is_short = l->takes_short && l->has_told && l->told_hash == hash && !rules.flags && links &&
                   b->now_ms >= links->full_until_ms;
        l->told_hash = hash;
        l->has_told = true;
    }
    /* If a node is unknown, so are the slots that it claims: this node asks for the full form. */
    if (!to || (links && links->wants_full)) rules.own_flags |= MESSAGE_WANTS_FULL;
    gossipWrite(out, b->map, &rules, type, to, is_short);
}

static void pingAs(clusterBus *b, clusterNode *to, messageType type) {
    str bytes = STR_EMPTY;
    if (b->server.is_silent) return; /* a silent node does not expect answers */
    if (to->links && to->links->to) {
        write(b, &bytes, to->links->to, type, to);
        if (to->links->to->is_open) to->links->pings++;
    }
    logDebug("Sending %s packet to node %s on outbound link", messageTypeName(type),
             clusterNodeLabel(to).text);
    failurePinged(to, b->now_ms);
    busSendTo(b, to, type, &bytes);
    strFree(&bytes);
}

void busPing(clusterBus *b, clusterNode *to) {
    pingAs(b, to, to->flags & NODE_MEET ? MESSAGE_MEET : MESSAGE_PING);
}

void busMeetAgain(clusterBus *b, clusterNode *to) {
    logNotice("Sending MEET packet to node %s because there is no inbound link for it",
              clusterNodeLabel(to).text);
    pingAs(b, to, MESSAGE_MEET);
}

void busPong(clusterBus *b, busLink *l, const clusterNode *to) {
    str bytes = STR_EMPTY;
    write(b, &bytes, l, MESSAGE_PONG, to);
    busSend(b, l, MESSAGE_PONG, &bytes);
    strFree(&bytes);
}

void busPongTo(clusterBus *b, const clusterNode *to) {
    if (to->links && to->links->to) busPong(b, to->links->to, to);
}

void busTellAll(clusterBus *b, int64_t now_ms) {
    check(b->map->node_count > 0);
    busSetNow(b, now_ms);
    for (int i = 1; i < b->map->node_count; i++) {
        const clusterNode *n = b->map->nodes[i];
        if (!(n->flags & NODE_HANDSHAKE)) busPongTo(b, n);
    }
}

void busTellVoters(clusterBus *b) {
    check(b->map->node_count > 0);
    for (int i = 1; i < b->map->node_count; i++) {
        const clusterNode *n = b->map->nodes[i];
        if (clusterNodeIsVoter(b->map, n) && !(n->flags & NODE_HANDSHAKE)) busPongTo(b, n);
    }
}

void busPingAll(clusterBus *b) {
    check(b->map->node_count > 0);
    for (int i = 1; i < b->map->node_count; i++) {
        clusterNode *n = b->map->nodes[i];
        if (n->is_connected && !(n->flags & NODE_HANDSHAKE)) busPing(b, n);
    }
}

/* ------------------------------------------------------------------ other messages */

static void sendToAll(clusterBus *b, messageType type, const str *bytes) {
    for (int i = 1; i < b->map->node_count; i++) {
        const clusterNode *n = b->map->nodes[i];
        if (!(n->flags & NODE_HANDSHAKE)) busSendTo(b, n, type, bytes);
    }
}

void busTellFailed(void *arg, clusterNode *failed) {
    clusterBus *b = arg;
    str bytes = STR_EMPTY;
    check(failed != b->map->myself);
    messageHeader h = busHeader(b);
    messageWriteFail(&bytes, &h, failed->id);
    sendToAll(b, MESSAGE_FAIL, &bytes);
    strFree(&bytes);
}

void busUpdate(clusterBus *b, const clusterNode *to, const clusterNode *about) {
    if (about != to)
        logVerbose("Node %s has old slots configuration, sending an UPDATE message about %s",
                   clusterNodeLabel(to).text, clusterNodeLabel(about).text);
    str bytes = STR_EMPTY;
    messageHeader h = busHeader(b);
    uint64_t slots[SLOT_WORDS]; /* not those that it has granted to another node */
    clusterMapClaimsOf(b->map, about, slots);
    /* But those that it could claim, as this node has given them to it. */
    if (about == to) memcpy(slots, clusterNodeSlots(about), sizeof(slots));
    messageWriteUpdate(&bytes, &h, about->epoch, about->id, slots);
    busSendTo(b, to, MESSAGE_UPDATE, &bytes);
    strFree(&bytes);
}

static void sendHeader(clusterBus *b, const clusterNode *to, messageType type,
                       const messageHeader *h) {
    str bytes = STR_EMPTY;
    messageWriteEmpty(&bytes, type, h);
    if (to) {
        busSendTo(b, to, type, &bytes);
    } else {
        sendToAll(b, type, &bytes);
    }
    strFree(&bytes);
}

void busSendEmpty(clusterBus *b, const clusterNode *to, messageType type, uint8_t flags) {
    messageHeader h = busHeader(b);
    h.flags |= flags;
    sendHeader(b, to, type, &h);
}

void busSendNack(clusterBus *b, const clusterNode *to, uint64_t epoch, enum nackReason why) {
    str bytes = STR_EMPTY;
    messageHeader h = busHeader(b);
    messageWriteNack(&bytes, &h, epoch, why);
    busSendTo(b, to, MESSAGE_AUTH_NACK, &bytes);
    strFree(&bytes);
}

void busAskAboutVoters(clusterBus *b) {
    messageHeader h = busHeader(b);
    h.own_flags |= MESSAGE_ABOUT_VOTERS;
    sendHeader(b, NULL, MESSAGE_AUTH_REQUEST, &h);
}

/* ------------------------------------------------------------------ of clients and modules */

/* A message in both forms; each is written when the first node needs it. */
typedef struct twoForms {
    str light, full;
} twoForms;

/* True if the node takes light messages on the present link. */
static bool takesLight(const clusterNode *to, uint32_t flag) {
    return to->flags & flag && to->links->to->is_greeted;
}

static bool isOpen(const clusterNode *n) {
    return n->links && n->links->to && n->links->to->is_open && !(n->flags & NODE_HANDSHAKE);
}

void busPublish(clusterBus *b, bool shard, slice channel, slice text) {
    twoForms forms = {STR_EMPTY, STR_EMPTY};
    messageType type = shard ? MESSAGE_PUBLISH_SHARD : MESSAGE_PUBLISH;
    check(b->map->node_count > 0);
    for (int i = 1; i < b->map->node_count; i++) {
        const clusterNode *to = b->map->nodes[i];
        if (!isOpen(to) || (shard && !clusterNodesShareShard(to, b->map->myself))) continue;
        bool light = takesLight(to, NODE_HAS_LIGHT_PUBLISH);
        str *form = light ? &forms.light : &forms.full;
        if (!form->len) {
            messageHeader h = busHeader(b);
            messageWritePublish(form, type, light ? NULL : &h, channel, text);
        }
        b->counts.pubsub_sent += form->len;
        busSendTo(b, to, type, form);
    }
    strFree(&forms.light);
    strFree(&forms.full);
}

static bool sendModule(clusterBus *b, const clusterNode *to, uint64_t module_id, uint8_t type,
                       slice payload) {
    if (!isOpen(to)) return false;
    str bytes = STR_EMPTY;
    messageHeader h = busHeader(b);
    bool light = takesLight(to, NODE_HAS_LIGHT_MODULE);
    messageWriteModule(&bytes, light ? NULL : &h, module_id, type, payload);
    b->counts.module_sent += bytes.len;
    busSendTo(b, to, MESSAGE_MODULE, &bytes);
    strFree(&bytes);
    return true;
}

bool busSendModule(clusterBus *b, const clusterNode *to, uint64_t module_id, uint8_t type,
                   slice payload) {
    if (to) return sendModule(b, to, module_id, type, payload);
    for (int i = 1; i < b->map->node_count; i++)
        (void)sendModule(b, b->map->nodes[i], module_id, type, payload); /* the others get it */
    return true;
}
