/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of replication-quorum in a cluster. Nodes have the bus of the server with its rule
 * of elections, and as primaries its rule of what is confirmed (psync/quorum.h); acknowledgements
 * take time, and arrive after all from replicas that have left. Clients write and read a few keys
 * of each shard. Replicas stall, are without their data after a restart or have less of it.
 *
 * A value of a key is the version that has written it, and versions form a tree (cluster_data.h),
 * so a history is linearizable if and only if the replies of a key are on one path from the root,
 * and none is before one that had been given when its request was sent. Without a lease reads may
 * be old, but not of another path. A node that is elected has each acknowledged write, and whatever
 * a reply tells of, so many replicas have acknowledged.
 *
 * What random faults seldom lead to happens more often than by chance: the bus of a primary is cut
 * off while its clients and streams are not, streams stall and replicas restart right after they
 * have told of a failure, replicas connect again, and winners are lost before anybody hears of
 * them. */
#include <stdio.h>

#include "base/base.h"
#include "cluster_cases.h"
#include "cluster_data.h"
#include "cluster_node.h"
#include "cluster_operator.h"
#include "cluster_rules.h"
#include "psync/quorum.h"
#include "sim.h"

enum {
    KEYS = 4,
    NO_KEY = -1, /* a PING in the stream */
    CONNECTIONS_MAX = 12,
    ACKS_MAX = 16,
    REQUESTS_MAX = 256,
    TIMEOUT_MS = 1000, /* replication-quorum-timeout */
    ACK_DELAY_MAX_MS = 150,
    PROBES_PER_LEASE = 4,
    RESTARTED_MAX = 2, /* each makes the run longer */
    T_MS = SIM_NODE_TIMEOUT_MS,
};

/* A connection of a replica, as its primary sees it. */
typedef struct connection {
    bool is_open;
    bool is_left; /* the replica has closed it, and the primary does not know that */
    int replica;  /* its host */
    replPeer peer;
    int64_t sent; /* the greatest offset that the replica has acknowledged on it */
    int64_t offsets[ACKS_MAX], at_ms[ACKS_MAX];
    int ack_count; /* on the way */
} connection;

/* A node as a primary, and what its connection as a replica is. */
typedef struct quorumNode {
    bool is_primary;
    replPrimary primary; /* its list of peers */
    replQuorum quorum;
    int64_t all; /* what was there when it became one */
    connection connections[CONNECTIONS_MAX];
    int64_t acks_stalled_until_ms; /* those on the way to it */
    int source;                    /* the host that it is linked to as a replica; -1: none */
    int acked;                     /* the last version that it has acknowledged */
    uint64_t stream;               /* the id of its stream, which its replicas know */
    bool has_told;                 /* that its primary has failed */
    int64_t restarts_ms;           /* when it is stopped and started again; 0: it is not */
    int64_t hangs_ms;              /* when it hangs after that; 0: it does not */
    /* Messages of the bus are stalled, in either direction; with clients that only read. */
    int64_t mute_from_ms, mute_until_ms, deaf_from_ms, deaf_until_ms;
    bool only_reads;
    bool unaware; /* it will be deaf from soon after its failure was told on */
} quorumNode;

typedef struct request {
    int host, key;
    bool is_write;
    int value;    /* of the reply */
    int floor;    /* what was the value of the key in the last reply when it was sent */
    int64_t need; /* the offset on whose confirmation it waits */
    int64_t sent_ms;
} request;

static struct {
    quorumNode nodes[SIM_NODES_MAX + 1];
    int shard_of[SIM_NODES_MAX + 1];
    int8_t key_of[VERSIONS_MAX];
    int last[SIM_NODES_MAX][KEYS]; /* by shard: the latest value that a client has seen */
    request requests[REQUESTS_MAX];
    int request_count;
    bool is_quiet; /* no leases are renewed, so that the streams end */
    bool has_faults;
    int restarted_primaries;
    int64_t lost_until_ms[SIM_NODES_MAX]; /* by shard: the last winner that was lost is back then */
    int64_t calm_until_ms;                /* no other faults begin until then */
    int64_t ends_ms;
} run;

