/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ties the parts of the bus together (bus.h): hands each part its rules, carries out what the parts
 * return (elections, manual failovers, new sets of voters, new roles), and runs what is
 * periodic. */
#include "bus/bus.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/bus_priv.h"
#include "bus/map_blacklist.h"
#include "bus/open_slots.h"

enum {
    PING_OLDEST_MS =
        1000, /* so often the node with the oldest PONG of a few random ones is asked */
    PING_CANDIDATES = 5,
};

/* ------------------------------------------------------------------ rules of the parts */

static void moved(void *arg, clusterNode *n) { busMoved(arg, n); }

static bool mayMove(void *arg, const clusterNode *n, bool is_lost) {
    clusterBus *b = arg;
    if (n->links && n->links->from) return false; /* what it tells itself is newer */
    /* There was no time to connect to the present one, which may be from the node itself. A
     * released server that has just started tells addresses of its file as if it had reached
     * them. */
    if (n->moved_ms && b->now_ms - n->moved_ms < b->rules.timeout_ms / 2) return false;
    return is_lost || busIsLost(b, n);
}

/* Nothing is told in a cluster without cluster-replicas-vote. */
static uint16_t ownFlags(const clusterBus *b) {
    const clusterMap *m = b->map;
    bool wants = b->rules.replicas_vote;
    bool tells = wants || m->voters.stamp.term || m->has_heard_voters;
    return (uint16_t)((b->as_older ? 0
                                   : MESSAGE_TAKES_SHORT | MESSAGE_UNCLAIMS |
                                         MESSAGE_TAKES_PRIORITY | MESSAGE_TAKES_CAPA) |
                      (wants ? MESSAGE_REPLICAS_VOTE : 0) | (tells ? MESSAGE_TELLS_VOTERS : 0) |
                      (b->server.shares_acl ? MESSAGE_SHARES_ACL : 0) |
                      (b->server.shares_functions ? MESSAGE_SHARES_FUNCTIONS : 0) |
                      (b->server.shares_config ? MESSAGE_SHARES_CONFIG : 0));
}

gossipRules busGossipRules(clusterBus *b) {
    return (gossipRules){.tls = b->server.tls,
                         .cluster_ok = b->state->ok,
                         .announces_ip = b->server.announces_ip,
                         .flags = manualFailoverHasPaused(&b->manual) ? MESSAGE_PAUSED : 0,
                         .own_flags = ownFlags(b),
                         .supported = (uint16_t)(NODE_HAS_EXTENSIONS | NODE_HAS_LIGHT_PUBLISH |
                                                 NODE_HAS_LIGHT_MODULE |
                                                 (b->as_older ? 0 : NODE_TAKES_NACK)),
                         .percent = b->rules.gossip_percent,
                         .moved_since_ms = b->now_ms - b->rules.timeout_ms,
                         .mayMove = mayMove,
                         .now_ms = b->now_ms,
                         .moved = moved,
                         .arg = b};
}

failureRules busFailureRules(clusterBus *b) {
    return (failureRules){.directives = &b->rules, .failed = busTellFailed, .arg = b};
}

static electionRules electionRulesOf(const clusterBus *b) {
    const busRules *r = &b->rules;
    const busServer *server = &b->server;
    int64_t age_ms = b->procs->dataAge(b->arg);
    int64_t most_ms =
        r->validity_factor ? server->repl_ping_ms + r->timeout_ms * r->validity_factor : 0;
    check(age_ms >= -1);
    age_ms = age_ms < 0 ? INT64_MAX : age_ms < r->timeout_ms ? 0 : age_ms - r->timeout_ms;
    return (electionRules){.timeout_ms = busRulesFailoverMs(r),
                           .allowed = !r->no_failover && !server->forbids_failover,
                           .manual_end_ms = manualFailoverReadyUntil(&b->manual),
                           .is_forced = b->manual.is_forced,
                           .data_age_ms = age_ms,
                           .data_age_max_ms = most_ms,
                           .validity_factor = r->validity_factor,
                           .quorum = server->quorum,
                           .lease_ms = server->read_lease_ms};
}

/* ------------------------------------------------------------------ consequences */

