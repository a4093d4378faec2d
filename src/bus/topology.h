/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Epochs, roles and slots: how a map changes with what other nodes claim. Pure: a map and a message
 * in, a changed map and acts out. Messages are those of known nodes; who is known is not decided
 * here.
 *
 *   claim of a sender                          reaction
 *   a greater current epoch                    taken over
 *   to be a primary, known as replica          becomes a primary
 *   to be a replica, known as primary
 *     of a node of its shard                   ignored if older than what is known, unless it says
 *                                              so again and again; else its slots go to that node
 *     of another node                          its slots are unassigned
 *   a slot without owner, one that its owner does not claim, one whose owner has a lower epoch, or
 *   one that this node has granted to it       gets it
 *   a slot whose owner has a greater epoch     is told by an UPDATE
 *   a lower epoch than it is known to have     is told its epoch by an UPDATE, and takes it
 *   not a slot that it owns here               the slot is marked as unclaimed; if this node
 *                                              imports it from there, it takes it
 *   the epoch of this primary                  the one without slots, or with the smaller id, takes
 *                                              a new epoch
 *
 * A node that loses its last slot becomes a replica of the one that has it, as the rules allow. */
#ifndef BUS_TOPOLOGY_H
#define BUS_TOPOLOGY_H

#include "bus/map.h"
#include "bus/message.h"
#include "bus/rules.h"

/* What is to be done after a call, besides what the map notes as changed. */
typedef struct topologyActs {
    /* Send the sender an UPDATE about this node. */
    clusterNode *update;
    /* This node is now a replica of that one: follow it. It is the map's primary of this node. */
    clusterNode *follow;
    /* This replica followed a node that follows it; it is an empty primary now. */
    bool is_released;
    /* Other nodes have got slots of this node. */
    bool lost_slots;
    /* This node has got slots that it imported: tell all. */
    bool has_taken;
    /* This primary has lost its last slot and is empty from now on. */
    bool is_emptied;
    /* The message is older than what is known: nothing more of it must be used. */
    bool is_stale;
} topologyActs;

/* True if the epochs of a message may be right. No cluster counts to 2^63, so a greater one is an
 * error or an attack, and would leave no epoch for further elections; it is refused and logged. All
 * functions of messages here and in election.h ask this. */
bool topologyAccepts(const clusterMap *m, const clusterNode *sender, uint64_t current_epoch,
                     uint64_t epoch);
/* A PING, PONG or MEET. */
topologyActs topologyHeader(clusterMap *m, clusterNode *sender, const messageHeader *h,
                            const busRules *rules);
/* An UPDATE; those about unknown nodes, or without news, are ignored. */
topologyActs topologyUpdate(clusterMap *m, clusterNode *sender, const message *update,
                            const busRules *rules);
/* This node becomes the primary of its shard with an epoch greater than all others, whether or not
 * the majority agrees, and owns the slots of its primary: CLUSTER FAILOVER TAKEOVER. False: it is
 * no replica, or its primary is not known. */
bool topologyTakeOver(clusterMap *m);
/* This node, a replica, becomes the primary of its shard with that epoch, and owns the slots of its
 * primary. */
void topologyPromote(clusterMap *m, uint64_t epoch);
/* True if this node may become a replica of another shard when it has lost its last slot: not while
 * it imports slots, as it would lose their keys. */
bool topologyMayLeave(const clusterMap *m, const busRules *rules);
/* Makes this node, which has no slots, a replica. */
void topologyFollow(clusterMap *m, clusterNode *primary);

#endif
