/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients of cluster-gateway-port (client.h). A command for keys of this node runs as for any other
 * client; the gate takes the others and starts calls. While calls of a client have not ended, what
 * it is replied otherwise is taken out of its output before that is written, and waits in its order
 * of replies.
 *
 * Invariant: the output up to `may_leave` (counted as session.bytes_out is) precedes all places of
 * the order; what is beyond it follows them. Main thread only. */
#include "gateway/client.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/deliver.h"
#include "engine/execute.h"
#include "engine/expiry_gate.h"
#include "engine/hot.h"
#include "engine/job_gate.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "engine/user.h"
#include "engine/watch.h"
#include "format/aof_reader.h"
#include "gateway/caching.h"
#include "gateway/client_priv.h"
#include "gateway/gateway.h"
#include "gateway/gateway_priv.h"
#include "gateway/info.h"
#include "gateway/peer.h"
#include "gateway/scan.h"
#include "gateway/shard.h"
#include "gateway/split.h"
#include "pubsub/pubsub.h"

enum {
    ORDER_BYTES_MAX = 8 * 1024 * 1024, /* replies of one client that wait for others */
    ORDER_PLACES_MAX = 4096,
    LABEL_NAME_MAX = 1024, /* bytes of its name that other nodes are told */
};

static struct {
    list active, held, tried;
    gatewayCounts counts;
    scanPrints *prints; /* allocated with the first SCAN */
    bool progress;      /* since the last gatewayResume() */
    int64_t resume_ms;
    route *routes; /* by command id */
    int route_count;
} clients;

static list *activeClients(void) {
    if (!clients.active.head.next) {
        listInit(&clients.active);
        listInit(&clients.held);
        listInit(&clients.tried);
    }
    return &clients.active;
}

gatewayCounts gatewayCountsNow(void) {
    clients.counts.held = (int)clients.held.count;
    return clients.counts;
}

static void freeClient(session *s, void *state) {
    gatewayClient *gc = state;
    (void)s; /* it ends */
    strFree(&gc->peer);
    strFree(&gc->label);
    memFree(gc);
}

static size_t clientMemory(const void *state) {
    const gatewayClient *gc = state;
    return sizeof(*gc) + gc->order.bytes;
}

static const sessionSlot slot = {.name = "gateway", .free = freeClient, .memory = clientMemory};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&slot);
    return index;
}

/* ------------------------------------------------------------------ places */

static void freePlace(gatewayPlace *p) {
    check(p->waiting == 0);
    for (int i = 0; i < p->count; i++) strFree(&p->replies[i]);
    for (int i = 0; p->keys && i < p->count; i++) strFree(&p->keys[i]);
    memFree(p->replies);
    memFree(p->keys);
    memFree(p->positions);
    memFree(p);
}

/* The place has left the order. */
static void placeLeft(replyPlace *at) {
    gatewayPlace *p = CONTAINER_OF(at, gatewayPlace, at);
    p->client = NULL;
    if (p->waiting == 0) {
        freePlace(p);
    } else if (p->is_alone) {
        /* They may wait for ever; the last one frees the place. */
        for (int left = p->waiting; left > 0; left--) callCancel(p);
    }
}

static void mergePlace(gatewayPlace *p, str *whole) {
    slice *all = memNewArray(slice, (size_t)p->count);
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        bool has_failed = p->replies[i].ptr[0] == '-';
        bool is_dropped = has_failed && (p->is_shared || (p->is_lenient && i > 0));
        if (!is_dropped) all[count++] = strSlice(&p->replies[i]);
    }
    if (!count) all[count++] = strSlice(&p->replies[0]);
    if (p->is_info) {
        infoSumKeyspaces(p->proto, all[0], p->counts_here, all + 1, count - 1, whole);
    } else {
        mergeReplies(&(mergeParts){.kind = p->merge,
                                   .replies = all,
                                   .count = count,
                                   .positions = p->positions,
                                   .total = p->total},
                     whole);
    }
    memFree(all);
}

static void completePlace(gatewayPlace *p) {
    str whole = STR_EMPTY;
    if (!p->client) {
        freePlace(p);
        return;
    }
    if (p->is_silent) {
        /* Nothing is replied. */
    } else if (p->is_scan) {
        scanReplyTranslate(clients.prints, strSlice(&p->replies[0]), hashSlot, &whole);
    } else if (p->count == 1 && p->merge == MERGE_FIRST) {
        whole = p->replies[0];
        p->replies[0] = STR_EMPTY;
    } else {
        mergePlace(p, &whole);
    }
    replyOrderFill(&p->client->order, &p->at, &whole);
}

