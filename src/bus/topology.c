/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes epochs, roles and owners of slots by what other nodes claim (topology.h).
 *
 * Invariants: the current epoch never decreases. A slot whose owner claims it goes to another node
 * only if that node claims it with a greater epoch, replaces the owner in its shard, or gets the
 * slot from this node (givesTo()). A replica has no slots. */
#include "bus/topology.h"

#include "base/base.h"
#include "bus/open_slots.h"

/* No cluster counts so far. From there on epochs may be greater by a margin than the known one, so
 * that a cluster to which such an epoch came otherwise still agrees on the next ones. */
#define EPOCH_PLAUSIBLE (UINT64_C(1) << 63)
#define EPOCH_MARGIN (UINT64_C(1) << 32)
/* No stream gets this far: a node that claims so is counted as one without data. */
#define OFFSET_PLAUSIBLE (UINT64_C(1) << 62)

bool topologyAccepts(const clusterMap *m, const clusterNode *sender, uint64_t current_epoch,
                     uint64_t epoch) {
    uint64_t most = EPOCH_PLAUSIBLE, greater = current_epoch > epoch ? current_epoch : epoch;
    if (m->current_epoch > EPOCH_PLAUSIBLE - EPOCH_MARGIN)
        most = m->current_epoch < UINT64_MAX - EPOCH_MARGIN ? m->current_epoch + EPOCH_MARGIN
                                                            : UINT64_MAX;
    if (greater <= most) return true;
    logWarning("Ignoring a message of node %s with the epoch %llu, which cannot be right",
               clusterNodeLabel(sender).text, (unsigned long long)greater);
    return false;
}

static void raiseEpoch(clusterMap *m, uint64_t current) {
    if (current > m->current_epoch) clusterMapSetEpochs(m, current, m->vote_epoch);
}

/* ------------------------------------------------------------------ roles */

void topologyFollow(clusterMap *m, clusterNode *primary) {
    check(m->myself->slot_count == 0);
    check(primary != m->myself);
    if (!clusterNodesShareShard(m->myself, primary)) openSlotsClear(m);
    clusterMapSetPrimary(m, m->myself, primary);
    check(m->myself->flags & NODE_REPLICA);
    check(m->myself->primary == primary);
}

/* More messages than these cannot be on the way over another connection. A node that still says the
 * same has started with an old file. */
enum { STALE_MAX = 20 };

/* Gives the slots of a primary to the one that has replaced it, as far as it has `claimed` them;
 * NULL: none. The others were moved before that, unseen by this node; their owner will claim
 * them. */
static void inheritSlots(clusterMap *m, const clusterNode *from, clusterNode *to,
                         const uint8_t *claimed) {
    int last;
    for (int first = clusterNodeNextSlots(from, 0, &last); first >= 0;
         first = clusterNodeNextSlots(from, last + 1, &last))
        for (int slot = first; slot <= last; slot++)
            clusterMapSetOwner(m, slot, claimed && claimed[slot / 8] & 1 << slot % 8 ? to : NULL);
    check(from->slot_count == 0);
}

/* A primary says that it is a replica now. False: the message is older than what is known. */
static bool demote(clusterMap *m, clusterNode *sender, clusterNode *primary,
                   const messageHeader *h) {
    uint64_t epoch = h->epoch;
    bool same_shard = primary && clusterNodesShareShard(sender, primary);
    check(sender != m->myself);
    check(sender != primary);
    check(sender->flags & NODE_PRIMARY);
    if (same_shard && sender->slot_count && sender->epoch > epoch &&
        sender->stale_count < STALE_MAX) {
        sender->stale_count++;
        logNotice("Ignore stale message from %s", clusterNodeLabel(sender).text);
        return false;
    }
    /* This node gets slots only if it knows that it is a primary. */
    if (primary == m->myself && !(primary->flags & NODE_PRIMARY)) same_shard = false;
    if (same_shard) {
        /* It has not told so itself yet, and may be a replica again before it does. */
        clusterMapMakePrimary(m, primary);
        if (sender->slot_count)
            logNotice("A failover occurred in shard %.40s; node %s lost %d slot(s) and failed over "
                      "to node %s",
                      primary->shard_id, clusterNodeLabel(sender).text, sender->slot_count,
                      clusterNodeLabel(primary).text);
        openSlotsReplace(m, sender, primary, true);
        /* What the primary has told itself is newer than what the sender, which may have been
         * away, says about it: the primary has been given all slots that it claims. */
        bool has_told = primary->has_told && primary->epoch >= epoch;
        inheritSlots(m, sender, primary, has_told ? NULL : h->slots);
        if (epoch > primary->epoch) clusterMapSetNodeEpoch(m, primary, epoch);
    } else {
        int count = sender->slot_count;
        clusterMapMoveSlots(m, sender, NULL);
        logNotice(
            "Node %s is no longer primary of shard %.40s; removed all %d slot(s) it used to own",
            clusterNodeLabel(sender).text, sender->shard_id, count);
    }
    return true;
}

