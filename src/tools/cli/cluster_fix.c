/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster fix`: open slots, slots without an owner, slots with several.
 *
 * A node deletes the keys of a slot when it sees another one own the slot. So where a slot with
 * keys has an owner, the keys move before the ownership does. */
#include <string.h>

#include "base/alloc.h"
#include "tools/cli/cluster_priv.h"

/* ------------------------------------------------------------------ states of an open slot */

/* What is known about an open slot. Nodes are primaries of the view. */
typedef struct slotState {
    int slot;
    clusterNode **migrating, **importing;
    int migrating_count, importing_count;
    slotHolder *owners; /* nodes that the slot is assigned to, and those with keys */
    int owner_count;
    int assigned_count;
    clusterNode *assigned; /* the last one that has the slot in its configuration */
} slotState;

static bool isOpen(const openSlots *slots, int slot) {
    for (int i = 0; i < slots->count; i++) {
        if (slots->list[i].slot == slot) return true;
    }
    return false;
}

static bool holds(clusterNode *const *list, int count, const clusterNode *node) {
    for (int i = 0; i < count; i++) {
        if (list[i] == node) return true;
    }
    return false;
}

static int64_t keysOf(const slotState *s, const clusterNode *node) {
    for (int i = 0; i < s->owner_count; i++) {
        if (s->owners[i].node == node) return s->owners[i].keys;
    }
    return 0;
}

/* Finds the nodes that the slot is assigned to, and those with keys of it. */
static bool readOwners(clusterManager *m, slotState *s) {
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica) continue;
        int64_t keys = managerCountKeys(m, node, s->slot);
        if (keys < 0) return false;
        bool assigned = slotSetHas(&node->slots, s->slot);
        if (assigned) {
            s->assigned = node;
            s->assigned_count++;
        } else if (keys) {
            managerPrint(m, LEVEL_WARNING,
                         "*** Found keys about slot %d in non-owner node %s:%d!\n", s->slot,
                         strText(&node->host), node->port);
        }
        if (assigned || keys) s->owners[s->owner_count++] = (slotHolder){node, keys};
    }
    return true;
}

/* Finds the nodes in which the slot is open. Other nodes with keys of it are treated like importing
 * ones. */
static void readOpen(clusterManager *m, slotState *s) {
    bool clear = s->assigned_count == 1 && s->owner_count == 1;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica) continue;
        if (isOpen(&node->migrating, s->slot)) {
            s->migrating[s->migrating_count++] = node;
        } else if (isOpen(&node->importing, s->slot)) {
            s->importing[s->importing_count++] = node;
        } else if (!clear && keysOf(s, node) > 0) {
            managerPrint(m, LEVEL_WARNING, "*** Found keys about slot %d in node %s:%d!\n", s->slot,
                         strText(&node->host), node->port);
            s->importing[s->importing_count++] = node;
        }
    }
}

static void printList(const char *title, clusterNode *const *list, int count) {
    if (!count) return;
    printf("%s", title);
    for (int i = 0; i < count; i++)
        printf("%s%s:%d", i ? "," : "", strText(&list[i]->host), list[i]->port);
    putchar('\n');
}

/* ------------------------------------------------------------------ steps */

static bool setSlot(const clusterManager *m, clusterNode *node, int slot, const char *state,
                    const clusterNode *peer) {
    return managerRun(m, node, "CLUSTER SETSLOT %d %s %s", slot, state, peer->id);
}

static bool setStable(const clusterManager *m, clusterNode *node, int slot) {
    return managerRun(m, node, "CLUSTER SETSLOT %d STABLE", slot);
}

/* Gives a slot that no reachable node owns to the node, with an epoch that the others accept. */
static bool claimSlot(const clusterManager *m, clusterNode *node, int slot) {
    if (!setStable(m, node, slot)) return false;
    /* The node may regard an unreachable one as the owner. */
    freeReplyObject(managerCommand(node, "CLUSTER DELSLOTS %d", slot));
    if (!managerRun(m, node, "CLUSTER ADDSLOTS %d", slot)) return false;
    slotSetAdd(&node->slots, slot);
    return managerRun(m, node, "CLUSTER BUMPEPOCH");
}

static bool moveSlot(clusterManager *m, clusterNode *from, clusterNode *to, int slot, int flags) {
    str error = STR_EMPTY;
    bool moved = managerMoveSlot(m, from, to, slot, flags, NULL, &error);
    if (!moved) managerPrint(m, LEVEL_ERROR, "%s\n", strText(&error));
    strFree(&error);
    return moved;
}

/* Moves the keys of `from` to the owner; `from` does not own the slot. */
static bool collectKeys(clusterManager *m, clusterNode *from, clusterNode *owner, int slot) {
    if (!moveSlot(m, from, owner, slot, MOVE_KEEP_OWNER | MOVE_OPENED)) return false;
    managerPrint(m, LEVEL_INFO, ">>> Setting %d as STABLE in %s:%d\n", slot, strText(&from->host),
                 from->port);
    return setStable(m, from, slot);
}

/* Opens the slot for keys of `from`, which need not own it, so that MIGRATE is allowed there. */
static bool openSource(const clusterManager *m, clusterNode *from, clusterNode *owner, int slot) {
    if (isOpen(&from->importing, slot)) return true;
    return setSlot(m, from, slot, "IMPORTING", owner);
}

/* Chooses the owner among the nodes with keys, and makes it the owner. The one that owned the slot
 * until now keeps its keys until they are moved: it is `*previous` then. */
static clusterNode *chooseOwner(clusterManager *m, slotState *s, clusterNode **previous) {
    managerPrint(m, LEVEL_INFO,
                 ">>> No single clear owner for the slot, selecting an owner by # of keys...\n");
    clusterNode *owner = planOwnerByKeys(s->owners, s->owner_count);
    if (!owner) {
        /* Nobody has keys: any node of those that are open. */
        owner =
            s->importing_count ? s->importing[0] : (s->migrating_count ? s->migrating[0] : NULL);
    }
    if (!owner) {
        managerPrint(m, LEVEL_ERROR, "[ERR] Can't select a slot owner. Impossible to fix.\n");
        return NULL;
    }
    managerPrint(m, LEVEL_WARNING, "*** Configuring %s:%d as the slot owner\n",
                 strText(&owner->host), owner->port);
    *previous = NULL;
    if (s->assigned_count == 0) return claimSlot(m, owner, s->slot) ? owner : NULL;
    if (owner == s->assigned) return setStable(m, owner, s->slot) ? owner : NULL;
    *previous = s->assigned;
    if (!setSlot(m, owner, s->slot, "IMPORTING", s->assigned)) return NULL;
    return setSlot(m, s->assigned, s->slot, "MIGRATING", owner) ? owner : NULL;
}

/* Moves the keys of all other nodes to the owner. */
static bool gatherKeys(clusterManager *m, slotState *s, clusterNode *owner, clusterNode *previous) {
    managerPrint(m, LEVEL_INFO, ">>> Case 2: Moving all the %d slot keys to its owner %s:%d\n",
                 s->slot, strText(&owner->host), owner->port);
    bool moved = true;
    /* Its keys first: with them goes the slot. */
    if (previous) {
        moved = moveSlot(m, previous, owner, s->slot, MOVE_OPENED);
        if (moved)
            managerPrint(m, LEVEL_INFO, ">>> Setting %d as STABLE in %s:%d\n", s->slot,
                         strText(&previous->host), previous->port);
        if (moved) moved = setStable(m, previous, s->slot);
    }
    for (int i = 0; i < s->importing_count && moved; i++) {
        clusterNode *node = s->importing[i];
        if (node == owner || node == previous) continue;
        moved = openSource(m, node, owner, s->slot) && collectKeys(m, node, owner, s->slot);
    }
    for (int i = 0; i < s->migrating_count && moved; i++) {
        clusterNode *node = s->migrating[i];
        if (node == owner || node == previous) continue;
        moved = collectKeys(m, node, owner, s->slot);
    }
    return moved;
}

/* ------------------------------------------------------------------ open slots: which way */

/* One node migrates, one imports: finishes the move. */
static bool finishMove(clusterManager *m, const slotState *s, clusterNode *owner) {
    clusterNode *from = s->migrating[0], *to = s->importing[0];
    managerPrint(m, LEVEL_INFO, ">>> Case 1: Moving slot %d from %s:%d to %s:%d\n", s->slot,
                 strText(&from->host), from->port, strText(&to->host), to->port);
    (void)owner;
    /* The states may name other nodes: they are set again. */
    return moveSlot(m, from, to, s->slot, 0);
}

static bool closeSlot(clusterManager *m, const slotState *s) {
    bool closed = true;
    for (int i = 0; i < s->migrating_count; i++)
        closed = setStable(m, s->migrating[i], s->slot) && closed;
    for (int i = 0; i < s->importing_count; i++)
        closed = setStable(m, s->importing[i], s->slot) && closed;
    return closed;
}

static bool fixByState(clusterManager *m, slotState *s) {
    bool clear = s->assigned_count == 1 && s->owner_count == 1;
    clusterNode *owner = s->assigned;
    if (!clear) {
        clusterNode *previous;
        owner = chooseOwner(m, s, &previous);
        return owner && gatherKeys(m, s, owner, previous);
    }
    if (s->migrating_count == 1 && s->importing_count == 1 && s->migrating[0] == owner)
        return finishMove(m, s, owner);
    if (s->migrating_count == 0) return gatherKeys(m, s, owner, NULL);
    if (s->migrating_count == 1 && s->importing_count > 1 && s->migrating[0] == owner) {
        /* Which of the importing nodes was meant is in the state of the owner; no other one has
         * keys. */
        clusterNode *target = NULL;
        for (int i = 0; i < owner->migrating.count; i++) {
            if (owner->migrating.list[i].slot == s->slot)
                target = clusterNodesFindId(&m->nodes, owner->migrating.list[i].peer);
        }
        if (target && holds(s->importing, s->importing_count, target)) {
            managerPrint(m, LEVEL_INFO,
                         ">>> Case 3: Moving slot %d from %s:%d to %s:%d and closing it on all the "
                         "other importing nodes.\n",
                         s->slot, strText(&owner->host), owner->port, strText(&target->host),
                         target->port);
            return moveSlot(m, owner, target, s->slot, 0) && closeSlot(m, s);
        }
        managerPrint(m, LEVEL_INFO,
                     ">>> Case 3: Closing slot %d on both migrating and importing "
                     "nodes.\n",
                     s->slot);
        return closeSlot(m, s);
    }
    if (s->importing_count == 0) {
        managerPrint(m, LEVEL_INFO, ">>> Case 4: Closing slot %d on %s:%d\n", s->slot,
                     strText(&s->migrating[0]->host), s->migrating[0]->port);
        return closeSlot(m, s);
    }
    /* Only the owner has keys, and nodes that do not own the slot are marked as migrating. */
    managerPrint(m, LEVEL_INFO,
                 ">>> Case 3: Closing slot %d on both migrating and importing nodes.\n", s->slot);
    return closeSlot(m, s);
}

bool managerFixOpenSlot(clusterManager *m, int slot) {
    slotState s = {.slot = slot,
                   .migrating = memNewArray(clusterNode *, m->nodes.count + 1),
                   .importing = memNewArray(clusterNode *, m->nodes.count + 1),
                   .owners = memNewArray(slotHolder, m->nodes.count + 1)};
    managerPrint(m, LEVEL_INFO, ">>> Fixing open slot %d\n", slot);
    bool fixed = readOwners(m, &s);
    if (fixed) {
        readOpen(m, &s);
        printList("Set as migrating in: ", s.migrating, s.migrating_count);
        printList("Set as importing in: ", s.importing, s.importing_count);
        fixed = fixByState(m, &s);
    }
    memFree(s.migrating);
    memFree(s.importing);
    memFree(s.owners);
    return fixed;
}

/* ------------------------------------------------------------------ coverage */

static int listPrimaries(const clusterManager *m, clusterNode **out) {
    int count = 0;
    for (int i = 0; i < m->nodes.count; i++) {
        if (!m->nodes.list[i]->is_replica) out[count++] = m->nodes.list[i];
    }
    return count;
}

/* For each uncovered slot the number of nodes with keys of it, and the one with most. False after
 * an error. */
static bool findHolders(clusterManager *m, const slotSet *uncovered, slotHolder *best,
                        int *holders) {
    enum { BATCH = 1024 };
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica) continue;
        for (int from = 0; from < SLOT_COUNT; from += BATCH) {
            for (int slot = from; slot < from + BATCH; slot++) {
                if (slotSetHas(uncovered, slot))
                    managerQueue(node, "CLUSTER COUNTKEYSINSLOT %d", slot);
            }
            for (int slot = from; slot < from + BATCH; slot++) {
                if (!slotSetHas(uncovered, slot)) continue;
                valkeyReply *reply = managerNext(node);
                bool valid = managerAccept(m, node, reply);
                int64_t keys = valid ? reply->integer : 0;
                freeReplyObject(reply);
                if (!valid) return false;
                if (keys == 0) continue;
                holders[slot]++;
                if (keys > best[slot].keys) best[slot] = (slotHolder){node, keys};
            }
        }
    }
    return true;
}

static void selectSlots(const slotSet *uncovered, const int *holders, int min, int max,
                        slotSet *out) {
    *out = (slotSet){0};
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (slotSetHas(uncovered, slot) && holders[slot] >= min && holders[slot] <= max)
            slotSetAdd(out, slot);
    }
}

/* Prints the slots and asks, as Valkey does even with --cluster-yes; false if there are none or the
 * user refuses. */
static bool confirmSlots(const slotSet *slots, const char *title, const char *question) {
    if (!slots->count) return false;
    str text = STR_EMPTY;
    slotSetPrint(slots, &text);
    printf("%s\n%s\n", title, strText(&text));
    strFree(&text);
    return managerAskYes(question);
}

/* The first of these slots that are not after one another go to the first primary, and so on, so
 * that ranges stay whole. */
static bool coverEmpty(clusterManager *m, const slotSet *slots) {
    clusterNode **primaries = memNewArray(clusterNode *, m->nodes.count + 1);
    int count = listPrimaries(m, primaries), index = 0;
    bool covered = count > 0;
    for (int slot = 0; slot < SLOT_COUNT && covered; slot++) {
        if (!slotSetHas(slots, slot)) continue;
        clusterNode *node = primaries[(int64_t)index++ * count / slots->count];
        managerPrint(m, LEVEL_INFO, ">>> Covering slot %d with %s:%d\n", slot, strText(&node->host),
                     node->port);
        covered = claimSlot(m, node, slot);
    }
    memFree(primaries);
    return covered;
}

static bool coverSingle(clusterManager *m, const slotSet *slots, const slotHolder *best) {
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slotSetHas(slots, slot)) continue;
        clusterNode *node = best[slot].node;
        managerPrint(m, LEVEL_INFO, ">>> Covering slot %d with %s:%d\n", slot, strText(&node->host),
                     node->port);
        if (!claimSlot(m, node, slot)) return false;
    }
    return true;
}

static bool coverMultiple(clusterManager *m, const slotSet *slots, const slotHolder *best) {
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slotSetHas(slots, slot)) continue;
        clusterNode *owner = best[slot].node;
        managerPrint(m, LEVEL_INFO, ">>> Covering slot %d moving keys to %s:%d\n", slot,
                     strText(&owner->host), owner->port);
        if (!claimSlot(m, owner, slot)) return false;
        for (int i = 0; i < m->nodes.count; i++) {
            clusterNode *node = m->nodes.list[i];
            if (node->is_replica || node == owner) continue;
            int64_t keys = managerCountKeys(m, node, slot);
            if (keys == 0) continue;
            if (keys < 0 || !openSource(m, node, owner, slot) || !collectKeys(m, node, owner, slot))
                return false;
        }
    }
    return true;
}

bool managerFixCoverage(clusterManager *m, const slotSet *uncovered) {
    slotHolder *best = memNewArray(slotHolder, SLOT_COUNT);
    int *holders = memNewArray(int, SLOT_COUNT);
    slotSet none, single, multiple;
    managerPrint(m, LEVEL_INFO, ">>> Fixing slots coverage...\n");
    bool fixed = findHolders(m, uncovered, best, holders);
    if (fixed) {
        selectSlots(uncovered, holders, 0, 0, &none);
        selectSlots(uncovered, holders, 1, 1, &single);
        selectSlots(uncovered, holders, 2, m->nodes.count, &multiple);
        bool refused = false;
        if (confirmSlots(&none, "The following uncovered slots have no keys across the cluster:",
                         "Fix these slots by covering with a random node?"))
            fixed = coverEmpty(m, &none);
        else
            refused = none.count > 0;
        if (fixed &&
            confirmSlots(&single, "The following uncovered slots have keys in just one node:",
                         "Fix these slots by covering with those nodes?"))
            fixed = coverSingle(m, &single, best);
        else
            refused = refused || single.count > 0;
        if (fixed &&
            confirmSlots(&multiple, "The following uncovered slots have keys in multiple nodes:",
                         "Fix these slots by moving keys into a single node?"))
            fixed = coverMultiple(m, &multiple, best);
        else
            refused = refused || multiple.count > 0;
        if (refused) fixed = false;
    }
    memFree(best);
    memFree(holders);
    return fixed;
}

/* ------------------------------------------------------------------ several owners */

bool managerFixOwners(clusterManager *m, int slot, const slotHolder *owners, int count) {
    managerPrint(m, LEVEL_INFO, ">>> Fixing multiple owners for slot %d...\n", slot);
    clusterNode *owner = planOwnerByKeys(owners, count);
    managerPrint(m, LEVEL_INFO, ">>> Setting slot %d owner: %s:%d\n", slot, strText(&owner->host),
                 owner->port);
    /* The others give the slot up before the epoch of the owner is raised: they would delete their
     * keys when they see it. */
    for (int i = 0; i < count; i++) {
        clusterNode *node = owners[i].node;
        if (node == owner) continue;
        if (slotSetHas(&node->slots, slot) && !managerRun(m, node, "CLUSTER DELSLOTS %d", slot))
            return false;
        slotSetRemove(&node->slots, slot);
        if (!setSlot(m, node, slot, "IMPORTING", owner)) return false;
    }
    if (!slotSetHas(&owner->slots, slot)) {
        if (!claimSlot(m, owner, slot)) return false;
    } else if (!setStable(m, owner, slot) || !managerRun(m, owner, "CLUSTER BUMPEPOCH")) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        clusterNode *node = owners[i].node;
        if (node != owner && !collectKeys(m, node, owner, slot)) return false;
    }
    return true;
}