static struct {
    uint64_t replies, writes, reads, refused, expired, lost_data, stalls, cut_off, reconnected,
        lost_winners, second_winners, quick_restarts, restarted_primaries;
} counts;

static quorumNode *quorumOf(const simNode *n) { return &run.nodes[n->host]; }

/* ------------------------------------------------------------------ histories */

/* The value of a key in a dataset. */
static int valueOf(int version, int key) {
    while (version > VERSION_EMPTY && run.key_of[version] != key) version = dataParent(version);
    return version;
}

/* So many replicas have had the value. */
static int countAcked(const request *r) {
    int count = 0;
    for (int i = 0; i < sim_node_count; i++)
        count += i != r->host && run.shard_of[i] == run.shard_of[r->host] &&
                 dataIncludes(run.nodes[i].acked, r->value);
    return count;
}

static void replied(const request *r) {
    int shard = run.shard_of[r->host], *last = &run.last[shard][r->key];
    const char *what = r->is_write ? "a write" : "a read";
    counts.replies++;
    if (r->value != VERSION_EMPTY && countAcked(r) < sim_quorum)
        simFail("node %d replies to %s of key %d, and %d replicas have acknowledged that", r->host,
                what, r->key, countAcked(r));
    if (!dataIncludes(r->value, *last) && !dataIncludes(*last, r->value))
        simFail("node %d replies to %s of key %d of shard %d, and an acknowledged write is lost",
                r->host, what, r->key, shard);
    if ((r->is_write || sim_read_lease_ms) && !dataIncludes(r->value, r->floor))
        simFail("node %d replies to %s of key %d of shard %d with an old value", r->host, what,
                r->key, shard);
    if (dataIncludes(r->value, *last)) *last = r->value;
}

static void removeRequest(int i) { run.requests[i] = run.requests[--run.request_count]; }

static void dropRequests(const simNode *n) {
    for (int i = run.request_count - 1; i >= 0; i--)
        if (run.requests[i].host == n->host) removeRequest(i);
}

static int write(simNode *n, int key) {
    int version = dataAppend(n);
    run.key_of[version] = (int8_t)key;
    return version;
}

/* ------------------------------------------------------------------ connections of replicas */

static void closeConnection(quorumNode *q, connection *c) {
    listRemove(&q->primary.peers, &c->peer.node);
    c->is_open = false;
}

static void closeAll(quorumNode *q) {
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (q->connections[i].is_open) closeConnection(q, &q->connections[i]);
}

static connection *openOf(quorumNode *q, int replica) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        connection *c = &q->connections[i];
        if (c->is_open && !c->is_left && c->replica == replica) return c;
    }
    return NULL;
}

static connection *unused(quorumNode *q) {
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (!q->connections[i].is_open) return &q->connections[i];
    closeConnection(q, &q->connections[0]);
    return &q->connections[0];
}

static connection *connectTo(quorumNode *q, int replica) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        connection *former = &q->connections[i];
        if (former->is_open && former->replica == replica) former->peer.is_former = true;
    }
    connection *c = unused(q);
    *c = (connection){.is_open = true, .replica = replica};
    peerInit(&c->peer, NULL);
    c->peer.state = PEER_ONLINE;
    c->peer.capabilities = PEER_CAN_ACK_TURNS;
    listAppend(&q->primary.peers, &c->peer.node);
    return c;
}

static void leave(const simNode *n) {
    quorumNode *q = quorumOf(n);
    if (q->source < 0) return;
    connection *c = openOf(&run.nodes[q->source], n->host);
    if (c) c->is_left = true;
    q->source = -1;
}

