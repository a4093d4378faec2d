/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of clients and modules to other nodes (PUBLISH, SPUBLISH,
 * ValkeyModule_SendClusterMessage) that wait for replicas: with replication-quorum they may tell of
 * a change that is not confirmed. They leave in the order in which they were given. Main thread
 * only. */
#ifndef CLUSTER_HELD_MESSAGES_H
#define CLUSTER_HELD_MESSAGES_H

#include "base/slice.h"
#include "bus/map.h"

/* Sends the message now, or with replication-quorum when all changes so far are confirmed. */
void heldMessagePublish(bool shard, slice channel, slice text);
/* The same; `to` NULL: all nodes. False: it was sent now, and that has failed. */
bool heldMessageSend(const clusterNode *to, uint64_t module_id, uint8_t type, slice payload);
/* Once a turn: sends those that are confirmed. Those that have waited for as long as
 * replication-quorum-timeout, or whose server is a primary no more, are dropped, as the clients
 * are disconnected whose output waits. */
void heldMessagesRelease(void);

#endif
