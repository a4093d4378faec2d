/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides whether this node serves requests. It serves them while all slots have working owners
 * (with cluster-require-full-coverage), a majority of voters is reachable, and this node has not
 * lost its data.
 *
 * Invariant: a primary serves nothing in the first WRITABLE_DELAY_MS after its start, and, after it
 * was in a minority, not before the majority has been reachable for rejoinDelayMs(). So other nodes
 * can first tell it what it has missed. */
#include "bus/cluster_state.h"

#include "base/base.h"
#include "bus/voters.h"

enum {
    WRITABLE_DELAY_MS =
        2000, /* a starting primary waits so that other nodes are discovered first */
    REJOIN_DELAY_MIN_MS = 500,  /* a primary that was in a minority waits for the node timeout, */
    REJOIN_DELAY_MAX_MS = 5000, /* limited to this range */
};

int clusterMapCountSlots(const clusterMap *m, uint32_t flags) {
    int count = 0;
    for (int i = 0; i < m->node_count; i++) {
        if (m->nodes[i]->flags & flags) count += m->nodes[i]->slot_count;
    }
    check(count <= m->slots_assigned);
    return count;
}

static bool isCovered(const clusterMap *m) {
    return m->slots_assigned == SLOT_COUNT && clusterMapCountSlots(m, NODE_FAILED) == 0;
}

static int64_t rejoinDelayMs(const busRules *rules) {
    int64_t delay = rules->timeout_ms;
    if (delay < REJOIN_DELAY_MIN_MS) return REJOIN_DELAY_MIN_MS;
    return delay > REJOIN_DELAY_MAX_MS ? REJOIN_DELAY_MAX_MS : delay;
}

void clusterStateUpdate(clusterState *s, const clusterMap *m, const busRules *rules, bool lost_data,
                        int64_t now_ms) {
    bool primary = m->myself->flags & NODE_PRIMARY;
    if (!s->first_ms) s->first_ms = now_ms;
    if (primary && !s->ok && now_ms - s->first_ms < WRITABLE_DELAY_MS) return;
    const char *wrong = NULL;
    if (rules->full_coverage && !isCovered(m)) {
        wrong = "At least one hash slot is not served by any available node. Please check the "
                "'cluster-require-full-coverage' configuration.";
    }
    s->size = clusterMapCountVoters(m);
    if (!votersAreReached(m, rules->timeout_ms, now_ms)) {
        wrong = "I am part of a minority partition.";
        s->minority_ms = now_ms;
    }
    if (lost_data && primary)
        wrong = "I was started without the data that a replica keeps: it has to be promoted.";
    if (s->lacks_shared)
        wrong = "I do not have the users and functions that the nodes share so far.";
    if (!wrong && !s->ok && primary && now_ms - s->minority_ms < rejoinDelayMs(rules)) return;
    bool changed = !wrong != s->ok;
    if (changed && !wrong) logNotice("Cluster state changed: ok");
    if (changed && wrong) logWarning("Cluster state changed: fail");
    if (wrong && (changed || (s->wrong && wrong != s->wrong)))
        logWarning("Cluster is currently down: %s", wrong);
    s->ok = !wrong;
    s->wrong = wrong;
}
