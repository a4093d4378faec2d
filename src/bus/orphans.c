/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replica migration (orphans.h): finds the primary that this node, a replica, is to join, because
 * that primary has lost all of its replicas.
 *
 * Invariant: among the working replicas of all primaries that have the most working replicas, only
 * the one with the smallest id moves. So two nodes with the same map do not move at the same
 * time. */
#include "bus/orphans.h"

#include "base/base.h"

enum { ORPHANED_MS = 5000 }; /* its own replica may be back, or be elected, before that */

static int countWorking(const clusterNode *primary) {
    int count = 0;
    for (int i = 0; i < primary->replica_count; i++)
        count += !(primary->replicas[i]->flags & NODE_FAILED);
    check(count <= primary->replica_count);
    return count;
}

/* True if `n` is a working primary with slots that had replicas and has none that works. */
static bool isOrphan(const clusterNode *n, int working) {
    return !working && clusterNodeVotes(n) && n->flags & NODE_MIGRATE_TO &&
           !(n->flags & NODE_FAILED);
}

/* Updates orphaned_ms of all primaries. Returns the first primary that has had no working replica
 * for ORPHANED_MS, or NULL, and sets *most to the greatest number of working replicas of a
 * primary. */
static clusterNode *findOrphan(clusterMap *m, int64_t now_ms, int *most) {
    clusterNode *found = NULL;
    *most = 0;
    for (int i = 0; i < m->node_count; i++) {
        clusterNode *n = m->nodes[i];
        if (!(n->flags & NODE_PRIMARY)) continue;
        int working = countWorking(n);
        if (working > *most) *most = working;
        if (!isOrphan(n, working)) {
            n->orphaned_ms = 0;
            continue;
        }
        if (!n->orphaned_ms) n->orphaned_ms = now_ms;
        if (!found && now_ms - n->orphaned_ms > ORPHANED_MS) found = n;
    }
    return found;
}

/* True if this node has the smallest id of all working replicas whose primary has `most` of them:
 * only that replica moves. */
static bool isFirst(const clusterMap *m, int most) {
    const clusterNode *myself = m->myself;
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (!(n->flags & NODE_REPLICA) || n->flags & NODE_FAILED || !n->primary) continue;
        if (countWorking(n->primary) == most && memcmp(n->id, myself->id, NODE_ID_LEN) < 0)
            return false;
    }
    return true;
}

clusterNode *orphansTick(clusterMap *m, const busRules *rules, bool cluster_ok, int64_t now_ms) {
    int most;
    const clusterNode *primary = m->myself->primary;
    clusterNode *orphan = findOrphan(m, now_ms, &most);
    if (!orphan || !primary || !rules->replica_migration || !cluster_ok) return NULL;
    check(orphan != primary);
    int working = countWorking(primary);
    if (most < 2 || working < most || working - 1 < rules->migration_barrier) return NULL;
    if (!isFirst(m, most)) return NULL;
    logNotice("Migrating to orphaned primary %s in shard %.40s", clusterNodeLabel(orphan).text,
              orphan->shard_id);
    return orphan;
}
