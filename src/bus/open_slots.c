/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Open slots (open_slots.h): changes their marks when a node's role or a slot's owner changes, and
 * prints and parses the marks.
 *
 * Invariant: a slot has at most one mark of each kind. When a primary changes a mark of kind
 * MIGRATING or IMPORTING because of a message or of its promotion, it adds the slot to
 * clusterMap.untold, so that its replicas are told. */
#include "bus/open_slots.h"

#include "base/base.h"
#include "base/number.h"
#include "bus/valid.h"

/* ------------------------------------------------------------------ changes */

/* Notes that the replicas have to be told of a mark that has changed without an order. */
static void tellReplicas(clusterMap *m, int slot) {
    if (!(m->myself->flags & NODE_PRIMARY)) return;
    m->untold[slot / 64] |= UINT64_C(1) << slot % 64;
    m->has_untold = true;
}

static void replaceIn(clusterMap *m, enum openKind kind, int slot, clusterNode *to) {
    check(clusterMapOpenSlot(m, kind, slot) != to);
    clusterMapSetOpenSlot(m, kind, slot, to);
    if (kind == SLOT_TAKEN) return;
    tellReplicas(m, slot);
    if (kind == SLOT_IMPORTING) {
        logVerbose("Failover occurred in migration source. Update importing source for slot %d to "
                   "node %s in shard %.40s.",
                   slot, clusterNodeLabel(to).text, to->shard_id);
    } else {
        logVerbose("Failover occurred in migration target. Slot %d is now being migrated to node "
                   "%s in shard %.40s.",
                   slot, clusterNodeLabel(to).text, to->shard_id);
    }
}

/* Returns the number of marks. */
static int replaceKind(clusterMap *m, enum openKind kind, const clusterNode *from,
                       clusterNode *to) {
    bool joins = to == clusterNodePrimary(m->myself) || to == m->myself;
    int count = 0;
    for (int slot = 0; slot < SLOT_COUNT && m->open_count[kind]; slot++) {
        if (clusterMapOpenSlot(m, kind, slot) != from) continue;
        count++;
        if (joins) { /* both ends of the move are one shard now */
            clusterMapSetOpenSlot(m, kind, slot, NULL);
            tellReplicas(m, slot);
        } else {
            replaceIn(m, kind, slot, to);
        }
    }
    return count;
}

void openSlotsReplace(clusterMap *m, const clusterNode *from, clusterNode *to, bool told) {
    check(from != to);
    int sources = replaceKind(m, SLOT_IMPORTING, from, to);
    int targets = replaceKind(m, SLOT_MIGRATING, from, to);
    (void)replaceKind(m, SLOT_TAKEN, from, to); /* nobody is told of it */
    if (told && sources)
        logNotice("A failover occurred in migration source. Update importing source of %d slot(s) "
                  "to node %s in shard %.40s",
                  sources, clusterNodeLabel(to).text, to->shard_id);
    if (told && targets)
        logNotice("A failover occurred in migration target. Update migrating target of %d slot(s) "
                  "to node %s in shard %.40s",
                  targets, clusterNodeLabel(to).text, to->shard_id);
}

static void endMigrating(clusterMap *m, int slot, const clusterNode *to) {
    logNotice("Slot %d is no longer being migrated to node %s in shard %.40s.", slot,
              clusterNodeLabel(to).text, to->shard_id);
    clusterMapSetOpenSlot(m, SLOT_MIGRATING, slot, NULL);
    tellReplicas(m, slot);
}

static void endImporting(clusterMap *m, int slot, const clusterNode *from) {
    logNotice("Slot %d is no longer being imported from node %s in shard %.40s; Clear my importing "
              "source for the slot.",
              slot, clusterNodeLabel(from).text, from->shard_id);
    clusterMapSetOpenSlot(m, SLOT_IMPORTING, slot, NULL);
    tellReplicas(m, slot);
}

/* The source has given the keys already, but its claim has the greater epoch: the import begins
 * again. */