static bool changeRole(clusterMap *m, clusterNode *sender, const messageHeader *h) {
    if (!h->primary) {
        sender->stale_count = 0;
        if (sender->flags & NODE_PRIMARY) return true;
        logNotice("Reconfiguring node %s as primary for shard %.40s", clusterNodeLabel(sender).text,
                  sender->shard_id);
        clusterMapMakePrimary(m, sender);
        clusterMapSetNodeEpoch(m, sender, h->epoch); /* so far that of its primary */
        return true;
    }
    clusterNode *primary = clusterMapFind(m, sliceMake(h->primary, NODE_ID_LEN));
    if (primary == sender) return false; /* no node says that of itself */
    if (sender->flags & NODE_PRIMARY && !demote(m, sender, primary, h)) return false;
    if (sender->flags & NODE_REPLICA && sender->primary == primary) return true;
    clusterMapSetPrimary(m, sender, primary);
    if (primary)
        logNotice("Node %s is now a replica of node %s in shard %.40s",
                  clusterNodeLabel(sender).text, clusterNodeLabel(primary).text, primary->shard_id);
    return true;
}

/* Two nodes follow each other, because orders have crossed. One of them becomes a primary without
 * slots, so that both have a source of data. It is the one with the smaller id, or with the greater
 * epoch, because the other one may regard its messages as stale. */
static void endCircle(clusterMap *m, const clusterNode *primary, topologyActs *acts) {
    bool smaller = memcmp(m->myself->id, primary->id, NODE_ID_LEN) < 0;
    if (m->myself->epoch < primary->epoch && !smaller) return;
    logWarning("Node %s is my primary and my replica. I am now an empty primary.",
               clusterNodeLabel(primary).text);
    clusterMapMakePrimary(m, m->myself);
    check(m->myself->slot_count == 0);
    /* So that nodes with a later epoch of the other one believe that it follows this one. */
    (void)clusterMapBumpEpoch(m);
    acts->is_released = true;
}

/* The primary of this node has become a replica itself. */
static void leaveSubReplica(clusterMap *m, topologyActs *acts) {
    clusterNode *primary = m->myself->primary;
    clusterNode *next = primary ? primary->primary : NULL;
    if (!next) return;
    if (next == m->myself) {
        endCircle(m, primary, acts);
        return;
    }
    logNotice("I'm a sub-replica! Reconfiguring myself as a replica of %.40s from %.40s", next->id,
              primary->id);
    topologyFollow(m, next);
    acts->follow = next;
}

/* ------------------------------------------------------------------ slots */

/* The owner that this node serves for or as: itself, or its primary. */
static bool isOwn(const clusterMap *m, const clusterNode *owner) {
    return owner && owner == clusterNodePrimary(m->myself);
}

bool topologyMayLeave(const clusterMap *m, const busRules *rules) {
    return rules->replica_migration && !m->open_count[SLOT_IMPORTING];
}

static bool claimsAny(const messageHeader *h) {
    for (int word = 0; word < SLOT_WORDS; word++)
        if (messageSlotWord(h->slots, word)) return true;
    return false;
}

