/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CLUSTER SETSLOT as a change of a map: which orders are refused, and what the others do. Pure: the
 * map and an order in, a changed map and acts out.
 *
 *   order           refused if                           changes
 *   MIGRATING n     the slot is of another shard         marked as given to n
 *   IMPORTING n     the slot is of this shard            marked as taken from n
 *   STABLE                                               no mark
 *   NODE n          it is given away with keys           n owns the slot; MIGRATING ends if there
 *                                                        are no keys, IMPORTING if n is this
 *                                                        shard's primary, which takes a new epoch
 *
 * On a replica the same order, received from its primary, is never refused and takes no epoch. If
 * it was the last slot, the replica follows the new owner when it hears on the bus that the primary
 * does not claim it any more, or that the new owner does (topology.h). */
#ifndef BUS_SET_SLOT_H
#define BUS_SET_SLOT_H

#include "bus/map.h"
#include "bus/topology.h"

typedef enum setSlotAction {
    SET_SLOT_MIGRATING,
    SET_SLOT_IMPORTING,
    SET_SLOT_STABLE,
    SET_SLOT_NODE,
} setSlotAction;

typedef struct setSlotOrder {
    setSlotAction action;
    int slot;
    slice id; /* of the node; borrowed */
} setSlotOrder;

/* Why this primary refuses the order, as an error of RESP without "ERR "; false: it does not.
 * `has_keys`: there are keys of the slot here. */
bool setSlotIsRefused(const clusterMap *m, const setSlotOrder *order, bool has_keys, reason *why);
/* Executes an order that a primary does not refuse. An order about an unknown node does nothing.
 * *tells: all nodes are to be told at once. */
topologyActs setSlotApply(clusterMap *m, const setSlotOrder *order, bool has_keys,
                          const busRules *rules, bool *tells);
/* What brings a replica back to the state that the slot has here, after an order that it has
 * executed and this node has not: writes at most SET_SLOT_UNDO_MAX orders and returns their number.
 * A slot without an owner is to be unassigned, too, if the order was NODE: *unassign. */
enum { SET_SLOT_UNDO_MAX = 4 };
int setSlotUndo(const clusterMap *m, const setSlotOrder *order, setSlotOrder *out, bool *unassign);
/* The word of an action as in the command. */
slice setSlotWord(setSlotAction action);

#endif
