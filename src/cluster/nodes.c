/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of nodes and slots, and the cluster state (whether requests are served).
 *
 * Invariant: slot_count of a node is the number of slots it owns. Main thread only. */
#include "cluster/nodes.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/random.h"
#include "cluster/cluster_priv.h"
#include "engine/hot.h"

enum {
    WRITABLE_DELAY_MS =
        2000, /* a starting primary waits so that other nodes are discovered first */
    REJOIN_DELAY_MIN_MS = 500,  /* a primary that was in a minority waits for the node timeout, */
    REJOIN_DELAY_MAX_MS = 5000, /* limited to this range */
};

static struct {
    clusterNode **list; /* the first one is this node */
    int count;
    clusterNode *owner[SLOT_COUNT];
    uint64_t mine[SLOT_COUNT / 64]; /* bit set of the slots of this node */
    int assigned;
    int size; /* voting nodes, as of the last nodesUpdateState() */
    uint64_t current_epoch, vote_epoch;
    bool ok, changed;
    int64_t first_ms;    /* time of the first nodesUpdateState() */
    int64_t minority_ms; /* last time the majority of primaries was not reachable */
} nodes;

/* ------------------------------------------------------------------ nodes */

clusterNode *nodeAdd(const char id[NODE_ID_LEN]) {
    check(!nodeFind(sliceMake(id, NODE_ID_LEN)));
    clusterNode *n = memNew(clusterNode);
    memcpy(n->id, id, NODE_ID_LEN);
    randomHex(n->shard_id, NODE_ID_LEN);
    nodes.list = memRealloc(nodes.list, (size_t)(nodes.count + 1) * sizeof(*nodes.list));
    nodes.list[nodes.count++] = n;
    return n;
}

void nodesInit(void) {
    check(nodes.count == 0);
    char id[NODE_ID_LEN];
    randomHex(id, NODE_ID_LEN);
    nodeAdd(id)->flags = NODE_MYSELF | NODE_PRIMARY;
}

static void nodeFree(clusterNode *n) {
    strFree(&n->ip);
    strFree(&n->hostname);
    strFree(&n->human_name);
    memFree(n);
}

void nodesFree(void) {
    for (int i = 0; i < nodes.count; i++) nodeFree(nodes.list[i]);
    memFree(nodes.list);
    memset(&nodes, 0, sizeof(nodes));
}

clusterNode *nodeMyself(void) {
    check(nodes.count > 0);
    return nodes.list[0];
}

int nodeCount(void) { return nodes.count; }

clusterNode *nodeAt(int index) {
    check(index >= 0);
    check(index < nodes.count);
    return nodes.list[index];
}

clusterNode *nodeFind(slice id) {
    if (id.len != NODE_ID_LEN) return NULL;
    for (int i = 0; i < nodes.count; i++) {
        if (!memcmp(nodes.list[i]->id, id.ptr, NODE_ID_LEN)) return nodes.list[i];
    }
    return NULL;
}

clusterNode *nodePrimaryOf(clusterNode *n) { return n->flags & NODE_REPLICA ? n->primary : n; }

/* ------------------------------------------------------------------ slots */

clusterNode *slotOwner(int slot) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    return nodes.owner[slot];
}

bool slotIsMine(int slot) { return nodes.mine[slot / 64] >> (slot % 64) & 1; }

void slotSetOwner(int slot, clusterNode *owner) {
    clusterNode *was = slotOwner(slot);
    if (was) was->slot_count--;
    if (owner) owner->slot_count++;
    nodes.assigned += (owner != NULL) - (was != NULL);
    nodes.owner[slot] = owner;
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (owner == nodeMyself()) {
        nodes.mine[slot / 64] |= bit;
    } else {
        nodes.mine[slot / 64] &= ~bit;
    }
    nodesChanged();
}

int slotsAssigned(void) { return nodes.assigned; }

/* ------------------------------------------------------------------ epochs */

uint64_t nodesEpoch(void) { return nodes.current_epoch; }

uint64_t nodesVoteEpoch(void) { return nodes.vote_epoch; }

void nodesSetEpochs(uint64_t current, uint64_t vote) {
    nodes.current_epoch = current;
    nodes.vote_epoch = vote;
    nodesChanged();
}