void gatewayPartEnded(void *owner, int part, str *reply, bool is_tracked) {
    gatewayPlace *p = owner;
    check(p->waiting > 0);
    check(part < p->count);
    str keys = STR_EMPTY;
    uint32_t tracking = p->tracking;
    session *who = p->client ? p->client->who : NULL;
    bool has_failed = reply->ptr[0] == '-';
    if (tracking) {
        keys = p->keys[part];
        p->keys[part] = STR_EMPTY;
    }
    p->replies[part] = *reply;
    *reply = STR_EMPTY;
    if (--p->waiting == 0) completePlace(p);
    /* What the client is told of keys follows its reply. */
    if (keys.len) cachingEnded(who, tracking, strSlice(&keys), has_failed, is_tracked);
    strFree(&keys);
}

/* ------------------------------------------------------------------ output */

/* Moves what was replied since the last call from the output to the order. */
static void takeFollowing(gatewayClient *gc) {
    str following = STR_EMPTY;
    check(!(gc->who->flags & SESSION_LENT));
    sessionCutOutput(gc->who, gc->may_leave, &following);
    if (following.len) replyOrderFollow(&gc->order, strSlice(&following));
    strFree(&following);
}

gatewayPlace *gatewayKeepPlace(gatewayClient *gc, ctx *c, int count, mergeKind merge) {
    gatewayPlace *p = memCalloc(1, sizeof(*p));
    check(count > 0);
    if (replyOrderIsEmpty(&gc->order)) {
        gc->may_leave = sessionOutputEnd(gc->who);
        listAppend(activeClients(), &gc->active);
    } else {
        takeFollowing(gc);
    }
    p->client = gc;
    p->is_silent = outbufIsNull(c->out);
    p->waiting = p->count = count;
    p->merge = merge;
    p->proto = c->proto;
    p->replies = memCalloc((size_t)count, sizeof(str));
    p->tracking = cachingOf(c);
    if (p->tracking) p->keys = memCalloc((size_t)count, sizeof(str));
    replyOrderKeep(&gc->order, &p->at);
    return p;
}

/* A session that is to be closed after its output, which is not complete: it is closed later. Until
 * then it runs nothing. */
static void deferClose(gatewayClient *gc) {
    session *s = gc->who;
    if (!(s->flags & SESSION_CLOSE_SOON) || listHas(&gc->held)) return;
    gc->is_closing = true;
    s->flags = (s->flags & ~SESSION_CLOSE_SOON) | SESSION_PAUSED;
}

/* False: the session's output cannot be changed now. */
static bool settle(gatewayClient *gc) {
    session *s = gc->who;
    if (s->flags & SESSION_LENT || sessionIsExecuting(s)) return false;
    str ready = STR_EMPTY;
    bool only_messages = gc->is_exclusive && replyOrderWaits(&gc->order) &&
                         !(s->flags & SESSION_CLOSE_SOON) && !gc->is_closing;
    if (only_messages) {
        gc->may_leave = sessionOutputEnd(s); /* a client that is blocked gets them at once */
    } else {
        takeFollowing(gc);
    }
    deferClose(gc);
    replyOrderTake(&gc->order, &ready, placeLeft);
    if (ready.len) {
        sessionAddReply(s, strSlice(&ready));
        gc->may_leave = sessionOutputEnd(s);
    }
    strFree(&ready);
    if (!replyOrderIsEmpty(&gc->order)) return true;
    listRemove(activeClients(), &gc->active);
    clients.progress = true;
    if (!gc->is_closing) return true;
    gc->is_closing = false;
    s->flags &= ~SESSION_PAUSED;
    sessionCloseSoon(s);
    return true;
}

/* Drops the state that was kept for a request, also if another gate has refused it. Clients whose
 * request is held again keep theirs. */
static void endTried(void) {
    if (engineHot.current) return; /* the request may be the one that runs */
    for (listNode *n; (n = listFirst(&clients.tried));) {
        gatewayClient *gc = LIST_OWNER(n, gatewayClient, tried);
        listRemove(&clients.tried, n);
        if (listHas(&gc->held)) continue;
        gc->give_up_ms = 0;
        gatewayFetchEnd(gc);
        cachingRequestEnded(gc->who);
    }
}

