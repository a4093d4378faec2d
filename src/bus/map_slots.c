/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slots and epochs of a map.
 *
 * Invariants: bit s of a node's set is 1 if and only if owner[s] is that node; slot_count is the
 * number of bits that are 1; slots_assigned is the sum of all slot_count; a slot without an owner
 * is not marked as unclaimed. */
#include "base/base.h"
#include "bus/map_priv.h"

static const uint64_t no_slots[SLOT_WORDS];

static uint64_t bitOf(int slot) { return UINT64_C(1) << slot % 64; }

/* ------------------------------------------------------------------ owners */

/* Removes (`add` false) or adds a slot of a node. */
static void changeSet(clusterNode *n, int slot, bool add) {
    if (!n->slots) n->slots = memNewArray(uint64_t, SLOT_WORDS);
    uint64_t *word = &n->slots[slot / 64];
    check(!(*word & bitOf(slot)) == add);
    *word ^= bitOf(slot);
    n->slot_count += add ? 1 : -1;
    check(n->slot_count >= 0);
    check(n->slot_count <= SLOT_COUNT);
}

static void settle(clusterMap *m, int slot) {
    bool settled = clusterMapIsMine(m, slot) && !clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
    m->settled[slot / 64] &= ~bitOf(slot);
    if (settled) m->settled[slot / 64] |= bitOf(slot);
    check(clusterMapIsSettled(m, slot) == settled);
    m->claims[slot / 64] &= ~bitOf(slot);
    m->claims[slot / 64] |= m->mine[slot / 64] & ~m->unclaimed[slot / 64] & bitOf(slot);
}

/* The first slot of a primary: replicas may join it if other primaries have some. */
static void inviteReplicas(const clusterMap *m, clusterNode *owner) {
    if (!(owner->flags & NODE_PRIMARY)) return;
    for (int i = 0; i < m->node_count && !(owner->flags & NODE_MIGRATE_TO); i++)
        if (m->nodes[i]->replica_count) owner->flags |= NODE_MIGRATE_TO;
}

void clusterMapSetOwner(clusterMap *m, int slot, clusterNode *owner) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    clusterNode *was = m->owner[slot];
    m->unclaimed[slot / 64] &= ~bitOf(slot);
    if (was == owner) {
        settle(m, slot);
        return;
    }
    if (owner) check(m->nodes[owner->index] == owner);
    if (was) changeSet(was, slot, false);
    if (owner) changeSet(owner, slot, true);
    if (owner && owner->slot_count == 1) inviteReplicas(m, owner);
    m->owner[slot] = owner;
    settle(m, slot);
    m->slots_assigned += (owner != NULL) - (was != NULL);
    check(m->slots_assigned >= 0);
    check(m->slots_assigned <= SLOT_COUNT);
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC | CLUSTER_MAP_STATE;
    if (was == m->myself || owner == m->myself) m->changed |= CLUSTER_MAP_OWN_SLOTS;
}

bool clusterNodeOwns(const clusterNode *n, int slot) {
    return n->slots && n->slots[slot / 64] & bitOf(slot);
}

const uint64_t *clusterNodeSlots(const clusterNode *n) { return n->slots ? n->slots : no_slots; }

void clusterMapClaimsOf(const clusterMap *m, const clusterNode *n, uint64_t out[SLOT_WORDS]) {
    const uint64_t *slots = clusterNodeSlots(n);
    for (int word = 0; word < SLOT_WORDS; word++) out[word] = slots[word] & ~m->unclaimed[word];
}

/* The first slot at or after `from` whose bit, XOR that of `flip` (0 or ~0), is set; SLOT_COUNT if
 * there is none. */
static int findBit(const uint64_t *set, int from, uint64_t flip) {
    for (int word = from / 64; word < SLOT_WORDS; word++) {
        uint64_t bits = set[word] ^ flip;
        if (word == from / 64) bits &= ~UINT64_C(0) << from % 64;
        if (bits) return word * 64 + __builtin_ctzll(bits);
    }
    return SLOT_COUNT;
}

int clusterNodeNextSlots(const clusterNode *n, int from, int *last) {
    check(from >= 0);
    if (from >= SLOT_COUNT || !n->slot_count) return -1;
    int first = findBit(n->slots, from, 0);
    if (first == SLOT_COUNT) return -1;
    *last = (first + 1 < SLOT_COUNT ? findBit(n->slots, first + 1, ~UINT64_C(0)) : SLOT_COUNT) - 1;
    check(*last >= first);
    check(*last < SLOT_COUNT);
    return first;
}

void clusterMapMoveSlots(clusterMap *m, const clusterNode *from, clusterNode *to) {
    int last;
    check(from != to);
    for (int first = clusterNodeNextSlots(from, 0, &last); first >= 0;
         first = clusterNodeNextSlots(from, last + 1, &last))
        for (int slot = first; slot <= last; slot++) clusterMapSetOwner(m, slot, to);
}

void clusterMapSetClaimed(clusterMap *m, int slot, bool claimed) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    check(m->owner[slot]);
    if (claimed) {
        m->unclaimed[slot / 64] &= ~bitOf(slot);
    } else {
        m->unclaimed[slot / 64] |= bitOf(slot);
    }
    settle(m, slot);
}

void clusterMapSetClaims(clusterMap *m, int word, uint64_t owned, uint64_t claimed) {
    check(word >= 0);
    check(word < SLOT_WORDS);
    m->unclaimed[word] = (m->unclaimed[word] & ~owned) | (owned & ~claimed);
}

bool clusterMapHasUnclaimed(const clusterMap *m) {
    for (int word = 0; word < SLOT_WORDS; word++)
        if (m->mine[word] & m->unclaimed[word]) return true;
    return false;
}

