/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counts the keys of a slot, and deletes the keys of slots that this node does not own. An
 * unassigned slot that has keys here becomes a slot of this node (serverSlotsVerify()).
 *
 * Invariant: only a primary deletes keys, and it does not delete keys of slots that it imports or
 * that are hidden. Main thread only. */
#include "cluster/server_slots.h"

#include "base/base.h"
#include "base/clock.h"
#include "cluster/server_map.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "store/store.h"

uint64_t serverSlotsCountKeys(int slot) {
    uint64_t keys = 0;
    for (int i = 0; i < storeDbCount(); i++) keys += dbSlotCount(storeDb(i), slot);
    return keys;
}

/* True if there are keys of the slot although this node does not own it. */
static bool isForeign(int slot) {
    if (clusterMapIsMine(&serverMap, slot) || !serverSlotsCountKeys(slot)) return false;
    if (clusterMapOpenSlot(&serverMap, SLOT_IMPORTING, slot)) return false;
    return !storeSlotIsHidden(keyspaceMain(), slot);
}

static bool decides(void) {
    check(!engineHot.current);
    check(serverMap.myself);
    return serverMap.myself->flags & NODE_PRIMARY;
}

void serverSlotsDeleteNow(int slot) {
    if (!(serverMap.myself->flags & NODE_PRIMARY) || !isForeign(slot)) return;
    keyspaceDropSlot(slot);
    keyspaceDropAll();
}

bool serverSlotsDeleteLost(void) {
    enum { BUDGET_US = 2000 };
    if (!decides()) return false;
    const clusterNode *myself = serverMap.myself;
    int64_t end_us = clockMonoUs() + BUDGET_US;
    if (keyspaceDropStep(end_us)) return true;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!clusterMapOwner(&serverMap, slot) || !isForeign(slot)) continue;
        logNotice("Deleting keys in dirty slot %d on node %s in shard %.40s", slot,
                  clusterNodeLabel(myself).text, myself->shard_id);
        keyspaceDropSlot(slot);
        /* The time is checked after each slot, because there may be thousands of small ones. */
        if (keyspaceDropStep(end_us) || clockMonoUs() >= end_us) return true;
    }
    return false;
}

void serverSlotsVerify(void) {
    if (!decides()) return;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!isForeign(slot)) continue;
        if (clusterMapOwner(&serverMap, slot)) {
            logNotice("I have keys for slot %d, but the slot is assigned to another node. Deleting "
                      "keys in the slot.",
                      slot);
            keyspaceDropSlot(slot);
        } else {
            logNotice("I have keys for unassigned slot %d. Taking responsibility for it.", slot);
            clusterMapSetOwner(&serverMap, slot, serverMap.myself);
        }
    }
}
