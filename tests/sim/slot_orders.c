/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot_orders.h"

#include "base/base.h"
#include "bus/open_slots.h"
#include "cluster_data.h"
#include "sim.h"

simOrderCounts order_counts;

/* An order that waits for replicas. */
typedef struct orderWait {
    simSlots *at; /* NULL: none waits */
    setSlotAction action;
    int peer, version, replicas;
    int64_t deadline_ms, started_ms; /* of the node that it waits on */
} orderWait;

typedef enum movePhase {
    PHASE_IMPORTING,
    PHASE_MIGRATING,
    PHASE_KEYS,
    PHASE_TARGET,
    PHASE_SOURCE,
    PHASE_OTHERS,
} movePhase;

/* The operator's moves, at most one of a slot. */
static struct slotMove {
    bool runs;
    char shard[NODE_ID_LEN]; /* to which the slot is moved */
    movePhase phase;
    int source, target, other; /* hosts */
    bool waits, refused;       /* for the reply to an order; it was an error */
    int64_t pause_end_ms;
    orderWait wait;
} moves[SIM_SLOTS];

void ordersReset(void) { memset(moves, 0, sizeof(moves)); }

bool ordersRun(int slot) { return moves[slot].runs; }

/* ------------------------------------------------------------------ SETSLOT at a node */

static setSlotOrder orderOf(int slot, setSlotAction action, int peer) {
    return (setSlotOrder){.action = action,
                          .slot = simSlotNumber(slot),
                          .id = sliceMake(sim_slots[peer].id, NODE_ID_LEN)};
}

static bool isRefused(const simSlots *s, int slot, setSlotAction action, int peer) {
    reason why;
    setSlotOrder order = orderOf(slot, action, peer);
    const clusterMap *m = &s->node->map;
    if (m->myself->flags & NODE_REPLICA || s->moves.log.active) return true;
    if (s->node->data.version == VERSION_NONE) return true;
    return setSlotIsRefused(m, &order, slotNodeHasKeys(s, slot), &why);
}

static void execute(simSlots *s, int slot, setSlotAction action, int peer) {
    slotNodeSetSlot(s, slot, action, peer);
    simNodeFinish(s->node);
}

/* Replicas of a stream, those that are online, which have that version. */
static int countReplicas(const simSlots *s, int version) {
    int count = 0;
    for (int i = 0; i < sim_node_count; i++) {
        const simNode *n = &sim_nodes[i];
        if (!n->running || n->data.source != s->node->host) continue;
        if (n->data.version == VERSION_NONE || !dataIsLinked(n)) continue;
        count += version == VERSION_NONE || dataIncludes(n->data.version, version);
    }
    return count;
}

static void undo(simSlots *s, int slot, setSlotAction action, int peer) {
    setSlotOrder back[SET_SLOT_UNDO_MAX], order = orderOf(slot, action, peer);
    bool unassign;
    int count = setSlotUndo(&s->node->map, &order, back, &unassign);
    if (unassign) slotNodeAppendUnassign(s, slot);
    for (int i = 0; i < count; i++) {
        int host = back[i].id.ptr ? slotNodeHostOf(back[i].id.ptr) : s->node->host;
        if (host >= 0) slotNodeAppendOrder(s, slot, back[i].action, host);
    }
    order_counts.undone++;
}

static void reply(struct slotMove *m, bool refused) {
    logDebug("the order about slot %d is %s", simSlotNumber((int)(m - moves)),
             refused ? "refused" : "executed");
    m->wait.at = NULL;
    m->waits = false;
    m->refused = refused;
    order_counts.refused += refused;
}

/* The wait of an order ends when its replicas have it, or it is too late. */
static void stepWait(int slot) {
    orderWait *w = &moves[slot].wait;
    simSlots *s = w->at;
    if (!s) return;
    const simNode *n = s->node;
    if (!n->running || n->started_ms != w->started_ms) { /* the connection is lost */
        reply(&moves[slot], true);
    } else if (!simNodeActs(n)) {
        return;
    } else if (n->map.myself->flags & NODE_REPLICA) {
        reply(&moves[slot], true);
    } else if (simNodeClock(n) < n->paused_until_ms) {
        return; /* its stream must not get longer */
    } else if (countReplicas(s, w->version) >= w->replicas) {
        bool refused = isRefused(s, slot, w->action, w->peer);
        if (refused) {
            undo(s, slot, w->action, w->peer);
        } else {
            execute(s, slot, w->action, w->peer);
        }
        reply(&moves[slot], refused);
    } else if (sim_now_ms >= w->deadline_ms) {
        undo(s, slot, w->action, w->peer);
        reply(&moves[slot], true);
    }
}

