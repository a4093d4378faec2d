/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of replication: four servers run the state machines of src/repl over connections
 * that are stalled and cut after any byte, with pauses, restarts, promotions, failing children and
 * damaged transfers.
 *
 * At each step a replica's dataset must be the one that its position in the stream stands for; a
 * replica must not acknowledge what it has not applied; at the end, without faults, all datasets
 * become equal. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "base/random.h"
#include "server.h"

enum { WAITS_MAX = 16, CALM_MS = 180 * 1000 };

static simServer *anyServer(void) { return &servers[randomUniform(SIM_SERVERS)]; }

/* ---------------------------------------------------------- waits: what replicas have confirmed */

static struct {
    simServer *primary;
    char id[REPL_ID_LEN + 1];
    int64_t offset;
    int dataset;
} waits[WAITS_MAX];

static void beginWait(simServer *s) {
    if (!simServerIsPrimary(s) || !s->state.has_backlog) return;
    unsigned i = (unsigned)randomUniform(WAITS_MAX);
    waits[i].primary = s;
    memcpy(waits[i].id, s->state.history.id, sizeof(waits[i].id));
    waits[i].offset = s->state.history.offset;
    waits[i].dataset = s->dataset;
    primaryWantAcks(&s->primary);
}

/* The replica behind a connection that the primary counts as having the write. */
static void checkConfirmed(const wire *w, int wait) {
    const simServer *primary = waits[wait].primary, *replica = w->ends[WIRE_CONNECTOR];
    const peerSide *side = peerSideOf(w);
    if (w->ends[WIRE_ACCEPTOR] != primary || !side || !replica) return;
    if (side->peer->state != PEER_ONLINE || side->peer->acked < waits[wait].offset) return;
    if (replica->wire != w || !replica->streams) return; /* it has lost the link since */
    counts.waits++;
    if (!oracleIncludes(replica->dataset, waits[wait].dataset))
        simFail("%s is counted for %lld by %s but lacks the write", replica->name,
                (long long)waits[wait].offset, primary->name);
}

static void checkWaits(void) {
    for (int i = 0; i < WAITS_MAX; i++) {
        simServer *s = waits[i].primary;
        if (!s || !simServerIsPrimary(s) || strcmp(s->state.history.id, waits[i].id) != 0) continue;
        for (wire *w = wireFirst(); w; w = w->next) checkConfirmed(w, i);
    }
}

/* ------------------------------------------------------------------ faults */

static void cutWire(void) {
    wire *w = wireAny();
    if (!w) return;
    counts.cuts++;
    wireCut(w);
}

static void stallWire(void) {
    wire *w = wireAny();
    if (w) wireStall(w, 9000);
}

static void restart(simServer *s) {
    if (s->running && oneIn(2)) simServerSnapshot(s);
    if (s->running && oneIn(8)) simServerDiscard(s);
    if (s->running) simServerStop(s);
    counts.restarts++;
    if (oneIn(8)) s->disk.saved = false;
    simServerStart(s);
}

/* True if `s` is `from`, or gets its data from it. During a failover two servers follow each
 * other. */
static bool dependsOn(const simServer *s, const simServer *from) {
    for (int i = 0; i < SIM_SERVERS && s && s != from; i++) s = s->follows;
    return s == from;
}

static void follow(simServer *s, simServer *primary) {
    if (s != primary && !dependsOn(primary, s)) simServerFollow(s, primary);
}

/* A replica takes over; the primary follows it, and some of the others. If one of two servers that
 * follow each other was restarted during the failover, there is no primary: then any other one. */
static void promote(simServer *s) {
    if (!s->follows) return;
    simServer *old = s;
    for (int i = 0; i < SIM_SERVERS && old->follows && old->failover.state == FAILOVER_NONE; i++)
        old = old->follows;
    simServerFollow(s, NULL);
    follow(old, s);
    for (int i = 0; i < SIM_SERVERS; i++)
        if (oneIn(2)) follow(&servers[i], s);
}

static void injectFaults(void) {
    if (oneIn(200)) cutWire();
    if (oneIn(200)) stallWire();
    if (oneIn(500)) networkPause(anyServer()->host, sim_now_ms + (int64_t)randomUniform(9000));
    if (oneIn(1500)) networkPartition(1u << randomUniform(SIM_SERVERS));
    if (oneIn(300)) networkPartition(0);
    if (oneIn(400)) simServerSnapshot(anyServer());
    if (oneIn(700)) restart(anyServer());
    if (oneIn(900)) promote(anyServer());
    if (oneIn(300)) {
        simServerFailover(anyServer());
        if (oneIn(4)) cutWire(); /* the wrong moment */
    }
    if (oneIn(2000)) simServerOrder(anyServer());
    if (oneIn(900)) {
        simServer *s = anyServer();
        if (s->follows) follow(s, anyServer());
    }
}

