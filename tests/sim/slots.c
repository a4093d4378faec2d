/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of slot migration: a cluster as in cluster.c, whose slots are moved by several jobs
 * at once, while a client writes, deletes, flushes and reads, connections are cut after any byte,
 * jobs are cancelled, nodes are separated, paused and restarted, and replicas take over.
 *
 * The authority over a slot is the node that claims it with the greatest epoch so far. What it
 * acknowledges is what must be there:
 *
 * - A node that takes slots from the authority by a job has exactly its keys.
 * - The source accepts no write after the target has taken the slots, and serves no read that
 *   misses one once it knows.
 * - Else the authority changes by a failover only: then writes may be lost that the replica did not
 *   have, and those of a node that did not know that it was replaced. They are counted. Without
 *   faults of nodes nothing is lost.
 *
 * After healing all jobs end within a bound, all nodes agree, each slot has an owner, its keys are
 * those that are expected, also on the replicas, and no other node has any of them, hidden or not.
 * Then a job succeeds. */
#include <stdio.h>

#include "base/base.h"
#include "bus/open_slots.h"
#include "cluster_cases.h"
#include "cluster_data.h"
#include "cluster_operator.h"
#include "cluster_rules.h"
#include "sim.h"
#include "slot_node.h"
#include "slot_orders.h"

enum { JOBS_END_MS = 60 * 1000, LAST_JOB_MS = 20 * 1000 };

/* What is known of a slot. */
typedef struct authority {
    int host;
    uint64_t epoch;
    /* The host that gave it, by a job or key by key; -1: it came otherwise, or the giver was
     * elected during the move: it may have keys still that had been moved, and serve them. */
    int giver;
    int64_t since_ms;
    /* The host to which it moves the slot key by key, -1: none, and how often that was promoted. */
    int peer, promotions;
    /* A failover on either side of such a move: keys may be on both sides, or outdated. */
    bool doubt;
    /* Such a move has been forgotten; what had arrived is found by the next one. */
    bool leftovers;
} authority;

static authority owners[SIM_SLOTS];
/* Keys on a host of a move whose source is another node by now, or has no mark any more. */
static bool has_leftovers[SIM_SLOTS][SIM_NODES_MAX + 1];
static int expected[SIM_KEYS]; /* 0: no such key */
static int last_value;
static bool calm;    /* only connections of jobs fail */
static bool by_keys; /* slots are moved by SETSLOT and MIGRATE */
static bool races;   /* replicas are ordered to take over while slots are handed over */

static struct {
    uint64_t writes, deletes, reads, flushes, stale, lost, failovers, moved, cuts, restarts, asks,
        left_open, races;
} counts;

/* ------------------------------------------------------------------ owners */

static void acceptLoss(int slot, const simSlots *by, const char *how) {
    for (int i = 0; i < SIM_KEYS_OF_SLOT; i++) {
        int key = slot * SIM_KEYS_OF_SLOT + i;
        if (by->value[key] == expected[key]) continue;
        if (calm)
            simFail("node %d %s slot %d with %d as key %d, expected is %d", by->node->host, how,
                    slot, by->value[key], key, expected[key]);
        counts.lost++;
        expected[key] = by->value[key];
    }
}

static void compare(int slot, const simSlots *by) {
    for (int i = 0; i < SIM_KEYS_OF_SLOT; i++) {
        int key = slot * SIM_KEYS_OF_SLOT + i;
        if (by->value[key] != expected[key])
            simFail("node %d has taken slot %d with %d as key %d, expected is %d", by->node->host,
                    slot, by->value[key], key, expected[key]);
    }
}

/* The authority itself has the slot with that node now: it has given it by order, and its greater
 * epoch, which it may have got since the other one has taken the slot, counts for that no more. */
static bool hasGiven(int slot, const simNode *to) {
    const simNode *n = &sim_nodes[owners[slot].host];
    if (!n->running || owners[slot].peer != to->host) return false;
    const clusterNode *owner = clusterMapOwner(&n->map, simSlotNumber(slot));
    return owner && slotNodeHostOf(owner->id) == to->host;
}