void busTakeOffset(clusterBus *b) {
    const busProcs *procs = b->procs;
    bool counts = !b->server.quorum || !procs->hasCaughtUp || procs->hasCaughtUp(b->arg);
    b->map->myself->offset = counts ? procs->offset(b->arg) : 0;
    b->map->myself->stream = b->server.quorum ? procs->stream(b->arg) : 0;
    check(b->map->myself->offset >= 0);
}

static void tickElection(clusterBus *b) {
    busTakeOffset(b); /* acknowledgements end here: no message may have an older offset */
    electionRules rules = electionRulesOf(b);
    electionActs acts = electionTick(&b->election, b->map, &rules, b->now_ms);
    busHoldAcks(b, electionHoldMs(rules.timeout_ms));
    busActOnElection(b, acts);
}

int64_t busStreamOffset(const clusterBus *b) {
    return b->procs->isLinked(b->arg) ? b->procs->offset(b->arg) : -1;
}

void busApplyTopology(clusterBus *b, const topologyActs *acts) {
    if (acts->lost_slots) b->procs->slotsLost(b->arg);
    if (acts->is_released) b->procs->promoted(b->arg);
    if (acts->has_taken) busTellAll(b, b->now_ms);
    if (!acts->follow) return;
    check(b->map->myself->primary == acts->follow);
    b->procs->follow(b->arg, acts->follow);
    busTellAll(b, b->now_ms);
}

void busActOnVoters(clusterBus *b, votersActs acts) {
    if (acts.ask) busAskAboutVoters(b);
    if (acts.tell) busTellAll(b, b->now_ms);
}

static void tickVoters(clusterBus *b) {
    /* An answer to one election must not count in another one. */
    if (b->election.step == ELECTION_ASKED) return;
    busActOnVoters(b, votersTick(&b->voters_change, b->map, &b->rules, b->now_ms));
}

static void becomePrimary(clusterBus *b) {
    check(b->map->myself->flags & NODE_PRIMARY);
    b->procs->promoted(b->arg);
    b->procs->slotsLost(b->arg);
    busTellAll(b, b->now_ms);
}

/* With a quorum a pause is in the file as long as it lasts: the replica may be elected although
 * this node starts again. */
static void notePause(clusterBus *b) {
    const manualFailover *f = &b->manual;
    bool paused = b->server.quorum && f->step == MANUAL_PAUSED;
    clusterMapSetPause(b->map, paused ? f->peer_id : NULL, paused ? f->began_epoch : 0);
}

static void resumePause(clusterBus *b) {
    if (b->has_begun) return;
    b->has_begun = true;
    if (!b->server.quorum || !b->map->paused_for[0]) return;
    manualActs acts =
        manualFailoverResume(&b->manual, b->map, b->rules.manual_timeout_ms, b->now_ms);
    busActOnManual(b, &acts);
}

void busActOnManual(clusterBus *b, const manualActs *acts) {
    const clusterMap *m = b->map;
    if (acts->pause_ms) notePause(b);
    if (acts->pause_ms) b->procs->pauseWrites(b->arg, b->now_ms + acts->pause_ms);
    if (acts->resume) b->procs->pauseWrites(b->arg, 0);
    if (acts->ask_primary) {
        busSendEmpty(b, m->myself->primary, MESSAGE_MANUAL_FAILOVER, 0);
        busPing(b, m->myself->primary);
        manualFailoverAsked(&b->manual, busLinksOf(m->myself->primary)->pings);
    }
    if (acts->ping) busPing(b, acts->ping);
    if (acts->promoted) {
        clusterMapSetHold(b->map, NULL, 0);
        becomePrimary(b);
    }
    if (!acts->start_election) return;
    tickElection(b);
}

void busActOnElection(clusterBus *b, electionActs acts) {
    const clusterMap *m = b->map;
    if (acts.ask)
        busSendEmpty(b, NULL, MESSAGE_AUTH_REQUEST, b->election.force ? MESSAGE_FORCE_ACK : 0);
    if (acts.won) {
        busHoldConfirmations(b);
        becomePrimary(b);
        return;
    }
    for (int i = 1; i < m->node_count && acts.tell_replicas; i++) {
        const clusterNode *to = m->nodes[i];
        if (to->primary && to->primary == m->myself->primary) busPongTo(b, to);
    }
}