void gatewaySettle(void) {
    list *all = activeClients();
    endTried();
    bool later = false;
    for (listNode *n = listFirst(all), *next; n; n = next) {
        next = listNext(all, n);
        if (!settle(LIST_OWNER(n, gatewayClient, active))) later = true;
    }
    if (later || (clients.progress && clients.held.count)) engineStayAwake();
}

/* ------------------------------------------------------------------ holding requests back */

gateVerdict gatewayHold(gatewayClient *gc, bool stops_reading) {
    session *s = gc->who;
    check(!listHas(&gc->held));
    (void)activeClients(); /* initialises both lists */
    s->flags |= SESSION_PAUSED;
    listAppend(&clients.held, &gc->held);
    clients.counts.holds++;
    gc->stopped = stops_reading;
    if (stops_reading) s->carrier->pause_reading(s, true);
    return GATE_HELD;
}

void gatewayProgress(void) { clients.progress = true; }

void gatewayResume(void) {
    enum { AGAIN_MS = 20 }; /* slots and links change without notice */
    if (!clients.held.count || engineHot.current) return;
    if (!clients.progress && engineHot.now_ms < clients.resume_ms) return;
    clients.progress = false;
    clients.resume_ms = engineHot.now_ms + AGAIN_MS;
    /* Some may be held again at once. */
    for (size_t left = clients.held.count; left > 0 && clients.held.count; left--) {
        gatewayClient *gc = LIST_OWNER(listFirst(&clients.held), gatewayClient, held);
        session *s = gc->who;
        listRemove(&clients.held, &gc->held);
        if (!listHas(&gc->tried)) listAppend(&clients.tried, &gc->tried);
        s->flags &= ~SESSION_PAUSED;
        /* Also if it was not stopped here: net does so if bytes, or the end, come while a request
         * that is held again is in the batch. */
        s->carrier->pause_reading(s, false);
        gc->stopped = false;
        s->carrier->resume(s);
    }
}

static bool isScript(const command *cmd) {
    return cmd->spec->categories & UINT64_C(1) << CAT_SCRIPTING;
}

/* Commands in which other clients may be served, while the output of their session must not be
 * looked at. */
static bool mayTakeLong(const ctx *c) {
    return c->cmd->flags & (CMD_ADMIN | CMD_MODULE | CMD_RUNS_QUEUE) || isScript(c->cmd);
}

/* The command runs here, as for any other client. */
static gateVerdict passHere(gatewayClient *gc, const ctx *c) {
    return mayTakeLong(c) && !replyOrderIsEmpty(&gc->order) ? gatewayHold(gc, true) : GATE_PASS;
}

/* ------------------------------------------------------------------ routes */

void gatewayCommandsChanged(void) {
    memFree(clients.routes);
    clients.routes = NULL;
    clients.route_count = 0;
}

static route routeOfCommand(const command *cmd) {
    if (cmd->id >= clients.route_count) {
        gatewayCommandsChanged();
        clients.route_count = commandIdCount();
        clients.routes = memNewArray(route, (size_t)clients.route_count);
        for (int i = 0; i < clients.route_count; i++) {
            const command *one = commandById(i);
            str name = STR_EMPTY;
            if (one->parent) strAppendFormat(&name, "%s|", one->parent->spec->name);
            strAppendText(&name, one->spec->name);
            clients.routes[i] = routeOf(strSlice(&name), one->spec);
            strFree(&name);
        }
    }
    return clients.routes[cmd->id];
}

/* ------------------------------------------------------------------ calls */

/* True if rights are checked while the command runs, beyond its keys. */
static bool needsProof(const command *cmd, const slice *argv, int argc) {
    if (isScript(cmd) || cmd->flags & CMD_MODULE) return true;
    if (!sliceEqual(cmd->name, SLICE("sort")) && !sliceEqual(cmd->name, SLICE("sort_ro")))
        return false;
    for (int i = 2; i < argc; i++)
        if (sliceIs(argv[i], "by") || sliceIs(argv[i], "get")) return true;
    return false;
}

static uint32_t flagsOf(const ctx *c) {
    uint32_t flags = 0;
    if (c->cmd->flags & CMD_READONLY && !isScript(c->cmd)) flags |= CALL_READS;
    if (needsProof(c->cmd, c->argv, c->argc)) flags |= CALL_PROVEN;
    return flags;
}