/* A node that claims a slot with a greater epoch than all so far, or was given it. */
static void changeOwner(int slot, const simNode *n) {
    authority *a = &owners[slot];
    simSlots *s = &sim_slots[n->host];
    bool moved = a->host >= 0 && (s->taken_from[slot] == a->host || hasGiven(slot, n));
    /* A former owner has the better claim, and gives the slot still. */
    bool back = a->host >= 0 && ordersPeerOf(s, slot) == a->host;
    bool open = (a->peer >= 0 && !moved) || back;
    /* The source was replaced before it had the mark: the order to the target names its successor,
     * which has not been asked for the keys. */
    bool unasked = moved && s->taken_by_order[slot] && a->peer != n->host;
    if (unasked) {
        acceptLoss(slot, s, "is given");
        counts.failovers++;
    } else if (moved && !a->doubt && !a->leftovers && !has_leftovers[slot][n->host]) {
        compare(slot, s);
        counts.moved++;
    } else if (a->host >= 0 && !open) {
        acceptLoss(slot, s, "owns");
        counts.failovers++;
    }
    logNotice("slot %d: node %d with epoch %llu follows node %d with epoch %llu%s", slot, n->host,
              (unsigned long long)simNodeSavedEpoch(n), a->host, (unsigned long long)a->epoch,
              moved ? ", which gave it" : "");
    *a = (authority){.host = n->host,
                     .epoch = simNodeSavedEpoch(n),
                     .giver = moved && !a->doubt ? a->host : -1,
                     .since_ms = sim_now_ms,
                     .peer = back   ? a->host
                             : open ? a->peer
                                    : -1,
                     .promotions = back ? sim_slots[a->host].promotions : a->promotions,
                     .doubt = open && !back,
                     .leftovers = a->leftovers && !moved};
}

/* Whether the owner moves the slot key by key, and to whom. */
static void watchMove(int slot) {
    authority *a = &owners[slot];
    const simSlots *s = &sim_slots[a->host];
    if (!s->node->running || !clusterMapIsMine(&s->node->map, simSlotNumber(slot))) return;
    int peer = ordersPeerOf(s, slot);
    int promotions = peer < 0 ? 0 : sim_slots[peer].promotions;
    if (peer < 0 && a->doubt) {
        acceptLoss(slot, s, "keeps");
        a->doubt = false;
        a->leftovers = true;
    } else if (peer >= 0 && a->peer >= 0 && (peer != a->peer || promotions != a->promotions)) {
        if (calm) simFail("slot %d has another target", slot);
        a->doubt = true;
    }
    a->peer = peer;
    a->promotions = promotions;
}

/* A move that ends with a failover, and is continued to another node, leaves the mark and what had
 * arrived on its first target, also while the slot is moved elsewhere. What was deleted since is
 * there again if the slot gets to that node once more; valkey-cli --cluster fix moves such keys to
 * the owner before. */
static void watchLeftovers(int slot) {
    for (int i = 0; i < sim_node_count; i++) {
        const clusterMap *m = &sim_nodes[i].map;
        if (!sim_nodes[i].running) continue;
        bool *has = &has_leftovers[slot][i];
        bool imports = clusterMapOpenSlot(m, SLOT_IMPORTING, simSlotNumber(slot));
        bool is_other = m->myself->flags & NODE_PRIMARY && owners[slot].peer != i;
        *has = imports && slotNodeHasKeys(&sim_slots[i], slot) && (*has || is_other);
    }
}

