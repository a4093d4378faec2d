/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large clusters: the bus of many nodes, with the messages of the server and a network that only
 * delays. Half of the nodes are primaries, the others a replica of each.
 *
 * "half": of 40 primaries as many are stopped at once as leave a majority. Their slots are served
 * again within a node timeout and two seconds, and no election fails.
 *
 * "large": 1,000 nodes; prints what the bus of a node costs, and how long a failover takes. */
#include <stdio.h>
#include <time.h>

#include "base/base.h"
#include "bus/bus.h"
#include "network.h"
#include "sim.h"

enum {
    NODES_MAX = 1000,
    FIRST_PORT = 17000,
    EPOCHS_MAX = 4096,
    DELAYS = 64, /* a message is on the way for fewer ms */
    HALF_NODES = 80,
    HALF_TIMEOUT_MS = 2000,
    HALF_EXTRA_MS = 2000,
    LARGE_TIMEOUT_MS = 15000,
    CONNECT_MS = 3000,
    FAILOVER_MAX_MS = 60 * 1000,
};

typedef struct largeNode {
    int host;
    bool running;
    clusterMap map;
    clusterState state;
    clusterBus bus;
} largeNode;

/* A connection; both ends have a link as long as they keep it. */
typedef struct pair {
    int hosts[2];
    busLink *links[2]; /* of the connecting and the accepting end */
    int on_the_way;
} pair;

typedef enum eventKind { EVENT_OPEN, EVENT_BYTES, EVENT_END } eventKind;

typedef struct event {
    listNode all;
    eventKind kind;
    pair *on;
    int side; /* the receiver */
    str bytes;
} event;

static struct {
    largeNode *nodes;
    int count, delay_ms;
    int64_t timeout_ms;
    list arrivals[DELAYS]; /* by the time modulo DELAYS */
    uint64_t messages, bytes, elections, won;
    uint64_t asked_epoch[NODES_MAX]; /* by node: of its last election */
    bool had_election[EPOCHS_MAX];
} large;

/* Of all runs of "half". */
static struct {
    uint64_t runs, failovers, requests;
    int64_t longest_ms, sum_ms;
} half;

/* ------------------------------------------------------------------ the network */

static void sendEvent(pair *p, int side, eventKind kind, slice bytes) {
    event *e = memNew(event);
    e->kind = kind;
    e->on = p;
    e->side = side;
    e->bytes = STR_EMPTY;
    strAppendSlice(&e->bytes, bytes);
    p->on_the_way++;
    listAppend(&large.arrivals[(sim_now_ms + large.delay_ms) % DELAYS], &e->all);
}

static busConnect connectLink(void *arg, busLink *l) {
    const largeNode *n = arg;
    int to = l->peer_port - FIRST_PORT;
    check(to >= 0);
    check(to < large.count);
    if (!large.nodes[to].running) return BUS_REFUSED;
    pair *p = memNew(pair);
    p->hosts[0] = n->host;
    p->hosts[1] = to;
    p->links[0] = l;
    l->carrier = p;
    sendEvent(p, 1, EVENT_OPEN, SLICE(""));
    sendEvent(p, 0, EVENT_OPEN, SLICE(""));
    return BUS_CONNECTING;
}

/* Two candidates may ask in the same epoch: one of them must win. */
static void noteElection(const largeNode *n) {
    uint64_t epoch = n->bus.election.epoch;
    if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
    half.requests += large.asked_epoch[n->host] != epoch;
    large.asked_epoch[n->host] = epoch;
    large.elections += !large.had_election[epoch];
    large.had_election[epoch] = true;
}

static void sendBytes(void *arg, busLink *l, const str *bytes) {
    const largeNode *n = arg;
    large.messages++;
    large.bytes += bytes->len;
    if (messageTypeOf(strSlice(bytes)) == MESSAGE_AUTH_REQUEST) noteElection(n);
    sendEvent(l->carrier, !l->is_inbound, EVENT_BYTES, strSlice(bytes));
}

static void closeLink(void *arg, busLink *l) {
    (void)arg;
    pair *p = l->carrier;
    p->links[l->is_inbound] = NULL;
    sendEvent(p, !l->is_inbound, EVENT_END, SLICE(""));
}

static void accept(largeNode *n, pair *p) {
    busLink *l = busAccepted(&n->bus, p, sim_now_ms);
    memcpy(l->peer_ip, "127.0.0.1", sizeof("127.0.0.1"));
    memcpy(l->own_ip, "127.0.0.1", sizeof("127.0.0.1"));
    p->links[1] = l;
}