slice gatewayLabel(const session *s) {
    gatewayClient *gc = sessionSlotGet(s, slotIndex());
    if (!gc->peer.len) sessionPeer(s, &gc->peer);
    strClear(&gc->label);
    strAppendSlice(&gc->label, strSlice(&gc->peer));
    strAppendByte(&gc->label, ' ');
    slice name = sessionName(s);
    strAppendSlice(&gc->label, sliceMake(name.ptr, sizeMin(name.len, LABEL_NAME_MAX)));
    return strSlice(&gc->label);
}

callRequest gatewayRequestOf(const ctx *c, gatewayPlace *p, int part) {
    return (callRequest){.user = userNameOf(c->who),
                         .client = gatewayLabel(c->who),
                         .slot = -1,
                         .db_id = c->who->db_id,
                         .proto = c->proto,
                         .part = part,
                         .flags = flagsOf(c) | cachingCallFlags(p->tracking),
                         .end = gatewayPartEnded,
                         .owner = p};
}

/* Counts a request that is executed elsewhere, all of it. */
static void countElsewhere(const ctx *c) {
    pubsubPassedOn(c);
    clients.counts.elsewhere++;
    executeCountCall(c);
}

void gatewayCountMerged(const ctx *c, bool any_here) {
    pubsubPassedOn(c);
    clients.counts.merged++;
    if (!any_here) executeCountCall(c);
}

/* Sends the arguments to the node that has the slot, as a part of the request. */
static void sendPart(ctx *c, gatewayPlace *p, int part, int slot, int argc, const slice *argv) {
    callRequest r = gatewayRequestOf(c, p, part);
    str bytes = STR_EMPTY;
    aofPrintCommand(&bytes, argc, argv);
    if (p->tracking) cachingAppendKeys(&p->keys[part], c->cmd, argv, argc);
    r.slot = slot;
    r.request = strSlice(&bytes);
    callStart(&r);
    strFree(&bytes);
}

static gateVerdict callSlot(gatewayClient *gc, ctx *c, int slot) {
    if (!callMayStart(slot, false)) return gatewayHold(gc, true);
    gatewayPlace *p = gatewayKeepPlace(gc, c, 1, MERGE_FIRST);
    callRequest r = gatewayRequestOf(c, p, 0);
    const request *sent = c->request;
    str bytes = STR_EMPTY;
    r.slot = slot;
    if (sent && sent->argv == c->argv && sent->raw.len && !sent->large_count) {
        r.request = sent->raw;
    } else {
        aofPrintCommand(&bytes, c->argc, c->argv);
        r.request = strSlice(&bytes);
    }
    if (p->tracking) cachingAppendKeys(&p->keys[0], c->cmd, c->argv, c->argc);
    callStart(&r);
    strFree(&bytes);
    countElsewhere(c);
    return GATE_DONE;
}

/* On a link of its own; the client starts nothing else until the reply has come. */
static gateVerdict callAlone(gatewayClient *gc, ctx *c, int slot, uint32_t flags) {
    if (!replyOrderIsEmpty(&gc->order)) return gatewayHold(gc, true);
    gatewayPlace *p = gatewayKeepPlace(gc, c, 1, MERGE_FIRST);
    callRequest r = gatewayRequestOf(c, p, 0);
    str bytes = STR_EMPTY;
    aofPrintCommand(&bytes, c->argc, c->argv);
    r.slot = slot;
    r.flags |= CALL_OWN_LINK | flags;
    r.holder = gc;
    r.request = strSlice(&bytes);
    p->is_alone = gc->is_exclusive = true;
    if (p->tracking) cachingAppendKeys(&p->keys[0], c->cmd, c->argv, c->argc);
    callStart(&r);
    strFree(&bytes);
    countElsewhere(c);
    return GATE_DONE;
}

uint64_t gatewayGatesAsked(void) {
    return gateMask(&gatewayGate) | gateMask(&pauseGate) | gateMask(&clusterRedirectGate) |
           gateMask(&jobGate) | gateMask(&expiryGate);
}

void gatewayRunHere(ctx *c, int argc, const slice *argv, str *out) {
    ctx inner;
    outbuf buf;
    size_t len;
    outbufInit(&buf);
    ctxInitInner(&inner, c);
    inner.argv = argv;
    inner.argc = argc;
    inner.out = &buf;
    inner.gates_exempt = gatewayGatesAsked();
    executeInner(&inner);
    char *bytes = outbufCopy(&buf, &len);
    strAppend(out, bytes, len);
    memFree(bytes);
    outbufClear(&buf);
}

