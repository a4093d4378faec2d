/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_node.h"

#include "base/base.h"
#include "cluster_data.h"
#include "cluster_rules.h"
#include "cluster_voter_rules.h"
#include "sim.h"

simNode sim_nodes[SIM_NODES_MAX + 1];
int sim_node_count;
simNodeCounts node_counts;
bool sim_replica_migration;
bool sim_has_seeds;
int sim_full_percent;
int64_t sim_refused_timeout_ms;
int sim_voting_percent;
int sim_quorum;
int64_t sim_read_lease_ms;
bool sim_slow_saves;
int sim_drift_ppm = 40;
const simNodeParts *sim_node_parts;

int64_t simNodeClock(const simNode *n) {
    int64_t drift_ppm = (n->host - 5) * sim_drift_ppm;
    return sim_now_ms + n->ahead_ms + (sim_now_ms - n->started_ms) * drift_ppm / 1000000;
}

/* As the server does, it takes the time of the host once, and then measures. */
static void setClock(simNode *n) {
    n->started_ms = sim_now_ms;
    n->ahead_ms = networkClock(n->host) - sim_now_ms;
}

simNode *simNodeOf(const clusterNode *node) {
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        if (n->running && memcmp(n->map.myself->id, node->id, NODE_ID_LEN) == 0) return n;
    }
    return NULL;
}

bool simNodeActs(const simNode *n) { return n->running && !networkIsPaused(n->host); }

/* ------------------------------------------------------------------ connections */

static wireSide sideOf(const busLink *l) { return l->is_inbound ? WIRE_ACCEPTOR : WIRE_CONNECTOR; }

/* The host with that port, whether it runs or not; -1: none. */
static int hostAt(int bus_port) {
    for (int i = 0; i < sim_node_count; i++)
        if (sim_nodes[i].bus_port == bus_port) return i;
    return -1;
}

static busConnect connectLink(void *arg, busLink *l) {
    simNode *n = arg;
    int host = hostAt(l->peer_port);
    node_counts.probes += !l->node;
    if (host < 0) return BUS_IMPOSSIBLE;
    wire *w = wireOpen(n->host, n, host, &sim_nodes[host]);
    if (!w) return BUS_REFUSED;
    node_counts.links++;
    l->carrier = w;
    w->state[WIRE_CONNECTOR] = l;
    return BUS_CONNECTING;
}

/* What elections and failures are checked by: the reasons when a node decides, and what others can
 * rely on when it leaves the node. */
static void observe(const simNode *n, const busLink *l, slice bytes, bool leaves) {
    message m;
    reason why;
    unsigned type = messageTypeOf(bytes);
    if (type <= MESSAGE_MEET) return;
    if (messageRead(bytes, &m, &why) != OK) simFail("an invalid message: %s", why.text);
    const simNode *to = simNodeOf(l->node);
    uint64_t epoch = m.header.current_epoch;
    switch (type) {
    case MESSAGE_FAIL:
        if (!leaves) rulesToldFailed(n, m.id);
        break;
    case MESSAGE_AUTH_REQUEST:
        if (leaves) {
            rulesAsked(n, &m.header);
        } else {
            rulesAsks(n, &m.header);
        }
        break;
    case MESSAGE_AUTH_NACK:
        if (leaves) rulesRefused(n, to, &m);
        break;
    case MESSAGE_AUTH_ACK:
        if (leaves) {
            rulesVoted(n, to, epoch);
        } else if (to) {
            rulesVotes(n, to, epoch);
        }
        break;
    default: break;
    }
}

static void sendBytes(void *arg, busLink *l, const str *bytes) {
    simNode *n = arg;
    slice message = strSlice(bytes);
    unsigned type = messageTypeOf(message);
    node_counts.messages++;
    node_counts.bytes += message.len;
    node_counts.short_messages += type <= MESSAGE_PONG && message.len < MESSAGE_HEADER_BYTES;
    node_counts.updates += type == MESSAGE_UPDATE;
    node_counts.fails += type == MESSAGE_FAIL;
    node_counts.refusals += type == MESSAGE_AUTH_NACK;
    node_counts.elections += type == MESSAGE_AUTH_REQUEST;
    observe(n, l, message, false);
    if (n->held_count == n->held_cap) {
        n->held_cap = n->held_cap ? 2 * n->held_cap : 16;
        n->held = memRealloc(n->held, n->held_cap * sizeof(*n->held));
    }
    n->held[n->held_count++] = (simHeld){.link = l, .bytes = message.len};
    strAppendSlice(&n->out, message);
}