/* ------------------------------------------------------------------ a run */

static void step(bool writes) {
    sim_now_ms += SIM_STEP_MS;
    for (int i = 0; i < SIM_SERVERS; i++) {
        simServer *s = &servers[i];
        if (writes && !networkIsPaused(s->host) && oneIn(3))
            simServerWrite(s, oneIn(8) ? 1 + (int)randomUniform(5) : 1);
        if (oneIn(50)) beginWait(s);
        simServerStep(s);
        simServerCheck(s);
    }
    checkWaits();
    wiresSweep();
}

static bool isCaughtUp(const simServer *s, const simServer *primary) {
    return s == primary || (s->link.state == LINK_CONNECTED &&
                            s->state.history.offset == primary->state.history.offset &&
                            !strcmp(s->state.history.id, primary->state.history.id));
}

static void begin(void) {
    memset(servers, 0, sizeof(servers));
    memset(waits, 0, sizeof(waits));
    networkReset(SIM_SERVERS, 0, oneIn(2) ? 0 : 1 + (int64_t)randomUniform(60));
    oracleReset();
    sim_now_ms = 1000000;
    for (int i = 0; i < SIM_SERVERS; i++) {
        snprintf(servers[i].name, sizeof(servers[i].name), "s%d", i);
        servers[i].host = i;
        servers[i].port = 7000 + i;
        servers[i].follows = i == 0 ? NULL : i == 3 ? &servers[1] : &servers[0];
        simServerStart(&servers[i]);
    }
}

/* No more faults; failovers end by themselves (simServerStep() fails if they do not). */
static void calmDown(void) {
    sim_faults = 0;
    networkHeal();
    for (int i = 0; i < SIM_SERVERS; i++)
        while (servers[i].failover.state != FAILOVER_NONE) step(false);
}

/* Without faults and writes all servers must become equal. */
static void becomeEqual(void) {
    simServer *primary = anyServer();
    calmDown();
    simServerFollow(primary, NULL);
    for (int64_t end_ms = sim_now_ms + CALM_MS;;) {
        int equal = 0;
        /* Again and again: a request to take over may arrive after its sender has given up. */
        for (int i = 0; i < SIM_SERVERS; i++)
            if (&servers[i] != primary && !dependsOn(&servers[i], primary))
                follow(&servers[i], primary);
        if (primary->follows) simServerFollow(primary, NULL);
        for (int i = 0; i < SIM_SERVERS; i++) simServerOrder(&servers[i]);
        step(false);
        for (int i = 0; i < SIM_SERVERS; i++) equal += isCaughtUp(&servers[i], primary);
        if (equal == SIM_SERVERS) break;
        if (sim_now_ms > end_ms) simFail("the replicas do not catch up");
    }
    for (int i = 0; i < SIM_SERVERS; i++)
        if (servers[i].dataset != primary->dataset)
            simFail("%s has another dataset than %s", servers[i].name, primary->name);
}

static void run(void) {
    sim_faults = oneIn(3) ? 0 : 4;
    sim_refuses_empty = oneIn(2);
    begin();
    int steps = 500 + (int)randomUniform(2500);
    for (int i = 0; i < steps; i++) {
        injectFaults();
        step(true);
    }
    becomeEqual();
    for (int i = 0; i < SIM_SERVERS; i++) simServerStop(&servers[i]);
    networkReset(0, 0, 0);
}

static void report(void) {
    printf(
        "%llu writes, %llu full (%llu dual-channel) and %llu partial synchronisations, "
        "%llu failed transfers, %llu cuts, %llu restarts, %llu promotions, %llu confirmed waits, "
        "%llu failovers (%llu completed), %llu refusals by replicas of empty primaries, "
        "%llu primaries ended by order without saving, %llu times obeyed\n",
        (unsigned long long)counts.writes, (unsigned long long)counts.full_syncs,
        (unsigned long long)counts.dual_syncs, (unsigned long long)counts.partial_syncs,
        (unsigned long long)counts.failed_transfers, (unsigned long long)counts.cuts,
        (unsigned long long)counts.restarts, (unsigned long long)counts.promotions,
        (unsigned long long)counts.waits, (unsigned long long)counts.failovers,
        (unsigned long long)counts.failovers_done, (unsigned long long)counts.refusals,
        (unsigned long long)counts.discards, (unsigned long long)counts.obeyed);
}

const simScenario replicationScenario = {.name = "replication", .run = run, .report = report};