/* True if the gate applies to the command. */
static bool gateSelects(const gate *g, const command *cmd) { return cmd->gates & gateMask(g); }

bool gatewayIsPaused(ctx *c) {
    return gateIsArmed(&pauseGate) && gateSelects(&pauseGate, c->cmd) &&
           pauseGate.admit(c) == GATE_HELD;
}

void gatewayEndPart(gatewayPlace *p, ctx *c, int part, int argc, const slice *argv) {
    str reply = STR_EMPTY;
    gatewayRunHere(c, argc, argv, &reply);
    gatewayPartEnded(p, part, &reply, true);
}

/* ------------------------------------------------------------------ several slots, all nodes */

/* False: a part has to wait for calls before it. */
static bool mayStartAll(const splitRequest *split) {
    for (int i = 0; i < split->count; i++)
        if (!callMayStart(split->parts[i].slot, clusterServesSlot(split->parts[i].slot)))
            return false;
    return true;
}

static gateVerdict callParts(gatewayClient *gc, ctx *c, const splitRequest *split,
                             mergeKind merge) {
    bool any_here = false;
    for (int i = 0; i < split->count; i++)
        any_here = any_here || clusterServesSlot(split->parts[i].slot);
    if (!mayStartAll(split)) return gatewayHold(gc, true);
    if (any_here && gatewayIsPaused(c)) return GATE_HELD;
    gatewayPlace *p = gatewayKeepPlace(gc, c, split->count, merge);
    if (merge == MERGE_VALUES) {
        p->total = split->key_count;
        p->positions = memNewArray(int, (size_t)split->key_count);
        memcpy(p->positions, split->positions, (size_t)split->key_count * sizeof(int));
    }
    for (int i = 0; i < split->count; i++) {
        const splitPart *part = &split->parts[i];
        if (clusterServesSlot(part->slot)) {
            gatewayEndPart(p, c, i, part->argc, part->argv);
            continue;
        }
        sendPart(c, p, i, part->slot, part->argc, part->argv);
    }
    gatewayCountMerged(c, any_here);
    return GATE_DONE;
}

/* SCAN: CLUSTERSCAN at the node that has the slot of the cursor. */
static gateVerdict admitScan(gatewayClient *gc, ctx *c) {
    str text = STR_EMPTY, after = STR_EMPTY;
    int slot;
    if (!clients.prints) clients.prints = memCalloc(1, sizeof(scanPrints));
    if (!scanCursorRead(clients.prints, c->argv[1], &slot, &text, &after)) {
        replyError(c, SLICE("ERR invalid cursor"));
        return GATE_REFUSED;
    }
    bool here = clusterServesSlot(slot);
    if (!callMayStart(slot, here)) {
        strFree(&text);
        strFree(&after);
        return gatewayHold(gc, true);
    }
    strAppendByte(&text, '{');
    strAppendSlice(&text, clusterSlotTag(slot));
    strAppendByte(&text, '}');
    strAppendSlice(&text, strSlice(&after));
    slice *argv = memNewArray(slice, (size_t)c->argc);
    memcpy(argv, c->argv, (size_t)c->argc * sizeof(slice));
    argv[0] = SLICE("CLUSTERSCAN");
    argv[1] = strSlice(&text);
    gatewayPlace *p = gatewayKeepPlace(gc, c, 1, MERGE_FIRST);
    p->is_scan = true;
    if (here) {
        gatewayEndPart(p, c, 0, c->argc, argv);
    } else {
        sendPart(c, p, 0, slot, c->argc, argv);
        executeCountCall(c);
    }
    memFree(argv);
    strFree(&text);
    strFree(&after);
    return GATE_DONE;
}

/* ------------------------------------------------------------------ transactions */

static const slice several_slots = SLICE(
    "CROSSSLOT Keys of one command or transaction must be in one slot here: give them a common hash "
    "tag, as in {user1}:a and {user1}:b");

static bool mayGoElsewhere(void *arg, const command *cmd, const slice *argv, int argc) {
    const char **name = arg;
    if (commandSlots(COMMAND_NO_SLOT, cmd, argv, argc) >= 0 || routeMayBeQueued(cmd->name))
        return true;
    *name = cmd->spec->name;
    return false;
}