/* Sends what may leave. The rest stays in its order. */
static void sendHeld(simNode *n) {
    size_t kept = 0, kept_bytes = 0, at = 0;
    for (size_t i = 0; i < n->held_count; i++) {
        simHeld h = n->held[i];
        slice message = sliceMake(n->out.ptr + at, h.bytes);
        at += h.bytes;
        if (!h.link) continue; /* it has ended */
        if (!h.number) h.number = n->saves.wanted;
        if (mapSavesIsSafe(&n->saves, h.number)) {
            observe(n, h.link, message, true);
            wireSend(h.link->carrier, sideOf(h.link), message);
            continue;
        }
        memmove(n->out.ptr + kept_bytes, message.ptr, message.len);
        kept_bytes += h.bytes;
        n->held[kept++] = h;
    }
    n->held_count = kept;
    strCut(&n->out, kept_bytes);
}

static void forgetHeld(simNode *n, const busLink *l) {
    for (size_t i = 0; i < n->held_count; i++)
        if (n->held[i].link == l) n->held[i].link = NULL;
}

static void closeLink(void *arg, busLink *l) {
    forgetHeld(arg, l);
    wireClose(l->carrier, sideOf(l));
}

/* The other end has gone, or was never reached. */
static void endOf(simNode *n, wire *w, wireSide side) {
    busLink *l = w->state[side];
    bool refused = side == WIRE_CONNECTOR && !w->established;
    wireClose(w, side);
    if (l) forgetHeld(n, l);
    if (l) busClosed(&n->bus, l, refused, simNodeClock(n));
}

static void stepEnd(simNode *n, wire *w, wireSide side) {
    int64_t now_ms = simNodeClock(n);
    if (!wireIsEstablished(w)) {
        if (wireIsEnded(w, side)) endOf(n, w, side);
        return;
    }
    if (side == WIRE_ACCEPTOR && !w->state[side]) {
        busLink *l = busAccepted(&n->bus, w, now_ms);
        memcpy(l->peer_ip, "127.0.0.1", sizeof("127.0.0.1"));
        memcpy(l->own_ip, "127.0.0.1", sizeof("127.0.0.1"));
        w->state[side] = l;
    }
    busLink *l = w->state[side];
    if (!l->is_open) busOpened(&n->bus, l, now_ms);
    str got = wireReceive(w, side);
    if (got.len) {
        busReceived(&n->bus, l, strSlice(&got), now_ms);
        busStep(&n->bus, now_ms);
    }
    strFree(&got);
    if (w->ends[side] == n && wireIsEnded(w, side)) endOf(n, w, side);
}

/* ------------------------------------------------------------------ what the bus asks for */

static int64_t offsetOf(void *arg) { return dataOffset(arg); }

static uint64_t streamOf(void *arg) { return ((const simNode *)arg)->data.stream; }

static int64_t ageOf(void *arg) { return dataAge(arg); }

static bool isLinked(void *arg) { return dataIsLinked(arg); }

static void holdAcks(void *arg, bool on) {
    simNode *n = arg;
    if (on && !n->data.holds_acks) n->data.held_from = n->data.has_caught_up ? dataOffset(n) : 0;
    n->data.holds_acks = on;
}

static bool hasCaughtUp(void *arg) {
    const simNode *n = arg;
    return n->map.myself->flags & NODE_PRIMARY || n->data.has_caught_up;
}

static void follow(void *arg, clusterNode *primary) {
    simNode *n = arg;
    rulesFollow(n, primary);
    dataDisconnect(n); /* it follows the map */
    n->data.has_caught_up = false;
}

