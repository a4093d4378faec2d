/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adds and removes the nodes of a map, and changes their roles and properties.
 *
 * Invariants: nodes[0] is this node; nodes[i]->index is i; the table of ids has each node; a
 * replica whose primary is known is in the list of replicas of that primary and in no other list;
 * each node is either a primary or a replica. */
#include "bus/map.h"

#include "base/base.h"
#include "base/random.h"
#include "bus/map_blacklist.h"
#include "bus/map_priv.h"
#include "bus/voters.h"

/* ------------------------------------------------------------------ ids */

static uint64_t hashOfNode(const void *entry) {
    return hashBytes(((const clusterNode *)entry)->id, NODE_ID_LEN);
}

static bool nodeHasId(const void *entry, const void *key, size_t len) {
    hotCheck(len == NODE_ID_LEN);
    return memcmp(((const clusterNode *)entry)->id, key, len) == 0;
}

static const hashtableType id_type = {.hash_of = hashOfNode, .match = nodeHasId};

clusterNode *clusterMapFind(const clusterMap *m, slice id) {
    if (id.len != NODE_ID_LEN) return NULL;
    return hashtableFind(&m->ids, &id_type, hashBytes(id.ptr, id.len), id.ptr, id.len);
}

/* ------------------------------------------------------------------ adding and removing */

clusterNode *clusterMapAdd(clusterMap *m, const char id[NODE_ID_LEN], int64_t now_ms) {
    check(!clusterMapFind(m, sliceMake(id, NODE_ID_LEN)));
    clusterNode *n = memNew(clusterNode);
    memcpy(n->id, id, NODE_ID_LEN);
    randomHex(n->shard_id, NODE_ID_LEN);
    n->flags = NODE_PRIMARY;
    n->added_ms = now_ms;
    n->is_member = votersHas(&m->voters, id);
    n->index = m->node_count;
    m->nodes = memRealloc(m->nodes, (size_t)(m->node_count + 1) * sizeof(*m->nodes));
    m->nodes[m->node_count++] = n;
    hashtableInsert(&m->ids, &id_type, hashOfNode(n), n, 0);
    clusterMapTakeBack(m, clusterNodeId(n), now_ms);
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
    check(hashtableCount(&m->ids) == (uint64_t)m->node_count);
    return n;
}

static void freeNode(const clusterMap *m, clusterNode *n) {
    str *texts[] = {&n->ip,          &n->hostname,   &n->human_name, &n->availability_zone,
                    &n->client_ipv4, &n->client_ipv6};
    for (size_t i = 0; i < COUNT_OF(texts); i++) strFree(texts[i]);
    if (n->slots != m->mine) memFree(n->slots);
    memFree(n->replicas);
    memFree(n->reports);
    memFree(n);
}

static void leavePrimary(clusterNode *n) {
    clusterNode *primary = n->primary;
    if (!primary) return;
    check(primary != n);
    int at = 0;
    while (at < primary->replica_count && primary->replicas[at] != n) at++;
    check(at < primary->replica_count);
    primary->replica_count--;
    memmove(primary->replicas + at, primary->replicas + at + 1,
            (size_t)(primary->replica_count - at) * sizeof(*primary->replicas));
    n->primary = NULL;
    /* It lost its replicas by order, not by a failure: no others are to join it. */
    if (!primary->replica_count) primary->flags &= ~(uint32_t)NODE_MIGRATE_TO;
}

static void joinPrimary(clusterNode *n, clusterNode *primary) {
    size_t count = (size_t)primary->replica_count + 1;
    check(!n->primary);
    primary->replicas = memRealloc(primary->replicas, count * sizeof(*primary->replicas));
    int at = primary->replica_count++;
    for (; at > 0 && memcmp(primary->replicas[at - 1]->id, n->id, NODE_ID_LEN) > 0; at--)
        primary->replicas[at] = primary->replicas[at - 1];
    primary->replicas[at] = n;
    n->primary = primary;
    if (primary->flags & NODE_PRIMARY) primary->flags |= NODE_MIGRATE_TO;
}