void ordersStopping(const simNode *n) {
    for (int slot = 0; slot < SIM_SLOTS; slot++) {
        orderWait *w = &moves[slot].wait;
        if (!w->at || w->at->node != n || n->started_ms != w->started_ms) continue;
        if (!(n->map.myself->flags & NODE_REPLICA)) undo(w->at, slot, w->action, w->peer);
        reply(&moves[slot], true);
    }
}

static void order(int slot, simSlots *s, setSlotAction action, int peer) {
    struct slotMove *m = &moves[slot];
    check(!m->wait.at);
    if (simNodeClock(s->node) < s->node->paused_until_ms) { /* it waits there */
        reply(m, true);
        return;
    }
    order_counts.orders++;
    if (simNodeActs(s->node) && action == SET_SLOT_IMPORTING) slotNodeDeleteNow(s, slot);
    if (!simNodeActs(s->node) || isRefused(s, slot, action, peer)) {
        reply(m, true);
        return;
    }
    int replicas = countReplicas(s, VERSION_NONE);
    int version = slotNodeAppendOrder(s, slot, action, peer);
    if (!replicas) {
        execute(s, slot, action, peer);
        reply(m, false);
        return;
    }
    logDebug("node %d waits for %d replicas, with SETSLOT %d node %d", s->node->host, replicas,
             simSlotNumber(slot), peer);
    order_counts.waits++;
    m->waits = true;
    m->wait = (orderWait){.at = s,
                          .action = action,
                          .peer = peer,
                          .version = version,
                          .replicas = replicas,
                          .deadline_ms = sim_now_ms + (oneIn(8) ? 20 : 2000),
                          .started_ms = s->node->started_ms};
}

/* ------------------------------------------------------------------ requests */

int ordersPeerOf(const simSlots *s, int slot) {
    const clusterNode *to = clusterMapOpenSlot(&s->node->map, SLOT_MIGRATING, simSlotNumber(slot));
    return to ? slotNodeHostOf(to->id) : -1;
}

simSlots *ordersAskedFor(const simSlots *owner, int key) {
    int peer = owner->value[key] ? -1 : ordersPeerOf(owner, simSlotOfKey(key));
    return peer < 0 ? NULL : &sim_slots[peer];
}

bool ordersServe(const simSlots *s, int key, bool is_write) {
    const simNode *n = s->node;
    int number = simSlotNumber(simSlotOfKey(key));
    if (!simNodeActs(n) || n->map.myself->flags & NODE_REPLICA || !n->state.ok) return false;
    if (n->data.version == VERSION_NONE) return false;
    if (clusterMapIsMine(&n->map, number))
        return slotNodeServes(s, simSlotOfKey(key), is_write) && !ordersAskedFor(s, key);
    if (!clusterMapOpenSlot(&n->map, SLOT_IMPORTING, number)) return false;
    return !is_write || simNodeClock(n) >= n->paused_until_ms;
}

/* MIGRATE of a key, with REPLACE. False: it fails, and has changed nothing. */
static bool migrate(simSlots *from, simSlots *to, int key) {
    if (!slotNodeServes(from, simSlotOfKey(key), true) || !ordersServe(to, key, true)) return false;
    if (networkIsBlocked(from->node->host, to->node->host)) return false;
    if (networkIsBlocked(to->node->host, from->node->host)) return false;
    slotNodeWrite(to, key, from->value[key]);
    slotNodeWrite(from, key, 0);
    order_counts.keys++;
    return true;
}

/* ------------------------------------------------------------------ the operator */

void ordersMove(int slot, const simNode *to) {
    struct slotMove *m = &moves[slot];
    if (m->runs || !to->running) return;
    *m = (struct slotMove){.runs = true};
    memcpy(m->shard, to->map.myself->shard_id, NODE_ID_LEN);
    order_counts.moves++;
}