typedef struct queuedRequests {
    str bytes;
    str *keys; /* of what a client that tracks reads and changes; NULL: of others */
    int count;
    uint32_t flags;
} queuedRequests;

static bool appendQueued(void *arg, const command *cmd, const slice *argv, int argc) {
    queuedRequests *q = arg;
    if (needsProof(cmd, argv, argc)) q->flags |= CALL_PROVEN;
    if (q->keys) cachingAppendKeys(q->keys, cmd, argv, argc);
    aofPrintCommand(&q->bytes, argc, argv);
    q->count++;
    return true;
}

static void forgetWatch(gatewayClient *gc) {
    if (gc->watch_slot >= 0) peerDrop(gc);
    gc->watch_slot = -1;
}

/* EXEC is refused. */
static void endTransaction(ctx *c) {
    transactionDiscard(c->who);
    c->flags &= ~(uint32_t)CTX_ADMISSION;
}

/* EXEC of a transaction on keys of another node. */
static gateVerdict callTransaction(gatewayClient *gc, ctx *c, int slot) {
    const char *name = NULL;
    if (!transactionEach(c->who, mayGoElsewhere, &name)) {
        forgetWatch(gc);
        endTransaction(c);
        replyErrorFormat(c,
                         "EXECABORT Transaction discarded because of: '%s' cannot be executed by "
                         "the node that has the keys",
                         name);
        return GATE_REFUSED;
    }
    bool watches = gc->watch_slot >= 0;
    if (watches ? !replyOrderIsEmpty(&gc->order) : !callMayStart(slot, false))
        return gatewayHold(gc, true);
    gatewayPlace *p = gatewayKeepPlace(gc, c, 1, MERGE_FIRST);
    queuedRequests q = {.bytes = STR_EMPTY, .keys = p->tracking ? &p->keys[0] : NULL};
    slice multi = SLICE("MULTI");
    bool reads = !transactionHas(c->who, CMD_WRITE | CMD_MAY_REPLICATE);
    aofPrintCommand(&q.bytes, 1, &multi);
    (void)transactionEach(c->who, appendQueued, &q);
    aofPrintCommand(&q.bytes, c->argc, c->argv);
    callRequest r = gatewayRequestOf(c, p, 0);
    r.slot = slot;
    r.flags = cachingCallFlags(p->tracking) | q.flags | CALL_UNIT |
              (reads && !q.flags && !watches ? CALL_READS : 0);
    if (watches) {
        r.flags |= CALL_OWN_LINK | CALL_ON_HELD;
        r.holder = gc;
        p->is_alone = gc->is_exclusive = true;
        gc->watch_slot = -1;
    }
    r.extra = q.count + 1;
    r.request = strSlice(&q.bytes);
    callStart(&r);
    strFree(&q.bytes);
    transactionDiscard(c->who);
    countElsewhere(c);
    return GATE_DONE;
}

gateVerdict gatewayRefuseSlots(ctx *c) {
    if (c->cmd->flags & CMD_RUNS_QUEUE) endTransaction(c);
    replyError(c, several_slots);
    return GATE_REFUSED;
}

static gateVerdict endWatch(gatewayClient *gc, ctx *c) {
    bool in_multi = c->who->flags & SESSION_IN_MULTI;
    /* UNWATCH in a transaction is queued, and DISCARD without one is an error. */
    if (in_multi == !!(c->cmd->flags & CMD_AT_ONCE)) forgetWatch(gc);
    return GATE_PASS;
}

static gateVerdict admitWatch(gatewayClient *gc, ctx *c) {
    int slot = commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc);
    bool here = slot >= 0 && clusterServesSlot(slot);
    if (slot < 0 || (gc->watch_slot >= 0 && gc->watch_slot != slot)) return gatewayRefuseSlots(c);
    if (gc->watch_slot < 0 && here)
        return callMayStart(slot, true) ? GATE_PASS : gatewayHold(gc, true);
    if (watchCount(c->who)) return gatewayRefuseSlots(c); /* of keys of this node */
    gateVerdict verdict =
        callAlone(gc, c, slot, CALL_WATCHES | (gc->watch_slot >= 0 ? CALL_ON_HELD : 0));
    if (verdict == GATE_DONE) gc->watch_slot = slot;
    return verdict;
}

/* The keys that were watched here are another node's now. */
static gateVerdict abortMoved(ctx *c) {
    transactionDiscard(c->who);
    replyNullArray(c);
    return GATE_DONE;
}

