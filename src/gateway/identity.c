/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GATEWAY LINK and GATEWAY AS (identity.h). Invariant: the user of a connection is changed only if
 * it is proven; if the user does not exist here or is off, a gate refuses all requests until
 * the next change: some may be in the same packet. Main thread only. */
#include "gateway/identity.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/bus_secret.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "engine/user.h"
#include "gateway/gateway.h"
#include "gateway/procs.h"
#include "pubsub/pubsub.h"
#include "repl/repl.h"

typedef struct gatewayLink {
    busSecret secret;
    bool is_proven;
} gatewayLink;

static int proven_links;

static void freeLink(session *s, void *state) {
    (void)s; /* it ends */
    gatewayLink *link = state;
    proven_links -= link->is_proven;
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
    replyError(c, SLICE("NOPERM The node that owns the key does not have this user"));
    return GATE_REFUSED;
}

const gate gatewayUserGate = {
    .name = "gateway-user", .admit = refuseNobody, .origins = GATE_FOR_CLIENTS};

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
        gateArmSession(c->who, &gatewayUserGate, true); /* until GATEWAY AS names a user */
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

bool identityIsLink(ctx *c) {
    const gatewayLink *link = sessionSlotGet(c->who, slotIndex());
    if (link && link->is_proven) return true;
    replyError(c, SLICE("NOPERM The connection has not proven that it knows cluster-bus-secret"));
    return false;
}

/* GATEWAY CHANGED: WAIT of this connection waits for all changes so far. */
void gatewayChangedCommand(ctx *c) {
    if (!identityIsLink(c)) return;
    replNoteOffset(c->who);
    propagateNoteAll(c->who);
    replyOk(c);
}

/* GATEWAY RECEIVERS channel. Reply: the number of deliveries of a message here. */
void gatewayReceiversCommand(ctx *c) {
    if (identityIsLink(c)) replyInteger(c, (int64_t)pubsubReceivers(c->argv[2]));
}

/* GATEWAY AS user db proto: the requests that follow are those of this user. */
void gatewayAsCommand(ctx *c) {
    session *s = c->who;
    int64_t db_id, proto;
    if (!identityIsLink(c)) return;
    gateArmSession(s, &gatewayUserGate, true);
    if (!ctxArgInt(c, 3, &db_id) || !ctxArgIntIn(c, 4, 2, 3, &proto, "NOPROTO unsupported")) return;
    user *who = userFind(c->argv[2]);
    if (!who || !userIsOn(who)) {
        replyError(c, SLICE("NOPERM The node that owns the key does not have this user"));
    } else if (sessionSelect(s, db_id) != OK) {
        replyError(c, ERR_DB_RANGE_TEXT);
    } else {
        sessionSetAuthenticated(s, who, true);
        ctxSetProto(c, (int)proto);
        gateArmSession(s, &gatewayUserGate, false);
        replyOk(c);
    }
}