/* The primary of the shard with the greatest epoch, -1: none acts. */
static int primaryOf(const char *shard) {
    int found = -1;
    for (int i = 0; i < sim_node_count; i++) {
        const simNode *n = &sim_nodes[i];
        if (!simNodeActs(n) || !clusterNodeVotes(n->map.myself)) continue;
        if (memcmp(n->map.myself->shard_id, shard, NODE_ID_LEN) != 0) continue;
        if (found < 0 || n->map.myself->epoch > sim_nodes[found].map.myself->epoch) found = i;
    }
    return found;
}

static void restartMove(struct slotMove *m) {
    m->phase = PHASE_IMPORTING;
    m->pause_end_ms = sim_now_ms + 100 + (int64_t)randomUniform(1000);
}

/* Begins or continues with the primaries that there are. */
static void beginMove(int slot, struct slotMove *m, int owner) {
    m->source = owner;
    m->target = primaryOf(m->shard);
    m->other = -1;
    const simNode *n = &sim_nodes[owner];
    const clusterNode *seen = n->running ? clusterMapOwner(&n->map, simSlotNumber(slot)) : NULL;
    bool is_own = seen && seen == n->map.myself;
    bool is_given = seen && slotNodeHostOf(seen->id) == m->target;
    if (m->target < 0 || !(is_own || is_given)) {
        restartMove(m);
    } else if (m->target == owner) {
        m->phase = PHASE_OTHERS;
    } else if (is_given) {
        m->phase = PHASE_TARGET;
    } else {
        order(slot, &sim_slots[m->target], SET_SLOT_IMPORTING, m->source);
        m->phase = PHASE_MIGRATING;
    }
}

/* Moves some keys. */
static void moveKeys(int slot, struct slotMove *m) {
    simSlots *from = &sim_slots[m->source], *to = &sim_slots[m->target];
    for (int key = slot * SIM_KEYS_OF_SLOT; key < (slot + 1) * SIM_KEYS_OF_SLOT; key++) {
        if (!from->value[key]) continue;
        if (oneIn(2)) return;
        if (!migrate(from, to, key)) {
            restartMove(m);
            return;
        }
    }
    m->phase = PHASE_TARGET;
}

static void tellOthers(int slot, struct slotMove *m) {
    while (++m->other < sim_node_count) {
        const simNode *n = &sim_nodes[m->other];
        if (m->other == m->target || !simNodeActs(n)) continue;
        if (n->map.myself->flags & NODE_REPLICA || oneIn(3)) continue;
        if (clusterMapIsMine(&n->map, simSlotNumber(slot))) continue; /* by a later move */
        order(slot, &sim_slots[m->other], SET_SLOT_NODE, m->target);
        return;
    }
    m->runs = false;
    order_counts.ended++;
}

void ordersStep(int slot, int owner) {
    struct slotMove *m = &moves[slot];
    stepWait(slot);
    if (!m->runs || m->waits || sim_now_ms < m->pause_end_ms || owner < 0) return;
    bool refused = m->refused;
    m->refused = false;
    if (refused && m->other < 0) {
        restartMove(m);
        return;
    }
    if (oneIn(3)) return;
    switch (m->phase) {
    case PHASE_IMPORTING: beginMove(slot, m, owner); break;
    case PHASE_MIGRATING:
        order(slot, &sim_slots[m->source], SET_SLOT_MIGRATING, m->target);
        m->phase = PHASE_KEYS;
        break;
    case PHASE_KEYS: moveKeys(slot, m); break;
    case PHASE_TARGET:
        order(slot, &sim_slots[m->target], SET_SLOT_NODE, m->target);
        m->phase = PHASE_SOURCE;
        break;
    case PHASE_SOURCE:
        order(slot, &sim_slots[m->source], SET_SLOT_NODE, m->target);
        m->phase = PHASE_OTHERS;
        break;
    case PHASE_OTHERS: tellOthers(slot, m); break;
    }
}

/* ------------------------------------------------------------------ invariants */

void ordersCheckMarks(const simNode *replica, const simNode *primary) {
    str own = STR_EMPTY, of_primary = STR_EMPTY;
    openSlotsPrint(&replica->map, &own);
    openSlotsPrint(&primary->map, &of_primary);
    if (!sliceEqual(strSlice(&own), strSlice(&of_primary)))
        simFail("node %d has the marks \"%.*s\", its primary %d \"%.*s\"", replica->host,
                (int)own.len, own.ptr ? own.ptr : "", primary->host, (int)of_primary.len,
                of_primary.ptr ? of_primary.ptr : "");
    strFree(&own);
    strFree(&of_primary);
}