static gateVerdict admitExec(gatewayClient *gc, ctx *c) {
    session *s = c->who;
    if (!(s->flags & SESSION_IN_MULTI)) return GATE_PASS;
    if (s->flags & SESSION_MULTI_POISONED) {
        forgetWatch(gc);
        return GATE_PASS;
    }
    int slot = commandSlots(transactionSlot(s), c->cmd, c->argv, c->argc);
    if (slot == COMMAND_NO_SLOT) slot = gc->watch_slot;
    if (slot == COMMAND_NO_SLOT) return passHere(gc, c);
    if (slot < 0 || (gc->watch_slot >= 0 && gc->watch_slot != slot)) {
        forgetWatch(gc);
        return gatewayRefuseSlots(c);
    }
    bool here = clusterServesSlot(slot) && gc->watch_slot < 0;
    if (here) return callMayStart(slot, true) ? passHere(gc, c) : gatewayHold(gc, true);
    return watchCount(s) ? abortMoved(c) : callTransaction(gc, c, slot);
}

/* A command that EXEC will run. */
static gateVerdict admitQueued(ctx *c, const route *way) {
    if (!routeIsQueued(way)) {
        replyErrorFormat(c, "ERR '%s' is not possible in a transaction of the gateway",
                         c->cmd->spec->name);
        return GATE_REFUSED;
    }
    int own = commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc);
    int slot = commandSlots(transactionSlot(c->who), c->cmd, c->argv, c->argc);
    if (slot == COMMAND_SEVERAL_SLOTS) return gatewayRefuseSlots(c);
    return own < 0 || clusterServesSlot(own) ? GATE_PASS : queueGate.admit(c);
}

/* ------------------------------------------------------------------ the gate */

static bool blocks(const ctx *c) {
    if (!(c->cmd->flags & CMD_BLOCKING) || c->who->flags & SESSION_IN_MULTI) return false;
    if (!(c->cmd->flags & CMD_READONLY) && !sliceEqual(c->cmd->name, SLICE("xreadgroup")))
        return true;
    for (int i = 1; i < c->argc && !ctxArgIs(c, i, "streams"); i++)
        if (ctxArgIs(c, i, "block")) return true;
    return false;
}

static gateVerdict admitSlot(gatewayClient *gc, ctx *c, const route *way) {
    int slot = commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc);
    if (slot == COMMAND_NO_SLOT) return passHere(gc, c);
    if (slot == COMMAND_SEVERAL_SLOTS && way->kind == ROUTE_SPLIT) {
        splitRequest split;
        if ((c->argc - 1) % c->cmd->key_step) {
            replyErrorArity(c);
            return GATE_REFUSED;
        }
        splitBegin(&split, c->cmd->key_step, c->argc, c->argv);
        gateVerdict verdict = callParts(gc, c, &split, way->merge);
        splitEnd(&split);
        return verdict;
    }
    if (slot < 0 && way->kind == ROUTE_FETCH) return gatewayFetch(gc, c);
    if (slot < 0) return gatewayRefuseSlots(c);
    if (!clusterServesSlot(slot))
        return blocks(c) ? callAlone(gc, c, slot, 0) : callSlot(gc, c, slot);
    if (!callMayStart(slot, true)) return gatewayHold(gc, true);
    clients.counts.here++;
    return passHere(gc, c);
}

/* Without a slot, by all primaries. */
static gateVerdict admitEach(gatewayClient *gc, ctx *c, const route *way) {
    if (commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc) != COMMAND_NO_SLOT)
        return admitSlot(gc, c, way);
    return gatewayCallEach(gc, c, way);
}

static gateVerdict refuse(ctx *c, const route *way) {
    if (way->kind == ROUTE_ABSENT) {
        replyError(c, SLICE("ERR This instance has cluster support disabled"));
    } else {
        replyErrorFormat(c, "ERR '%s' is not supported by the gateway: %s", c->cmd->spec->name,
                         way->why);
    }
    return GATE_REFUSED;
}