/* Keys of a slot that another node owns. They must be there. */
static void checkDrop(const simSlots *s, int slot) {
    for (int key = slot * SIM_KEYS_OF_SLOT; key < (slot + 1) * SIM_KEYS_OF_SLOT; key++) {
        bool is_elsewhere = !s->value[key] || s->value[key] != expected[key];
        for (int i = 0; i < sim_node_count && !is_elsewhere; i++)
            is_elsewhere = &sim_slots[i] != s && sim_slots[i].value[key] == s->value[key];
        if (!is_elsewhere)
            simFail("node %d deletes the last copy of key %d, which has %d", s->node->host, key,
                    s->value[key]);
    }
}

static void watchOwners(void) {
    for (int slot = 0; slot < SIM_SLOTS; slot++) {
        authority *a = &owners[slot];
        for (int i = 0; i < sim_node_count; i++) {
            const simNode *n = &sim_nodes[i];
            int number = simSlotNumber(slot);
            /* Not what it has granted. */
            if (!n->running || !clusterMapIsMine(&n->map, number)) continue;
            if (!clusterMapIsClaimed(&n->map, number)) continue;
            /* Nobody is told of it, and no write is executed. */
            if (i != a->host && !simNodeHasSaved(n, number)) continue;
            uint64_t epoch = simNodeSavedEpoch(n);
            if (i == a->host) {
                if (epoch > a->epoch) a->epoch = epoch;
            } else if (epoch > a->epoch || a->host < 0 ||
                       sim_slots[i].taken_from[slot] == a->host || hasGiven(slot, n)) {
                changeOwner(slot, n);
            }
            sim_slots[i].taken_from[slot] = -1;
            if (sim_slots[i].hidden[slot]) simFail("node %d hides slot %d, its own", i, slot);
        }
        if (a->host >= 0) watchMove(slot);
        watchLeftovers(slot);
    }
}

/* ------------------------------------------------------------------ the client */

/* False: what it does is of no consequence, as it does not know that it was replaced. */
static bool isAuthority(const simSlots *s, int slot, bool is_write) {
    const authority *a = &owners[slot];
    if (a->host == s->node->host || a->peer == s->node->host) return true;
    /* It has taken the slot, and saves that: nobody else writes to it. */
    bool takes =
        s->taken_from[slot] == a->host && clusterMapIsMine(&s->node->map, simSlotNumber(slot));
    if (takes && !is_write) return true;
    /* It has given the slot away, and still runs; reads go on until it knows. */
    bool gave = a->giver == s->node->host && s->node->started_ms < a->since_ms;
    if (!clusterMapIsMine(&s->node->map, simSlotNumber(slot))) gave = false; /* asked, and late */
    if (is_write && gave)
        simFail("node %d writes to slot %d, which node %d has taken", a->giver, slot, a->host);
    /* The replaced primary of an order accepts no write, and serves reads until it knows. */
    if (calm && !gave && (is_write || !races))
        simFail("node %d serves slot %d of node %d", s->node->host, slot, a->host);
    counts.stale++;
    return false;
}

static void write(simSlots *s, int key) {
    bool deletes = oneIn(4);
    int value = deletes ? 0 : ++last_value;
    bool counted = isAuthority(s, simSlotOfKey(key), true);
    slotNodeWrite(s, key, value);
    if (counted) expected[key] = value;
    counts.writes++;
    counts.deletes += deletes;
}

static void flushSlot(simSlots *s, int slot) {
    bool counted = isAuthority(s, slot, true);
    slotNodeFlushSlot(s, slot);
    for (int i = 0; i < SIM_KEYS_OF_SLOT && counted; i++) expected[slot * SIM_KEYS_OF_SLOT + i] = 0;
    counts.flushes++;
}

static void flushAll(simSlots *s) {
    bool here[SIM_KEYS];
    for (int key = 0; key < SIM_KEYS; key++) {
        const authority *a = &owners[simSlotOfKey(key)];
        bool is_moved = a->peer >= 0 && !sim_slots[a->host].value[key];
        here[key] = (is_moved ? a->peer : a->host) == s->node->host;
    }
    if (!slotNodeFlushAll(s)) return;
    for (int key = 0; key < SIM_KEYS; key++)
        if (here[key]) expected[key] = 0;
    counts.flushes++;
}

