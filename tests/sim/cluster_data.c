/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster_data.h"

#include "base/base.h"
#include "sim.h"

enum { WRITE_BYTES = 30, SYNC_MAX_MS = 1500 };

static struct {
    int parent[VERSIONS_MAX];
    int64_t offset[VERSIONS_MAX];
    int start[VERSIONS_MAX]; /* the version with which its stream has begun */
    int count;
} versions;

static uint64_t last_keys_id, last_stream;

void dataReset(void) {
    versions.count = 1;
    versions.parent[VERSION_EMPTY] = VERSION_NONE;
    versions.offset[VERSION_EMPTY] = 10001; /* of a stream that is older than later ones become */
    versions.start[VERSION_EMPTY] = VERSION_EMPTY;
    last_keys_id = last_stream = 0;
}

int dataParent(int version) {
    check(version > VERSION_EMPTY);
    return versions.parent[version];
}

/* Later versions have greater numbers. */
bool dataIncludes(int later, int earlier) {
    check(earlier >= 0);
    while (later > earlier) later = versions.parent[later];
    return later == earlier;
}

void dataInit(simNode *n) {
    n->data = (simData){
        .version = VERSION_EMPTY, .confirmed = VERSION_NONE, .source = -1, .stream = ++last_stream};
}

bool dataIsOneStream(int version, int other) {
    return versions.start[version] == versions.start[other];
}

void dataNewId(simNode *n) { n->data.stream = ++last_stream; }

void dataRestartStream(simNode *n, bool anew) {
    dataNewId(n);
    if (!anew) return;
    int version = dataAppend(n); /* the same data */
    versions.start[version] = version;
    versions.offset[version] = 1;
}

void dataDisconnect(simNode *n) {
    /* What has arrived of a whole dataset is of no use. */
    n->data.source = -1;
    n->data.syncs_ms = 0;
}

int64_t dataOffset(const simNode *n) {
    return n->data.version == VERSION_NONE ? 0 : versions.offset[n->data.version];
}

int64_t dataAge(const simNode *n) {
    if (n->data.version == VERSION_NONE || !n->data.same_ms) return -1;
    int64_t age_ms = simNodeClock(n) - n->data.same_ms;
    return age_ms < 0 ? 0 : age_ms; /* the clock was set meanwhile */
}

bool dataIsSame(const simNode *replica, const simNode *primary) {
    return replica->data.version == primary->data.version && replica->data.version != VERSION_NONE;
}

/* ------------------------------------------------------------------ keys */

static bool isForeign(const clusterMap *m, int slot) {
    const clusterNode *owner = clusterMapOwner(m, slot);
    return owner && owner != m->myself;
}

int dataForeignSlot(const simNode *n) {
    for (int word = 0; word < SLOT_WORDS; word++)
        for (uint64_t keys = n->data.keys[word]; keys;) {
            int slot = messageTakeSlot(&keys, word);
            if (isForeign(&n->map, slot)) return slot;
        }
    return -1;
}

