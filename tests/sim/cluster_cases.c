/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_cases.h"

#include "base/base.h"
#include "cluster_data.h"
#include "cluster_node.h"
#include "cluster_operator.h"
#include "cluster_rules.h"
#include "sim.h"

enum { T_MS = SIM_NODE_TIMEOUT_MS, ELECTED_MS = 10 * T_MS };

/* ------------------------------------------------------------------ tools */

static void pass(int64_t ms) {
    for (int64_t t = 0; t < ms; t += SIM_NODE_STEP_MS) clusterStep();
}

static clusterNode *seenBy(const simNode *n, const simNode *other) {
    return clusterMapFind(&n->map, clusterNodeId(other->map.myself));
}

static void block(const simNode *a, const simNode *b, bool blocked) {
    networkBlock(a->host, b->host, blocked);
    networkBlock(b->host, a->host, blocked);
}

static void isolate(const simNode *n) {
    for (int i = 0; i < sim_node_count; i++)
        if (&sim_nodes[i] != n) block(n, &sim_nodes[i], true);
}

static void finish(void) {
    networkHeal();
    clusterAgree();
    clusterAwaitService();
}

static bool isOwner(const simNode *n) { return clusterNodeVotes(n->map.myself); }

/* A random owner of slots but the two; NULL: there is none. */
static simNode *anyOwner(const simNode *except, const simNode *or_this) {
    simNode *found = NULL;
    unsigned count = 0;
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        if (!isOwner(n) || n == except || n == or_this) continue;
        if (randomUniform(++count) == 0) found = n;
    }
    return found;
}

/* An owner with replicas; NULL: there is none. */
static simNode *anyWithReplica(void) {
    simNode *found = NULL;
    unsigned count = 0;
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        if (isOwner(n) && n->map.myself->replica_count && randomUniform(++count) == 0) found = n;
    }
    return found;
}

static simNode *replicaOf(const simNode *primary) {
    const clusterNode *n = primary->map.myself;
    return n->replica_count ? simNodeOf(n->replicas[randomUniform((uint64_t)n->replica_count)])
                            : NULL;
}

static bool hasMajorityWithout(const simNode *n) {
    int voters = clusterMapCountVoters(&n->map);
    return voters - isOwner(n) >= voters / 2 + 1;
}

/* ------------------------------------------------------------------ the cases */

/* A node reports another one as failing and then cannot be heard any more. Later a second one loses
 * it as well: the old report must not count. */
static void oldReport(void) {
    simNode *first = anyOwner(NULL, NULL), *second = anyOwner(first, NULL),
            *third = anyOwner(first, second);
    if (!third || clusterMapCountVoters(&first->map) > 4) return;
    block(first, third, true);
    for (int64_t t = 0; t < 5 * T_MS && !seenBy(second, third)->report_count; t += SIM_NODE_STEP_MS)
        clusterStep();
    isolate(first);
    pass(3 * T_MS);
    block(second, third, true);
    for (int64_t t = 0; t < 3 * T_MS; t += SIM_NODE_STEP_MS) {
        clusterStep();
        if (seenBy(second, third)->flags & NODE_FAILED)
            simFail("node %d marks node %d as failed by an old report", second->host, third->host);
    }
    finish();
}

static void setValidity(int factor, int64_t repl_ping_ms) {
    for (int i = 0; i < sim_node_count; i++) {
        sim_nodes[i].bus.rules.validity_factor = factor;
        sim_nodes[i].bus.server.repl_ping_ms = repl_ping_ms;
    }
}

/* The replicas of a primary have lost it for too long when it fails: none is elected. It may have
 * got another one meanwhile, from a primary with several, which has its data. */
static void oldData(void) {
    simNode *primary = anyWithReplica();
    if (!primary || !hasMajorityWithout(primary)) return;
    const int factor = primary->bus.rules.validity_factor;
    const int64_t repl_ping_ms = primary->bus.server.repl_ping_ms;
    const clusterNode *p = primary->map.myself;
    bool has_lost[SIM_NODES_MAX] = {false};
    setValidity(1, 1000);
    for (int i = 0; i < p->replica_count; i++) {
        block(primary, simNodeOf(p->replicas[i]), true);
        has_lost[simNodeOf(p->replicas[i]) - sim_nodes] = true;
    }
    pass(3 * T_MS);
    simNodeStop(primary);
    pass(ELECTED_MS);
    for (int i = 0; i < sim_node_count; i++)
        if (has_lost[i] && sim_nodes[i].map.myself->flags & NODE_PRIMARY)
            simFail("node %d is elected with old data", i);
    simNodeStart(primary, SIM_FILE);
    networkHeal();
    pass(2 * T_MS);
    setValidity(factor, repl_ping_ms);
    finish();
}