/* What a replica does at the end of a turn. */
static void acknowledge(const simNode *n) {
    quorumNode *q = quorumOf(n);
    int source = dataIsLinked(n) ? n->data.source : -1;
    if (source != q->source) leave(n);
    if (source < 0) return;
    quorumNode *to = &run.nodes[source];
    connection *c = openOf(to, n->host);
    if (!c) c = connectTo(to, n->host);
    q->source = source;
    int64_t offset = dataOffset(n);
    if (n->data.holds_acks && offset > n->data.held_from) offset = n->data.held_from;
    if (offset <= c->sent || n->data.version == VERSION_NONE) return;
    if (c->ack_count == ACKS_MAX) c->ack_count--; /* with the next one */
    int i = c->ack_count++;
    /* An earlier one is below: data that it has lost since. */
    int version = n->data.version;
    while (dataOffsetOf(version) > offset) version = dataParent(version);
    if (!dataIncludes(q->acked, version)) q->acked = version;
    c->sent = c->offsets[i] = offset;
    c->at_ms[i] = sim_now_ms + (int64_t)randomUniform(ACK_DELAY_MAX_MS);
    if (i && c->at_ms[i] < c->at_ms[i - 1]) c->at_ms[i] = c->at_ms[i - 1];
}

/* Acknowledgements arrive, and ends of connections after them. */
static void receive(const simNode *n, quorumNode *q) {
    if (sim_now_ms < q->acks_stalled_until_ms) return;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        connection *c = &q->connections[i];
        if (!c->is_open || networkIsBlocked(c->replica, n->host)) continue;
        int taken = 0;
        while (taken < c->ack_count && c->at_ms[taken] <= sim_now_ms)
            c->peer.acked = c->offsets[taken++];
        c->ack_count -= taken;
        memmove(c->offsets, c->offsets + taken, (size_t)c->ack_count * sizeof(c->offsets[0]));
        memmove(c->at_ms, c->at_ms + taken, (size_t)c->ack_count * sizeof(c->at_ms[0]));
        if (c->is_left && !c->ack_count && oneIn(100)) closeConnection(q, c);
    }
}

/* ------------------------------------------------------------------ a primary */

/* False: the stream stands still. */
static bool ping(simNode *n) {
    if (n->paused_until_ms > simNodeClock(n)) return false;
    (void)write(n, NO_KEY); /* the version is that of the node */
    return true;
}

static void begin(simNode *n, bool is_primary) {
    quorumNode *q = quorumOf(n);
    const quorumSettings settings = {
        .replicas = sim_quorum, .timeout_ms = TIMEOUT_MS, .lease_ms = sim_read_lease_ms};
    dropRequests(n);
    q->is_primary = is_primary;
    if (!is_primary) closeAll(q);
    if (is_primary) (void)ping(n);
    q->all = is_primary ? dataOffset(n) : 0;
    quorumSet(&q->quorum, &settings, is_primary, q->all, simNodeClock(n));
    logNotice("node %d is a %s from %lld ms on", n->host, is_primary ? "primary" : "replica",
              (long long)sim_now_ms);
}

static void reply(const simNode *n) {
    const replQuorum *q = &quorumOf(n)->quorum;
    int64_t now_ms = simNodeClock(n);
    for (int i = run.request_count - 1; i >= 0; i--) {
        const request r = run.requests[i];
        if (r.host != n->host) continue;
        bool expired = now_ms - r.sent_ms >= TIMEOUT_MS;
        if (r.need > q->confirmed && !expired) continue;
        removeRequest(i);
        if (r.need <= q->confirmed) {
            replied(&r);
        } else {
            counts.expired++;
        }
    }
}

static void stepPrimary(simNode *n) {
    quorumNode *q = quorumOf(n);
    int64_t now_ms = simNodeClock(n);
    receive(n, q);
    quorumHold(&q->quorum, n->data.holds_acks);
    (void)quorumUpdate(&q->quorum, &q->primary, -1, now_ms); /* reply() compares */
    reply(n);
    quorumTick(&q->quorum, now_ms);
    bool renews = sim_read_lease_ms && !run.is_quiet && q->quorum.probe < 0 &&
                  now_ms - q->quorum.heard_ms >= sim_read_lease_ms / PROBES_PER_LEASE;
    renews = renews && ping(n);
    if ((renews || q->quorum.written > q->quorum.confirmed) && q->quorum.probe < 0)
        quorumProbe(&q->quorum, dataOffset(n), now_ms);
}

static bool isCutOff(const quorumNode *q) {
    return sim_now_ms < q->mute_until_ms || sim_now_ms < q->deaf_until_ms;
}

/* A primary that is mute works until the end of its lease, and longer if that is wrong, before it
 * notices that it is cut off. Perhaps what confirms its lease arrives late. */
