/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of CLUSTER about the keys of a slot (KEYSLOT, COUNTKEYSINSLOT, GETKEYSINSLOT,
 * FLUSHSLOT), and about the slots that this node owns (ADDSLOTS, DELSLOTS, FLUSHSLOTS). Main thread
 * only. */
#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "cluster/cmd_cluster.h"
#include "cluster/procs.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "pubsub/pubsub.h"
#include "store/store.h"

/* ------------------------------------------------------------------ keys of a slot */

/* CLUSTER KEYSLOT key. Reply: its slot. */
void clusterKeyslotCommand(ctx *c) { replyInteger(c, hashSlot(c->argv[2])); }

/* CLUSTER COUNTKEYSINSLOT slot. Reply: number of keys of the slot in this database. */
void clusterCountkeysinslotCommand(ctx *c) {
    int64_t slot;
    if (!clusterIsNode(c) || !ctxArgInt(c, 2, &slot)) return;
    if (slot < 0 || slot >= SLOT_COUNT) {
        replyError(c, SLICE("ERR Invalid slot"));
        return;
    }
    replyInteger(c, (int64_t)dbSlotCount(c->db, (int)slot));
}

typedef struct slotKeys {
    ctx *c;
    int64_t found, want;
} slotKeys;

static void visitKey(void *arg, const robj *o) {
    slotKeys *k = arg;
    if (k->found == k->want) return;
    replyBulk(k->c, objectKey(o));
    k->found++;
}

/* CLUSTER GETKEYSINSLOT slot count. Reply: up to `count` keys of the slot in this database. */
void clusterGetkeysinslotCommand(ctx *c) {
    int64_t slot, count;
    if (!clusterIsNode(c) || !ctxArgInt(c, 2, &slot) || !ctxArgInt(c, 3, &count)) return;
    if (slot < 0 || slot >= SLOT_COUNT || count < 0) {
        replyError(c, SLICE("ERR Invalid slot or number of keys"));
        return;
    }
    slotKeys k = {.c = c, .want = count};
    uint64_t cursor = 0;
    respDeferred head = respDeferBegin(c->out);
    if (storeSlotIsHidden(dbKeyspace(c->db), (int)slot)) {
        dbEach(c->db, (int)slot, visitKey, &k); /* scans leave them out */
    } else {
        do {
            cursor = dbScan(c->db, cursor, (int)slot, visitKey, &k);
        } while (cursor && k.found < k.want);
    }
    respDeferEnd(c->out, head, '*', c->proto, k.found);
}

bool clusterSlotArg(ctx *c, int arg_index, int *out) {
    int64_t slot;
    if (numberParseInt(c->argv[arg_index], &slot) && slot >= 0 && slot < SLOT_COUNT) {
        *out = (int)slot;
        return true;
    }
    replyError(c, SLICE("ERR Invalid or out of range slot"));
    return false;
}

static void tellDeleted(void *arg, db *d, slice key) {
    (void)d; /* that of the context */
    ctxTellObservers(arg, key, &eventDel);
}

static void notifyDeleted(void *arg, const robj *o) {
    ctxTellObservers(arg, objectKey(o), &eventDel);
}

/* Deletes the keys of a slot in the database of the context; returns their number. */
static uint64_t flushSlot(ctx *c, int slot, bool later) {
    if (storeExpectsChanges()) return keyspaceDeleteEach(c->db, slot, tellDeleted, c);
    if (engineHot.observers) dbEach(c->db, slot, notifyDeleted, c);
    return dbFlushSlot(c->db, slot, later);
}

/* CLUSTER FLUSHSLOT slot [ASYNC|SYNC]: deletes the keys of a slot in all databases. Reply: OK. */
void clusterFlushslotCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    int slot;
    if (!clusterIsNode(c) || !clusterSlotArg(c, 2, &slot)) return;
    bool now = c->argc == 4 && ctxArgIs(c, 3, "sync");
    if (c->argc > 4 || (c->argc == 4 && !now && !ctxArgIs(c, 3, "async"))) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    uint64_t removed = 0;
    db *own = c->db;
    for (int i = 0; i < storeDbCount(); i++) {
        c->db = storeDb(i);
        removed += flushSlot(c, slot, !now);
    }
    c->db = own;
    if (removed) ctxDatasetChanged(c, removed);
    replyOk(c);
}