static void read(const simSlots *s, int key) {
    int slot = simSlotOfKey(key);
    counts.reads++;
    if (!isAuthority(s, slot, false) || s->value[key] == expected[key]) return;
    if (!(owners[slot].doubt || owners[slot].leftovers) || calm)
        simFail("node %d has %d as key %d, expected is %d", s->node->host, s->value[key], key,
                expected[key]);
    counts.lost++;
    expected[key] = s->value[key];
}

/* A client that was told ASK. */
static struct {
    simSlots *to; /* NULL: there is none */
    int key;
    bool is_write;
} asks[8];

/* It arrives at once or later. */
static void sendAsk(simSlots *to, int key, bool is_write) {
    size_t i = (size_t)randomUniform(COUNT_OF(asks));
    counts.asks++;
    asks[i].to = to;
    asks[i].key = key;
    asks[i].is_write = is_write;
}

static void receiveAsks(void) {
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        simSlots *to = asks[i].to;
        if (!to || oneIn(2)) continue;
        asks[i].to = NULL;
        if (!ordersServe(to, asks[i].key, asks[i].is_write)) continue;
        if (asks[i].is_write) {
            write(to, asks[i].key);
        } else {
            read(to, asks[i].key);
        }
    }
}

/* A request to a random node, which may know that it is the owner or not. */
static void request(void) {
    int host = (int)randomUniform((uint64_t)sim_node_count);
    int key = (int)randomUniform(SIM_KEYS);
    simSlots *s = &sim_slots[host];
    int slot = oneIn(2) ? slotNodeMoving(s) : -1;
    if (slot >= 0) key = slot * SIM_KEYS_OF_SLOT + (int)randomUniform(SIM_KEYS_OF_SLOT);
    bool is_write = oneIn(2);
    if (oneIn(400)) {
        if (sim_nodes[host].running) flushAll(s);
    } else if (slotNodeServes(s, simSlotOfKey(key), is_write)) {
        simSlots *to = ordersAskedFor(s, key);
        if (to) {
            sendAsk(to, key, is_write);
        } else if (!is_write) {
            read(s, key);
        } else if (oneIn(60) && ordersPeerOf(s, simSlotOfKey(key)) < 0) {
            flushSlot(s, simSlotOfKey(key));
        } else {
            write(s, key);
        }
    }
}

/* ------------------------------------------------------------------ faults */

static void cutJobs(void) {
    wire *w = oneIn(30) ? slotNodesWire() : NULL;
    if (!w) return;
    counts.cuts++;
    if (oneIn(2)) wireCut(w);
    if (!w->cut && oneIn(6)) wireSilence(w);
    if (!w->cut) wireStall(w, oneIn(3) ? 6000 : 500);
}

static void separate(void) {
    int from = operatorAnyNode()->host, to = operatorAnyNode()->host;
    if (oneIn(2)) {
        networkPartition((uint32_t)randomUniform(1u << sim_node_count));
    } else if (from != to) {
        networkBlock(from, to, true);
    }
}

static void restart(simNode *n) {
    counts.restarts += n->running;
    logNotice("node %d %s", n->host, n->running ? "stops" : "starts");
    if (n->running) {
        ordersStopping(n);
        simNodeStop(n);
    } else {
        simNodeStart(n, SIM_FILE);
    }
}

static void disturb(void) {
    wire *w = oneIn(100) ? wireAny() : NULL;
    if (w && oneIn(2)) wireCut(w);
    if (w && !w->cut) wireStall(w, 6000);
    if (oneIn(300))
        networkPause(operatorAnyNode()->host, sim_now_ms + (int64_t)randomUniform(5000));
    if (oneIn(400)) separate();
    if (oneIn(150)) networkPartition(0);
    if (oneIn(120)) restart(operatorAnyNode());
    if (oneIn(300)) operatorFailover(operatorAnyNode(), MANUAL_PLAIN);
    if (oneIn(500)) operatorFailover(operatorAnyNode(), MANUAL_FORCE);
}