static void keepUnaware(quorumNode *q) {
    if (!q->unaware || !isCutOff(q)) return;
    q->unaware = false;
    q->deaf_from_ms = sim_now_ms + sim_read_lease_ms * 3 / 4; /* before the election */
    q->mute_until_ms = q->deaf_until_ms = q->deaf_from_ms + 2 * T_MS;
    if (oneIn(2)) q->acks_stalled_until_ms = sim_now_ms + (int64_t)randomUniform(T_MS);
}

/* A replica tells that its primary has failed: what it acknowledges from then on matters. */
static void noteReport(simNode *n) {
    quorumNode *q = quorumOf(n);
    bool tells = n->map.myself->flags & NODE_PRIMARY_FAILED, began = tells && !q->has_told;
    q->has_told = tells;
    if (!began || !run.has_faults) return;
    simNode *primary = n->map.myself->primary ? simNodeOf(n->map.myself->primary) : NULL;
    if (primary) keepUnaware(quorumOf(primary));
    if (oneIn(3)) n->data.stalled_until_ms = sim_now_ms + (int64_t)randomUniform(2 * T_MS);
    if (oneIn(8)) q->restarts_ms = sim_now_ms + 1 + (int64_t)randomUniform(3 * T_MS);
}

static void step(simNode *n) {
    quorumNode *q = quorumOf(n);
    bool is_primary = n->map.myself->flags & NODE_PRIMARY;
    noteReport(n);
    if (n->data.stream != q->stream) closeAll(q);
    q->stream = n->data.stream;
    if (!is_primary) acknowledge(n);
    if (is_primary && n->data.version == VERSION_NONE) return;
    if (is_primary != q->is_primary) begin(n, is_primary);
    if (is_primary) stepPrimary(n);
}

/* A request of a client, if the node executes it. */
static void requestOf(simNode *n) {
    quorumNode *q = quorumOf(n);
    int64_t now_ms = simNodeClock(n);
    bool is_paused = now_ms < n->paused_until_ms;
    bool is_write = !(isCutOff(q) && q->only_reads) && oneIn(2);
    if (!simNodeActs(n) || !clusterNodeVotes(n->map.myself) || !n->state.ok || !q->is_primary)
        return;
    if (is_paused && (is_write || sim_read_lease_ms)) return;
    if (is_write && mapSavesUnsaved(&n->saves)) return;
    if (run.request_count == REQUESTS_MAX || n->data.version == VERSION_NONE) return;
    request r = {
        .host = n->host, .key = (int)randomUniform(KEYS), .is_write = is_write, .sent_ms = now_ms};
    r.floor = run.last[run.shard_of[n->host]][r.key];
    r.value = valueOf(n->data.version, r.key);
    /* What was there when the stream began is in `all`. */
    bool is_later = dataIsOneStream(r.value, n->data.version) && dataOffsetOf(r.value) > q->all;
    r.need = is_later ? dataOffsetOf(r.value) : q->all;
    bool refused = q->quorum.refuses && (is_write || r.need > q->quorum.confirmed);
    if (refused || !quorumMayRead(&q->quorum, now_ms)) {
        counts.refused++;
        return;
    }
    if (is_write) {
        r.value = write(n, r.key);
        r.need = dataOffset(n);
        quorumWrote(&q->quorum, r.need);
    }
    counts.writes += is_write;
    counts.reads += !is_write;
    run.requests[run.request_count++] = r;
}

/* ------------------------------------------------------------------ what happens to nodes */

static void checkHas(const simNode *n, const char *what) {
    int shard = run.shard_of[n->host];
    for (int key = 0; key < KEYS; key++)
        if (!dataIncludes(n->data.version, run.last[shard][key]))
            simFail("node %d %s and lacks an acknowledged write of key %d", n->host, what, key);
}