static void promoted(void *arg) {
    simNode *n = arg;
    node_counts.takeovers += n->by_takeover;
    if (!n->map.myself->slot_count) return; /* it is not that of an election */
    if (n->by_takeover) rulesTookOver(n->map.myself->epoch);
    if (!n->by_takeover) rulesWon(n, n->map.myself->epoch);
    dataPromoted(n);
    dataNewId(n);
    n->by_takeover = false;
    if (sim_node_parts) sim_node_parts->promoted(n);
}

static void slotsLost(void *arg) {
    dataDropForeign(arg);
    if (sim_node_parts) sim_node_parts->slotsLost(arg);
}

static void pauseWrites(void *arg, int64_t until_ms) {
    ((simNode *)arg)->paused_until_ms = until_ms;
}

static void ignorePublish(void *arg, bool shard, slice channel, slice text) {
    (void)shard, (void)channel, (void)text;
    simFail("node %d receives a message of pub/sub", ((simNode *)arg)->host);
}

static void ignoreModule(void *arg, const busLink *l, clusterNode *from, const message *m) {
    (void)from, (void)m;
    simFail("node %d receives a message of a module", ((simNode *)arg)->host);
}

/* Seeds are names of hosts. */
static bool lookUp(void *arg, slice host, int bus_port) {
    simNode *n = arg;
    (void)bus_port; /* follows from the name */
    if (oneIn(4)) return false;
    check(host.ptr[0] - '0' < sim_node_count);
    busProbe(&n->bus, SLICE("127.0.0.1"), sim_nodes[host.ptr[0] - '0'].bus_port, simNodeClock(n));
    return true;
}

static const busProcs procs = {.connect = connectLink,
                               .lookUp = lookUp,
                               .send = sendBytes,
                               .close = closeLink,
                               .offset = offsetOf,
                               .dataAge = ageOf,
                               .stream = streamOf,
                               .isLinked = isLinked,
                               .holdAcks = holdAcks,
                               .hasCaughtUp = hasCaughtUp,
                               .follow = follow,
                               .promoted = promoted,
                               .slotsLost = slotsLost,
                               .pauseWrites = pauseWrites,
                               .publish = ignorePublish,
                               .module = ignoreModule};

/* ------------------------------------------------------------------ a step */

/* The new file has its name. */
static void writeFile(simNode *n) {
    if (oneIn(20)) {
        strClear(&n->old_disk);
        strAppendSlice(&n->old_disk, strSlice(&n->disk));
    }
    strClear(&n->disk);
    strAppendSlice(&n->disk, strSlice(&n->writing));
    n->saved_epochs = n->writing_epochs;
}

/* How long a save takes. No random number is drawn, so that seeds without slow saves are the same
 * with and without them. */
static int64_t saveTakes(const simNode *n) {
    enum { OFTEN_MS = 60, SELDOM = 40 };
    if (!sim_slow_saves) return 0;
    uint64_t x =
        ((uint64_t)sim_now_ms * 80 + (uint64_t)n->host) * 0x9e3779b97f4a7c15 + n->saves.wanted;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    x ^= x >> 32;
    if (x % 3 == 0) return 0;
    node_counts.slow_saves++;
    return 1 + (int64_t)((x >> 8) % (x % SELDOM == 1 ? SIM_SAVE_MAX_MS : OFTEN_MS));
}

/* Begins and ends saves. What depends on them waits, and nothing else (bus/map_saves.h). After a
 * command has changed the map, the whole server waits for them, so no time passes here. */
static void save(simNode *n) {
    bool flush;
    mapSaves *s = &n->saves;
    mapSavesTake(s, &n->map, false);
    n->map.changed &= CLUSTER_MAP_STATE;
    bool waits = mapSavesHasOrders(s);
    if (waits) n->save_ends_ms = sim_now_ms;
    do {
        if (s->runs && sim_now_ms >= n->save_ends_ms) {
            writeFile(n);
            mapSavesEnd(s, &n->map, true);
        }
        if (!mapSavesBegin(s, &n->map, sim_now_ms, &flush)) break;
        strClear(&n->writing);
        clusterMapPrint(&n->map, false, &n->writing);
        n->writing_epochs = (simEpochs){n->map.current_epoch, n->map.myself->epoch,
                                        n->map.vote_epoch, n->map.voters.stamp};
        n->save_ends_ms = sim_now_ms + (waits ? 0 : saveTakes(n));
    } while (sim_now_ms >= n->save_ends_ms);
}