/* ------------------------------------------------------------------ jobs */

static void step(void) {
    clusterStep();
    for (int slot = 0; slot < SIM_SLOTS; slot++) {
        if (owners[slot].host < 0) continue;
        ordersStep(slot, owners[slot].host);
        watchMove(slot);
    }
    receiveAsks();
}

static simNode *anyPrimary(void) {
    simNode *found = NULL;
    unsigned count = 0;
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        if (simNodeActs(n) && n->map.myself->flags & NODE_PRIMARY && randomUniform(++count) == 0)
            found = n;
    }
    return found;
}

/* One job, or two that give each other slots at once. */
static void beginJobs(void) {
    simNode *from = anyPrimary(), *to = anyPrimary();
    if (!from || from == to) return;
    if (by_keys && (!to->map.myself->slot_count || !oneIn(8))) {
        int slot = (int)randomUniform(SIM_SLOTS);
        if (to->map.myself->slot_count) ordersMove(slot, to);
        return;
    }
    slotNodeMigrate(&sim_slots[from->host], to);
    if (oneIn(4)) slotNodeMigrate(&sim_slots[to->host], from);
}

static void takeOver(const simNode *n) {
    for (int i = 0; i < sim_node_count; i++) {
        simNode *replica = &sim_nodes[i];
        if (!replica->running || !replica->map.myself->primary) continue;
        if (simNodeOf(replica->map.myself->primary) != n) continue;
        operatorFailover(replica, oneIn(2) ? MANUAL_FORCE : MANUAL_PLAIN);
        return;
    }
}

/* A fault that meets a job, most of them while slots are handed over. */
static void disturbJob(void) {
    simSlots *s;
    bool hands_over = !oneIn(4);
    slotJob *job = oneIn(hands_over ? 10 : 60) ? slotNodesJob(hands_over, &s) : NULL;
    if (!job) return;
    simNode *n = s->node;
    wire *w = slotNodeWireOf(job);
    int peer = slotNodePeerOf(job);
    switch (randomUniform(calm ? 4 : 10)) {
    case 0:
    case 1:
        if (w) wireStall(w, oneIn(2) ? 4000 : 1000);
        break;
    case 2:
        if (w) wireCut(w);
        break;
    case 3: slotNodeCancel(s); break;
    case 4:
    case 5:
        if (peer >= 0) networkBlock(n->host, peer, true);
        if (w && oneIn(2)) wireCut(w);
        break;
    case 6: networkPause(n->host, sim_now_ms + (int64_t)randomUniform(4000)); break;
    case 7: restart(n); break;
    default: takeOver(n); break;
    }
}

/* While slots are handed over, a replica of either side is ordered to take over, plainly: two nodes
 * claim the same slots at nearly the same time with neighbouring epochs, and others hear of one or
 * the other first. */
static void raceClaims(void) {
    simSlots *s;
    slotJob *job = oneIn(3) ? slotNodesJob(true, &s) : NULL;
    if (!job) return;
    int peer = slotNodePeerOf(job);
    const simNode *side = peer >= 0 && oneIn(2) ? &sim_nodes[peer] : s->node;
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        const clusterNode *primary = n->map.myself->primary;
        if (primary && simNodeOf(primary) == side && oneIn(2)) {
            operatorFailover(n, MANUAL_PLAIN);
            counts.races++;
            break;
        }
    }
    /* Less than makes a node suspect another one. */
    for (int i = 0; i < 4; i++) {
        wire *w = wireAny();
        if (w && !w->cut) wireStall(w, 400);
    }
}