void clusterMapSetId(clusterMap *m, clusterNode *n, const char id[NODE_ID_LEN]) {
    check(m->nodes[n->index] == n);
    if (memcmp(n->id, id, NODE_ID_LEN) == 0) return;
    check(!clusterMapFind(m, sliceMake(id, NODE_ID_LEN)));
    check(hashtableDeleteEntry(&m->ids, &id_type, hashOfNode(n), n));
    clusterNode *primary = n->primary;
    leavePrimary(n);
    memcpy(n->id, id, NODE_ID_LEN);
    n->is_member = votersHas(&m->voters, id);
    clusterMapTakeBack(m, clusterNodeId(n), INT64_MAX);
    if (primary) joinPrimary(n, primary);
    hashtableInsert(&m->ids, &id_type, hashOfNode(n), n, 0);
    m->changed |= CLUSTER_MAP_SAVE;
}

void clusterMapRemove(clusterMap *m, clusterNode *n) {
    check(n != m->myself);
    check(m->nodes[n->index] == n);
    if (m->on_remove) m->on_remove(m->on_remove_arg, n);
    mapRemoveSlotsOf(m, n);
    check(n->slot_count == 0);
    while (n->replica_count) leavePrimary(n->replicas[0]);
    leavePrimary(n);
    check(n->replica_count == 0);
    check(!n->primary);
    for (int i = 0; i < m->node_count; i++) (void)clusterNodeUnreport(m->nodes[i], n);
    check(hashtableDeleteEntry(&m->ids, &id_type, hashOfNode(n), n));
    clusterNode *last = m->nodes[--m->node_count];
    last->index = n->index;
    m->nodes[n->index] = last;
    check(hashtableCount(&m->ids) == (uint64_t)m->node_count);
    check(m->nodes[0] == m->myself);
    freeNode(m, n);
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
}

/* ------------------------------------------------------------------ properties */

void clusterMapSetPrimary(clusterMap *m, clusterNode *n, clusterNode *primary) {
    check(n != primary);
    check(m->nodes[n->index] == n);
    if (n->flags & NODE_REPLICA && n->primary == primary) return;
    if (n == m->myself) m->last_given = 0;
    leavePrimary(n);
    n->flags = (n->flags & ~(uint32_t)(NODE_PRIMARY | NODE_MIGRATE_TO | NODE_PRIMARY_FAILED)) |
               NODE_REPLICA;
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
    if (!primary) return;
    joinPrimary(n, primary);
    clusterMapSetShard(m, n, primary->shard_id);
}

void clusterMapMakePrimary(clusterMap *m, clusterNode *n) {
    if (n->flags & NODE_PRIMARY) return;
    check(n->flags & NODE_REPLICA);
    leavePrimary(n);
    n->flags = (n->flags & ~(uint32_t)(NODE_REPLICA | NODE_PRIMARY_FAILED)) | NODE_PRIMARY;
    check(!n->primary);
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
}

void clusterMapSetShard(clusterMap *m, clusterNode *n, const char shard_id[NODE_ID_LEN]) {
    if (memcmp(n->shard_id, shard_id, NODE_ID_LEN) == 0) return;
    memcpy(n->shard_id, shard_id, NODE_ID_LEN);
    m->changed |= CLUSTER_MAP_SAVE;
    /* The shard of a new primary is not known before its first message, and replicas may have
     * joined it already. */
    for (int i = 0; i < n->replica_count; i++)
        memcpy(n->replicas[i]->shard_id, shard_id, NODE_ID_LEN);
}

void clusterMapSetText(clusterMap *m, str *to, slice text) {
    if (sliceEqual(strSlice(to), text)) return;
    strFree(to);
    if (text.len) *to = strNew(text);
    m->changed |= CLUSTER_MAP_SAVE;
}

void clusterMapSetPort(clusterMap *m, int *to, int port) {
    check(port >= 0);
    check(port <= 65535);
    if (*to == port) return;
    *to = port;
    m->changed |= CLUSTER_MAP_SAVE;
}

void clusterMapSetReplicaPriority(clusterMap *m, clusterNode *n, int priority) {
    check(priority >= 0);
    if (n->replica_priority == priority) return;
    n->replica_priority = priority;
    m->changed |= CLUSTER_MAP_SAVE;
}

