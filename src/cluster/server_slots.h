/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of slots that this node does not own. Only a primary deletes or takes anything: what a
 * replica has is up to its primary. Slots that are being moved to this node are left alone. But for
 * serverSlotsDeleteNow() not while a command is executed. Main thread only. */
#ifndef CLUSTER_SERVER_SLOTS_H
#define CLUSTER_SERVER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* The number of keys of a slot in all databases. */
uint64_t serverSlotsCountKeys(int slot);
/* After other nodes have got slots of this one: deletes their keys, for some 2 ms, and tells of
 * those that were deleted before. True if there is more of either. */
bool serverSlotsDeleteLost(void);
/* Deletes the keys of a slot of another node, and tells of all. May be called by a command. */
void serverSlotsDeleteNow(int slot);
/* After a load at the start, and when a replica has become the primary: takes unassigned slots of
 * which there are keys, and deletes the keys of slots of other nodes, of which
 * serverSlotsDeleteLost() tells. */
void serverSlotsVerify(void);

#endif
