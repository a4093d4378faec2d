/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include "base/base.h"
#include "base/random.h"

typedef struct host {
    bool up;
    int64_t paused_until_ms;
    int64_t clock_ms, drift_ppm, set_at_ms; /* the clock was so far ahead then */
    bool blocked[NETWORK_HOSTS_MAX];        /* what it sends to that host */
} host;

static struct {
    host hosts[NETWORK_HOSTS_MAX];
    int host_count;
    int64_t delay_min_ms, delay_max_ms;
    wire *first;
    uint64_t last_id;
} network;

int64_t sim_now_ms;

static host *hostAt(int index) {
    check(index >= 0);
    check(index < network.host_count);
    return &network.hosts[index];
}

/* ------------------------------------------------------------------ hosts */

static void freeWire(wire *w) {
    for (int side = 0; side < 2; side++) {
        strFree(&w->sent[side]);
        memFree(w->arrivals[side]);
    }
    memFree(w);
}

void networkReset(int hosts, int64_t delay_min_ms, int64_t delay_max_ms) {
    check(hosts <= NETWORK_HOSTS_MAX);
    check(delay_min_ms <= delay_max_ms);
    while (network.first) {
        wire *next = network.first->next;
        freeWire(network.first);
        network.first = next;
    }
    memset(&network, 0, sizeof(network));
    network.host_count = hosts;
    network.delay_min_ms = delay_min_ms;
    network.delay_max_ms = delay_max_ms;
}

void networkSetUp(int index, bool up) { hostAt(index)->up = up; }

bool networkIsUp(int index) { return hostAt(index)->up; }

void networkPause(int index, int64_t until_ms) { hostAt(index)->paused_until_ms = until_ms; }

bool networkIsPaused(int index) { return sim_now_ms < hostAt(index)->paused_until_ms; }

void networkSetClock(int index, int64_t ahead_ms, int64_t drift_ppm) {
    host *h = hostAt(index);
    h->clock_ms = ahead_ms;
    h->drift_ppm = drift_ppm;
    h->set_at_ms = sim_now_ms;
}

int64_t networkClock(int index) {
    const host *h = hostAt(index);
    return sim_now_ms + h->clock_ms + (sim_now_ms - h->set_at_ms) * h->drift_ppm / 1000000;
}

/* ------------------------------------------------------------------ paths */

void networkBlock(int from, int to, bool blocked) { hostAt(from)->blocked[to] = blocked; }

bool networkIsBlocked(int from, int to) { return hostAt(from)->blocked[to]; }

void networkPartition(uint32_t hosts) {
    for (int a = 0; a < network.host_count; a++)
        for (int b = 0; b < network.host_count; b++)
            networkBlock(a, b, (hosts >> a & 1) != (hosts >> b & 1));
}

void networkHeal(void) {
    networkPartition(0);
    for (int i = 0; i < network.host_count; i++) network.hosts[i].paused_until_ms = 0;
    for (wire *w = network.first; w; w = w->next)
        w->stalled_until_ms[0] = w->stalled_until_ms[1] = 0;
}

/* ------------------------------------------------------------------ connections */

static int64_t anyDelay(void) {
    int64_t range = network.delay_max_ms - network.delay_min_ms;
    if (!network.delay_max_ms) return 0; /* draws no number */
    return network.delay_min_ms + (int64_t)randomUniform((uint64_t)range + 1);
}

wire *wireFirst(void) { return network.first; }

wire *wireAny(void) {
    wire *found = NULL;
    unsigned count = 0;
    for (wire *w = network.first; w; w = w->next)
        if (randomUniform(++count) == 0) found = w;
    return found;
}

static bool isBlockedTowards(const wire *w, wireSide side) {
    return networkIsBlocked(w->hosts[!side], w->hosts[side]);
}

wire *wireOpen(int from, void *connector, int to, void *acceptor) {
    bool reaches = !networkIsBlocked(from, to) && !networkIsBlocked(to, from);
    if (reaches && !networkIsUp(to)) return NULL;
    wire *w = memNew(wire);
    w->id = ++network.last_id;
    w->hosts[WIRE_CONNECTOR] = from;
    w->hosts[WIRE_ACCEPTOR] = to;
    w->ends[WIRE_CONNECTOR] = connector;
    w->ends[WIRE_ACCEPTOR] = acceptor;
    w->opens_ms = sim_now_ms + anyDelay();
    wire **at = &network.first;
    while (*at) at = &(*at)->next;
    *at = w;
    return w;
}

