/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_node.h"

#include "base/base.h"
#include "sim.h"

simNode sim_nodes[SIM_NODES];
simNodeCounts node_counts;

static const topologyRules topology_rules = {.replica_migration = true};
static const electionRules election_rules = {
    .timeout_ms = SIM_NODE_TIMEOUT_MS, .allowed = true, .validity_factor = 10};
static const clusterStateRules state_rules = {.full_coverage = true,
                                              .node_timeout_ms = SIM_NODE_TIMEOUT_MS};

static int64_t clockOf(const simNode *n) { return networkClock(n->host); }

static gossipRules gossipRulesOf(const simNode *n) {
    return (gossipRules){
        .cluster_ok = n->state.ok, .supported = NODE_HAS_EXTENSIONS, .percent = 10};
}

/* The link to a node of the map. */
static simLink *linkTo(simNode *n, const clusterNode *peer) {
    int host = peer->bus_port - SIM_BUS_PORT;
    check(host >= 0);
    check(host < SIM_NODES);
    return &n->links[host];
}

/* ------------------------------------------------------------------ sending */

static void sendOn(wire *w, wireSide side, const str *bytes) {
    node_counts.messages++;
    node_counts.bytes += bytes->len;
    wireSend(w, side, strSlice(bytes));
}

static void sendTo(simNode *n, const clusterNode *peer, const str *bytes) {
    simLink *l = linkTo(n, peer);
    if (l->wire && l->greeted) sendOn(l->wire, WIRE_CONNECTOR, bytes);
}

static void ping(simNode *n, clusterNode *peer) {
    str bytes = STR_EMPTY;
    gossipRules rules = gossipRulesOf(n);
    gossipWrite(&bytes, &n->map, &rules, peer->flags & NODE_MEET ? MESSAGE_MEET : MESSAGE_PING,
                peer);
    sendTo(n, peer, &bytes);
    failurePinged(peer, clockOf(n));
    strFree(&bytes);
}

static void pong(simNode *n, wire *w, wireSide side, const clusterNode *to) {
    str bytes = STR_EMPTY;
    gossipRules rules = gossipRulesOf(n);
    gossipWrite(&bytes, &n->map, &rules, MESSAGE_PONG, to);
    sendOn(w, side, &bytes);
    strFree(&bytes);
}

static void tellFailed(void *arg, clusterNode *failed) {
    simNode *n = arg;
    str bytes = STR_EMPTY;
    gossipRules rules = gossipRulesOf(n);
    messageHeader h = gossipHeader(&n->map, &rules);
    messageWriteFail(&bytes, &h, failed->id);
    for (int i = 1; i < n->map.node_count; i++) sendTo(n, n->map.nodes[i], &bytes);
    node_counts.fails++;
    strFree(&bytes);
}

/* A message without data to all nodes. */
static void sendToAll(simNode *n, messageType type, uint8_t flags) {
    str bytes = STR_EMPTY;
    gossipRules rules = gossipRulesOf(n);
    messageHeader h = gossipHeader(&n->map, &rules);
    h.flags |= flags;
    messageWriteEmpty(&bytes, type, &h);
    for (int i = 1; i < n->map.node_count; i++) sendTo(n, n->map.nodes[i], &bytes);
    strFree(&bytes);
}

static void pongTo(simNode *n, const clusterNode *to) {
    simLink *l = linkTo(n, to);
    if (l->wire && l->greeted) pong(n, l->wire, WIRE_CONNECTOR, to);
}

static failureRules failureRulesOf(simNode *n) {
    return (failureRules){.timeout_ms = SIM_NODE_TIMEOUT_MS, .failed = tellFailed, .arg = n};
}

static void sendUpdate(simNode *n, const clusterNode *to, const clusterNode *about) {
    str bytes = STR_EMPTY;
    gossipRules rules = gossipRulesOf(n);
    messageHeader h = gossipHeader(&n->map, &rules);
    messageWriteUpdate(&bytes, &h, about->epoch, about->id, clusterNodeSlots(about));
    sendTo(n, to, &bytes);
    node_counts.updates++;
    strFree(&bytes);
}

/* ------------------------------------------------------------------ messages */

