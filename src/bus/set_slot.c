/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER SETSLOT as a change of a map (set_slot.h).
 *
 * Invariant: setSlotIsRefused() changes nothing. setSlotApply() refuses nothing, so a replica can
 * execute the orders of its primary; an order that names an unknown node changes no owner. */
#include "bus/set_slot.h"

#include "base/base.h"
#include "bus/open_slots.h"

slice setSlotWord(setSlotAction action) {
    switch (action) {
    case SET_SLOT_MIGRATING: return SLICE("MIGRATING");
    case SET_SLOT_IMPORTING: return SLICE("IMPORTING");
    case SET_SLOT_STABLE: return SLICE("STABLE");
    default: return SLICE("NODE");
    }
}

/* ------------------------------------------------------------------ refusals */

static bool refuse(reason *why, const char *format, int slot) {
    (void)reasonSet(why, ERR_DENIED, format, slot);
    return true;
}

static bool refuseUnknown(reason *why, const char *text, slice id) {
    (void)reasonSet(why, ERR_NOT_FOUND, "%s %.*s", text, (int)sizeMin(id.len, 128), id.ptr);
    return true;
}

/* MIGRATING, IMPORTING: the node at the other end. */
static bool peerIsRefused(const clusterMap *m, slice id, reason *why) {
    const clusterNode *n = clusterMapFind(m, id);
    if (!n) return refuseUnknown(why, "I don't know about node", id);
    if (n == m->myself) return refuse(why, "Target node is myself", 0);
    if (n->flags & NODE_REPLICA) return refuse(why, "Target node is not a master", 0);
    return false;
}

bool setSlotIsRefused(const clusterMap *m, const setSlotOrder *order, bool has_keys, reason *why) {
    const clusterNode *owner = clusterMapOwner(m, order->slot), *n;
    check(m->myself->flags & NODE_PRIMARY);
    switch (order->action) {
    case SET_SLOT_MIGRATING:
        if (owner != m->myself)
            return refuse(why, "I'm not the owner of hash slot %d", order->slot);
        return peerIsRefused(m, order->id, why);
    case SET_SLOT_IMPORTING:
        if (owner == m->myself)
            return refuse(why, "I'm already the owner of hash slot %d", order->slot);
        return peerIsRefused(m, order->id, why);
    case SET_SLOT_STABLE: return false;
    default: break;
    }
    n = clusterMapFind(m, order->id);
    if (!n) return refuseUnknown(why, "Unknown node", order->id);
    if (n->flags & NODE_REPLICA) return refuse(why, "Target node is not a master", 0);
    if (owner != m->myself || n == m->myself || !has_keys) return false;
    return refuse(why,
                  "Can't assign hashslot %d to a different node while I still hold keys for this "
                  "hash slot.",
                  order->slot);
}

/* ------------------------------------------------------------------ execution */

static void loseLastSlot(clusterMap *m, clusterNode *n, const busRules *rules, topologyActs *acts) {
    check(m->myself->slot_count == 0);
    if (topologyMayLeave(m, rules)) {
        logNotice("Lost my last slot during slot migration. Reconfiguring myself as a replica of "
                  "%s in shard %.40s",
                  clusterNodeLabel(n).text, n->shard_id);
        topologyFollow(m, n);
        acts->follow = n;
    } else {
        logNotice("My last slot was migrated to node %s in shard %.40s. I am now an empty primary.",
                  clusterNodeLabel(n).text, n->shard_id);
        acts->is_emptied = true;
    }
}

/* Ends the import of a slot. This primary takes a new epoch, because the source still claims the
 * slot and may have the greater epoch. */
static void completeImport(clusterMap *m, int slot, bool *tells) {
    clusterNode *from = clusterMapOpenSlot(m, SLOT_IMPORTING, slot);
    clusterMapSetOpenSlot(m, SLOT_IMPORTING, slot, NULL);
    if (m->myself->flags & NODE_REPLICA) return;
    /* The mark is set even if the source does not claim the slot in this map: a message with its
     * claim may be on the way. */
    clusterMapSetOpenSlot(m, SLOT_TAKEN, slot, from);
    if (clusterMapBumpEpoch(m))
        logNotice("New configEpoch set to %llu", (unsigned long long)m->myself->epoch);
    logNotice("ConfigEpoch updated after importing slot %d", slot);
    *tells = true;
}

