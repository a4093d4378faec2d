/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Open slots: slots that are being moved key by key, which CLUSTER SETSLOT marks in the map of a
 * primary and of its replicas (MIGRATING to a node, IMPORTING from one), and what becomes of the
 * marks when roles and owners change meanwhile. Pure: a map in, a changed map out.
 *
 *   event                                      marks
 *   a node is replaced by one of its shard     those that name it name the other one
 *   the slot goes to another shard             MIGRATING ends
 *   the slot goes to the primary of this shard IMPORTING ends
 *   the source loses the slot to another shard IMPORTING ends
 *   the source says that this node owns it     it does; IMPORTING ends
 *   this shard has taken the slot by order,    IMPORTING begins again: the keys are here
 *   and the source's claim is better
 *   this node leaves its shard                 all end
 *
 * A replica waits until its primary tells it of the end of a mark in the stream of replication. One
 * that is promoted goes on with the marks that it has, but for those that do not fit the owners. */
#ifndef BUS_OPEN_SLOTS_H
#define BUS_OPEN_SLOTS_H

#include "bus/map.h"
#include "bus/set_slot.h"

/* `from`, known as a primary so far, is replaced by `to`, of the same shard. `told`: it says so
 * itself, which is logged once more for all slots. */
void openSlotsReplace(clusterMap *m, const clusterNode *from, clusterNode *to, bool told);
/* The owner of the slot has changed from `was` (NULL: none) without a command of a user. `claimed`:
 * that claimed it still. */
void openSlotsOwnerChanged(clusterMap *m, int slot, const clusterNode *was, bool claimed);
/* This node has become a primary, with the slots of its former one. */
void openSlotsPromoted(clusterMap *m);
/* `source` says that this node owns these slots, a set as in messages. Takes those that it imports
 * from `source`; false: there are none. */
bool openSlotsTake(clusterMap *m, const clusterNode *source, const uint8_t *slots);
/* What `source` claims now, a set of slots as in messages: perhaps still what was taken from it. */
void openSlotsTold(clusterMap *m, const clusterNode *source, const uint8_t *slots);
/* To be called again and again. Removes marks of a replica that have not fitted the owners for that
 * long. And when the sources of taken slots have not claimed them for that long in their messages,
 * which come over two connections, they do not any more. */
void openSlotsTick(clusterMap *m, int64_t wait_ms, int64_t now_ms);
/* The next order that tells the replicas of this primary what has become of a mark; false: there is
 * none. */
bool openSlotsNextOrder(clusterMap *m, setSlotOrder *out);
/* Removes all marks. */
void openSlotsClear(clusterMap *m);

/* ---- as text, with which a primary tells them a replica: "7<id,8>id," ---- */

/* Appends them; nothing if there are none. */
void openSlotsPrint(const clusterMap *m, str *out);
/* Replaces all marks by those of the text. Those of nodes that are not known are left out. False:
 * the text is not valid, and there are no marks. */
bool openSlotsParse(clusterMap *m, slice text);

#endif
