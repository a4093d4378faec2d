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
 *   the source owns the slot and does not      a primary that imports it owns it; IMPORTING ends
 *   claim it any more
 *   this node leaves its shard                 all end
 *
 * A replica that is promoted goes on with the marks that it has as a replica. */
#ifndef CLUSTER_OPEN_SLOTS_H
#define CLUSTER_OPEN_SLOTS_H

#include "cluster/map.h"

/* `from`, known as a primary so far, is replaced by `to`, of the same shard. `told`: it says so
 * itself, which is logged once more for all slots. */
void openSlotsReplace(clusterMap *m, const clusterNode *from, clusterNode *to, bool told);
/* The owner of the slot has changed from `was` (NULL: none) without a command of a user. */
void openSlotsOwnerChanged(clusterMap *m, int slot, const clusterNode *was);
/* The claims of `source` are up to date in the map. Takes the slots that this primary imports from
 * it and that it has given up; false: there are none. */
bool openSlotsTake(clusterMap *m, const clusterNode *source);
/* Removes all marks. */
void openSlotsClear(clusterMap *m);

/* ---- as text, with which a primary tells them a replica: "7<id,8>id," ---- */

/* Appends them; nothing if there are none. */
void openSlotsPrint(const clusterMap *m, str *out);
/* Replaces all marks by those of the text. Those of nodes that are not known are left out. False:
 * the text is not valid, and there are no marks. */
bool openSlotsParse(clusterMap *m, slice text);

#endif