bool clusterMapIsClaimed(const clusterMap *m, int slot) {
    return m->owner[slot] && !(m->unclaimed[slot / 64] & bitOf(slot));
}

/* ------------------------------------------------------------------ slots that are being moved */

clusterNode *clusterMapOpenSlot(const clusterMap *m, enum openKind kind, int slot) {
    return m->open_count[kind] ? m->open[kind][slot] : NULL;
}

void clusterMapSetOpenSlot(clusterMap *m, enum openKind kind, int slot, clusterNode *peer) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    clusterNode *was = clusterMapOpenSlot(m, kind, slot);
    if (was == peer) return;
    if (!m->open[kind]) m->open[kind] = memNewArray(clusterNode *, SLOT_COUNT);
    m->open[kind][slot] = peer;
    m->open_count[kind] += (peer != NULL) - (was != NULL);
    if (kind == SLOT_TAKEN && peer) m->taken_ms = 0;
    check(m->open_count[kind] >= 0);
    check(m->open_count[kind] <= SLOT_COUNT);
    settle(m, slot);
    /* Not flushed: who moves the slot sets a mark again that a power failure has removed. */
    m->changed |= CLUSTER_MAP_SAVE;
}

void mapRemoveSlotsOf(clusterMap *m, const clusterNode *n) {
    clusterMapMoveSlots(m, n, NULL);
    for (int kind = 0; kind < SLOT_OPEN_KINDS; kind++) {
        if (!m->open_count[kind]) continue;
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            if (n == m->myself || m->open[kind][slot] == n)
                clusterMapSetOpenSlot(m, (enum openKind)kind, slot, NULL);
        }
    }
}

/* ------------------------------------------------------------------ epochs */

void clusterMapSetEpochs(clusterMap *m, uint64_t current, uint64_t vote) {
    check(current >= m->current_epoch);
    check(vote >= m->vote_epoch);
    if (current == m->current_epoch && vote == m->vote_epoch) return;
    m->current_epoch = current;
    m->vote_epoch = vote;
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC;
}

static void setWithEpoch(clusterMap *m, char to[NODE_ID_LEN], uint64_t *to_epoch, const char *id,
                         uint64_t epoch) {
    char none[NODE_ID_LEN] = {0};
    check(epoch <= m->current_epoch);
    if (!id) id = none;
    if (memcmp(to, id, NODE_ID_LEN) == 0 && *to_epoch == epoch) return;
    memmove(to, id, NODE_ID_LEN);
    *to_epoch = epoch;
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC;
}

void clusterMapSetHold(clusterMap *m, const char *id, uint64_t epoch) {
    setWithEpoch(m, m->held_for, &m->held_epoch, id, epoch);
}

void clusterMapSetPause(clusterMap *m, const char *id, uint64_t epoch) {
    setWithEpoch(m, m->paused_for, &m->paused_epoch, id, epoch);
}

void clusterMapSetNodeEpoch(clusterMap *m, clusterNode *n, uint64_t epoch) {
    if (n->epoch == epoch) return;
    n->epoch = epoch;
    m->changed |= CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC;
}

uint64_t clusterMapGreatestEpoch(const clusterMap *m) {
    uint64_t greatest = m->current_epoch;
    for (int i = 0; i < m->node_count; i++) {
        if (m->nodes[i]->epoch > greatest) greatest = m->nodes[i]->epoch;
    }
    return greatest;
}

uint64_t clusterMapNextEpoch(const clusterMap *m) {
    uint64_t greatest = clusterMapGreatestEpoch(m);
    return greatest == UINT64_MAX ? greatest : greatest + 1;
}

/* Another primary has the epoch of this node, too: they have taken it at the same time. */
static bool epochIsShared(const clusterMap *m) {
    for (int i = 1; i < m->node_count; i++) {
        const clusterNode *n = m->nodes[i];
        if (n->flags & NODE_PRIMARY && n->epoch == m->myself->epoch) return true;
    }
    return false;
}

bool clusterMapBumpEpoch(clusterMap *m) {
    bool is_greatest = m->myself->epoch == clusterMapGreatestEpoch(m);
    if (m->myself->epoch != 0 && is_greatest && !epochIsShared(m)) return false;
    clusterMapSetEpochs(m, clusterMapNextEpoch(m), m->vote_epoch);
    clusterMapSetNodeEpoch(m, m->myself, m->current_epoch);
    return true;
}

/* ------------------------------------------------------------------ for tests */

const char *mapVerifySlots(const clusterMap *m) {
    int assigned = 0;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const clusterNode *owner = m->owner[slot];
        if (owner && m->nodes[owner->index] != owner) return "owner of a slot";
        if (owner && !clusterNodeOwns(owner, slot)) return "set of slots of an owner";
        if (clusterMapIsMine(m, slot) != (owner == m->myself)) return "slots of this node";
        bool migrating = clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
        if (clusterMapIsSettled(m, slot) != (owner == m->myself && !migrating))
            return "slots of this node that it keeps";
        bool claims = m->claims[slot / 64] & bitOf(slot);
        if (claims != (owner == m->myself && clusterMapIsClaimed(m, slot)))
            return "slots of this node that it claims";
        if (!owner && m->unclaimed[slot / 64] & bitOf(slot)) return "unclaimed slot without owner";
        assigned += owner != NULL;
    }
    if (assigned != m->slots_assigned) return "count of assigned slots";
    for (int i = 0; i < m->node_count; i++) {
        int bits = 0;
        const uint64_t *set = clusterNodeSlots(m->nodes[i]);
        for (int word = 0; word < SLOT_WORDS; word++) bits += __builtin_popcountll(set[word]);
        if (bits != m->nodes[i]->slot_count) return "count of slots of a node";
        assigned -= bits;
    }
    return assigned ? "sum of the nodes' slots" : NULL;
}