static void arrive(const event *e) {
    pair *p = e->on;
    largeNode *n = &large.nodes[p->hosts[e->side]];
    busLink *l = p->links[e->side];
    if (!n->running) return;
    switch (e->kind) {
    case EVENT_OPEN:
        if (e->side == 1) accept(n, p);
        if (e->side == 0 && l) busOpened(&n->bus, l, sim_now_ms);
        break;
    case EVENT_BYTES:
        if (l) busReceived(&n->bus, l, strSlice(&e->bytes), sim_now_ms);
        break;
    case EVENT_END:
        p->links[e->side] = NULL;
        if (l) busClosed(&n->bus, l, false, sim_now_ms);
        break;
    }
    if (n->map.changed & CLUSTER_MAP_STATE) busStep(&n->bus, sim_now_ms);
    n->map.changed = 0;
}

static void deliver(list *arrivals) {
    for (listNode *at; (at = listFirst(arrivals)) != NULL;) {
        event *e = CONTAINER_OF(at, event, all);
        listRemove(arrivals, at);
        arrive(e);
        if (!--e->on->on_the_way && !e->on->links[0] && !e->on->links[1]) memFree(e->on);
        strFree(&e->bytes);
        memFree(e);
    }
}

/* ------------------------------------------------------------------ nodes */

static int64_t offset(void *arg) { return ((largeNode *)arg)->running; }
static int64_t dataAge(void *arg) { return !((largeNode *)arg)->running; }
static bool isLinked(void *arg) { return ((largeNode *)arg)->running; }
static bool lookUp(void *arg, slice host, int bus_port) {
    (void)host, (void)bus_port;
    return ((largeNode *)arg)->running;
}
static void follow(void *arg, clusterNode *primary) { (void)arg, (void)primary; }
static void promoted(void *arg) { large.won += ((largeNode *)arg)->running; }
static void slotsLost(void *arg) { (void)arg; }
static void pauseWrites(void *arg, int64_t until_ms) { (void)arg, (void)until_ms; }
static void publish(void *arg, bool shard, slice channel, slice text) {
    (void)arg, (void)shard, (void)channel, (void)text;
}
static void module(void *arg, const busLink *l, clusterNode *from, const message *m) {
    (void)arg, (void)l, (void)from, (void)m;
}

static const busProcs procs = {.connect = connectLink,
                               .lookUp = lookUp,
                               .send = sendBytes,
                               .close = closeLink,
                               .offset = offset,
                               .dataAge = dataAge,
                               .isLinked = isLinked,
                               .follow = follow,
                               .promoted = promoted,
                               .slotsLost = slotsLost,
                               .pauseWrites = pauseWrites,
                               .publish = publish,
                               .module = module};

/* The line of a node in the configuration file. Node i + count / 2 is the replica of node i. */
static void printNode(str *out, int i, char ids[][NODE_ID_LEN], bool myself) {
    int primaries = large.count / 2, shard = i % primaries;
    strAppendFormat(out, "%.40s 127.0.0.1:%d@%d,,tls-port=0,shard-id=%.40s %s", ids[i], 7000 + i,
                    FIRST_PORT + i, ids[large.count + shard], myself ? "myself," : "");
    if (i >= primaries) {
        strAppendFormat(out, "slave %.40s 0 0 %d connected\n", ids[shard], shard + 1);
        return;
    }
    int first = i * SLOT_COUNT / primaries, last = (i + 1) * SLOT_COUNT / primaries - 1;
    strAppendFormat(out, "master - 0 0 %d connected %d-%d\n", i + 1, first, last);
}

static void startNode(int host, char ids[][NODE_ID_LEN]) {
    largeNode *n = &large.nodes[host];
    str text = STR_EMPTY;
    reason why;
    for (int i = 0; i < large.count; i++) printNode(&text, i, ids, i == host);
    strAppendFormat(&text, "vars currentEpoch %d lastVoteEpoch 0\n", large.count / 2);
    *n = (largeNode){.host = host, .running = true};
    if (clusterMapParse(&n->map, strSlice(&text), false, sim_now_ms, &why) != OK)
        simFail("node %d does not read its file: %s", host, why.text);
    strFree(&text);
    busInit(&n->bus, &n->map, &n->state, &procs, n, sim_now_ms);
    n->bus.rules = (busRules){.timeout_ms = large.timeout_ms,
                              .gossip_percent = 10,
                              .full_coverage = true,
                              .replica_migration = true,
                              .migration_barrier = 1,
                              .validity_factor = 10,
                              .manual_timeout_ms = 5000,
                              .forget_seconds = 60};
    n->bus.server = (busServer){.repl_ping_ms = 10000};
}

static void stopNode(int host) {
    largeNode *n = &large.nodes[host];
    busClear(&n->bus);
    clusterMapClear(&n->map);
    n->running = false;
}