/* ------------------------------------------------------------------ slot assignment */

typedef struct slotSet {
    uint64_t bits[SLOT_WORDS];
} slotSet;

/* Adds a slot that is to be assigned (`assign`) or unassigned. False: the error was replied. */
static bool addToSet(ctx *c, slotSet *set, int slot, bool assign) {
    const char *error = NULL;
    if (assign && clusterMapOwner(&serverMap, slot)) error = "ERR Slot %d is already busy";
    if (!assign && !clusterMapOwner(&serverMap, slot)) error = "ERR Slot %d is already unassigned";
    if (!error && set->bits[slot / 64] >> slot % 64 & 1)
        error = "ERR Slot %d specified multiple times";
    if (error) {
        str text = STR_EMPTY;
        strAppendFormat(&text, error, slot);
        replyError(c, strSlice(&text));
        strFree(&text);
        return false;
    }
    set->bits[slot / 64] |= UINT64_C(1) << slot % 64;
    return true;
}

static bool parseSlots(ctx *c, slotSet *set, bool assign) {
    int slot;
    for (int i = 2; i < c->argc; i++) {
        if (!clusterSlotArg(c, i, &slot)) return false;
    }
    for (int i = 2; i < c->argc; i++) {
        if (!clusterSlotArg(c, i, &slot) || !addToSet(c, set, slot, assign)) return false;
    }
    return true;
}

static bool parseRanges(ctx *c, slotSet *set, bool assign) {
    if (c->argc % 2) {
        replyErrorArity(c);
        return false;
    }
    for (int i = 2; i < c->argc; i += 2) {
        int first, last;
        if (!clusterSlotArg(c, i, &first) || !clusterSlotArg(c, i + 1, &last)) return false;
        if (first > last) {
            replyErrorFormat(c, "ERR start slot number %d is greater than end slot number %d",
                             first, last);
            return false;
        }
        for (int slot = first; slot <= last; slot++) {
            if (!addToSet(c, set, slot, assign)) return false;
        }
    }
    return true;
}

/* Assigns slots to this node, or unassigns them. Nothing is changed unless all of them are
 * valid. */
static void changeSlots(ctx *c, bool ranges, bool assign) {
    slotSet set = {{0}};
    if (!clusterIsNode(c)) return;
    if (serverMap.myself->flags & NODE_REPLICA) {
        replyError(c, SLICE("ERR This node is a replica: slots are assigned on primaries"));
        return;
    }
    if (!(ranges ? parseRanges : parseSlots)(c, &set, assign)) return;
    if (assign) keyspaceDropAll();
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (set.bits[slot / 64] >> slot % 64 & 1)
            clusterMapSetOwner(&serverMap, slot, assign ? serverMap.myself : NULL);
    }
    if (!assign) pubsubSlotsChanged(serverRoleServes);
    replyOk(c);
}

/* CLUSTER ADDSLOTS slot [slot ...]. Reply: OK, as for all commands in this section. */
void clusterAddslotsCommand(ctx *c) { changeSlots(c, false, true); }
/* CLUSTER ADDSLOTSRANGE start end [start end ...]. */
void clusterAddslotsrangeCommand(ctx *c) { changeSlots(c, true, true); }
/* CLUSTER DELSLOTS slot [slot ...]. */
void clusterDelslotsCommand(ctx *c) { changeSlots(c, false, false); }
/* CLUSTER DELSLOTSRANGE start end [start end ...]. */
void clusterDelslotsrangeCommand(ctx *c) { changeSlots(c, true, false); }

/* CLUSTER FLUSHSLOTS: unassigns all slots of this node. Reply: OK. */
void clusterFlushslotsCommand(ctx *c) {
    if (!clusterIsNode(c)) return;
    if (keyspaceKeyCount(keyspaceMain())) {
        replyError(c, SLICE("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
        return;
    }
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (clusterMapOwner(&serverMap, slot) == serverMap.myself)
            clusterMapSetOwner(&serverMap, slot, NULL);
    }
    pubsubSlotsChanged(serverRoleServes);
    replyOk(c);
}