bool nodesBumpEpoch(void) {
    clusterNode *myself = nodeMyself();
    uint64_t greatest = nodes.current_epoch;
    for (int i = 0; i < nodes.count; i++) {
        if (nodes.list[i]->epoch > greatest) greatest = nodes.list[i]->epoch;
    }
    if (myself->epoch != 0 && myself->epoch == greatest) return false;
    nodes.current_epoch = greatest + 1;
    myself->epoch = nodes.current_epoch;
    nodesChanged();
    return true;
}

/* ------------------------------------------------------------------ CLUSTER RESET */

void nodesReset(bool hard) {
    clusterNode *myself = nodeMyself();
    for (int slot = 0; slot < SLOT_COUNT; slot++) slotSetOwner(slot, NULL);
    while (nodes.count > 1) nodeFree(nodes.list[--nodes.count]);
    myself->flags = (myself->flags & ~(uint32_t)NODE_REPLICA) | NODE_PRIMARY;
    myself->primary = NULL;
    randomHex(myself->shard_id, NODE_ID_LEN);
    if (hard) {
        randomHex(myself->id, NODE_ID_LEN);
        myself->epoch = 0;
        nodesSetEpochs(0, 0);
        logNotice("Node hard reset, now I'm %.*s", NODE_ID_LEN, myself->id);
    }
    logNotice("Moving myself to a new shard %.*s.", NODE_ID_LEN, myself->shard_id);
    nodesChanged();
}

/* ------------------------------------------------------------------ state of the cluster */

static bool votes(const clusterNode *n) { return n->flags & NODE_PRIMARY && n->slot_count > 0; }

int nodesSize(void) { return nodes.size; }

static bool isCovered(void) {
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!nodes.owner[slot] || nodes.owner[slot]->flags & NODE_FAILED) return false;
    }
    return true;
}

/* Counts the voting nodes; returns whether the majority is reachable. */
static bool isMajority(void) {
    int reachable = 0;
    nodes.size = 0;
    for (int i = 0; i < nodes.count; i++) {
        bool lost = nodes.list[i]->flags & (NODE_FAILED | NODE_MAYBE_FAILED);
        nodes.size += votes(nodes.list[i]);
        reachable += votes(nodes.list[i]) && !lost;
    }
    return reachable >= nodes.size / 2 + 1;
}

static int64_t rejoinDelayMs(void) {
    int64_t delay = clusterConf.cluster_node_timeout;
    if (delay < REJOIN_DELAY_MIN_MS) return REJOIN_DELAY_MIN_MS;
    return delay > REJOIN_DELAY_MAX_MS ? REJOIN_DELAY_MAX_MS : delay;
}

void nodesUpdateState(int64_t now_ms) {
    bool primary = nodeMyself()->flags & NODE_PRIMARY;
    if (!nodes.first_ms) nodes.first_ms = now_ms;
    if (primary && !nodes.ok && now_ms - nodes.first_ms < WRITABLE_DELAY_MS) return;
    const char *wrong = NULL;
    if (clusterConf.cluster_require_full_coverage && !isCovered()) {
        wrong = "At least one hash slot is not served by any available node. Please check the "
                "'cluster-require-full-coverage' configuration.";
    }
    if (!isMajority()) {
        wrong = "I am part of a minority partition.";
        nodes.minority_ms = now_ms;
    }
    if (!wrong == nodes.ok) return;
    if (!wrong && primary && now_ms - nodes.minority_ms < rejoinDelayMs()) return;
    nodes.ok = !wrong;
    logWarning("Cluster state changed: %s", nodes.ok ? "ok" : "fail");
    if (wrong) logWarning("Cluster is currently down: %s", wrong);
}

bool nodesAreOk(void) { return nodes.ok; }

/* ------------------------------------------------------------------ saving changes */

void nodesChanged(void) { nodes.changed = true; }

void nodesApplyChanges(void) {
    if (!nodes.changed) return;
    nodes.changed = false;
    nodesUpdateState(engineHot.now_ms);
    reason why;
    if (nodesSave(clusterConf.cluster_config_file, &why) == OK) return;
    if (clusterConf.cluster_config_save_behavior == SAVE_BEST_EFFORT) {
        logWarning("Cluster config updated even though writing the cluster config file to disk "
                   "failed: %s",
                   why.text);
        return;
    }
    logWarning("Fatal: can't update cluster config file: %s", why.text);
    _exit(1); /* without cleaning up what other threads use */
}