void busFollow(clusterBus *b, clusterNode *primary, int64_t now_ms) {
    busSetNow(b, now_ms);
    topologyFollow(b->map, primary);
    b->procs->follow(b->arg, primary);
    busTellAll(b, now_ms);
}

/* ------------------------------------------------------------------ PINGs */

static bool isIdle(const clusterNode *n) {
    return n->is_connected && !n->ping_sent_ms && !(n->flags & NODE_HANDSHAKE);
}

/* All nodes know the same time of a PONG, by gossip, so all of a large cluster would send their
 * PINGs at once. From half the interval on each does so at some tick; the first tell others. */
static bool isPingedEarly(const clusterBus *b, int64_t age_ms, int64_t interval_ms) {
    if (age_ms <= interval_ms / 2 || b->never_pings_random) return false;
    return randomUniform((uint64_t)b->map->node_count) == 0;
}

static void pingIdle(clusterBus *b) {
    int64_t interval =
        b->rules.ping_interval_ms ? b->rules.ping_interval_ms : b->rules.timeout_ms / 2;
    check(interval >= 0);
    for (int i = 1; i < b->map->node_count; i++) {
        clusterNode *n = b->map->nodes[i];
        if (!isIdle(n)) continue;
        int64_t age_ms = b->now_ms - n->pong_ms;
        if (age_ms > interval || isPingedEarly(b, age_ms, interval)) busPing(b, n);
    }
}

static void pingOldest(clusterBus *b) {
    clusterNode *oldest = NULL;
    for (int i = 0; i < PING_CANDIDATES; i++) {
        clusterNode *n = b->map->nodes[randomUniform((uint64_t)b->map->node_count)];
        if (n == b->map->myself || !isIdle(n)) continue;
        if (!oldest || n->pong_ms < oldest->pong_ms) oldest = n;
    }
    if (oldest) busPing(b, oldest);
}

/* ------------------------------------------------------------------ periodically */

static void tickManual(clusterBus *b) {
    manualFailover *f = &b->manual;
    clusterNode *peer = f->step == MANUAL_PAUSED ? manualFailoverPeer(f, b->map) : NULL;
    int64_t timeout_ms = b->rules.manual_timeout_ms;
    bool keeps =
        peer && b->server.quorum &&
        manualFailoverKeepsPause(f, b->map, busLinksOf(peer)->pings, timeout_ms, b->now_ms);
    manualActs acts = {0};
    if (!keeps) {
        acts = manualFailoverTick(f, b->map, busStreamOffset(b), b->now_ms);
    } else if (b->now_ms == b->ticked_ms) { /* in each tick */
        acts = (manualActs){.pause_ms = timeout_ms, .ping = peer};
    }
    busActOnManual(b, &acts);
    notePause(b);
}

void busStep(clusterBus *b, int64_t now_ms) {
    busSetNow(b, now_ms);
    b->map->changed &= ~(uint32_t)CLUSTER_MAP_STATE;
    busTakeOffset(b);
    resumePause(b);
    tickManual(b);
    tickElection(b);
    clusterStateUpdate(b->state, b->map, &b->rules, b->server.lost_data, now_ms);
    busSweep(b);
}

static void joinOrphan(clusterBus *b) {
    clusterNode *orphan = orphansTick(b->map, &b->rules, b->state->ok, b->now_ms);
    if (orphan) busFollow(b, orphan, b->now_ms);
}

void busTick(clusterBus *b, int64_t now_ms) {
    failureRules failure = busFailureRules(b);
    busSetNow(b, now_ms);
    b->ticked_ms = now_ms;
    busKeepLinks(b);
    pingIdle(b);
    if (now_ms - b->pinged_ms >= PING_OLDEST_MS && !b->never_pings_random) {
        b->pinged_ms = now_ms;
        pingOldest(b);
    }
    if (failureTick(b->map, &failure, now_ms)) busTellVoters(b);
    openSlotsTick(b->map, 2 * b->rules.timeout_ms, now_ms);
    tickVoters(b);
    electionTellLacking(b->map, b->rules.timeout_ms, now_ms);
    busStep(b, now_ms);
    joinOrphan(b);
    busSeek(b); /* the last: it may take a later time */
}