static void assign(clusterMap *m, int slot, clusterNode *n, bool has_keys, const busRules *rules,
                   topologyActs *acts, bool *tells) {
    const clusterNode *own = clusterNodePrimary(m->myself), *was = clusterMapOwner(m, slot);
    check(n);
    logNotice("Assigning slot %d to node %s in shard %.40s", slot, clusterNodeLabel(n).text,
              n->shard_id);
    if (!has_keys) clusterMapSetOpenSlot(m, SLOT_MIGRATING, slot, NULL);
    /* This replica may not know yet that `n` is a primary, or not any more. */
    if (n->flags & NODE_PRIMARY) clusterMapSetOwner(m, slot, n);
    if (clusterNodesShareShard(n, m->myself) && clusterMapOpenSlot(m, SLOT_IMPORTING, slot))
        completeImport(m, slot, tells);
    if (clusterMapOwner(m, slot) == was || was != own || !own) return;
    acts->lost_slots = true;
    if (own->slot_count) return;
    if (own == m->myself) {
        loseLastSlot(m, n, rules, acts);
    } else {
        m->last_given = slot + 1; /* its primary may refuse it yet, and waits for this replica */
    }
}

/* The slot goes back to the node that it was taken from, whose late claims may still arrive. */
static bool goesBack(const clusterMap *m, const setSlotOrder *order) {
    if (order->action != SET_SLOT_MIGRATING) return false;
    const clusterNode *from = clusterMapOpenSlot(m, SLOT_TAKEN, order->slot);
    return from && from == clusterMapFind(m, order->id);
}

topologyActs setSlotApply(clusterMap *m, const setSlotOrder *order, bool has_keys,
                          const busRules *rules, bool *tells) {
    topologyActs acts = {0};
    int slot = order->slot;
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    *tells = false;
    if (!goesBack(m, order)) clusterMapSetOpenSlot(m, SLOT_TAKEN, slot, NULL);
    if (order->action == SET_SLOT_STABLE) {
        logNotice("Marking slot %d stable", slot);
        clusterMapSetOpenSlot(m, SLOT_MIGRATING, slot, NULL);
        clusterMapSetOpenSlot(m, SLOT_IMPORTING, slot, NULL);
        return acts;
    }
    clusterNode *n = clusterMapFind(m, order->id);
    if (!n) {
        logWarning("CLUSTER SETSLOT about slot %d names an unknown node, and is ignored", slot);
    } else if (order->action == SET_SLOT_NODE) {
        assign(m, slot, n, has_keys, rules, &acts, tells);
    } else if (n != m->myself) {
        bool gives = order->action == SET_SLOT_MIGRATING;
        logNotice(gives ? "Migrating slot %d to node %s" : "Importing slot %d from node %s", slot,
                  clusterNodeLabel(n).text);
        clusterMapSetOpenSlot(m, gives ? SLOT_IMPORTING : SLOT_MIGRATING, slot, NULL);
        clusterMapSetOpenSlot(m, gives ? SLOT_MIGRATING : SLOT_IMPORTING, slot, n);
    }
    return acts;
}

/* ------------------------------------------------------------------ undo */

int setSlotUndo(const clusterMap *m, const setSlotOrder *order, setSlotOrder *out, bool *unassign) {
    int count = 0, slot = order->slot;
    const clusterNode *owner = clusterMapOwner(m, slot);
    const clusterNode *to = clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
    const clusterNode *from = clusterMapOpenSlot(m, SLOT_IMPORTING, slot);
    *unassign = order->action == SET_SLOT_NODE && !owner;
    if (order->action == SET_SLOT_NODE && owner)
        out[count++] = (setSlotOrder){SET_SLOT_NODE, slot, clusterNodeId(owner)};
    out[count++] = (setSlotOrder){.action = SET_SLOT_STABLE, .slot = slot};
    if (to) out[count++] = (setSlotOrder){SET_SLOT_MIGRATING, slot, clusterNodeId(to)};
    if (from) out[count++] = (setSlotOrder){SET_SLOT_IMPORTING, slot, clusterNodeId(from)};
    check(count > 0);
    check(count <= SET_SLOT_UNDO_MAX);
    return count;
}