static void importAgain(clusterMap *m, int slot, clusterNode *owner, bool claimed, bool gives) {
    const clusterNode *from = clusterMapOpenSlot(m, SLOT_TAKEN, slot);
    clusterMapSetOpenSlot(m, SLOT_TAKEN, slot, NULL);
    if (gives || !claimed) return; /* this node has given it to the owner meanwhile */
    if (owner != from && !clusterNodesShareShard(owner, from)) return;
    logNotice("Slot %d was taken from node %s in shard %.40s, which claims it with a greater "
              "epoch. It is being imported again.",
              slot, clusterNodeLabel(owner).text, owner->shard_id);
    clusterMapSetOpenSlot(m, SLOT_IMPORTING, slot, owner);
    tellReplicas(m, slot);
}

void openSlotsOwnerChanged(clusterMap *m, int slot, const clusterNode *was, bool claimed) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    if (likely(!clusterMapHasOpenSlots(m) && !m->open_count[SLOT_TAKEN])) return;
    clusterNode *owner = clusterMapOwner(m, slot);
    const clusterNode *to = clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
    clusterNode *from = clusterMapOpenSlot(m, SLOT_IMPORTING, slot);
    bool is_own = owner && clusterNodesShareShard(owner, m->myself);
    bool is_primary = m->myself->flags & NODE_PRIMARY;
    if (is_primary && to && !is_own) endMigrating(m, slot, to);
    if (!owner) return;
    if (is_primary && !is_own && clusterMapOpenSlot(m, SLOT_TAKEN, slot))
        importAgain(m, slot, owner, claimed, to == owner);
    if (!from) return;
    if (!is_own && owner != from && clusterNodesShareShard(owner, from)) {
        replaceIn(m, SLOT_IMPORTING, slot, owner);
    } else if (is_primary && (is_own || was == from)) {
        endImporting(m, slot, from);
    }
}

bool openSlotsTake(clusterMap *m, const clusterNode *source, const uint8_t *slots) {
    bool any = false;
    if (!m->open_count[SLOT_IMPORTING] || !(m->myself->flags & NODE_PRIMARY)) return false;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!messageHasSlot(slots, slot) || clusterMapOwner(m, slot) != source) continue;
        if (clusterMapOpenSlot(m, SLOT_IMPORTING, slot) != source) continue;
        clusterMapSetOwner(m, slot, m->myself);
        endImporting(m, slot, source);
        any = true;
    }
    /* Without a new epoch a replica of the former owner could be elected with an older claim. */
    if (any && clusterMapBumpEpoch(m))
        logNotice("New configEpoch set to %llu", (unsigned long long)m->myself->epoch);
    return any;
}

void openSlotsTold(clusterMap *m, const clusterNode *source, const uint8_t *slots) {
    if (likely(!m->open_count[SLOT_TAKEN])) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        bool claims = messageHasSlot(slots, slot);
        if (claims && clusterMapOpenSlot(m, SLOT_TAKEN, slot) == source) m->taken_ms = 0;
    }
}

static void clearKind(clusterMap *m, enum openKind kind) {
    for (int slot = 0; slot < SLOT_COUNT && m->open_count[kind]; slot++)
        clusterMapSetOpenSlot(m, kind, slot, NULL);
}

bool openSlotsNextOrder(clusterMap *m, setSlotOrder *out) {
    const clusterNode *from, *to;
    for (int word = 0; word < SLOT_WORDS && m->has_untold; word++) {
        if (!m->untold[word]) continue;
        int slot = word * 64 + __builtin_ctzll(m->untold[word]);
        m->untold[word] &= m->untold[word] - 1;
        from = clusterMapOpenSlot(m, SLOT_IMPORTING, slot);
        to = clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
        *out = (setSlotOrder){.action = SET_SLOT_STABLE, .slot = slot};
        if (from) {
            *out = (setSlotOrder){SET_SLOT_IMPORTING, slot, clusterNodeId(from)};
        } else if (to) {
            *out = (setSlotOrder){SET_SLOT_MIGRATING, slot, clusterNodeId(to)};
        } else if (clusterMapIsMine(m, slot)) {
            *out = (setSlotOrder){SET_SLOT_NODE, slot, clusterNodeId(m->myself)};
        }
        return true;
    }
    m->has_untold = false;
    return false;
}

static bool fits(const clusterMap *m, enum openKind kind, int slot) {
    const clusterNode *owner = clusterMapOwner(m, slot);
    bool is_own = owner && clusterNodesShareShard(owner, m->myself);
    return is_own == (kind == SLOT_MIGRATING);
}

