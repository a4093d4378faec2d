/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER SETSLOT. The replicas execute it first: it is sent in the replication stream as the
 * client has sent it. This node executes it when all online replicas have acknowledged it, so a
 * failover cannot undo it. If they do not acknowledge it in time, or if this node refuses it by
 * then, orders that restore the state that the slot has here are added to the stream. Main thread
 * only. */
#include "base/base.h"
#include "base/number.h"
#include "bus/open_slots.h"
#include "bus/set_slot.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "cluster/server_slots.h"
#include "cluster/slot_migration.h"
#include "engine/block.h"
#include "engine/keyspace.h"
#include "engine/pause.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "repl/role.h"

enum { TIMEOUT_MS = 2000, VERSION_MIN = 0x070300 /* older ones do not execute SETSLOT */ };

/* A SETSLOT that waits for replicas, or is to be undone there. */
typedef struct slotWait {
    const session *who;
    int slot;
    int replicas; /* that have to acknowledge it */
    bool is_done; /* nothing is to be undone */
    bool is_late; /* the command has ended; what it has done is undone as soon as possible */
    setSlotOrder order;
    char id[NODE_ID_LEN]; /* of the order */
    struct slotWait *next;
} slotWait;

static slotWait *waits; /* at most one of a slot */

/* ------------------------------------------------------------------ arguments */

static const char action_error[] =
    "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP";

static bool parseAction(ctx *c, setSlotOrder *out) {
    static const setSlotAction actions[] = {SET_SLOT_MIGRATING, SET_SLOT_IMPORTING, SET_SLOT_STABLE,
                                            SET_SLOT_NODE};
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        if (!sliceEqualFold(c->argv[3], setSlotWord(actions[i]))) continue;
        out->action = actions[i];
        if (out->action == SET_SLOT_STABLE) return true;
        if (c->argc < 5) break;
        out->id = c->argv[4];
        return true;
    }
    replyError(c, SLICE(action_error));
    return false;
}