static void promoted(simNode *n) {
    logNotice("node %d is promoted at %lld ms, by order: %d", n->host, (long long)sim_now_ms,
              n->ordered_from);
    checkHas(n, "is elected");
    int64_t *lost_until_ms = &run.lost_until_ms[run.shard_of[n->host]];
    if (!run.has_faults || n->ordered_from >= 0) return;
    /* A second one is lost more often, and comes back after the first. */
    bool is_second = sim_now_ms < *lost_until_ms;
    if (!oneIn(is_second ? 2 : 4)) return;
    /* It is lost before anybody hears of that, and comes back. */
    int64_t until_ms = (is_second ? *lost_until_ms : sim_now_ms) +
                       (int64_t)randomUniform(is_second ? 4 * T_MS : 8 * T_MS);
    *lost_until_ms = until_ms;
    for (wire *w = wireFirst(); w; w = w->next)
        if (w->hosts[0] == n->host || w->hosts[1] == n->host) wireCut(w);
    networkPause(n->host, until_ms);
    if (run.ends_ms < until_ms + T_MS) run.ends_ms = until_ms + T_MS;
    counts.lost_winners++;
    counts.second_winners += is_second;
}

/* A primary has everything, as a change is written to the append only file before its reply. Its
 * stream has another id, and most often begins anew. */
static void startedAsPrimary(simNode *n) {
    if (n->data.version <= VERSION_EMPTY) return;
    bool anew = !oneIn(4);
    dataRestartStream(n, anew);
    if (anew) run.key_of[n->data.version] = NO_KEY;
    for (int i = 0; i < sim_node_count; i++)
        if (sim_nodes[i].data.source == n->host) dataDisconnect(&sim_nodes[i]);
}

/* A replica has what is in its file: all, less, or nothing. */
static void started(simNode *n) {
    quorumNode *q = quorumOf(n);
    closeAll(q);
    leave(n);
    q->is_primary = q->has_told = false;
    dropRequests(n);
    if (n->map.myself->flags & NODE_PRIMARY) startedAsPrimary(n);
    if (!(n->map.myself->flags & NODE_REPLICA) || n->data.version == VERSION_NONE || oneIn(2))
        return;
    counts.lost_data++;
    n->data.confirmed = VERSION_NONE;
    if (oneIn(3)) n->data.version = VERSION_NONE;
    for (int i = (int)randomUniform(20); n->data.version > VERSION_EMPTY && i; i--)
        n->data.version = dataParent(n->data.version);
}

static void stopping(simNode *n) {
    dropRequests(n);
    leave(n);
}

static void ignoreNode(simNode *n) { check(n->running); }
static void ignoreVersion(simNode *n, int to) {
    (void)to; /* the acknowledgement has its offset */
    check(n->running);
}
static void ignoreCopy(simNode *n, const simNode *from) {
    (void)from; /* the acknowledgement has its offset */
    check(n->running);
}
static void checked(void) { check(run.request_count <= REQUESTS_MAX); }

static const simNodeParts parts = {.started = started,
                                   .stopping = stopping,
                                   .step = step,
                                   .promoted = promoted,
                                   .slotsLost = ignoreNode,
                                   .advanced = ignoreVersion,
                                   .copied = ignoreCopy,
                                   .checked = checked};

/* ------------------------------------------------------------------ a run */

static void stall(simNode *n) {
    n->data.stalled_until_ms = sim_now_ms + (int64_t)randomUniform(6000);
    counts.stalls++;
}

/* Clients and replicas still reach a node, and its bus is cut off: for long enough that it is
 * marked as failed, and perhaps not in both directions at once. */
static void cutOff(const simNode *n) {
    quorumNode *q = quorumOf(n);
    if (!simNodeActs(n) || isCutOff(q) || !n->map.myself->replica_count) return;
    q->mute_from_ms = sim_now_ms;
    q->mute_until_ms = sim_now_ms + 3 * T_MS / 2 + (int64_t)randomUniform(3 * T_MS / 2);
    q->deaf_from_ms = sim_now_ms + T_MS / 2 + (int64_t)randomUniform(3 * T_MS / 2);
    q->deaf_until_ms = q->mute_until_ms + (int64_t)randomUniform(T_MS);
    q->only_reads = oneIn(2);
    bool works = n->state.ok && q->is_primary && quorumMayRead(&q->quorum, simNodeClock(n));
    q->unaware = works && oneIn(2);
    if (q->unaware) {
        run.calm_until_ms = sim_now_ms + 4 * T_MS;
        q->mute_until_ms = sim_now_ms + 4 * T_MS;
        q->deaf_from_ms = q->deaf_until_ms = 0;
    }
    counts.cut_off++;
}