void clusterMapSetFlags(clusterMap *m, clusterNode *n, uint32_t set, uint32_t cleared) {
    const uint32_t fixed = NODE_PRIMARY | NODE_REPLICA | NODE_MYSELF;
    check(!((set | cleared) & fixed));
    check(!(set & cleared));
    check(m->nodes[n->index] == n);
    uint32_t flags = (n->flags & ~cleared) | set;
    if (flags == n->flags) return;
    /* Flags that are not in the file and do not matter for the state of the cluster. */
    const uint32_t silent = NODE_HAS_EXTENSIONS | NODE_HAS_LIGHT_PUBLISH | NODE_HAS_LIGHT_MODULE |
                            NODE_PRIMARY_FAILED | NODE_MIGRATE_TO | NODE_MEET;
    if ((flags ^ n->flags) & ~silent) m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_STATE;
    n->flags = flags;
}

bool clusterNodeIsUnsynced(const clusterNode *n) {
    int working = 0;
    for (int i = 0; i < n->replica_count; i++) {
        if (n->replicas[i]->flags & NODE_FAILED) continue;
        if (n->replicas[i]->offset) return false;
        working++;
    }
    check(working <= n->replica_count);
    return working > 0;
}

int clusterMapCountVoters(const clusterMap *m) {
    int count = 0;
    for (int i = 0; i < m->node_count; i++) count += clusterNodeVotes(m->nodes[i]);
    check(count <= m->node_count);
    return count;
}

/* ------------------------------------------------------------------ the whole map */

void clusterMapInit(clusterMap *m, int64_t now_ms) {
    char id[NODE_ID_LEN];
    memset(m, 0, sizeof(*m));
    randomHex(id, NODE_ID_LEN);
    m->myself = clusterMapAdd(m, id, now_ms);
    check(m->myself->index == 0);
    m->myself->flags |= NODE_MYSELF;
    m->myself->slots = m->mine;
}

void clusterMapClear(clusterMap *m) {
    for (int i = 0; i < m->node_count; i++) freeNode(m, m->nodes[i]);
    memFree(m->nodes);
    for (int kind = 0; kind < SLOT_OPEN_KINDS; kind++) memFree(m->open[kind]);
    clusterMapForbidNone(m);
    memFree(m->voters.ids);
    hashtableFree(&m->ids, NULL, NULL);
    memset(m, 0, sizeof(*m));
}

void clusterMapReset(clusterMap *m, bool hard) {
    char text[NODE_ID_LEN];
    while (m->node_count > 1) clusterMapRemove(m, m->nodes[m->node_count - 1]);
    check(m->nodes[0] == m->myself);
    mapRemoveSlotsOf(m, m->myself);
    check(m->slots_assigned == 0);
    clusterMapMakePrimary(m, m->myself);
    clusterMapForbidNone(m);
    clusterMapSetHold(m, NULL, 0);
    clusterMapSetPause(m, NULL, 0);
    /* It forgets its set: it must not vote as a member of an earlier one for nodes that still have
     * that, also if the rule is that of Valkey again. */
    bool had_set = m->voters.stamp.term != 0;
    votersReset(m);
    randomHex(text, NODE_ID_LEN);
    clusterMapSetShard(m, m->myself, text);
    if (hard || had_set) {
        randomHex(text, NODE_ID_LEN);
        clusterMapSetId(m, m->myself, text);
    }
    if (hard) m->myself->epoch = m->current_epoch = m->vote_epoch = 0;
    check(m->node_count == 1);
    check(m->myself->replica_count == 0);
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC | CLUSTER_MAP_STATE;
}

static bool isListedOnce(const clusterNode *n) {
    int found = 0;
    if (!n->primary) return true;
    for (int i = 0; i < n->primary->replica_count; i++) found += n->primary->replicas[i] == n;
    return found == 1;
}

const char *clusterMapVerify(const clusterMap *m) {
    int listed = 0, following = 0;
    if (m->node_count < 1 || m->nodes[0] != m->myself) return "this node is not the first one";
    if (hashtableCount(&m->ids) != (uint64_t)m->node_count) return "count of ids";
    for (int i = 0; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (n->index != i) return "index of a node";
        if (clusterMapFind(m, clusterNodeId(n)) != n) return "a node is not found by its id";
        if (!(n->flags & NODE_PRIMARY) == !(n->flags & NODE_REPLICA)) return "role of a node";
        if (n->flags & NODE_PRIMARY && n->primary) return "a primary has a primary";
        if (!(n->flags & NODE_MYSELF) != (n != m->myself)) return "flag of this node";
        if (!isListedOnce(n)) return "list of replicas";
        listed += n->replica_count;
        following += n->primary != NULL;
    }
    if (listed != following) return "count of replicas";
    return mapVerifySlots(m);
}