/* A node that introduces itself becomes known. */
static clusterNode *meet(simNode *n, const messageHeader *h) {
    clusterNode *added = clusterMapAdd(&n->map, h->sender, clockOf(n));
    gossipReadAddress(&n->map, added, h, SLICE("127.0.0.1"), false);
    return added;
}

static void takePing(simNode *n, clusterNode *sender, const message *m, bool is_reply) {
    int64_t now_ms = clockOf(n);
    failureRules failure = failureRulesOf(n);
    gossipRules rules = gossipRulesOf(n);
    gossipReadFlags(&n->map, sender, &m->header);
    if (is_reply) {
        failurePong(&n->map, sender, &failure, now_ms);
        clusterMapSetFlags(&n->map, sender, 0, NODE_MEET);
    }
    topologyActs acts = topologyHeader(&n->map, sender, &m->header, &topology_rules);
    if (acts.is_stale) return;
    if (acts.update) sendUpdate(n, sender, acts.update);
    gossipRead(&n->map, sender, m, &failure, &rules, now_ms);
    if (m->extension_count) gossipReadExtensions(&n->map, sender, m, now_ms);
}

static void actOnElection(simNode *n, electionActs acts) {
    if (acts.ask) {
        node_counts.elections++;
        sendToAll(n, MESSAGE_AUTH_REQUEST, n->election.force ? MESSAGE_FORCE_ACK : 0);
    }
    if (acts.won) simNodeWon(n, n->map.myself->epoch);
    for (int i = 1; i < n->map.node_count && (acts.won || acts.tell_replicas); i++) {
        const clusterNode *to = n->map.nodes[i];
        if (acts.won || to->primary == n->map.myself->primary) pongTo(n, to);
    }
}

static void takeRequest(simNode *n, clusterNode *sender, const messageHeader *h) {
    electionVerdict v = electionRequest(&n->map, sender, h, n->started_ms, clockOf(n));
    if (v.update) sendUpdate(n, sender, v.update);
    if (!v.granted) return;
    simNodeVoted(n, n->map.vote_epoch);
    str bytes = STR_EMPTY;
    gossipRules rules = gossipRulesOf(n);
    messageHeader own = gossipHeader(&n->map, &rules);
    messageWriteEmpty(&bytes, MESSAGE_AUTH_ACK, &own);
    sendTo(n, sender, &bytes);
    strFree(&bytes);
}

static void take(simNode *n, wire *w, wireSide side, const message *m) {
    clusterNode *sender = clusterMapFind(&n->map, sliceMake(m->header.sender, NODE_ID_LEN));
    if (sender == n->map.myself) simFail("node %d receives a message of itself", n->host);
    if (m->type == MESSAGE_MEET && !sender) sender = meet(n, &m->header);
    if (sender) failureHeard(sender, clockOf(n));
    if (m->type == MESSAGE_PING || m->type == MESSAGE_MEET) pong(n, w, side, sender);
    if (!sender) return;
    if (m->type <= MESSAGE_MEET) {
        takePing(n, sender, m, m->type == MESSAGE_PONG && side == WIRE_CONNECTOR);
    } else if (m->type == MESSAGE_FAIL) {
        clusterNode *about = clusterMapFind(&n->map, sliceMake(m->id, NODE_ID_LEN));
        if (about) failureReceived(&n->map, sender, about, clockOf(n));
    } else if (m->type == MESSAGE_UPDATE) {
        (void)topologyUpdate(&n->map, sender, m, &topology_rules); /* no data follows the role */
    } else if (m->type == MESSAGE_AUTH_REQUEST) {
        takeRequest(n, sender, &m->header);
    } else if (m->type == MESSAGE_AUTH_ACK) {
        actOnElection(n, electionVote(&n->election, &n->map, sender, &m->header, clockOf(n)));
    }
}

