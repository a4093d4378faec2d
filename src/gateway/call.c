/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls (call.h): where they go, redirects, repetition. Redirects of other nodes are followed here
 * and never reach a client. Main thread only. */
#define _GNU_SOURCE /* memrchr() */
#include "gateway/call.h"

#include "base/base.h"
#include "base/number.h"
#include "cluster/owners.h"
#include "engine/hot.h"
#include "gateway/gateway_priv.h"
#include "gateway/peer.h"

enum {
    RETRY_MS = 20,
    REDIRECTS_MAX = 16,
    REPEATS_MAX = 3, /* a reply that is over a limit of its node ends the link each time */
    WAITING_MAX = 64 * 1024 * 1024, /* bytes of calls that wait */
};

/* The calls of a slot. */
typedef struct slotCalls {
    uint32_t count, waiting;
    const gatewayPeer *at; /* where those are that do not wait */
    bool is_mixed;         /* they are with several peers: nothing is added until all have ended */
    uint64_t tried;        /* the pass in which one of them could not be sent */
} slotCalls;

static struct {
    list waiting;
    size_t bytes, waiting_bytes;
    int64_t next_ms;
    uint64_t pass;
    slotCalls *slots; /* allocated with the first call */
} calls;

callCounts callStatistics;

static list *waitingCalls(void) {
    if (!calls.waiting.head.next) listInit(&calls.waiting);
    return &calls.waiting;
}

bool callsWait(void) { return !listIsEmpty(waitingCalls()); }

size_t callsMemory(void) { return calls.bytes; }

static slotCalls *slotOf(const gatewayCall *c) {
    return c->slot < 0 || c->flags & CALL_OWN_LINK ? NULL : &calls.slots[c->slot];
}

/* ------------------------------------------------------------------ admission */

/* The link to the node that owns the slot; NULL: none can be had now. */
static gatewayPeer *peerOfSlot(int slot) {
    const clusterNode *owner = clusterOwner(slot);
    return owner ? peerTo(owner) : NULL;
}

bool callMayStart(int slot, bool here) {
    check(slot >= 0);
    const slotCalls *s = calls.slots ? &calls.slots[slot] : NULL;
    if (here) return !s || !s->count;
    if (calls.waiting_bytes > WAITING_MAX) return false;
    if (s && s->count && (s->is_mixed || (s->waiting && s->waiting < s->count))) return false;
    if (s && s->waiting) return true;
    gatewayPeer *p = peerOfSlot(slot);
    if (!p) return !s || !s->count;
    if (peerIsFull(p)) return false;
    return !s || !s->count || s->at == p;
}

/* ------------------------------------------------------------------ the end of a call */

static void endCall(gatewayCall *c, str *reply) {
    check(!listHas(&c->node));
    slotCalls *s = slotOf(c);
    if (s) {
        check(s->count > 0);
        if (--s->count == 0) *s = (slotCalls){0};
    }
    size_t size = sizeof(*c) + c->user_len + c->client_len + c->request_len;
    check(calls.bytes >= size);
    calls.bytes -= size;
    c->end(c->owner, c->part, reply, c->flags & CALL_TRACKED);
    strFree(reply); /* what the owner has not taken */
    strFree(&c->early);
    memFree(c);
}

void callFail(gatewayCall *c, slice error) {
    str text = STR_EMPTY;
    check(error.len > 0);
    strAppendFormat(&text, "-%.*s\r\n", (int)error.len, error.ptr);
    endCall(c, &text);
}

static void giveUp(gatewayCall *c) {
    callStatistics.gave_up++;
    if (c->flags & CALL_OWN_LINK && c->slot >= 0 && clusterOwner(c->slot)) {
        callFail(c,
                 SLICE("ERR The node that has the keys cannot be reached, or too many clients of "
                       "the gateway use a connection of their own to it"));
        return;
    }
    callFail(c, c->slot >= 0 ? SLICE("CLUSTERDOWN Hash slot not served")
                             : SLICE("CLUSTERDOWN A node of the cluster cannot be reached"));
}

/* ------------------------------------------------------------------ where it goes */

static void wait(gatewayCall *c) {
    c->peer = NULL;
    c->skip = 0;
    c->flags &= ~(uint32_t)(CALL_ASKS | CALL_TRACKED);
    strClear(&c->early);
    if (engineHot.now_ms >= c->deadline_ms || c->flags & CALL_ONCE) {
        giveUp(c);
        return;
    }
    if (slotOf(c)) slotOf(c)->waiting++;
    calls.waiting_bytes += c->request_len;
    listAppend(waitingCalls(), &c->node);
}

static void stopWaiting(gatewayCall *c) {
    listRemove(waitingCalls(), &c->node);
    check(calls.waiting_bytes >= c->request_len);
    calls.waiting_bytes -= c->request_len;
    if (slotOf(c)) slotOf(c)->waiting--;
}

static gatewayPeer *peerFor(const gatewayCall *c, const clusterNode *n) {
    return c->flags & CALL_OWN_LINK ? peerAlone(n) : peerTo(n);
}