/* Another primary of this shard that has slots, as after a failover; NULL: none. */
static clusterNode *successorOf(const clusterMap *m) {
    for (int i = 1; i < m->node_count; i++) {
        clusterNode *n = m->nodes[i];
        if (clusterNodeVotes(n) && clusterNodesShareShard(n, m->myself)) return n;
    }
    return NULL;
}

static void loseLastSlot(clusterMap *m, clusterNode *winner, const busRules *rules,
                         topologyActs *acts) {
    /* It may have lost the others to a replica, and this one, which was moved before, only now. */
    clusterNode *successor = m->myself->flags & NODE_PRIMARY ? successorOf(m) : NULL;
    if (successor) winner = successor;
    if (winner != m->myself &&
        (clusterNodesShareShard(winner, m->myself) || topologyMayLeave(m, rules))) {
        logNotice("Configuration change detected. Reconfiguring myself as a replica of node %s in "
                  "shard %.40s",
                  clusterNodeLabel(winner).text, winner->shard_id);
        topologyFollow(m, winner);
        acts->follow = winner;
    } else if (m->myself->flags & NODE_PRIMARY) {
        logNotice("My last slot was migrated to node %s in shard %.40s. I am now an empty primary.",
                  clusterNodeLabel(winner).text, winner->shard_id);
        acts->is_emptied = true;
    }
}

/* This replica has the order of its primary to give away the last slot (set_slot.h). Without it the
 * message would be news, and this replica would follow the new owner then. */
static void leaveEmptied(clusterMap *m, const clusterNode *sender, const messageHeader *h,
                         const busRules *rules, topologyActs *acts) {
    const clusterNode *own = clusterNodePrimary(m->myself);
    int slot = m->last_given - 1;
    check(slot >= 0);
    clusterNode *owner = clusterMapOwner(m, slot);
    if (!own || own == m->myself || own->slot_count || !owner) {
        m->last_given = 0; /* the order was undone, or this node is no replica any more */
        return;
    }
    bool is_given = sender == own && !claimsAny(h);
    bool is_taken = sender == owner && h->epoch > own->epoch && h->slots[slot / 8] & 1 << slot % 8;
    if (!is_given && !is_taken) return;
    m->last_given = 0;
    loseLastSlot(m, owner, rules, acts);
}

/* A slot of this node that it gives to `claimer`: a job has granted it, or it is being moved there
 * key by key and has arrived. Both may have taken the same epoch at once. If this node resolved
 * that with a later epoch first, its claim would be the better one, and it has not the keys. A node
 * that the slot was taken from may say of earlier times that it has it. */
static bool givesTo(const clusterMap *m, const clusterNode *claimer, int slot, uint64_t epoch) {
    if (!clusterMapIsMine(m, slot)) return false;
    if (m->is_granted && m->is_granted(m->is_granted_arg, claimer, slot, epoch)) return true;
    return epoch == m->myself->epoch && clusterMapOpenSlot(m, SLOT_MIGRATING, slot) == claimer &&
           clusterMapOpenSlot(m, SLOT_TAKEN, slot) != claimer;
}

/* Gives the slots of the set to `claimer` where it has the better claim. */
static void applySlots(clusterMap *m, clusterNode *claimer, uint64_t epoch, const uint8_t *slots,
                       const busRules *rules, topologyActs *acts) {
    clusterNode *own = clusterNodePrimary(m->myself);
    const clusterNode *replaced = NULL; /* by a failover */
    bool lost = false;
    check(claimer->flags & NODE_PRIMARY);
    for (int word = 0; word < SLOT_WORDS; word++) {
        uint64_t claimed = messageSlotWord(slots, word), has = clusterNodeSlots(claimer)[word];
        clusterMapSetClaims(m, word, has, claimed);
        for (uint64_t news = claimed & ~has; news;) {
            int slot = messageTakeSlot(&news, word);
            clusterNode *owner = clusterMapOwner(m, slot);
            bool given = givesTo(m, claimer, slot, epoch);
            bool claimed_by_owner = owner == m->myself || clusterMapIsClaimed(m, slot);
            if (owner && claimed_by_owner && owner->epoch >= epoch && !given) continue;
            lost |= isOwn(m, owner);
            /* This node may have keys of a slot without an owner. */
            acts->lost_slots |= owner == m->myself || !owner;
            bool was_claimed = owner && clusterMapIsClaimed(m, slot);
            clusterMapSetOwner(m, slot, claimer);
            openSlotsOwnerChanged(m, slot, owner, was_claimed);
            if (owner && clusterNodesShareShard(owner, claimer)) replaced = owner;
        }
    }
    if (replaced) openSlotsReplace(m, replaced, claimer, false);
    if (lost && own->slot_count == 0) loseLastSlot(m, claimer, rules, acts);
}