/* Takes the complete messages of what has arrived. */
static void receive(simNode *n, wire *w, wireSide side, str *input) {
    str got = wireReceive(w, side);
    strAppendSlice(input, strSlice(&got));
    strFree(&got);
    size_t at = 0, size;
    for (;;) {
        slice rest = sliceMake(input->ptr + at, input->len - at);
        status st = messagePeek(rest, &size);
        if (st == ERR_SYNTAX) simFail("node %d receives what is no message", n->host);
        if (st != OK || size > rest.len) break;
        message m;
        reason why;
        if (messageRead(sliceMake(rest.ptr, size), &m, &why) != OK)
            simFail("node %d receives an invalid message: %s", n->host, why.text);
        take(n, w, side, &m);
        at += size;
    }
    if (!at) return;
    memmove(input->ptr, input->ptr + at, input->len - at);
    strCut(input, input->len - at);
}

/* ------------------------------------------------------------------ links */

static void closeLink(simLink *l, clusterNode *peer) {
    if (l->wire) wireClose(l->wire, WIRE_CONNECTOR);
    l->wire = NULL;
    l->greeted = false;
    strFree(&l->input);
    if (peer) peer->is_connected = false;
}

/* As the fact sheet has it: an old link on which a PING is unanswered and nothing arrives is opened
 * again. */
static bool isSilent(const simLink *l, const clusterNode *peer, int64_t now_ms) {
    int64_t half_ms = SIM_NODE_TIMEOUT_MS / 2;
    return now_ms - l->opened_ms > SIM_NODE_TIMEOUT_MS && peer->ping_sent_ms &&
           now_ms - peer->ping_sent_ms > half_ms && now_ms - peer->heard_ms > half_ms;
}

static void openLink(simNode *n, simLink *l, clusterNode *peer, int64_t now_ms) {
    if (now_ms - l->tried_ms < 100) return;
    int host = peer->bus_port - SIM_BUS_PORT;
    l->tried_ms = l->opened_ms = now_ms;
    l->wire = wireOpen(n->host, n, host, &sim_nodes[host]);
    /* A node that refuses connections is one that does not reply. */
    if (!l->wire) failurePinged(peer, now_ms);
    node_counts.links += l->wire != NULL;
}

static void stepLink(simNode *n, clusterNode *peer, int64_t now_ms) {
    simLink *l = linkTo(n, peer);
    if (!l->wire) openLink(n, l, peer, now_ms);
    if (!l->wire) return;
    if (!l->greeted && wireIsEstablished(l->wire)) {
        l->greeted = peer->is_connected = true;
        ping(n, peer);
    }
    if (l->greeted) receive(n, l->wire, WIRE_CONNECTOR, &l->input);
    if (wireIsEnded(l->wire, WIRE_CONNECTOR) || isSilent(l, peer, now_ms)) closeLink(l, peer);
}

static void closeAccepted(wire *w) {
    str *input = w->state[WIRE_ACCEPTOR];
    if (input) strFree(input);
    memFree(input);
    wireClose(w, WIRE_ACCEPTOR);
}

static void stepAccepted(simNode *n) {
    for (wire *w = wireFirst(); w; w = w->next) {
        if (w->ends[WIRE_ACCEPTOR] != n || !wireIsEstablished(w)) continue;
        if (!w->state[WIRE_ACCEPTOR]) w->state[WIRE_ACCEPTOR] = memNew(str);
        receive(n, w, WIRE_ACCEPTOR, w->state[WIRE_ACCEPTOR]);
        if (wireIsEnded(w, WIRE_ACCEPTOR)) closeAccepted(w);
    }
}

/* ------------------------------------------------------------------ a step */

static void pingIdle(simNode *n, int64_t now_ms) {
    for (int i = 1; i < n->map.node_count; i++) {
        clusterNode *peer = n->map.nodes[i];
        if (peer->is_connected && !peer->ping_sent_ms &&
            now_ms - peer->pong_ms > SIM_NODE_TIMEOUT_MS / 2)
            ping(n, peer);
    }
}

static void pingOldest(simNode *n) {
    clusterNode *oldest = NULL;
    for (int i = 0; i < 5; i++) {
        clusterNode *peer = n->map.nodes[randomUniform((uint64_t)n->map.node_count)];
        if (peer == n->map.myself || !peer->is_connected || peer->ping_sent_ms) continue;
        if (!oldest || peer->pong_ms < oldest->pong_ms) oldest = peer;
    }
    if (oldest) ping(n, oldest);
}