/* Of a move key by key one side fails, or a replica of it. */
static void disturbMove(void) {
    int slot = (int)randomUniform(SIM_SLOTS);
    const authority *a = &owners[slot];
    if (calm || !oneIn(20) || !ordersRun(slot) || a->peer < 0) return;
    simNode *n = &sim_nodes[oneIn(2) ? a->host : a->peer];
    switch (randomUniform(4)) {
    case 0: restart(n); break;
    case 1: networkPause(n->host, sim_now_ms + (int64_t)randomUniform(4000)); break;
    case 2: networkBlock(a->host, a->peer, true); break;
    default: takeOver(n); break;
    }
}

/* A node is away while a job moves slots, and then their old owner becomes a replica. */
static void moveUnseen(void) {
    simNode *from = anyPrimary(), *to = anyPrimary(), *away = operatorAnyNode();
    if (!from || from == to || away == from || away == to || !simNodeActs(away)) return;
    uint64_t taken = slot_counts.taken;
    networkPartition(1u << away->host);
    slotNodeMigrate(&sim_slots[from->host], to);
    for (int i = 0; i < 100 && slot_counts.taken == taken; i++) step();
    takeOver(from);
    for (int i = 0; i < 100 && from->running && from->map.myself->flags & NODE_PRIMARY; i++) step();
    networkPartition(0);
}

/* ------------------------------------------------------------------ a run */

static simSlots *ownerOf(int slot) {
    for (int i = 0; i < sim_node_count; i++)
        if (clusterMapIsMine(&sim_nodes[i].map, simSlotNumber(slot))) return &sim_slots[i];
    simFail("slot %d has no owner", slot);
}

static bool movesRun(void) {
    for (int slot = 0; slot < SIM_SLOTS; slot++)
        if (ordersRun(slot)) return true;
    return false;
}

/* A primary that stops may not have told its replicas of the end of a mark. */
static bool anyOpen(void) {
    for (int i = 0; i < sim_node_count; i++) {
        const clusterMap *m = &sim_nodes[i].map;
        if (clusterMapHasOpenSlots(m) && (calm || m->myself->flags & NODE_PRIMARY)) return true;
    }
    return false;
}

/* Moves whose end was lost in a failover are continued, as by valkey-cli --cluster fix. */
static void fixOpen(void) {
    for (int slot = 0; slot < SIM_SLOTS; slot++)
        for (int i = 0; i < sim_node_count; i++) {
            const simNode *n = &sim_nodes[i];
            if (n->map.myself->flags & NODE_REPLICA) continue;
            int peer = ordersPeerOf(&sim_slots[i], slot);
            if (peer >= 0) ordersMove(slot, &sim_nodes[peer]);
            if (clusterMapOpenSlot(&n->map, SLOT_IMPORTING, simSlotNumber(slot)))
                ordersMove(slot, n);
        }
}

static void failOpen(void) {
    for (int slot = 0; slot < SIM_SLOTS; slot++)
        if (ordersRun(slot)) simFail("the move of slot %d key by key does not end", slot);
    for (int i = 0; i < sim_node_count; i++) {
        str marks = STR_EMPTY;
        openSlotsPrint(&sim_nodes[i].map, &marks);
        if (marks.len) simFail("node %d has the marks %s", i, strText(&marks));
    }
    simFail("a move key by key does not end");
}

/* Moves key by key are continued to their end. False: after faults of nodes a mark is left that the
 * operator here does not repair. */
static bool awaitMoves(void) {
    int64_t end_ms = sim_now_ms + JOBS_END_MS;
    while (movesRun() || anyOpen()) {
        if (sim_now_ms > end_ms && !calm) return false;
        if (sim_now_ms > end_ms) failOpen();
        if (!calm && !movesRun() && oneIn(200)) fixOpen();
        step();
    }
    return true;
}

static void awaitJobs(void) {
    int64_t end_ms = sim_now_ms + JOBS_END_MS;
    for (int i = 0; i < sim_node_count; i++) {
        while (sim_slots[i].moves.log.active || sim_slots[i].deletes) {
            if (sim_now_ms > end_ms) {
                const slotJob *job = slotLogNext(&sim_slots[i].moves.log, NULL, true);
                simFail("node %d has jobs that do not end%s%s", i, job ? ", import " : "",
                        job ? slotJobLabelOf(&sim_slots[i].moves, job).text : "");
            }
            step();
        }
    }
}