static void begin(int count, int64_t timeout_ms) {
    static char ids[NODES_MAX * 3 / 2][NODE_ID_LEN]; /* then those of shards */
    memset(&large, 0, sizeof(large));
    sim_now_ms = 1700000000000;
    large.count = count;
    large.timeout_ms = timeout_ms;
    large.delay_ms = 1 + (int)randomUniform(DELAYS / 4);
    large.nodes = memAlloc(sizeof(largeNode) * (size_t)count);
    for (int i = 0; i < DELAYS; i++) listInit(&large.arrivals[i]);
    for (int i = 0; i < count * 3 / 2; i++) randomHex(ids[i], NODE_ID_LEN);
    for (int i = 0; i < count; i++) startNode(i, ids);
}

static void end(void) {
    for (int i = 0; i < large.count; i++)
        if (large.nodes[i].running) stopNode(i);
    for (int i = 0; i < DELAYS; i++) deliver(&large.arrivals[i]);
    memFree(large.nodes);
}

static void pass(int64_t ms) {
    for (int64_t end_ms = sim_now_ms + ms; sim_now_ms < end_ms;) {
        sim_now_ms++;
        deliver(&large.arrivals[sim_now_ms % DELAYS]);
        for (int i = (int)(sim_now_ms % BUS_TICK_MS); i < large.count; i += BUS_TICK_MS) {
            largeNode *n = &large.nodes[i];
            if (!n->running) continue;
            busTick(&n->bus, sim_now_ms);
            n->map.changed = 0;
        }
    }
}

/* ------------------------------------------------------------------ failures */

/* How many of the running nodes know that the slots of a stopped primary have another owner. */
static int countInformed(int slot, const char *id) {
    int informed = 0;
    for (int i = 0; i < large.count; i++) {
        const clusterNode *owner =
            large.nodes[i].running ? clusterMapOwner(&large.nodes[i].map, slot) : NULL;
        informed += owner && memcmp(owner->id, id, NODE_ID_LEN) != 0;
    }
    return informed;
}

/* Stops the first primaries; returns the ms until all nodes know other owners of their slots. */
static int64_t failFirst(int count) {
    static char ids[NODES_MAX][NODE_ID_LEN];
    int primaries = large.count / 2;
    for (int i = 0; i < count; i++) memcpy(ids[i], large.nodes[i].map.myself->id, NODE_ID_LEN);
    int64_t begin_ms = sim_now_ms;
    for (int i = 0; i < count; i++) stopNode(i);
    for (int i = 0; i < count;) {
        if (countInformed(i * SLOT_COUNT / primaries, ids[i]) == large.count - count) {
            i++;
            continue;
        }
        if (sim_now_ms - begin_ms > FAILOVER_MAX_MS) simFail("primary %d is not replaced", i);
        pass(10);
    }
    return sim_now_ms - begin_ms;
}

/* ------------------------------------------------------------------ scenarios */

static void runHalf(void) {
    int killed = HALF_NODES / 4 - 1; /* one more would leave no majority of the primaries */
    begin(HALF_NODES, HALF_TIMEOUT_MS);
    pass(CONNECT_MS + (int64_t)randomUniform(HALF_TIMEOUT_MS));
    int64_t took_ms = failFirst(killed);
    if (took_ms > HALF_TIMEOUT_MS + HALF_EXTRA_MS)
        simFail("slots are served again after %lld ms", (long long)took_ms);
    if (large.elections != large.won)
        simFail("%llu of %llu elections were won", (unsigned long long)large.won,
                (unsigned long long)large.elections);
    half.runs++;
    half.failovers += large.won;
    half.sum_ms += took_ms;
    if (took_ms > half.longest_ms) half.longest_ms = took_ms;
    end();
}

static void reportHalf(void) {
    printf(
        "%llu failovers, %llu candidates, all slots served after %lld ms on average, %lld at most\n",
        (unsigned long long)half.failovers, (unsigned long long)half.requests,
        (long long)half.sum_ms / (int64_t)half.runs, (long long)half.longest_ms);
}

static double cpuSeconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void runLarge(void) {
    enum { MEASURED_S = 15 };
    begin(NODES_MAX, LARGE_TIMEOUT_MS);
    pass(2 * LARGE_TIMEOUT_MS); /* until PINGs are spread */
    double cpu = cpuSeconds();
    large.messages = large.bytes = 0;
    pass(MEASURED_S * 1000);
    cpu = cpuSeconds() - cpu;
    double seconds = (double)MEASURED_S * large.count;
    printf("%d nodes: %.3f ms of CPU, %.1f messages, %.1f KB per node and second\n", large.count,
           cpu * 1000 / seconds, (double)large.messages / seconds,
           (double)large.bytes / 1024 / seconds);
    printf("a stopped primary is replaced in all maps after %lld ms\n", (long long)failFirst(1));
    end();
}

static void reportLarge(void) { printf("%d ms of node timeout\n", LARGE_TIMEOUT_MS); }

const simScenario halfScenario = {
    .name = "half", .run = runHalf, .report = reportHalf, .by_name_only = true};
const simScenario largeScenario = {
    .name = "large", .run = runLarge, .report = reportLarge, .by_name_only = true};
