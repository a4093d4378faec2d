/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GATEWAY LINK, AS and FOR (identity.h). Invariant: the user of a connection is changed only if
 * it is proven. While the user that was named last does not exist here or is off, a gate refuses
 * all requests but those that name another one: some may be in the same packet. Main thread
 * only. */
#include "gateway/identity.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/bus_secret.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "engine/session_slot.h"
#include "engine/user.h"
#include "gateway/gateway.h"
#include "gateway/procs.h"
#include "pubsub/pubsub.h"

typedef struct gatewayLink {
    busSecret secret;
    bool is_proven;
    const user *named; /* the session's user; NULL: none was named, or it was removed */
    str client;        /* address, blank, name; empty: none was named */
} gatewayLink;

static int proven_links;

static void freeLink(session *s, void *state) {
    gatewayLink *link = state;
    s->flags &= ~SESSION_NODE_LINK;
    proven_links -= link->is_proven;
    strFree(&link->client);
    memFree(link);
}

static const sessionSlot slot = {.name = "gateway-link", .free = freeLink};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&slot);
    return index;
}

int identityLinks(void) { return proven_links; }

void identityKey(str *out) {
    strAppendText(out, "gateway:");
    strAppendSlice(out, clusterSecret());
}

/* The state of the exchange; a connection that begins anew loses what it has proven. */
static gatewayLink *beginLink(session *s) {
    uint8_t nonce[SECRET_NONCE_LEN];
    str nothing = STR_EMPTY;
    gatewayLink *link = sessionSlotGet(s, slotIndex());
    if (link) freeLink(s, link);
    link = memCalloc(1, sizeof(*link));
    randomSecret(nonce, sizeof(nonce));
    busSecretInit(&link->secret, true, nonce, &nothing);
    strFree(&nothing);
    sessionSlotSet(s, slotIndex(), link);
    return link;
}

static gateVerdict refuseNobody(ctx *c) {
    if (c->cmd->parent && sliceEqual(c->cmd->parent->name, SLICE("gateway"))) return GATE_PASS;
    replyError(c, SLICE(IDENTITY_NOBODY));
    return GATE_REFUSED;
}

const gate gatewayUserGate = {
    .name = "gateway-user", .admit = refuseNobody, .origins = GATE_FOR_CLIENTS};

void identityUserChanged(session *s) {
    gatewayLink *link = sessionSlotGet(s, slotIndex());
    check(link);
    if (s->user != link->named) link->named = NULL;
    gateArmSession(s, &gatewayUserGate, !link->named || !userIsOn(link->named));
}

/* GATEWAY LINK bytes: one step of the exchange. Reply: the bytes of this end; OK when the other end
 * has proven that it knows the secret. */
void gatewayLinkCommand(ctx *c) {
    if (!clusterIsEnabled() || !clusterSecret().len) {
        replyError(c, SLICE("ERR This node has no cluster-bus-secret"));
        return;
    }
    gatewayLink *link = sessionSlotGet(c->who, slotIndex());
    if (!link || !link->secret.has_peer_nonce || link->is_proven) link = beginLink(c->who);
    str out = STR_EMPTY, key = STR_EMPTY;
    slice bytes = c->argv[2];
    identityKey(&key);
    secretVerdict verdict = busSecretTake(&link->secret, strSlice(&key), &bytes, &out);
    if (verdict == SECRET_PROVEN && !bytes.len) {
        link->is_proven = true;
        proven_links++;
        sessionSetAuthenticated(c->who, userFind(SLICE("default")), true);
        c->who->flags |= SESSION_NODE_LINK;
        identityUserChanged(c->who); /* nobody's until GATEWAY AS names a user */
        replyOk(c);
    } else if (verdict == SECRET_PENDING && out.len) {
        replyBulk(c, strSlice(&out));
    } else {
        (void)beginLink(c->who);
        replyError(c, SLICE("NOPERM The other node does not know cluster-bus-secret"));
    }
    strFree(&out);
    strFree(&key);
}

static bool findServed(const session *s, slice *peer, slice *name) {
    const gatewayLink *link = sessionSlotGet(s, slotIndex());
    if (!link || !link->client.len) return false;
    slice all = strSlice(&link->client);
    const char *blank = memchr(all.ptr, ' ', all.len);
    check(blank); /* as gatewayForCommand() has seen */
    *peer = sliceMake(all.ptr, (size_t)(blank - all.ptr));
    *name = sliceMake(blank + 1, all.len - peer->len - 1);
    return true;
}

void identityInit(void) { sessionSetServedProc(findServed); }

bool identityIsLink(ctx *c) {
    const gatewayLink *link = sessionSlotGet(c->who, slotIndex());
    if (link && link->is_proven) return true;
    replyError(c, SLICE("NOPERM The connection has not proven that it knows cluster-bus-secret"));
    return false;
}

/* GATEWAY CHANGED: WAIT of this connection waits for all changes so far. */
void gatewayChangedCommand(ctx *c) {
    if (!identityIsLink(c)) return;
    propagateNoteAll(c->who);
    replyOk(c);
}

/* GATEWAY RECEIVERS channel. Reply: the number of deliveries of a message here. */
void gatewayReceiversCommand(ctx *c) {
    if (identityIsLink(c)) replyInteger(c, (int64_t)pubsubReceivers(c->argv[2]));
}

/* GATEWAY FOR client: the requests that follow are those of a client with this address and, after a
 * blank, this name. */
void gatewayForCommand(ctx *c) {
    enum { CLIENT_BYTES_MAX = 64 * 1024 };
    gatewayLink *link = sessionSlotGet(c->who, slotIndex());
    slice client = c->argv[2];
    if (!identityIsLink(c)) return;
    bool is_text = client.len > 1 && client.ptr[0] != ' ' && client.len <= CLIENT_BYTES_MAX;
    for (size_t i = 0; i < client.len && is_text; i++)
        is_text = client.ptr[i] >= ' ' && client.ptr[i] <= '~';
    if (!is_text || !memchr(client.ptr, ' ', client.len)) {
        replyError(c, SLICE("ERR Invalid client"));
        return;
    }
    strClear(&link->client);
    strAppendSlice(&link->client, client);
    replyOk(c);
}

/* GATEWAY AS user db proto: the requests that follow are those of this user; an empty name: they
 * are GATEWAY ... alone, which the other node sends for itself. */
void gatewayAsCommand(ctx *c) {
    session *s = c->who;
    gatewayLink *link = sessionSlotGet(c->who, slotIndex());
    int64_t db_id, proto;
    if (!identityIsLink(c)) return;
    link->named = NULL;
    gateArmSession(s, &gatewayUserGate, true);
    if (!ctxArgInt(c, 3, &db_id) || !ctxArgIntIn(c, 4, 2, 3, &proto, "NOPROTO unsupported")) return;
    slice name = c->argv[2];
    user *who = name.len ? userFind(name) : NULL;
    if (!name.len) {
        ctxSetProto(c, (int)proto);
        sessionSetAuthenticated(s, userFind(SLICE("default")), true);
        replyOk(c);
    } else if (!who || !userIsOn(who)) {
        replyError(c, SLICE(IDENTITY_NOBODY));
    } else if (sessionSelect(s, db_id) != OK) {
        replyError(c, ERR_DB_RANGE_TEXT);
    } else {
        sessionSetAuthenticated(s, who, true);
        ctxSetProto(c, (int)proto);
        link->named = who;
        identityUserChanged(s);
        replyOk(c);
    }
}
