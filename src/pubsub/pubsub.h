/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pub/sub, keyspace events, client tracking, MONITOR. Main thread only. */
#ifndef PUBSUB_PUBSUB_H
#define PUBSUB_PUBSUB_H

#include "engine/hooks.h"

extern const feature pubsubFeature;
/* Refuses commands with keys on monitoring sessions. */
extern const gate monitorGate;
/* Refuses most commands to RESP2 sessions with subscriptions. */
extern const gate pubsubContextGate;

/* A message of another node of the cluster, for the subscribers of this one. */
void pubsubDeliver(bool shard, slice channel, slice message);
/* What is published here is also passed to this function, which sends it to the other nodes. Set by
 * the cluster's init; without it PUBLISH reaches the replicas through the stream. */
typedef void pubsubOutwardProc(bool shard, slice channel, slice message);
void pubsubSetOutward(pubsubOutwardProc *proc);

/* Publishes what no client has sent (modules): to the subscribers here, and to the other nodes. The
 * number of subscribers here. */
uint64_t pubsubPublish(bool shard, slice channel, slice message);

/* Asked by PUBLISH first: true if it has replied instead. Set by Sentinel, to which clients may
 * send few messages. */
typedef bool pubsubInwardProc(ctx *c);
void pubsubSetInward(pubsubInwardProc *proc);

/* The classes that notify-keyspace-events names: bits of notifyFlag (engine/key_event.h). */
uint32_t pubsubKeyEventClasses(void);

/* The number of subscribers of a shard channel. */
uint64_t pubsubShardSubscribers(slice channel);

/* The slots served by this node have changed: unsubscribes everyone from the shard channels of
 * others, with a confirmation that was not asked for, and invalidates tracked keys. */
void pubsubSlotsChanged(bool (*is_served)(int slot));

#endif