/* ------------------------------------------------------------------ commands and reports */

void busReset(clusterBus *b, bool hard) {
    b->election = (election){0};
    if (manualFailoverHasPaused(&b->manual)) b->procs->pauseWrites(b->arg, 0);
    b->manual = (manualFailover){0};
    b->voters_change = (votersChange){0};
    clusterMapReset(b->map, hard);
    /* The other ends of the remaining links are unknown now. */
    busDropIf(b, NULL);
}

/* Returns cluster-blacklist-ttl in milliseconds, limited to a range that does not overflow. */
static int64_t forgetMs(const busRules *r) {
    int64_t seconds = r->forget_seconds, most = INT64_MAX / 2000;
    if (seconds <= 0) return 0;
    return (seconds < most ? seconds : most) * 1000;
}

void busForget(clusterBus *b, clusterNode *n, int64_t now_ms) {
    check(n != b->map->myself);
    check(n != b->map->myself->primary);
    busSetNow(b, now_ms);
    clusterMapForbid(b->map, clusterNodeId(n), now_ms + forgetMs(&b->rules));
    clusterMapRemove(b->map, n);
    busPingAll(b);
    busSweep(b);
}

void busSetSlot(clusterBus *b, const setSlotOrder *order, bool has_keys, int64_t now_ms) {
    bool tells, gives = clusterMapIsMine(b->map, order->slot);
    busSetNow(b, now_ms);
    topologyActs acts = setSlotApply(b->map, order, has_keys, &b->rules, &tells);
    const clusterNode *owner = clusterMapOwner(b->map, order->slot);
    if (gives && owner != b->map->myself) busUpdate(b, owner, owner); /* it may wait for that */
    busApplyTopology(b, &acts);
    if (tells) busTellAll(b, now_ms);
}

const char *busFailover(clusterBus *b, manualOrder order, slice who, int64_t now_ms) {
    const char *error = manualFailoverRefusal(b->map, order);
    if (error) return error;
    busSetNow(b, now_ms);
    busTakeOffset(b);
    if (order == MANUAL_FORCE &&
        !electionMayForce(b->map, b->server.quorum, busRulesFailoverMs(&b->rules), now_ms))
        return "replication-quorum: this replica may lack acknowledged writes, as the primary has "
               "not failed, too few replicas know of that, or one of them has more data. CLUSTER "
               "FAILOVER TAKEOVER promotes it nevertheless.";
    manualActs acts = manualFailoverOrder(&b->manual, &b->election, b->map, order, who,
                                          b->rules.manual_timeout_ms, now_ms);
    if (acts.promoted && !votersAreReached(b->map, b->rules.timeout_ms, now_ms))
        votersTakeOver(b->map);
    busActOnManual(b, &acts);
    busSweep(b);
    return NULL;
}

void busEachLink(clusterBus *b, void (*visit)(void *arg, const busLink *l), void *arg) {
    for (const listNode *at = listFirst(&b->links); at; at = listNext(&b->links, at))
        visit(arg, CONTAINER_OF(at, const busLink, all));
}

int busCountReports(clusterBus *b, clusterNode *n, int64_t now_ms) {
    failureRules rules = busFailureRules(b);
    return failureCountReports(n, &rules, now_ms);
}

/* ------------------------------------------------------------------ beginning and end */

void busInit(clusterBus *b, clusterMap *map, clusterState *state, const busProcs *procs, void *arg,
             int64_t now_ms) {
    memset(b, 0, sizeof(*b));
    b->map = map;
    b->state = state;
    b->procs = procs;
    b->arg = arg;
    b->dropped_type = BUS_DROP_NONE;
    b->now_ms = b->started_ms = now_ms;
    listInit(&b->links);
    listInit(&b->closed);
    map->on_remove = busNodeRemoved;
    map->on_remove_arg = b;
}

void busClear(clusterBus *b) {
    busDropIf(b, NULL);
    for (int i = 0; i < b->map->node_count; i++) {
        memFree(b->map->nodes[i]->links);
        b->map->nodes[i]->links = NULL;
    }
    b->map->on_remove = NULL;
}
