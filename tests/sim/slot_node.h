/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a simulated node of a cluster has for slot migration: the state machines of both sides
 * (src/bus/slot_moves.h) over the simulated network, and a dataset of a few keys, whose changes
 * make the versions of cluster_data.h. Restarts keep the dataset, as an append only file does. */
#ifndef TESTS_SIM_SLOT_NODE_H
#define TESTS_SIM_SLOT_NODE_H

#include "bus/set_slot.h"
#include "bus/slot_moves.h"
#include "cluster_node.h"

enum {
    SIM_SLOTS = 12,       /* have keys */
    SIM_KEYS_OF_SLOT = 3, /* the keys of slot i are 3 i, 3 i + 1, 3 i + 2 */
    SIM_KEYS = SIM_SLOTS * SIM_KEYS_OF_SLOT,
};

/* The number of a slot with keys. */
static inline int simSlotNumber(int slot) { return slot * (SLOT_COUNT / SIM_SLOTS) + 7; }
static inline int simSlotOfKey(int key) { return key / SIM_KEYS_OF_SLOT; }

typedef struct simSlots {
    simNode *node;
    slotMoves moves;
    char id[NODE_ID_LEN]; /* of the node, also when it is stopped */
    int value[SIM_KEYS];  /* 0: there is no such key */
    bool hidden[SIM_SLOTS];
    bool paused[SIM_SLOTS]; /* writes, by jobs, until: */
    int64_t pause_end_ms;
    bool deletes; /* keys of lost slots */
    bool takes;   /* the job that ends is one whose slots this node takes */
    slotJob *walked;
    bool visited[SIM_KEYS];
    int64_t next_tick_ms;
    int version; /* of which `value` is */
    /* Jobs that had not ended when it was stopped. */
    int unfinished[8], unfinished_count;
    /* The slots that it has taken since they were looked at, and the host that gave them; -1. */
    int taken_from[SIM_SLOTS];
    bool taken_by_order[SIM_SLOTS]; /* SETSLOT, not a job */
    int promotions;
} simSlots;

extern simSlots sim_slots[SIM_NODES_MAX + 1];

/* Before nodes are made; sim_node_parts are those of this file, with this one. */
void slotNodesReset(void (*checked)(void));
/* After the nodes have been stopped. */
void slotNodesClear(void);
/* Whether the node executes a command of a client on the slot, if it is a write or not. */
bool slotNodeServes(const simSlots *s, int slot, bool is_write);
/* Executes it. 0: deletes the key. */
void slotNodeWrite(simSlots *s, int key, int value);
void slotNodeFlushSlot(simSlots *s, int slot);
/* FLUSHALL, if it is possible now. */
bool slotNodeFlushAll(simSlots *s);
/* MIGRATESLOTS of random slots to that node; nothing if it is refused. */
void slotNodeMigrate(simSlots *s, const simNode *to);
void slotNodeCancel(simSlots *s);
/* A random connection of a job; NULL: there is none. */
wire *slotNodesWire(void);
/* A random job at one of its sides, in *s: one that hands over its slots, or one that fails or
 * begins; NULL: there is none. */
slotJob *slotNodesJob(bool hands_over, simSlots **s);
/* Its connection; NULL: it has none. The host at its other end, -1: it is not known there. */
wire *slotNodeWireOf(const slotJob *job);
int slotNodePeerOf(const slotJob *job);
/* A random slot of those that the node gives or gets; -1: there is none. */
int slotNodeMoving(const simSlots *s);
bool slotNodeHasKeys(const simSlots *s, int slot);
/* The host of the node with that id; -1: none. */
int slotNodeHostOf(const char *id);
/* CLUSTER SETSLOT as its stream has it, whose version is returned, and as it is executed here.
 * `peer`: the host that it names. */
int slotNodeAppendOrder(simSlots *s, int slot, setSlotAction action, int peer);
void slotNodeSetSlot(simSlots *s, int slot, setSlotAction action, int peer);
/* CLUSTER DELSLOTS in its stream. */
void slotNodeAppendUnassign(simSlots *s, int slot);
/* Keys of a slot of another node that were to be deleted later. */
void slotNodeDeleteNow(simSlots *s, int slot);
/* Called when a node deletes keys of a slot of another owner. */
extern void (*slot_node_drops)(const simSlots *s, int slot);

typedef struct simSlotCounts {
    uint64_t jobs, refused, taken, failed, cancelled, walks, changes;
} simSlotCounts;
extern simSlotCounts slot_counts;

#endif