/* TIMEOUT may be anywhere after the action; what else is there is ignored. */
static bool parseTimeout(ctx *c, int64_t *deadline_ms) {
    *deadline_ms = engineHot.now_ms + TIMEOUT_MS;
    for (int i = 4; i < c->argc; i++) {
        if (!ctxArgIs(c, i, "timeout")) continue;
        if (++i == c->argc) {
            replyError(c, SLICE("ERR Missing timeout value"));
            return false;
        }
        if (!blockArgDeadlineMs(c, i, deadline_ms)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ the stream */

static void propagate(int argc, const slice *argv) {
    const propagateTo to = {.db_id = -1, .targets = PROPAGATE_REPLICAS, .slot = -1};
    propagateUnitBegin();
    propagateCopy(to, argc, argv);
    propagateUnitEnd();
}

static void propagateOrder(const setSlotOrder *order) {
    char digits[NUMBER_TEXT_MAX];
    slice slot = sliceMake(digits, numberPrintInt(digits, order->slot));
    slice argv[] = {SLICE("CLUSTER"), SLICE("SETSLOT"), slot, setSlotWord(order->action),
                    order->id};
    propagate(order->id.ptr ? 5 : 4, argv);
}

/* Brings the replicas, which have executed the order, back to the state of the slot here. */
static void undo(const setSlotOrder *order) {
    setSlotOrder back[SET_SLOT_UNDO_MAX];
    bool unassign;
    char digits[NUMBER_TEXT_MAX];
    slice slot = sliceMake(digits, numberPrintInt(digits, order->slot));
    int count = setSlotUndo(&serverMap, order, back, &unassign);
    if (unassign) propagate(3, (slice[]){SLICE("CLUSTER"), SLICE("DELSLOTS"), slot});
    for (int i = 0; i < count; i++) propagateOrder(&back[i]);
    logNotice("CLUSTER SETSLOT about slot %d was not executed; replicas that have executed it are "
              "told to undo it",
              order->slot);
}

typedef struct peerCount {
    int64_t offset;
    int count;
} peerCount;

static bool countPeer(const replPeerInfo *peer, void *arg) {
    peerCount *p = arg;
    if (peer->online && peer->version >= VERSION_MIN && peer->offset >= p->offset) p->count++;
    return true;
}

/* Online replicas that execute SETSLOT and have acknowledged that much of the stream. */
static int countReplicas(int64_t offset) {
    peerCount p = {.offset = offset};
    replPeersEach(countPeer, &p);
    return p.count;
}

/* ------------------------------------------------------------------ execution */

static bool isRefused(ctx *c, const setSlotOrder *order) {
    reason why;
    if (!setSlotIsRefused(&serverMap, order, serverSlotsCountKeys(order->slot) > 0, &why))
        return false;
    replyErrorFormat(c, "ERR %s", why.text);
    return true;
}

static void execute(ctx *c, const setSlotOrder *order) {
    serverBusTakeRules();
    busSetSlot(&serverBus, order, serverSlotsCountKeys(order->slot) > 0, serverBusNowMs());
    replyOk(c);
}

static slotWait *findWait(int slot) {
    slotWait *w = waits;
    while (w && w->slot != slot) w = w->next;
    return w;
}

static bool isAcknowledged(const blockQuery *q) {
    const slotWait *w = q->state;
    return countReplicas(replOffsetOf(w->who)) >= w->replicas;
}

/* The state of the slot may have changed meanwhile. */
static void acknowledged(ctx *c) {
    slotWait *w = blockState(c);
    check(!w->is_done);
    if (!(serverMap.myself->flags & NODE_PRIMARY)) {
        replyError(c, SLICE("ERR Please use SETSLOT only with masters."));
    } else if (!isRefused(c, &w->order)) {
        execute(c, &w->order);
        w->is_done = true;
    }
}

static void timedOut(ctx *c) {
    check(!((slotWait *)blockState(c))->is_done);
    replyError(c, SLICE("NOREPLICAS Not enough good replicas to write."));
}

/* False: later, as the stream must not get longer while a replica takes over. */
static bool endWait(slotWait *w) {
    slotWait **at = &waits;
    bool is_primary = serverMap.myself && serverMap.myself->flags & NODE_PRIMARY;
    bool undoes = !w->is_done && is_primary && !replIsReplica();
    if (undoes && pauseIsFor(PAUSE_FOR_FAILOVER)) return false;
    if (undoes) undo(&w->order);
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    memFree(w);
    return true;
}

/* Called when the wait ends, even if the client has disconnected. */
static void freeWait(void *state) {
    slotWait *w = state;
    if (!endWait(w)) w->is_late = true;
}

void clusterSetslotTick(void) {
    setSlotOrder order;
    if (pauseIsFor(PAUSE_FOR_FAILOVER)) return;
    while (serverMap.myself->flags & NODE_PRIMARY && openSlotsNextOrder(&serverMap, &order))
        propagateOrder(&order);
    for (slotWait *w = waits, *next; w; w = next) {
        next = w->next;
        if (w->is_late) (void)endWait(w); /* else at a later tick */
    }
}

static void startWait(ctx *c, const setSlotOrder *order, int replicas, int64_t deadline_ms) {
    slotWait *w = memNew(slotWait);
    check(replicas > 0);
    check(!findWait(order->slot));
    *w = (slotWait){
        .who = c->who, .slot = order->slot, .replicas = replicas, .order = *order, .next = waits};
    if (order->id.len == NODE_ID_LEN) {
        memcpy(w->id, order->id.ptr, NODE_ID_LEN);
        w->order.id = sliceMake(w->id, NODE_ID_LEN);
    }
    waits = w;
    propagate(c->argc, c->argv);
    replWantAcks();
    blockStart(c, &(blockParams){.kind = BLOCK_OFFSET,
                                 .ready = isAcknowledged,
                                 .deadline_ms = deadline_ms,
                                 .timed_out = timedOut,
                                 .finish = acknowledged,
                                 .state = w,
                                 .free_state = freeWait});
}

/* CLUSTER SETSLOT slot MIGRATING id | IMPORTING id | STABLE | NODE id [TIMEOUT ms]. Reply: OK. */
void clusterSetslotCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    setSlotOrder order = {.slot = -1};
    int64_t deadline_ms;
    bool is_stream = c->origin == ORIGIN_PRIMARY;
    if (!clusterIsNode(c)) return;
    if (serverMap.myself->flags & NODE_REPLICA && !is_stream) {
        replyError(c, SLICE("ERR Please use SETSLOT only with masters."));
        return;
    }
    if (!is_stream && slotMigrationRuns()) {
        replyErrorFormat(c, "ERR Slot %s in progress.", slotMigrationRuns());
        return;
    }
    if (!clusterSlotArg(c, 2, &order.slot) || !parseAction(c, &order)) return;
    if (is_stream) {
        execute(c, &order);
        return;
    }
    if (isRefused(c, &order) || !parseTimeout(c, &deadline_ms)) return;
    if (findWait(order.slot)) {
        replyErrorFormat(c, "ERR Another CLUSTER SETSLOT about slot %d waits for replicas",
                         order.slot);
        return;
    }
    keyspaceDropAll(); /* the slot may be served or imported here from now on */
    bool gets = order.action == SET_SLOT_IMPORTING || order.action == SET_SLOT_NODE;
    if (gets && serverRoleDeletes()) serverSlotsDeleteNow(order.slot);
    int replicas = countReplicas(0);
    if (!replicas || blockIsDenied(c)) {
        /* For those that are away for a moment. */
        propagate(c->argc, c->argv);
        execute(c, &order);
    } else {
        startWait(c, &order, replicas, deadline_ms);
    }
}