static gateVerdict admit(ctx *c) {
    gatewayClient *gc = sessionSlotGet(c->who, slotIndex());
    check(gc);
    bool is_full = gc->order.bytes > ORDER_BYTES_MAX || gc->order.places.count > ORDER_PLACES_MAX;
    bool must_wait = !replyOrderIsEmpty(&gc->order) && gc->is_exclusive;
    /* Behind a blocking command it may wait for ever: reading goes on, so that a client that
     * leaves is noticed. */
    if (is_full || must_wait) return gatewayHold(gc, is_full);
    gc->is_exclusive = false;
    /* That gate comes later, and would not be asked about what others execute. */
    bool only_subscribes = c->who->flags & SESSION_PUBSUB && c->who->proto == 2;
    if (only_subscribes && gateSelects(&pubsubContextGate, c->cmd))
        return pubsubContextGate.admit(c);
    if (gc->gather && gatewayFetchGoesOn(gc, c)) return gatewayFetch(gc, c);
    gateVerdict verdict;
    route way = routeOfCommand(c->cmd);
    if (way.kind == ROUTE_REFUSED || way.kind == ROUTE_ABSENT) return refuse(c, &way);
    if (way.kind == ROUTE_EXEC) return admitExec(gc, c);
    if (way.kind == ROUTE_UNWATCH) return endWatch(gc, c);
    bool queued = c->who->flags & SESSION_IN_MULTI && !(c->cmd->flags & CMD_AT_ONCE);
    if (queued) return admitQueued(c, &way);
    switch (way.kind) {
    case ROUTE_SLOT:
    case ROUTE_FETCH:
    case ROUTE_SPLIT: return admitSlot(gc, c, &way);
    case ROUTE_SCAN: return admitScan(gc, c);
    case ROUTE_WATCH: return admitWatch(gc, c);
    case ROUTE_ALL: return gatewayCallAll(gc, c, &way);
    case ROUTE_EACH: return admitEach(gc, c, &way);
    case ROUTE_NODES: return gatewayCallNodes(gc, c, &way);
    case ROUTE_SHARD: return shardAdmit(gc, c);
    case ROUTE_PUBLISH: return gatewayPublish(gc, c);
    case ROUTE_INFO: return gatewayInfo(gc, c);
    case ROUTE_TRACKING:
        verdict = cachingAdmit(c);
        return verdict == GATE_HELD ? gatewayHold(gc, true) : verdict;
    case ROUTE_ORDERED: return replyOrderIsEmpty(&gc->order) ? GATE_PASS : gatewayHold(gc, true);
    default: return passHere(gc, c);
    }
}

const gate gatewayGate = {.name = "gateway", .admit = admit, .origins = GATE_FOR_CLIENTS};

/* ------------------------------------------------------------------ sessions */

static void beginClient(session *s) {
    gatewayClient *gc = sessionSlotGet(s, slotIndex());
    if (!gc) {
        gc = memCalloc(1, sizeof(*gc));
        gc->who = s;
        gc->watch_slot = -1;
        replyOrderInit(&gc->order);
        sessionSlotSet(s, slotIndex(), gc);
        clients.counts.clients++;
    }
    gateArmSession(s, &gatewayGate, true); /* RESET has disarmed it */
}

/* Nobody wants the replies that are still to come. */
static void dropOrder(gatewayClient *gc) {
    if (listHas(&gc->active)) listRemove(activeClients(), &gc->active);
    replyOrderClear(&gc->order, placeLeft);
    check(replyOrderIsEmpty(&gc->order));
}

/* The output, which may have been what precedes the order, is final: the session is closed. */
static void outputReplaced(session *s) {
    gatewayClient *gc = sessionSlotGet(s, slotIndex());
    if (!gc) return;
    dropOrder(gc);
    gc->is_closing = false;
}

static void endClient(session *s) {
    gatewayClient *gc = sessionSlotGet(s, slotIndex());
    if (!gc) return;
    clients.counts.clients--;
    forgetWatch(gc);
    gatewayFetchEnd(gc);
    dropOrder(gc);
    if (listHas(&gc->held)) listRemove(&clients.held, &gc->held);
    if (listHas(&gc->tried)) listRemove(&clients.tried, &gc->tried);
    cachingRequestEnded(s);
}

void gatewaySessionEvent(session *s, sessionEvent e) {
    hotCheck(s->flags & SESSION_GATEWAY);
    if (!clusterIsEnabled()) return;
    if (e == SESSION_OPENED) beginClient(s);
    if (e == SESSION_WAS_RESET) forgetWatch(sessionSlotGet(s, slotIndex()));
    if (e == SESSION_OUTPUT_REPLACED) outputReplaced(s);
    if (e == SESSION_ENDING) endClient(s);
}