/* Clients ask the nodes of a shard more often while one is cut off: it and its successor may both
 * reply. */
static bool isBusy(const simNode *n) {
    for (int i = 0; i < sim_node_count; i++)
        if (run.shard_of[i] == run.shard_of[n->host] && isCutOff(&run.nodes[i])) return true;
    return false;
}

static void stallIfCutOff(wire *w, wireSide from) {
    const quorumNode *q = &run.nodes[w->hosts[from]], *to = &run.nodes[w->hosts[!from]];
    bool stalled = (q->mute_from_ms <= sim_now_ms && sim_now_ms < q->mute_until_ms) ||
                   (to->deaf_from_ms <= sim_now_ms && sim_now_ms < to->deaf_until_ms);
    if (stalled) w->stalled_until_ms[!from] = sim_now_ms + 2 * SIM_NODE_STEP_MS;
}

static void stallWires(void) {
    bool any = false;
    for (int i = 0; i < sim_node_count; i++) any |= isCutOff(&run.nodes[i]);
    for (wire *w = any ? wireFirst() : NULL; w; w = w->next) {
        stallIfCutOff(w, WIRE_CONNECTOR);
        stallIfCutOff(w, WIRE_ACCEPTOR);
    }
}

/* Its process ends and is started again at once. */
static void restartQuickly(simNode *n) {
    quorumNode *q = quorumOf(n);
    if (!q->restarts_ms || sim_now_ms < q->restarts_ms) return;
    q->restarts_ms = 0;
    if (!simNodeActs(n)) return;
    simNodeStop(n);
    simNodeStart(n, SIM_FILE);
    counts.quick_restarts++;
}

/* It starts again before it is replaced, works with a part of its replicas for a while, and is
 * replaced then. */
static void restartPrimary(simNode *n) {
    quorumNode *q = quorumOf(n);
    const clusterNode *myself = n->map.myself;
    if (!simNodeActs(n) || !clusterNodeVotes(myself) || !myself->replica_count) return;
    if (run.restarted_primaries == RESTARTED_MAX) return;
    run.restarted_primaries++;
    uint64_t chosen = randomUniform((uint64_t)myself->replica_count);
    simNode *replica = simNodeOf(myself->replicas[chosen]);
    q->restarts_ms = sim_now_ms + 1;
    q->hangs_ms = sim_now_ms + 2 * T_MS + (int64_t)randomUniform(2 * T_MS);
    run.calm_until_ms = q->hangs_ms + (oneIn(2) ? T_MS + sim_read_lease_ms : 0);
    if (replica) replica->data.stalled_until_ms = q->hangs_ms + (int64_t)randomUniform(4 * T_MS);
    if (run.ends_ms < sim_now_ms + 10 * T_MS) run.ends_ms = sim_now_ms + 10 * T_MS;
    counts.restarted_primaries++;
}

static void hang(const simNode *n) {
    quorumNode *q = quorumOf(n);
    if (!q->hangs_ms || sim_now_ms < q->hangs_ms) return;
    q->hangs_ms = 0;
    if (simNodeActs(n))
        networkPause(n->host, sim_now_ms + 2 * T_MS + (int64_t)randomUniform(4 * T_MS));
}

static void injectFaults(void) {
    for (int i = 0; i < sim_node_count; i++) {
        restartQuickly(&sim_nodes[i]);
        hang(&sim_nodes[i]);
    }
    stallWires();
    if (sim_now_ms < run.calm_until_ms) return;
    clusterInjectFaults();
    if (oneIn(200)) stall(operatorAnyNode());
    if (oneIn(100)) cutOff(operatorAnyNode());
    if (oneIn(300))
        quorumOf(operatorAnyNode())->acks_stalled_until_ms =
            sim_now_ms + (int64_t)randomUniform(2 * T_MS);
    if (oneIn(200)) {
        dataDisconnect(operatorAnyNode()); /* and connects again */
        counts.reconnected++;
    }
    if (oneIn(100)) restartPrimary(operatorAnyNode());
}