void dataDropForeign(simNode *n) {
    for (int slot; (slot = dataForeignSlot(n)) >= 0; n->data.keys_id = ++last_keys_id)
        n->data.keys[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static void copyKeys(simData *to, const simData *from) {
    if (to->keys_id == from->keys_id) return;
    memcpy(to->keys, from->keys, sizeof(to->keys));
    to->keys_id = from->keys_id;
}

static void addKey(simNode *n) {
    int last, from = (int)randomUniform(SLOT_COUNT);
    int slot = clusterNodeNextSlots(n->map.myself, from, &last);
    if (slot < 0) slot = clusterNodeNextSlots(n->map.myself, 0, &last);
    check(slot >= 0);
    n->data.keys[slot / 64] |= UINT64_C(1) << slot % 64;
    n->data.keys_id = ++last_keys_id;
}

/* ------------------------------------------------------------------ replication */

/* The node from which the data comes, if it can be reached. */
static simNode *sourceOf(const simNode *n) {
    const clusterNode *primary = n->map.myself->primary;
    simNode *p = primary ? simNodeOf(primary) : NULL;
    if (!p || p == n || !simNodeActs(p) || p->data.version == VERSION_NONE) return NULL;
    if (networkIsBlocked(n->host, p->host) || networkIsBlocked(p->host, n->host)) return NULL;
    return p;
}

bool dataIsLinked(const simNode *n) {
    const simNode *from = sourceOf(n);
    return from && n->data.source == from->host && n->data.source_stream == from->data.stream &&
           !n->data.syncs_ms;
}

static void synchronise(simNode *n, const simNode *from) {
    simData *d = &n->data;
    if (!d->syncs_ms) {
        d->syncs_ms = sim_now_ms + 1 + (int64_t)randomUniform(SYNC_MAX_MS);
        d->version = VERSION_NONE;
        node_counts.syncs++;
    } else if (sim_now_ms >= d->syncs_ms) {
        d->version = from->data.version;
        d->stream = d->source_stream;
        d->held_from = 0;
        d->confirmed = VERSION_NONE;
        d->syncs_ms = 0;
        if (sim_node_parts) sim_node_parts->copied(n, from);
    }
}

/* How much of what follows `has` up to `end` has arrived. */
static int arrived(int has, int end) {
    if (!sim_node_parts || oneIn(2)) return end;
    int more = 0;
    for (int v = end; v != has; v = versions.parent[v]) more++;
    for (int skipped = (int)randomUniform((uint64_t)more + 1); skipped; skipped--)
        end = versions.parent[end];
    return end;
}

static bool canContinue(const simData *d, const simData *from) {
    return d->version != VERSION_NONE && dataIsOneStream(from->version, d->version) &&
           dataIncludes(from->version, d->version);
}

void dataStep(simNode *n) {
    simData *d = &n->data;
    if (n->map.myself->flags & NODE_PRIMARY) {
        d->source = -1;
        d->syncs_ms = 0;
        if (d->version != VERSION_NONE) return;
        d->version = VERSION_EMPTY; /* by order */
        if (sim_node_parts) sim_node_parts->copied(n, NULL);
        return;
    }
    simNode *from = sourceOf(n);
    if (!from) {
        dataDisconnect(n);
        return;
    }
    if (sim_now_ms < d->stalled_until_ms) return;
    if (d->source == from->host && d->source_stream != from->data.stream) dataDisconnect(n);
    if (d->source != from->host) {
        if (!oneIn(10)) return; /* it connects */
        dataDisconnect(n);
        d->source = from->host;
        d->source_stream = from->data.stream;
        d->end_at_link = versions.offset[from->data.version];
    }
    if (!canContinue(d, &from->data)) {
        synchronise(n, from);
    } else if (d->version == from->data.version || oneIn(3)) {
        d->stream = d->source_stream;
        d->version = arrived(d->version, from->data.version);
        if (sim_node_parts) sim_node_parts->advanced(n, d->version);
        if (oneIn(3)) d->confirmed = d->version; /* what WAIT counts */
    }
    if (d->version == VERSION_NONE) return;
    d->has_caught_up |= versions.offset[d->version] >= d->end_at_link;
    d->same_ms = simNodeClock(n);
    if (d->version == from->data.version) copyKeys(d, &from->data);
}

int dataAppend(simNode *n) {
    check(n->data.version != VERSION_NONE);
    if (versions.count == VERSIONS_MAX) simFail("too many writes");
    int version = versions.count++;
    versions.parent[version] = n->data.version;
    versions.offset[version] = versions.offset[n->data.version] + WRITE_BYTES;
    versions.start[version] = versions.start[n->data.version];
    return n->data.version = version;
}

void dataWrite(simNode *n) {
    if (!simNodeActs(n) || !clusterNodeVotes(n->map.myself) || !n->state.ok) return;
    if (simNodeClock(n) < n->paused_until_ms || n->data.version == VERSION_NONE) return;
    if (mapSavesUnsaved(&n->saves)) return;
    (void)dataAppend(n); /* the version is that of the node */
    addKey(n);
    node_counts.writes++;
}

int64_t dataOffsetOf(int version) { return versions.offset[version]; }

/* ------------------------------------------------------------------ invariants */

void dataPromoted(const simNode *n) {
    const simData *d = &n->data;
    if (n->by_takeover) return;
    if (d->version == VERSION_NONE) simFail("node %d is elected without data", n->host);
    if (d->confirmed != VERSION_NONE && !dataIncludes(d->version, d->confirmed))
        simFail("node %d is elected and lacks a write that it has confirmed", n->host);
    if (n->ordered_from < 0 || n->bus.manual.step != MANUAL_READY) return;
    const simNode *from = &sim_nodes[n->ordered_from];
    if (!from->running || from->started_ms > n->ordered_ms) return; /* it knows of no pause */
    if (from->map.myself->flags & NODE_PRIMARY && from->data.version != d->version)
        simFail("node %d replaces node %d by a plain manual failover and lacks writes", n->host,
                from->host);
}