/* A host that went down before it knew the connection, or was never up, refuses it. */
bool wireIsEstablished(wire *w) {
    if (w->established) return true;
    if (sim_now_ms < w->opens_ms || isBlockedTowards(w, 0) || isBlockedTowards(w, 1)) return false;
    if (!networkIsUp(w->hosts[WIRE_ACCEPTOR])) wireClose(w, WIRE_ACCEPTOR);
    w->established = w->ends[WIRE_ACCEPTOR] != NULL;
    return w->established;
}

void wireSend(wire *w, wireSide side, slice bytes) {
    int to = !side;
    if (w->cut || !w->ends[to] || !bytes.len) return;
    strAppendSlice(&w->sent[to], bytes);
    if (!network.delay_max_ms) return;
    int64_t at_ms = sim_now_ms + anyDelay();
    int count = w->arrival_count[to];
    if (count && w->arrivals[to][count - 1].at_ms > at_ms)
        at_ms = w->arrivals[to][count - 1].at_ms; /* bytes do not overtake each other */
    w->arrivals[to] = memRealloc(w->arrivals[to], (size_t)(count + 1) * sizeof(wireArrival));
    w->arrivals[to][count] = (wireArrival){w->sent[to].len, at_ms};
    w->arrival_count[to]++;
}

void wireClose(wire *w, wireSide side) {
    w->ends[side] = NULL;
    w->state[side] = NULL;
    w->arrival_count[side] = 0;
    strFree(&w->sent[side]);
}

/* How many of the bytes on the way to `side` have arrived. */
static size_t arrivedAt(const wire *w, wireSide side) {
    if (w->silent || sim_now_ms < w->stalled_until_ms[side] || isBlockedTowards(w, side)) return 0;
    size_t arrived = w->sent[side].len;
    for (int i = w->arrival_count[side] - 1; i >= 0; i--) {
        if (w->arrivals[side][i].at_ms <= sim_now_ms) break;
        arrived = i ? w->arrivals[side][i - 1].end : 0;
    }
    return sizeMin(arrived, w->sent[side].len);
}

/* `taken` bytes have been received. */
static void shiftArrivals(wire *w, wireSide side, size_t taken) {
    int kept = 0;
    for (int i = 0; i < w->arrival_count[side]; i++) {
        wireArrival a = w->arrivals[side][i];
        if (a.end > taken) w->arrivals[side][kept++] = (wireArrival){a.end - taken, a.at_ms};
    }
    w->arrival_count[side] = kept;
}

str wireReceive(wire *w, wireSide side) {
    str got = STR_EMPTY;
    str *from = &w->sent[side];
    if (!from->len) return got;
    size_t arrived = arrivedAt(w, side);
    if (!arrived) return got;
    size_t n = randomUniform(3) ? arrived : 1 + randomUniform(arrived);
    strAppend(&got, from->ptr, n);
    memmove(from->ptr, from->ptr + n, from->len - n);
    strCut(from, from->len - n);
    shiftArrivals(w, side, n);
    return got;
}

bool wireIsEnded(const wire *w, wireSide side) {
    if (w->silent) return false;
    return (w->cut || !w->ends[!side]) && !w->sent[side].len && !isBlockedTowards(w, side);
}

void wireCut(wire *w) {
    w->cut = true;
    for (int side = 0; side < 2; side++) {
        size_t len = w->sent[side].len;
        if (len && randomUniform(2) == 0) strCut(&w->sent[side], randomUniform(len + 1));
    }
}

void wireSilence(wire *w) { w->silent = true; }

void wiresHeal(void) {
    for (wire *w = network.first; w; w = w->next) w->silent = false;
}

void wireStall(wire *w, int64_t most_ms) {
    int side = (int)randomUniform(2);
    w->stalled_until_ms[side] = sim_now_ms + (int64_t)randomUniform((uint64_t)most_ms);
}

void wiresSweep(void) {
    for (wire **at = &network.first; *at;) {
        wire *w = *at;
        if (w->ends[0] || w->ends[1]) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        freeWire(w);
    }
}