bool simNodeHasSaved(const simNode *n, int slot) {
    const uint64_t *unsaved = mapSavesUnsaved(&n->saves);
    return !unsaved || !(unsaved[slot / 64] >> slot % 64 & 1);
}

uint64_t simNodeSavedEpoch(const simNode *n) { return n->saved_epochs.own; }

/* Saves, and sends what may leave. */
static void flush(simNode *n) {
    save(n);
    sendHeld(n);
}

void simNodeFinish(simNode *n) {
    check(n->running);
    if (n->map.changed & CLUSTER_MAP_STATE) busStep(&n->bus, simNodeClock(n));
    flush(n);
    rulesCheck(n);
    voterRulesCheck(n);
}

static void stepWires(void) {
    for (wire *w = wireFirst(); w; w = w->next) {
        for (int side = 0; side < 2 && !w->kind; side++) {
            simNode *n = w->ends[side];
            if (!n || !simNodeActs(n)) continue;
            bool idle = w->state[side] && w->established && !w->sent[side].len && w->ends[!side] &&
                        !w->cut && ((busLink *)w->state[side])->is_open;
            if (idle) continue;
            stepEnd(n, w, (wireSide)side);
            if (n->map.changed) simNodeFinish(n);
            if (n->running) flush(n);
        }
    }
}

void simNodesStep(void) {
    stepWires();
    for (int i = 0; i < sim_node_count; i++) {
        simNode *n = &sim_nodes[i];
        if (!simNodeActs(n)) continue;
        dataStep(n);
        if (sim_node_parts) sim_node_parts->step(n);
        flush(n);
        if (busAwaitsOffset(&n->bus)) {
            busStep(&n->bus, simNodeClock(n));
            simNodeFinish(n);
        }
        if (sim_now_ms < n->next_tick_ms) continue;
        n->next_tick_ms = sim_now_ms + BUS_TICK_MS;
        busTick(&n->bus, simNodeClock(n));
        simNodeFinish(n);
    }
    if (sim_node_parts) sim_node_parts->checked();
}

/* ------------------------------------------------------------------ start and end */

void simNodeChooseVote(simNode *n) {
    n->bus.rules.replicas_vote =
        sim_voting_percent && randomUniform(100) < (uint64_t)sim_voting_percent;
}

static void startBus(simNode *n) {
    clusterNode *myself = n->map.myself;
    memset(&n->state, 0, sizeof(n->state));
    busInit(&n->bus, &n->map, &n->state, &procs, n, simNodeClock(n));
    n->bus.rules = (busRules){.timeout_ms = SIM_NODE_TIMEOUT_MS,
                              .refused_timeout_ms = sim_refused_timeout_ms,
                              .gossip_percent = 10,
                              .full_coverage = true,
                              .replica_migration = sim_replica_migration,
                              .migration_barrier = 1,
                              .validity_factor = 10,
                              .manual_timeout_ms = SIM_MANUAL_TIMEOUT_MS,
                              .forget_seconds = SIM_FORGET_MS / 1000};
    n->bus.server = (busServer){.repl_ping_ms = 10000,
                                .quorum = sim_quorum,
                                .read_lease_ms = sim_read_lease_ms,
                                .seeds = sim_has_seeds ? &n->seeds : NULL};
    simNodeChooseVote(n);
    clusterMapSetText(&n->map, &myself->ip, SLICE("127.0.0.1"));
    clusterMapSetPort(&n->map, &myself->tcp_port, 7000 + n->host);
    clusterMapSetPort(&n->map, &myself->bus_port, n->bus_port);
    n->next_tick_ms =
        sim_now_ms + (int64_t)randomUniform(BUS_TICK_MS / SIM_NODE_STEP_MS) * SIM_NODE_STEP_MS;
    mapSavesInit(&n->saves, &n->map);
    n->bus.as_older = randomUniform(100) < (uint64_t)sim_full_percent;
    n->was_newer |= !n->bus.as_older;
    clusterMapSetReplicaPriority(&n->map, myself, n->bus.as_older ? 0 : n->host % 3);
    n->paused_until_ms = 0;
    n->data.has_caught_up = n->data.holds_acks = false;
    n->by_takeover = n->has_order = false;
    n->ordered_from = -1;
    if (myself->flags & NODE_PRIMARY) dataDropForeign(n);
    n->running = true;
    networkSetUp(n->host, true);
    if (sim_node_parts) sim_node_parts->started(n);
}