/* A replica that one node is told to forget is forgotten by all, until that time has passed. */
static void forget(void) {
    simNode *primary = anyWithReplica(), *gone = primary ? replicaOf(primary) : NULL;
    simNode *by = anyOwner(NULL, NULL);
    if (!gone || by == gone) return;
    char id[NODE_ID_LEN];
    memcpy(id, gone->map.myself->id, NODE_ID_LEN);
    busForget(&by->bus, seenBy(by, gone), simNodeClock(by));
    simNodeFinish(by);
    pass(1000);
    for (int64_t t = 1000; t < SIM_FORGET_MS - 2000; t += SIM_NODE_STEP_MS) {
        clusterStep();
        for (int i = 0; i < sim_node_count; i++)
            if (&sim_nodes[i] != gone && clusterMapFind(&sim_nodes[i].map, sliceMake(id, 40)))
                simFail("node %d knows a forgotten node", i);
    }
    pass(4000);
    operatorMeet(by, gone);
    finish();
}

/* A primary that was replaced is back and does not reach its successor: others tell it. */
static void newsByOthers(void) {
    simNode *old = anyWithReplica();
    if (!old || !hasMajorityWithout(old) || !clusterHasCurrentReplica(old->map.myself)) return;
    int slot = clusterNodeNextSlots(old->map.myself, 0, &(int){0});
    simNode *observer = anyOwner(old, NULL), *next = NULL;
    const clusterNode *owner = NULL;
    char id[NODE_ID_LEN];
    memcpy(id, old->map.myself->id, NODE_ID_LEN);
    simNodeStop(old);
    for (int64_t t = 0; t < ELECTED_MS + 3 * T_MS && !next; t += SIM_NODE_STEP_MS) {
        clusterStep();
        owner = clusterMapOwner(&observer->map, slot);
        if (owner && memcmp(owner->id, id, NODE_ID_LEN) != 0) next = simNodeOf(owner);
    }
    if (!next) simFail("node %d is not replaced", old->host);
    pass(T_MS);
    block(old, next, true);
    simNodeStart(old, SIM_FILE);
    pass(4 * T_MS);
    if (old->map.myself->flags & NODE_PRIMARY)
        simFail("node %d does not know that it was replaced", old->host);
    finish();
}

/* Until the node regards that one as the owner of the slot. False: it takes too long. */
static bool awaitOwner(const simNode *n, int slot, const simNode *owner) {
    for (int64_t t = 0; clusterMapOwner(&n->map, slot) != seenBy(n, owner); t += SIM_NODE_STEP_MS) {
        if (t > 1000) return false;
        clusterStep();
    }
    return true;
}

static wire *wireBetween(const simNode *from, const simNode *to) {
    wire *w = wireFirst();
    while (w && (w->ends[WIRE_CONNECTOR] != from || w->ends[WIRE_ACCEPTOR] != to)) w = w->next;
    return w;
}

/* P has been a replica of R for a moment. The message in which it says so is slow, and the last one
 * on its connection; it arrives after news of P on other connections. */
static void oldMessage(void) {
    simNode *p = anyWithReplica(), *r = p ? replicaOf(p) : NULL, *third = anyOwner(p, NULL);
    wire *slow = third ? wireBetween(p, third) : NULL;
    if (!slow || !wireIsEstablished(slow)) return;
    int slot = clusterNodeNextSlots(p->map.myself, 0, &(int){0});
    slow->stalled_until_ms[WIRE_ACCEPTOR] = sim_now_ms + ELECTED_MS;
    operatorFailover(r, MANUAL_FORCE);
    for (int64_t t = 0; t < 1000 && p->map.myself->flags & NODE_PRIMARY; t += SIM_NODE_STEP_MS)
        clusterStep();
    size_t sent = slow->sent[WIRE_ACCEPTOR].len;
    bool is_replaced = awaitOwner(third, slot, r);
    operatorFailover(p, MANUAL_TAKEOVER);
    if (is_replaced && awaitOwner(third, slot, p) && slow->sent[WIRE_ACCEPTOR].len >= sent) {
        strCut(&slow->sent[WIRE_ACCEPTOR], sent);
        slow->cut = true;
        slow->stalled_until_ms[WIRE_ACCEPTOR] = 0;
        uint64_t epoch = clusterMapOwner(&third->map, slot)->epoch;
        for (int64_t t = 0; t < 500; t += SIM_NODE_STEP_MS) {
            clusterStep();
            const clusterNode *owner = clusterMapOwner(&third->map, slot);
            if (!owner || owner->epoch < epoch)
                simFail("node %d sees an older owner of slot %d again", third->host, slot);
        }
    }
    finish();
}

/* Whether the node has working connections with that one, in both directions. */
static bool isLinkedWith(const simNode *n, const clusterNode *seen) {
    return seen != n->map.myself && seen->links && seen->links->from && seen->is_connected &&
           simNodeClock(n) - seen->pong_ms < T_MS;
}

/* A step in which a copy of `id` runs. Nodes that have connections with the one that is known at
 * that port do not believe it. */
