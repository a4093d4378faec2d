/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands that only read keys of several slots (cluster-gateway-fetch). First the sizes of the
 * values are asked for, then, if their sum is within the limit, the values themselves; the command
 * runs on copies of them in a keyspace of its own. Its request is held back meanwhile, and the gate
 * is asked about it again.
 *
 * A request that was held back may be refused before the gate is asked again, as its user has lost
 * rights: a gather ends when a request comes that is not its own. Main thread only. */
#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "engine/execute.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/user.h"
#include "format/aof_reader.h"
#include "format/rdb_dump.h"
#include "format/rdb_settings.h"
#include "gateway/caching.h"
#include "gateway/client_priv.h"
#include "gateway/gateway.h"
#include "gateway/gateway_priv.h"
#include "pubsub/pubsub.h"
#include "store/store.h"

enum { KEYS_MAX = 1024 };

typedef enum gatherStage { GATHER_SIZES, GATHER_VALUES } gatherStage;

struct gatewayGather {
    session *who;     /* NULL: it has gone */
    uint64_t request; /* hash of its arguments */
    gatherStage stage;
    uint32_t tracking;
    uint64_t changes; /* pubsubChanges() before the values were asked for */
    int waiting, count;
    str *replies;
    str *keys; /* of each value, if the client tracks */
};

/* ------------------------------------------------------------------ collecting */

/* Tells the requests of one client apart. */
static uint64_t hashOfRequest(const ctx *c) {
    uint64_t hash = (uint64_t)c->argc;
    for (int i = 0; i < c->argc; i++)
        hash = (hash ^ hashBytes(c->argv[i].ptr, c->argv[i].len)) * UINT64_C(0x9e3779b97f4a7c15);
    return hash;
}

static gatewayGather *gatherNew(const ctx *c, int count) {
    gatewayGather *g = memCalloc(1, sizeof(*g));
    check(count > 0);
    check(count <= KEYS_MAX);
    g->who = c->who;
    g->request = hashOfRequest(c);
    g->tracking = cachingOf(c);
    g->count = count;
    g->replies = memCalloc((size_t)count, sizeof(str));
    g->keys = memCalloc((size_t)count, sizeof(str));
    return g;
}

static void gatherFree(gatewayGather *g) {
    check(g->waiting == 0);
    for (int i = 0; i < g->count; i++) {
        strFree(&g->replies[i]);
        strFree(&g->keys[i]);
    }
    memFree(g->replies);
    memFree(g->keys);
    memFree(g);
}

void gatewayFetchEnd(gatewayClient *gc) {
    gatewayGather *g = gc->gather;
    if (!g) return;
    gc->gather = NULL;
    g->who = NULL;
    if (!g->waiting) gatherFree(g);
}

bool gatewayFetchGoesOn(gatewayClient *gc, const ctx *c) {
    check(gc->gather);
    if (gc->gather->request == hashOfRequest(c)) return true;
    gatewayFetchEnd(gc);
    return false;
}

static void partEnded(void *owner, int part, str *reply, bool is_tracked) {
    gatewayGather *g = owner;
    check(g->waiting > 0);
    check(part < g->count);
    bool has_failed = reply->ptr[0] == '-';
    strFree(&g->replies[part]);
    g->replies[part] = *reply;
    *reply = STR_EMPTY;
    /* From now on changes of the key are told of, also before the command has run. */
    if (g->who && g->stage == GATHER_VALUES)
        cachingEnded(g->who, g->tracking, strSlice(&g->keys[part]), has_failed, is_tracked);
    if (--g->waiting) return;
    gatewayProgress();
    engineStayAwake();
    if (!g->who) gatherFree(g);
}

/* Executes a command on the key, here or at its owner. */
static void ask(gatewayGather *g, ctx *c, int part, int argc, const slice *argv, slice key) {
    int slot = hashSlot(key);
    str bytes = STR_EMPTY;
    if (clusterServesSlot(slot)) {
        gatewayRunHere(c, argc, argv, &bytes);
        partEnded(g, part, &bytes, true);
        return;
    }
    bool tracks = g->stage == GATHER_VALUES;
    aofPrintCommand(&bytes, argc, argv);
    if (tracks && g->tracking) cachingAppendRead(&g->keys[part], key);
    callStart(&(callRequest){.user = userNameOf(c->who),
                             .client = gatewayLabel(c->who),
                             .request = strSlice(&bytes),
                             .slot = slot,
                             .db_id = c->who->db_id,
                             .part = part,
                             .proto = c->proto,
                             .flags = CALL_READS | (tracks ? cachingCallFlags(g->tracking) : 0),
                             .end = partEnded,
                             .owner = g});
    strFree(&bytes);
}

/* Asks for sizes or values of all keys. */
static void askAll(gatewayGather *g, ctx *c, const keyPosition *places) {
    g->waiting = g->count;
    for (int i = 0; i < g->count; i++) {
        slice key = c->argv[places[i].arg_index];
        slice size[] = {SLICE("MEMORY"), SLICE("USAGE"), key};
        slice value[] = {SLICE("DUMP"), key};
        if (g->stage == GATHER_SIZES) {
            ask(g, c, i, COUNT_OF(size), size, key);
        } else {
            ask(g, c, i, COUNT_OF(value), value, key);
        }
    }
}

/* ------------------------------------------------------------------ execution */