static bool isQuiet(void) {
    for (int i = 0; i < sim_node_count; i++) {
        const simNode *n = &sim_nodes[i];
        const simNode *p = n->map.myself->primary ? simNodeOf(n->map.myself->primary) : n;
        if (sim_slots[i].moves.log.active || !p || !dataIsSame(n, p)) return false;
        if (p->map.myself->flags & NODE_REPLICA) return false; /* it was replaced a moment ago */
        if (p != n && calm) ordersCheckMarks(n, p);
        if (n->bus.manual.step != MANUAL_IDLE) return false; /* an order that is late */
    }
    for (int slot = 0; slot < SIM_SLOTS; slot++) {
        int count = 0;
        for (int i = 0; i < sim_node_count; i++)
            count += clusterMapIsMine(&sim_nodes[i].map, simSlotNumber(slot));
        if (count != 1) return false; /* one may be taken only now */
    }
    return true;
}

static bool hasPart(const simSlots *s, const simSlots *owner) {
    const clusterNode *primary = s->node->map.myself->primary;
    return s == owner || (primary && simNodeOf(primary) == owner->node);
}

/* Who has which keys, when nothing happens any more. */
static void checkAtRest(void) {
    int64_t end_ms = sim_now_ms + JOBS_END_MS;
    while (!isQuiet()) {
        if (sim_now_ms > end_ms) simFail("replicas do not have the data of their primary");
        step();
    }
    for (int slot = 0; slot < SIM_SLOTS; slot++) {
        const simSlots *owner = ownerOf(slot);
        for (int i = 0; i < sim_node_count; i++) {
            const simSlots *s = &sim_slots[i];
            bool has_part = hasPart(s, owner);
            if (s->hidden[slot]) simFail("node %d still hides slot %d", i, slot);
            if (!has_part && slotNodeHasKeys(s, slot))
                simFail("node %d has keys of slot %d of node %d", i, slot, owner->node->host);
            for (int k = slot * SIM_KEYS_OF_SLOT; k < (slot + 1) * SIM_KEYS_OF_SLOT; k++)
                if (has_part && s->value[k] != expected[k])
                    simFail("at rest node %d has %d as key %d, expected is %d", i, s->value[k], k,
                            expected[k]);
        }
    }
}

static bool anyActive(void) {
    for (int i = 0; i < sim_node_count; i++)
        if (sim_slots[i].moves.log.active) return true;
    return false;
}

/* Without faults a job succeeds, unless somebody deletes all keys. */
static void moveOnce(void) {
    uint64_t before = slot_counts.taken;
    int64_t end_ms = sim_now_ms + LAST_JOB_MS;
    while (slot_counts.taken == before) {
        if (sim_now_ms > end_ms) simFail("a job does not succeed without faults");
        if (!anyActive()) beginJobs();
        if (oneIn(2)) request();
        step();
    }
}

/* After faults of nodes the end of a move key by key may be left to an operator: a slot that he had
 * to give an owner, one without, or keys of a node that was away when its slot went. */
static bool isForOperator(void) { return by_keys && !calm; }

static bool isRepaired(uint64_t fixed) {
    bool repaired = node_counts.fixed_slots != fixed;
    if (repaired && !isForOperator()) simFail("a slot has no owner");
    return repaired;
}

static bool hasLeftovers(void) {
    if (!isForOperator()) return false;
    for (int slot = 0; slot < SIM_SLOTS; slot++) {
        const simSlots *owner = ownerOf(slot);
        for (int i = 0; i < sim_node_count; i++) {
            if (!hasPart(&sim_slots[i], owner) && slotNodeHasKeys(&sim_slots[i], slot)) return true;
        }
    }
    return false;
}