/* The watched keys may have changed, as their link has ended: EXEC replies as if they had. Another
 * WATCH succeeds, and EXEC will do so. */
static void abandonWatch(gatewayCall *c) {
    str null = strNew(c->proto == 3 ? SLICE("_\r\n") : SLICE("*-1\r\n")),
        ok = strNew(SLICE("+OK\r\n"));
    check(c->flags & CALL_ON_HELD);
    bool is_watch = c->flags & CALL_WATCHES;
    strFree(is_watch ? &null : &ok);
    endCall(c, is_watch ? &ok : &null);
}

/* True if the call is for a primary, or the node that takes over. */
static bool isForPrimary(const gatewayCall *c) {
    return c->flags & CALL_ALL_NODES && !(c->flags & (CALL_ONCE | CALL_BY_NODE | CALL_HISTORY));
}

/* The owner of the slots that the node of the call has had: itself, or the node of the same shard
 * that has taken over. A node that has given its slots away and become a replica is in another
 * shard, whose primary has a call of its own: NULL. */
static const clusterNode *findPrimary(const gatewayCall *c) {
    const clusterNode *n = clusterNodeOfId(sliceMake(c->node_id, NODE_ID_LEN));
    if (n && clusterNodeVotes(n)) return n;
    const clusterNode *heir =
        c->shard_id[0] ? clusterOwnerOfShard(sliceMake(c->shard_id, NODE_ID_LEN)) : NULL;
    if (heir) return heir;
    return n && n->flags & NODE_PRIMARY ? n : NULL;
}

static const clusterNode *findTarget(const gatewayCall *c) {
    if (!(c->flags & CALL_ALL_NODES)) return clusterOwner(c->slot);
    if (isForPrimary(c)) return findPrimary(c);
    return clusterNodeOfId(sliceMake(c->node_id, NODE_ID_LEN));
}

static void setNode(gatewayCall *c, slice id) {
    const clusterNode *n = clusterNodeOfId(id);
    memcpy(c->node_id, id.ptr, NODE_ID_LEN);
    if (n) memcpy(c->shard_id, n->shard_id, NODE_ID_LEN);
}

/* Adds it to its peer, or lets it wait. */
static void dispatch(gatewayCall *c) {
    const clusterNode *to = findTarget(c);
    slotCalls *s = slotOf(c);
    bool follows = s && s->tried == calls.pass; /* one before it waits again */
    gatewayPeer *p = NULL;
    if (c->flags & CALL_ON_HELD) {
        p = peerHeldBy(c->holder);
        if (!p) {
            abandonWatch(c);
            return;
        }
    } else if (to && !follows) {
        p = peerFor(c, to);
    }
    if (p) {
        if (s) s->at = p;
        peerAdd(p, c);
        return;
    }
    if (s) s->tried = calls.pass;
    wait(c);
}

void callStart(const callRequest *r) {
    check(r->request.len > 0);
    check(r->slot < SLOT_COUNT);
    if (!calls.slots) {
        calls.slots = memCalloc(SLOT_COUNT, sizeof(slotCalls));
        calls.pass = 1;
    }
    size_t size = sizeof(gatewayCall) + r->user.len + r->client.len + r->request.len;
    gatewayCall *c = memAlloc(size);
    *c = (gatewayCall){.end = r->end,
                       .owner = r->owner,
                       .holder = r->holder,
                       .part = r->part,
                       .slot = r->slot,
                       .flags = r->flags,
                       .db_id = r->db_id,
                       .proto = r->proto,
                       .extra = r->extra,
                       .deadline_ms = engineHot.now_ms + gatewayConf.cluster_gateway_retry_ms,
                       .user_len = r->user.len,
                       .client_len = r->client.len,
                       .request_len = r->request.len};
    /* Requests of this node have neither user nor client. */
    if (r->user.len) memcpy(c->bytes, r->user.ptr, r->user.len);
    if (r->client.len) memcpy(c->bytes + r->user.len, r->client.ptr, r->client.len);
    memcpy(c->bytes + r->user.len + r->client.len, r->request.ptr, r->request.len);
    if (r->node_id.len) setNode(c, r->node_id);
    calls.bytes += size;
    slotCalls *s = slotOf(c);
    if (s && s->count++ && s->waiting) {
        wait(c);
    } else {
        calls.pass++;
        dispatch(c);
    }
}

void callCancel(const void *owner) {
    const slice gone = SLICE("ERR The client has gone");
    for (listNode *n = listFirst(waitingCalls()), *next; n; n = next) {
        next = listNext(waitingCalls(), n);
        gatewayCall *c = LIST_OWNER(n, gatewayCall, node);
        if (c->owner != owner) continue;
        stopWaiting(c);
        callFail(c, gone);
        return;
    }
    gatewayCall *c = peerTakeBack(owner);
    if (c) callFail(c, gone);
}

void callsRetry(void) {
    if (!callsWait() || engineHot.now_ms < calls.next_ms) return;
    calls.next_ms = engineHot.now_ms + RETRY_MS;
    calls.pass++;
    for (size_t left = waitingCalls()->count; left > 0 && callsWait(); left--) {
        gatewayCall *c = LIST_OWNER(listFirst(waitingCalls()), gatewayCall, node);
        stopWaiting(c);
        dispatch(c);
    }
}

