/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The dataset of this server follows the map: role, primary, and the keys of slots that it has
 * lost. Decisions of the bus during a turn are carried out at its end, when no command is being
 * executed. Main thread only. */
#ifndef CLUSTER_SERVER_ROLE_H
#define CLUSTER_SERVER_ROLE_H

#include <stdbool.h>

/* At the start, before the dataset is loaded: takes the role that nodes.conf names. */
void serverRoleInit(void);
/* True for slots of which this node has the data: a replica, those of its primary. */
bool serverRoleServes(int slot);
/* The role of this node or the address of its primary has changed. */
void serverRoleChanged(void);
/* The same by order of a user: CLUSTER REPLICATE. */
void serverRoleOrdered(void);
/* True until serverRoleApply() has dealt with that. */
bool serverRoleIsPending(void);
/* Slots have got other owners: the keys that this node has of them are to be deleted. */
void serverRoleSlotsLost(void);
/* serverSlotsVerify(), and what it begins. */
void serverRoleVerify(void);
/* True while keys of lost slots remain to be deleted. */
bool serverRoleDeletes(void);
/* True if the link to the primary that the map names is up. */
bool serverRoleIsLinked(void);
/* Does what is pending; no effect while a command is executed. */
void serverRoleApply(void);
/* This node gives up its dataset: deletes all keys, without telling replicas. */
void serverRoleEmpty(void);

#endif