/* Returns the number of marks that do not fit the owners of slots, and removes them if wanted. */
static int countMisfits(clusterMap *m, bool removes) {
    const enum openKind kinds[] = {SLOT_MIGRATING, SLOT_IMPORTING};
    int count = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int slot = 0; slot < SLOT_COUNT && m->open_count[kinds[i]]; slot++) {
            if (!clusterMapOpenSlot(m, kinds[i], slot) || fits(m, kinds[i], slot)) continue;
            count++;
            if (!removes) continue;
            clusterMapSetOpenSlot(m, kinds[i], slot, NULL);
            tellReplicas(m, slot);
        }
    return count;
}

void openSlotsPromoted(clusterMap *m) {
    check(m->myself->flags & NODE_PRIMARY);
    if (clusterMapHasOpenSlots(m)) (void)countMisfits(m, true); /* there may be none */
}

/* A replica knows the marks by the stream and the owners by the bus: either may be later. */
static void tickReplica(clusterMap *m, int64_t wait_ms, int64_t now_ms) {
    if (!clusterMapHasOpenSlots(m) || !countMisfits(m, false)) {
        m->misfit_ms = 0;
    } else if (!m->misfit_ms) {
        m->misfit_ms = now_ms;
    } else if (now_ms - m->misfit_ms > wait_ms) {
        (void)countMisfits(m, true); /* it is known that there are some */
    }
}

void openSlotsTick(clusterMap *m, int64_t wait_ms, int64_t now_ms) {
    if (m->myself->flags & NODE_REPLICA) tickReplica(m, wait_ms, now_ms);
    if (likely(!m->open_count[SLOT_TAKEN])) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        const clusterNode *from = clusterMapOpenSlot(m, SLOT_TAKEN, slot);
        if (from && from->flags & (NODE_FAILED | NODE_MAYBE_FAILED)) m->taken_ms = 0;
    }
    if (!m->taken_ms) {
        m->taken_ms = now_ms;
    } else if (now_ms - m->taken_ms > wait_ms) {
        clearKind(m, SLOT_TAKEN);
    }
}

void openSlotsClear(clusterMap *m) {
    for (int kind = 0; kind < SLOT_OPEN_KINDS; kind++) clearKind(m, (enum openKind)kind);
    check(!clusterMapHasOpenSlots(m));
}

/* ------------------------------------------------------------------ text */

static void printKind(const clusterMap *m, enum openKind kind, str *out) {
    for (int slot = 0; slot < SLOT_COUNT && m->open_count[kind]; slot++) {
        const clusterNode *n = clusterMapOpenSlot(m, kind, slot);
        if (n) strAppendFormat(out, "%d%c%.40s,", slot, kind == SLOT_IMPORTING ? '<' : '>', n->id);
    }
}

void openSlotsPrint(const clusterMap *m, str *out) {
    check(m->myself);
    printKind(m, SLOT_IMPORTING, out);
    printKind(m, SLOT_MIGRATING, out);
}

/* "7<id" */
static bool parseMark(clusterMap *m, slice mark) {
    int64_t slot;
    if (mark.len < NODE_ID_LEN + 2) return false;
    size_t digits = mark.len - NODE_ID_LEN - 1;
    slice id = sliceMake(mark.ptr + digits + 1, NODE_ID_LEN);
    char sign = mark.ptr[digits];
    if (!numberParseInt(sliceMake(mark.ptr, digits), &slot)) return false;
    if (slot < 0 || slot >= SLOT_COUNT || (sign != '<' && sign != '>')) return false;
    if (!validIsId(id)) return false;
    clusterNode *n = clusterMapFind(m, id);
    if (!n) logWarning("Slot %d is being moved with the unknown node %.40s", (int)slot, id.ptr);
    if (!n || n == m->myself) return true;
    clusterMapSetOpenSlot(m, sign == '<' ? SLOT_IMPORTING : SLOT_MIGRATING, (int)slot, n);
    return true;
}

bool openSlotsParse(clusterMap *m, slice text) {
    openSlotsClear(m);
    while (text.len) {
        const char *end = memchr(text.ptr, ',', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        if (!parseMark(m, sliceMake(text.ptr, len))) {
            openSlotsClear(m);
            return false;
        }
        len += end != NULL;
        text = sliceMake(text.ptr + len, text.len - len);
    }
    return true;
}