/* The file is written before anything is sent, which in a simulated step means: in the same
 * step. */
static void save(simNode *n) {
    if (n->map.changed & (CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC)) {
        strClear(&n->disk);
        clusterMapPrint(&n->map, false, &n->disk);
    }
    n->map.changed = 0;
}

static void checkNode(simNode *n) {
    const clusterMap *m = &n->map;
    if (m->current_epoch < n->current_epoch)
        simFail("node %d: the current epoch went back", n->host);
    if (m->myself->epoch < n->own_epoch) simFail("node %d: its epoch went back", n->host);
    if (m->vote_epoch < n->vote_epoch) simFail("node %d: the epoch of its vote went back", n->host);
    if (m->myself->epoch > m->current_epoch)
        simFail("node %d: its epoch is greater than the current one", n->host);
    n->current_epoch = m->current_epoch;
    n->own_epoch = m->myself->epoch;
    n->vote_epoch = m->vote_epoch;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *seen = m->nodes[i];
        if (seen->flags & NODE_REPLICA && seen->slot_count)
            simFail("node %d: replica %.40s has slots", n->host, seen->id);
        n->failed_seen |= (seen->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) != 0;
    }
}

void simNodeStep(simNode *n) {
    if (!n->running || networkIsPaused(n->host)) return;
    int64_t now_ms = clockOf(n);
    stepAccepted(n);
    for (int i = 1; i < n->map.node_count; i++) stepLink(n, n->map.nodes[i], now_ms);
    if (sim_now_ms % 100 == 0) {
        failureRules failure = failureRulesOf(n);
        pingIdle(n, now_ms);
        failureTick(&n->map, &failure, now_ms);
        clusterStateUpdate(&n->state, &n->map, &state_rules, now_ms);
        actOnElection(n, electionTick(&n->election, &n->map, &election_rules, now_ms));
    }
    if (sim_now_ms % 1000 == 0) pingOldest(n);
    save(n);
    checkNode(n);
}

/* ------------------------------------------------------------------ start and end */

void simNodeInit(simNode *n, int host) {
    memset(n, 0, sizeof(*n));
    n->host = host;
    n->running = true;
    n->started_ms = clockOf(n);
    networkSetUp(host, true);
    clusterMapInit(&n->map, clockOf(n));
    clusterMapSetText(&n->map, &n->map.myself->ip, SLICE("127.0.0.1"));
    clusterMapSetPort(&n->map, &n->map.myself->tcp_port, 7000 + host);
    clusterMapSetPort(&n->map, &n->map.myself->bus_port, SIM_BUS_PORT + host);
}

void simNodeStart(simNode *n) {
    reason why;
    check(!n->running);
    if (clusterMapParse(&n->map, strSlice(&n->disk), false, clockOf(n), &why) != OK)
        simFail("node %d does not read its file: %s", n->host, why.text);
    memset(&n->state, 0, sizeof(n->state));
    memset(&n->election, 0, sizeof(n->election));
    n->started_ms = clockOf(n);
    n->running = true;
    networkSetUp(n->host, true);
}

void simNodeStop(simNode *n) {
    if (!n->running) return;
    n->running = false;
    networkSetUp(n->host, false);
    for (wire *w = wireFirst(); w; w = w->next)
        if (w->ends[WIRE_ACCEPTOR] == n) closeAccepted(w);
    for (int i = 0; i < SIM_NODES; i++) closeLink(&n->links[i], NULL);
    clusterMapClear(&n->map);
}

void simNodeClear(simNode *n) {
    simNodeStop(n);
    strFree(&n->disk);
}

void simNodeMeet(simNode *n, const simNode *other) {
    const clusterNode *its = other->map.myself;
    clusterNode *added = clusterMapAdd(&n->map, its->id, clockOf(n));
    clusterMapSetText(&n->map, &added->ip, strSlice(&its->ip));
    clusterMapSetPort(&n->map, &added->tcp_port, its->tcp_port);
    clusterMapSetPort(&n->map, &added->bus_port, its->bus_port);
    clusterMapSetFlags(&n->map, added, NODE_MEET, 0);
}