/* Adds a value to the databases of the copies. False: it cannot be read. */
static bool addCopy(db *to, slice key, slice payload, storeLook look) {
    int version;
    uint8_t type;
    reason why;
    robj *o;
    dbPosition at;
    uint64_t hash = storeHash(key);
    rdbReadOptions options = {.limits = *rdbLimitsNow(), .db_id = dbId(to), .look = lookAtAll()};
    if (!payload.len || dbFind(to, key, hash, look, &at)) return true; /* missing, or named twice */
    if (!rdbDumpHasFooter(payload, rdbVersionsRelaxed(), rdbChecksumSkipped(), &version))
        return false;
    payload.len -= RDB_DUMP_FOOTER;
    if (rdbDumpRead(payload, version, key, &options, &o, &type, &why) != OK) return false;
    check(dbFind(to, key, hash, look, &at) == NULL);
    dbPlace(to, &at, o);
    return true;
}

static void runOn(ctx *c, keyspace *copies) {
    ctx inner;
    check(copies != keyspaceMain());
    ctxInitInner(&inner, c);
    inner.argv = c->argv;
    inner.argc = c->argc;
    inner.db = keyspaceDb(copies, c->who->db_id);
    inner.gates_exempt = gatewayGatesAsked();
    executeInner(&inner);
}

/* Executes the command on copies of its values. */
static void run(const gatewayGather *g, ctx *c, const keyPosition *places) {
    keyspace *copies = keyspaceNew(), *previous = keyspaceUse(copies);
    db *to = keyspaceDb(copies, c->who->db_id);
    bool fits = true;
    check(g->stage == GATHER_VALUES);
    for (int i = 0; fits && i < g->count; i++)
        fits =
            addCopy(to, c->argv[places[i].arg_index], mergeBulk(strSlice(&g->replies[i])), c->look);
    if (fits) {
        runOn(c, copies);
    } else {
        replyError(c, SLICE("ERR A value of another node cannot be read by this one"));
    }
    (void)keyspaceUse(previous); /* it is `copies` */
    keyspaceFree(copies, false);
}

/* What the client was told of a key after its value was read precedes the reply, which is older: it
 * is told again. */
static void runAndTell(const gatewayGather *g, ctx *c, const keyPosition *places) {
    bool caches = g->tracking & (PUBSUB_CACHES | PUBSUB_BROADCASTS);
    bool is_old = caches && pubsubChanges() != g->changes;
    run(g, c, places);
    for (int i = 0; is_old && i < g->count; i++)
        pubsubMustForget(c->who, c->argv[places[i].arg_index]);
}

/* ------------------------------------------------------------------ the steps */

/* The first error among the replies. */
static const str *findError(const gatewayGather *g) {
    for (int i = 0; i < g->count; i++)
        if (g->replies[i].ptr[0] == '-') return &g->replies[i];
    return NULL;
}

/* The bytes of all values: as their nodes estimate them, or as they have come. */
static int64_t bytesOf(const gatewayGather *g) {
    int64_t sum = 0, one;
    for (int i = 0; i < g->count; i++) {
        slice reply = strSlice(&g->replies[i]);
        if (reply.ptr[0] != ':') {
            sum += (int64_t)mergeBulk(reply).len;
        } else if (numberParseInt(sliceMake(reply.ptr + 1, reply.len - 3), &one) && one > 0) {
            sum += one;
        }
    }
    return sum;
}

/* False: the values may not be used; the error was replied. */
static bool mayGoOn(const gatewayGather *g, ctx *c) {
    const str *error = findError(g);
    int64_t bytes = bytesOf(g);
    if (error) {
        replyError(c, sliceMake(error->ptr + 1, error->len - 3));
        return false;
    }
    if (bytes <= gatewayConf.cluster_gateway_fetch) return true;
    replyErrorFormat(c,
                     "CROSSSLOT The values have %lld bytes, more than cluster-gateway-fetch: give "
                     "the keys a common hash tag, as in {user1}:a and {user1}:b",
                     (long long)bytes);
    return false;
}

/* False: a key has to wait for requests before this one. */
static bool mayStart(const ctx *c, const keyPosition *places, int count) {
    for (int i = 0; i < count; i++) {
        int slot = hashSlot(c->argv[places[i].arg_index]);
        if (!callMayStart(slot, clusterServesSlot(slot))) return false;
    }
    return true;
}

static gateVerdict step(gatewayClient *gc, ctx *c, const keyPosition *places, int count) {
    gatewayGather *g = gc->gather;
    bool is_new = !g;
    if (g) check(g->count == count);
    if (g && g->waiting) return gatewayHold(gc, true);
    bool goes_on = is_new || mayGoOn(g, c);
    bool asks = is_new || (goes_on && g->stage == GATHER_SIZES);
    if (asks && !mayStart(c, places, count)) return gatewayHold(gc, true);
    if (is_new && gatewayIsPaused(c)) return GATE_HELD;
    if (asks) {
        if (is_new) g = gc->gather = gatherNew(c, count);
        if (!is_new) g->stage = GATHER_VALUES;
        g->changes = pubsubChanges();
        askAll(g, c, places);
        return gatewayHold(gc, true);
    }
    if (goes_on) runAndTell(g, c, places);
    gatewayFetchEnd(gc);
    gatewayCountMerged(c, goes_on);
    return goes_on ? GATE_DONE : GATE_REFUSED;
}

gateVerdict gatewayFetch(gatewayClient *gc, ctx *c) {
    enum { FEW = 32 };
    keyPosition few[FEW];
    int count;
    if (!gatewayConf.cluster_gateway_fetch && !gc->gather) return gatewayRefuseSlots(c);
    if (!replyOrderIsEmpty(&gc->order)) return gatewayHold(gc, true);
    keyPosition *places = commandAllKeys(c->cmd, c->argv, c->argc, few, FEW, &count);
    gateVerdict verdict = GATE_REFUSED;
    if (count > 0 && count <= KEYS_MAX) {
        verdict = step(gc, c, places, count);
    } else {
        (void)gatewayRefuseSlots(c); /* more than may be fetched */
    }
    if (places != few) memFree(places);
    return verdict;
}