static void stepWithCopy(slice id, int port) {
    bool linked[SIM_NODES_MAX + 1];
    for (int i = 0; i < sim_node_count; i++) {
        const clusterNode *seen = clusterMapFind(&sim_nodes[i].map, id);
        linked[i] = seen && isLinkedWith(&sim_nodes[i], seen) && seen->bus_port == port;
    }
    sim_now_ms += SIM_NODE_STEP_MS;
    simNodesStep();
    wiresSweep();
    for (int i = 0; i < sim_node_count - 1; i++) {
        const clusterNode *seen = clusterMapFind(&sim_nodes[i].map, id);
        if (linked[i] && seen && seen->bus_port != port)
            simFail("node %d takes a copy for node %.40s", i, id.ptr);
    }
}

/* A server with a copy of the file of a node that works: it is not believed, and nothing is left of
 * it once it is stopped. */
static void copiedFile(void) {
    simNode *copied = operatorAnyNode(), *copy = &sim_nodes[sim_node_count];
    slice id = clusterNodeId(copied->map.myself);
    simNodeInit(copy, sim_node_count);
    simNodeStop(copy);
    strClear(&copy->disk);
    strAppendSlice(&copy->disk, strSlice(&copied->disk));
    sim_node_count++;
    simNodeStart(copy, SIM_FILE);
    for (int64_t t = 0; t < 2 * T_MS; t += SIM_NODE_STEP_MS) stepWithCopy(id, copied->bus_port);
    simNodeClear(copy);
    sim_node_count--;
    pass(3 * T_MS);
    for (int i = 0; i < sim_node_count; i++)
        if (seenBy(&sim_nodes[i], copied)->bus_port != copied->bus_port)
            simFail("node %d has the address of a copy that is gone", i);
    finish();
}

/* A primary that hears nothing more does not go on to serve requests. */
static void minority(void) {
    simNode *n = anyOwner(NULL, NULL);
    isolate(n);
    pass(2 * T_MS);
    if (n->state.ok && clusterMapCountVoters(&n->map) > 1)
        simFail("node %d serves requests in a minority", n->host);
    finish();
}

/* The end of a slot migration: another primary has the slots with a new epoch. The former owner
 * deletes its keys of them. */
static void movedSlots(void) {
    simNode *from = anyOwner(NULL, NULL), *to = anyOwner(from, NULL);
    int last;
    if (!to || from->paused_until_ms) return;
    for (int i = 0; i < 20; i++) dataWrite(from);
    int first = clusterNodeNextSlots(from->map.myself, 0, &last);
    (void)clusterMapBumpEpoch(&to->map); /* false: it has the greatest already */
    for (int slot = first; slot < last; slot++) clusterMapSetOwner(&to->map, slot, to->map.myself);
    simNodeFinish(to);
    finish();
    int slot = dataForeignSlot(from);
    if (slot >= 0 && from->map.myself->flags & NODE_PRIMARY)
        simFail("node %d has kept keys of slot %d, which it has lost", from->host, slot);
}

static void setManualTimeouts(const simNode *a, const simNode *b, int64_t ms) {
    sim_nodes[a->host].bus.rules.manual_timeout_ms = ms;
    sim_nodes[b->host].bus.rules.manual_timeout_ms = ms;
}

/* What the primary says of the pause for an order that has timed out arrives after the next order:
 * it is not the offset at which the primary pauses for that. */
static void secondOrder(void) {
    enum { SHORT_MS = 200, LATE_MS = 700 };
    simNode *p = anyWithReplica(), *r = p ? replicaOf(p) : NULL;
    wire *asks = r ? wireBetween(r, p) : NULL, *tells = r ? wireBetween(p, r) : NULL;
    if (!asks || !tells || !wireIsEstablished(asks) || !wireIsEstablished(tells)) return;
    if (!simNodeActs(r) || !simNodeActs(p) || !seenBy(r, p)->is_connected) return;
    asks->stalled_until_ms[WIRE_CONNECTOR] = tells->stalled_until_ms[WIRE_ACCEPTOR] =
        sim_now_ms + LATE_MS;
    setManualTimeouts(p, r, SHORT_MS);
    operatorFailover(r, MANUAL_PLAIN);
    pass(LATE_MS - SIM_NODE_STEP_MS);
    setManualTimeouts(p, r, SIM_MANUAL_TIMEOUT_MS);
    if (p->bus.manual.step != MANUAL_IDLE || r->bus.manual.step != MANUAL_IDLE) return finish();
    for (int i = 0; i < 20; i++) dataWrite(p);
    operatorFailover(r, MANUAL_PLAIN);
    bool has_order = r->bus.manual.step != MANUAL_IDLE;
    for (int64_t t = 0; t < SIM_MANUAL_TIMEOUT_MS && !isOwner(r); t += SIM_NODE_STEP_MS)
        clusterStep();
    if (has_order && !isOwner(r)) simFail("node %d does not replace node %d", r->host, p->host);
    finish();
}

void casesRun(void) {
    static void (*const cases[])(void) = {oldReport,    oldData,    forget,
                                          newsByOthers, oldMessage, copiedFile,
                                          minority,     movedSlots, secondOrder};
    cases[randomUniform(COUNT_OF(cases))]();
}