static void giveOrders(void) {
    if (oneIn(250)) operatorFailover(operatorAnyNode(), MANUAL_PLAIN);
    if (oneIn(100)) operatorFailover(operatorAnyNode(), MANUAL_FORCE);
    if (oneIn(400)) operatorMeet(operatorAnyNode(), operatorAnyNode());
}

static void form(void) {
    memset(&run, 0, sizeof(run));
    run.is_quiet = true;
    for (int i = 0; i <= SIM_NODES_MAX; i++) {
        listInit(&run.nodes[i].primary.peers);
        run.nodes[i].source = -1;
    }
    bool together = oneIn(2);
    int replicas = together ? 1 : 2, shard_replicas = together ? 3 : 2;
    sim_now_ms = 1700000000000;
    sim_quorum = 1 + (int)randomUniform((uint64_t)shard_replicas);
    sim_read_lease_ms = oneIn(4) ? 0 : SIM_NODE_TIMEOUT_MS / (oneIn(2) ? 2 : 1);
    sim_drift_ppm = oneIn(2) ? 2400 : 40; /* two percent between the first and the last */
    sim_node_parts = &parts;
    sim_voting_percent = oneIn(3) ? 100 : 0; /* replicas vote: one shard is enough */
    bool single = sim_voting_percent && oneIn(2);
    clusterForm(single ? 1 : 3, single ? shard_replicas : replicas, together);
    for (int i = 0; i < sim_node_count; i++) {
        const clusterNode *myself = sim_nodes[i].map.myself;
        run.shard_of[i] = myself->primary ? simNodeOf(myself->primary)->host : i;
    }
    run.is_quiet = false;
}

static void runQuorum(void) {
    rulesReset(true);
    sim_replica_migration = false;
    sim_has_seeds = false;
    sim_full_percent = oneIn(2) ? 0 : 30;
    sim_refused_timeout_ms = oneIn(4) ? 300 : 0;
    form();
    run.has_faults = !oneIn(8);
    run.ends_ms = sim_now_ms + 3000 + (int64_t)randomUniform(30000);
    while (sim_now_ms < run.ends_ms) {
        if (run.has_faults) injectFaults();
        giveOrders();
        for (int k = 0; k < sim_node_count; k++)
            if (oneIn(isBusy(&sim_nodes[k]) ? 2 : 8)) requestOf(&sim_nodes[k]);
        clusterStep();
    }
    clusterVerify();
    run.is_quiet = true;
    run.has_faults = false;
    clusterHeal();
    for (int i = 0; i < sim_node_count; i++)
        if (clusterNodeVotes(sim_nodes[i].map.myself)) checkHas(&sim_nodes[i], "is the primary");
    for (int i = 0; i < sim_node_count; i++) simNodeClear(&sim_nodes[i]);
    networkReset(0, 0, 0);
    sim_node_parts = NULL;
    sim_drift_ppm = 40;
    sim_quorum = 0;
    sim_voting_percent = 0;
    sim_read_lease_ms = 0;
}

static void print(const char *what, uint64_t count) {
    printf(", %llu %s", (unsigned long long)count, what);
}

static void report(void) {
    printf("%llu replies", (unsigned long long)counts.replies);
    print("writes", counts.writes);
    print("reads", counts.reads);
    print("refused", counts.refused);
    print("expired", counts.expired);
    print("elections won", node_counts.wins);
    print("votes", node_counts.votes);
    print("orders to fail over", node_counts.orders);
    print("restarts", node_counts.restarts);
    print("with less data", counts.lost_data);
    print("separations", node_counts.separations);
    print("stalled streams", counts.stalls);
    print("buses cut off", counts.cut_off);
    print("lost winners", counts.lost_winners);
    print("second ones", counts.second_winners);
    print("quick restarts", counts.quick_restarts);
    print("restarted primaries", counts.restarted_primaries);
    print("connections renewed", counts.reconnected);
    print("synchronisations", node_counts.syncs);
    printf("\n");
}

const simScenario quorumScenario = {.name = "quorum", .run = runQuorum, .report = report};