/* Returns the owner of a claimed slot if its epoch is greater than that of the claim; NULL: there
 * is none. An owner that has not sent its claims since this node started does not count: it may
 * have given the slot away before, with an epoch that was smaller than that of the claim. */
static clusterNode *betterOwner(const clusterMap *m, const messageHeader *h,
                                const clusterNode *claimer) {
    for (int word = 0; word < SLOT_WORDS; word++) {
        uint64_t has = claimer ? clusterNodeSlots(claimer)[word] : 0;
        for (uint64_t others = messageSlotWord(h->slots, word) & ~has; others;) {
            int slot = messageTakeSlot(&others, word);
            clusterNode *owner = clusterMapOwner(m, slot);
            if (!owner || owner->epoch <= h->epoch || !clusterMapIsClaimed(m, slot)) continue;
            if (owner == m->myself || owner->has_told) return owner;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ messages */

/* A new epoch without the votes of the majority may be that of an election, too. So the primary
 * without slots takes it, whose epoch does not matter; else the one with the smaller id. */
static void resolveCollision(clusterMap *m, const clusterNode *sender, const messageHeader *h) {
    const clusterNode *myself = m->myself;
    bool votes = clusterNodeVotes(myself);
    check(sender != myself);
    if (!(sender->flags & NODE_PRIMARY) || !(myself->flags & NODE_PRIMARY)) return;
    if (h->epoch != myself->epoch) return;
    if (votes != claimsAny(h)) {
        if (votes) return;
    } else if (memcmp(sender->id, myself->id, NODE_ID_LEN) <= 0) {
        return;
    }
    if (clusterMapNextEpoch(m) == m->current_epoch) return; /* there is none */
    clusterMapSetEpochs(m, clusterMapNextEpoch(m), m->vote_epoch);
    clusterMapSetNodeEpoch(m, m->myself, m->current_epoch);
    logNotice("configEpoch collision with node %s. configEpoch set to %llu",
              clusterNodeLabel(sender).text, (unsigned long long)myself->epoch);
}

/* True if there are slots that it does not claim: it may not know that it has got them. */
static bool ownsMore(const clusterMap *m, const clusterNode *n) {
    uint64_t claims[SLOT_WORDS];
    clusterMapClaimsOf(m, n, claims);
    return memcmp(claims, clusterNodeSlots(n), sizeof(claims)) != 0;
}

/* True if the claim is exactly what is known already, as it is nearly always. */
static bool isAsKnown(const clusterMap *m, const clusterNode *claimer, const messageHeader *h) {
    uint64_t known[SLOT_WORDS];
    if (!claimer) return false;
    clusterMapClaimsOf(m, claimer, known);
    return memcmp(known, h->slots, SLOT_BYTES) == 0;
}

topologyActs topologyHeader(clusterMap *m, clusterNode *sender, const messageHeader *h,
                            const busRules *rules) {
    topologyActs acts = {0};
    check(sender != m->myself);
    if (!topologyAccepts(m, sender, h->current_epoch, h->epoch)) {
        acts.is_stale = true;
        return acts;
    }
    raiseEpoch(m, h->current_epoch);
    if (!changeRole(m, sender, h)) {
        acts.is_stale = true;
        return acts;
    }
    if (h->epoch > sender->epoch) clusterMapSetNodeEpoch(m, sender, h->epoch);
    sender->offset = h->offset < OFFSET_PLAUSIBLE ? (int64_t)h->offset : 0;
    sender->stream = h->stream;
    if (m->myself->flags & NODE_REPLICA) leaveSubReplica(m, &acts);
    check(sender->epoch >= h->epoch);
    check(m->current_epoch >= h->current_epoch);
    clusterNode *claimer = clusterNodePrimary(sender);
    /* Older than another message, which came over the other connection: it may claim what the
     * sender has given away since. */
    bool is_late = claimer == sender && sender->epoch > h->epoch;
    bool known = is_late || isAsKnown(m, claimer, h);
    if (claimer == sender && !is_late) {
        sender->has_told = true;
        openSlotsTold(m, sender, h->slots);
    }
    if (!known && claimer == sender) {
        logVerbose("Mismatch in topology information for sender node %s in shard %.40s",
                   clusterNodeLabel(sender).text, sender->shard_id);
        applySlots(m, sender, h->epoch, h->slots, rules, &acts);
    }
    if (!known) acts.update = betterOwner(m, h, claimer);
    if (!acts.update && claimer == sender && ownsMore(m, sender)) acts.update = sender;
    if (unlikely(m->last_given) && claimer == sender && !is_late)
        leaveEmptied(m, sender, h, rules, &acts);
    if (is_late) acts.update = sender;
    resolveCollision(m, sender, h);
    return acts;
}

/* Others know a greater epoch of this node than it does: its file is a copy of an earlier one. With
 * its epoch it would never be the owner of what it claims. It alone decides about its slots. */
static void takeOwnEpoch(clusterMap *m, const clusterNode *sender, uint64_t epoch) {
    if (m->myself->flags & NODE_REPLICA) return;
    check(epoch > m->myself->epoch);
    logWarning("Node %s knows this node with the epoch %llu, which is greater than its own %llu: "
               "its cluster configuration file was an old one.",
               clusterNodeLabel(sender).text, (unsigned long long)epoch,
               (unsigned long long)m->myself->epoch);
    raiseEpoch(m, epoch);
    clusterMapSetNodeEpoch(m, m->myself, epoch);
}

topologyActs topologyUpdate(clusterMap *m, clusterNode *sender, const message *update,
                            const busRules *rules) {
    topologyActs acts = {0};
    check(update->type == MESSAGE_UPDATE);
    clusterNode *n = clusterMapFind(m, sliceMake(update->id, NODE_ID_LEN));
    if (n == m->myself && openSlotsTake(m, sender, update->slots)) acts.has_taken = true;
    if (!n || n->epoch >= update->epoch) return acts;
    if (!topologyAccepts(m, sender, 0, update->epoch)) return acts;
    if (n == m->myself) {
        takeOwnEpoch(m, sender, update->epoch);
        return acts;
    }
    logNotice("Processing UPDATE message received from %s about node %s. old configEpoch %llu, new "
              "configEpoch %llu",
              clusterNodeLabel(sender).text, clusterNodeLabel(n).text, (unsigned long long)n->epoch,
              (unsigned long long)update->epoch);
    clusterMapMakePrimary(m, n);
    clusterMapSetNodeEpoch(m, n, update->epoch);
    raiseEpoch(m, update->epoch);
    applySlots(m, n, update->epoch, update->slots, rules, &acts);
    return acts;
}

void topologyPromote(clusterMap *m, uint64_t epoch) {
    clusterNode *old = m->myself->primary;
    check(old);
    check(epoch >= m->myself->epoch);
    clusterMapMakePrimary(m, m->myself);
    clusterMapMoveSlots(m, old, m->myself);
    check(old->slot_count == 0);
    clusterMapSetNodeEpoch(m, m->myself, epoch);
    openSlotsPromoted(m);
}

bool topologyTakeOver(clusterMap *m) {
    if (!m->myself->primary) return false;
    clusterMapSetEpochs(m, clusterMapNextEpoch(m), m->vote_epoch);
    topologyPromote(m, m->current_epoch);
    check(m->myself->epoch == m->current_epoch);
    check(m->myself->flags & NODE_PRIMARY);
    return true;
}