static void beginAnew(simNode *n) {
    clusterMapInit(&n->map, simNodeClock(n));
    n->epochs = n->saved_epochs = (simEpochs){.current = 0};
}

void simNodeInit(simNode *n, int host) {
    memset(n, 0, sizeof(*n));
    const slice words[SIM_SEEDS] = {SLICE("0:1"), SLICE("1:1")};
    n->host = host;
    n->bus_port = SIM_BUS_PORT + host;
    if (seedsAdd(&n->seeds, words, SIM_SEEDS, NULL) != OK) simFail("seeds are refused");
    setClock(n);
    dataInit(n);
    beginAnew(n);
    startBus(n);
    simNodeFinish(n);
}

void simNodeStart(simNode *n, simFile file) {
    reason why;
    check(!n->running);
    setClock(n);
    if (file == SIM_OLD_FILE) {
        strClear(&n->disk);
        strAppendSlice(&n->disk, strSlice(&n->old_disk));
        n->epochs = n->saved_epochs = (simEpochs){.current = 0};
    }
    if (file == SIM_NO_FILE || !n->disk.len) {
        beginAnew(n);
        dataInit(n);
    } else if (clusterMapParse(&n->map, strSlice(&n->disk), false, simNodeClock(n), &why) != OK) {
        simFail("node %d does not read its file: %s", n->host, why.text);
    }
    startBus(n);
    simNodeFinish(n);
}

/* The process ends: what it has not sent is lost. The save that runs has got as far as its rename,
 * or not. */
static void endSave(simNode *n) {
    n->held_count = 0;
    strClear(&n->out);
    if (n->saves.runs && (sim_now_ms + n->host) % 2) writeFile(n);
    if (!mapSavesIsPending(&n->saves)) return;
    n->epochs = n->saved_epochs;
    voterRulesLost(n, n->saved_epochs.voters);
    node_counts.lost_saves++;
}

void simNodeStop(simNode *n) {
    if (!n->running) return;
    if (sim_node_parts) sim_node_parts->stopping(n);
    endSave(n);
    n->running = false;
    networkSetUp(n->host, false);
    for (wire *w = wireFirst(); w; w = w->next) {
        /* Connections that it has not accepted so far. */
        if (w->ends[WIRE_ACCEPTOR] == n && !w->state[WIRE_ACCEPTOR]) wireClose(w, WIRE_ACCEPTOR);
    }
    busClear(&n->bus);
    dataDisconnect(n);
    clusterMapClear(&n->map);
}

void simNodeMove(simNode *n) {
    check(!n->running);
    do n->bus_port += SIM_NODES_MAX;
    while (n->bus_port > UINT16_MAX);
    node_counts.new_addresses++;
}

void simNodesSwap(void) {
    int first = sim_nodes[0].bus_port;
    for (int i = 0; i < sim_node_count; i++) {
        check(!sim_nodes[i].running);
        sim_nodes[i].bus_port = i + 1 < sim_node_count ? sim_nodes[i + 1].bus_port : first;
    }
    node_counts.new_addresses += (uint64_t)sim_node_count;
}

void simNodeClear(simNode *n) {
    simNodeStop(n);
    seedsClear(&n->seeds);
    strFree(&n->disk);
    strFree(&n->old_disk);
    strFree(&n->writing);
    strFree(&n->out);
    memFree(n->held);
}
