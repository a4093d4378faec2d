/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/open_slots.h"

#include "base/base.h"
#include "base/number.h"
#include "cluster/valid.h"

/* ------------------------------------------------------------------ changes */

static void replaceIn(clusterMap *m, enum openKind kind, int slot, clusterNode *to) {
    check(clusterMapOpenSlot(m, kind, slot) != to);
    clusterMapSetOpenSlot(m, kind, slot, to);
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
}

static void endImporting(clusterMap *m, int slot, const clusterNode *from) {
    logNotice("Slot %d is no longer being imported from node %s in shard %.40s; Clear my importing "
              "source for the slot.",
              slot, clusterNodeLabel(from).text, from->shard_id);
    clusterMapSetOpenSlot(m, SLOT_IMPORTING, slot, NULL);
}

void openSlotsOwnerChanged(clusterMap *m, int slot, const clusterNode *was) {
    check(slot >= 0);
    check(slot < SLOT_COUNT);
    if (likely(!clusterMapHasOpenSlots(m))) return;
    clusterNode *owner = clusterMapOwner(m, slot);
    const clusterNode *to = clusterMapOpenSlot(m, SLOT_MIGRATING, slot);
    const clusterNode *from = clusterMapOpenSlot(m, SLOT_IMPORTING, slot);
    bool is_own = owner && clusterNodesShareShard(owner, m->myself);
    if (to && !is_own) endMigrating(m, slot, to);
    if (!from || !owner) return;
    if (is_own) {
        endImporting(m, slot, from);
    } else if (owner != from && clusterNodesShareShard(owner, from)) {
        replaceIn(m, SLOT_IMPORTING, slot, owner);
    } else if (was == from) {
        endImporting(m, slot, from);
    }
}

bool openSlotsTake(clusterMap *m, const clusterNode *source) {
    bool any = false;
    if (!m->open_count[SLOT_IMPORTING] || !(m->myself->flags & NODE_PRIMARY)) return false;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (clusterMapOpenSlot(m, SLOT_IMPORTING, slot) != source) continue;
        if (clusterMapOwner(m, slot) != source || clusterMapIsClaimed(m, slot)) continue;
        clusterMapSetOwner(m, slot, m->myself);
        endImporting(m, slot, source);
        any = true;
    }
    return any;
}

void openSlotsClear(clusterMap *m) {
    for (int slot = 0; slot < SLOT_COUNT && clusterMapHasOpenSlots(m); slot++) {
        clusterMapSetOpenSlot(m, SLOT_MIGRATING, slot, NULL);
        clusterMapSetOpenSlot(m, SLOT_IMPORTING, slot, NULL);
    }
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