static bool allOwned(void) {
    for (int slot = 0; slot < SIM_SLOTS && by_keys; slot++) {
        int count = 0;
        for (int i = 0; i < sim_node_count; i++)
            count += clusterMapIsMine(&sim_nodes[i].map, simSlotNumber(slot));
        if (count != 1) return false;
    }
    return true;
}

static void finishRun(uint64_t fixed) {
    if (node_counts.fixed_slots != fixed) simFail("a slot has no owner");
    checkAtRest();
    by_keys = false;
    moveOnce();
    awaitJobs();
    clusterAgree();
    checkAtRest();
}

static void simulate(bool with_races) {
    uint64_t fixed = node_counts.fixed_slots;
    sim_now_ms = 1700000000000;
    races = with_races;
    calm = races || oneIn(3);
    rulesReset(false);
    sim_replica_migration = oneIn(2);
    sim_has_seeds = false;
    sim_full_percent = 0; /* nodes of Valkey have not all of the rules */
    sim_refused_timeout_ms = 0;
    by_keys = !races && oneIn(4);
    slotNodesReset(watchOwners);
    slot_node_drops = checkDrop;
    ordersReset();
    memset(asks, 0, sizeof(asks));
    memset(expected, 0, sizeof(expected));
    memset(has_leftovers, 0, sizeof(has_leftovers));
    last_value = 0;
    for (int slot = 0; slot < SIM_SLOTS; slot++) owners[slot] = (authority){.host = -1, .peer = -1};
    clusterForm(3, 1 + oneIn(3), false);
    int steps = 200 + (int)randomUniform(1200);
    for (int i = 0; i < steps; i++) {
        if (oneIn(15)) beginJobs();
        if (oneIn(300)) slotNodeCancel(&sim_slots[operatorAnyNode()->host]);
        cutJobs();
        disturbJob();
        disturbMove();
        if (races) raceClaims();
        if (!calm) disturb();
        if (!calm && oneIn(400)) moveUnseen();
        for (int k = (int)randomUniform(6); k; k--) request();
        step();
    }
    clusterHeal();
    awaitJobs();
    clusterAgree();
    bool is_whole = !isRepaired(fixed) && awaitMoves() && allOwned() && !hasLeftovers();
    counts.left_open += !is_whole;
    clusterAgree();
    if (is_whole) finishRun(fixed);
    for (int i = 0; i < sim_node_count; i++) simNodeClear(&sim_nodes[i]);
    slotNodesClear();
    networkReset(0, 0, 0);
}

static void run(void) { simulate(false); }

static void runRaces(void) { simulate(true); }

static void print(const char *what, uint64_t count) {
    printf(", %llu %s", (unsigned long long)count, what);
}

static void report(void) {
    const simSlotCounts *c = &slot_counts;
    printf("%llu jobs", (unsigned long long)c->jobs);
    print("refused", c->refused);
    print("taken", c->taken);
    print("ends in failure", c->failed);
    print("cancelled", c->cancelled);
    print("walks", c->walks);
    print("changes forwarded", c->changes);
    print("slots moved", counts.moved);
    print("slots by failover", counts.failovers);
    print("writes", counts.writes);
    print("deletes", counts.deletes);
    print("reads", counts.reads);
    print("flushes", counts.flushes);
    print("by replaced nodes", counts.stale);
    print("writes lost by failovers", counts.lost);
    print("moves key by key", order_counts.moves);
    print("ended", order_counts.ended);
    print("orders", order_counts.orders);
    print("refused", order_counts.refused);
    print("undone", order_counts.undone);
    print("keys moved", order_counts.keys);
    print("left open", counts.left_open);
    print("requests with ASKING", counts.asks);
    print("connections of jobs cut", counts.cuts);
    print("restarts", counts.restarts);
    print("orders to take over", counts.races);
    printf("\n");
}

const simScenario slotsScenario = {.name = "slots", .run = run, .report = report};
const simScenario claimsScenario = {.name = "claims", .run = runRaces, .report = report};