/* ------------------------------------------------------------------ replies */

/* MOVED and ASK of a node: "-MOVED 1234 host:port". */
typedef struct redirection {
    bool asks;
    slice host;
    int64_t port;
} redirection;

static bool parseRedirection(slice reply, redirection *out) {
    bool asks = sliceHasPrefix(reply, SLICE("-ASK "));
    if (!asks && !sliceHasPrefix(reply, SLICE("-MOVED "))) return false;
    const char *end = memchr(reply.ptr, '\r', reply.len);
    if (!end) return false;
    slice line = sliceMake(reply.ptr, (size_t)(end - reply.ptr));
    const char *colon = memrchr(line.ptr, ':', line.len);
    const char *blank = memrchr(line.ptr, ' ', line.len);
    if (!colon || !blank || colon < blank) return false;
    out->asks = asks;
    out->host = sliceMake(blank + 1, (size_t)(colon - blank) - 1);
    return numberParseInt(sliceMake(colon + 1, (size_t)(end - colon) - 1), &out->port);
}

/* Sends the call to the node that another one has named; it waits if there is no link to it. */
static void follow(gatewayCall *c, const redirection *to) {
    callStatistics.redirected++;
    const clusterNode *n = clusterNodeAt(to->host, (int)to->port);
    bool lasts = c->flags & CALL_UNIT && to->asks; /* until the slot has moved */
    if (c->flags & CALL_ON_HELD) {
        abandonWatch(c);
        return;
    }
    gatewayPeer *p = n && !lasts && c->redirects++ < REDIRECTS_MAX ? peerFor(c, n) : NULL;
    slotCalls *s = slotOf(c);
    c->skip = 0;
    strClear(&c->early);
    if (!p || c->slot < 0) {
        wait(c);
        return;
    }
    if (s && s->count > 1) s->is_mixed = true;
    if (s) s->at = p;
    c->flags = to->asks ? c->flags | CALL_ASKS : c->flags & ~(uint32_t)CALL_ASKS;
    peerAdd(p, c);
}

/* An error of a node that has executed nothing, and will do so later. */
static bool isPassing(slice error) {
    return sliceHasPrefix(error, SLICE("-TRYAGAIN ")) ||
           sliceHasPrefix(error, SLICE("-CLUSTERDOWN ")) ||
           sliceHasPrefix(error, SLICE("-LOADING "));
}

/* The node has become a replica, and has not executed the command: another one has its slots. */
static bool isDemoted(const gatewayCall *c, slice error) {
    return isForPrimary(c) && sliceHasPrefix(error, SLICE("-READONLY "));
}

void callReplied(gatewayCall *c, slice reply) {
    check(!listHas(&c->node));
    redirection to;
    bool failed = reply.ptr[0] == '-';
    slice early = strSlice(&c->early);
    bool is_refused = early.len && !(c->flags & CALL_UNIT) && (failed || c->extra);
    slice said = is_refused ? early : reply;
    /* A node of an older version does not know GATEWAY TRACK, and executes the request. */
    if (early.len) c->flags &= ~(uint32_t)CALL_TRACKED;
    gatewayPeer *from = c->peer;
    c->peer = NULL;
    if (from && failed && c->flags & CALL_ON_HELD) peerDrop(c->holder); /* it may watch still */
    if (from) peerRelease(from, failed || !(c->flags & CALL_WATCHES) ? NULL : c->holder);
    if (failed && (parseRedirection(reply, &to) || parseRedirection(early, &to))) {
        follow(c, &to);
    } else if (failed && (isPassing(said) || isPassing(early) || isDemoted(c, said))) {
        wait(c);
    } else {
        str copy = STR_EMPTY;
        if (early.len && c->flags & CALL_UNIT && sliceHasPrefix(reply, SLICE("-EXECABORT "))) {
            strAppendText(&copy, "-EXECABORT Transaction discarded because of: ");
            strAppend(&copy, early.ptr + 1, early.len - 1);
        } else {
            strAppendSlice(&copy, said);
        }
        endCall(c, &copy);
    }
}

void callLost(gatewayCall *c, bool was_sent) {
    check(!listHas(&c->node));
    if (!was_sent && c->flags & CALL_ON_HELD) {
        abandonWatch(c);
        return;
    }
    if (was_sent && !(c->flags & CALL_READS)) {
        callStatistics.unknown++;
        callFail(c, SLICE("UNKNOWN The command may have been executed: the connection to its node "
                          "has ended"));
        return;
    }
    if (was_sent && c->repeats++ >= REPEATS_MAX) {
        callStatistics.gave_up++;
        callFail(c,
                 SLICE("ERR The connection to the node that has the keys has ended each time that "
                       "the command was sent"));
        return;
    }
    if (was_sent) {
        callStatistics.repeated++;
        c->deadline_ms = engineHot.now_ms + gatewayConf.cluster_gateway_retry_ms;
    }
    wait(c);
}
