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

/* The number of deliveries that a message in a channel would cause at this node. */
uint64_t pubsubReceivers(slice channel);
/* The number of subscribers of a shard channel. */
uint64_t pubsubShardSubscribers(slice channel);

/* Tracking for clients of a gateway (tracking_link.c). At the node that has the keys, for the link
 * of a gateway: the keys that the next request reads are tracked (`caches`), and the link is not
 * told what that request changes (`silent`); it is told of all changes of keys with a prefix; it is
 * not told any more. */
void pubsubLinkNext(session *link, bool caches, bool silent);
void pubsubLinkPrefix(session *link, slice prefix);
void pubsubLinkNoPrefixes(session *link);
/* The link gets messages of a shard channel, without confirmations, or (false) no more. */
void pubsubLinkShard(session *link, slice channel, bool on);
/* At the gateway: what the session wants to be told of. */
enum {
    PUBSUB_CACHES = 1,     /* of the keys that its next command reads */
    PUBSUB_SILENT = 2,     /* not of what it changes itself */
    PUBSUB_BROADCASTS = 4, /* of keys with its prefixes */
};
uint32_t pubsubTrackingOf(const session *s);
/* True if there are sessions with PUBSUB_BROADCASTS; links do not count. */
bool pubsubBroadcasts(void);
/* The command is executed by another node: what CLIENT CACHING has said of it ends. */
void pubsubPassedOn(const ctx *c);
/* The session has read a key of another node; it is told of the next change. */
void pubsubHasRead(session *s, slice key);
/* A key of another node was changed, by `by` or (NULL) an unknown client. */
void pubsubHasChanged(slice key, session *by);
/* Differs from an earlier number if somebody may have been told to forget something since. */
uint64_t pubsubChanges(void);
/* The session must not use what it has read of a key: nobody would tell of changes. */
void pubsubMustForget(session *s, slice key);
/* All sessions but links must forget everything. */
void pubsubForgetAll(void);

/* The slots served by this node have changed: unsubscribes everyone but sessions of a gateway from
 * the shard channels of others, with a confirmation that was not asked for, and invalidates tracked
 * keys. */
void pubsubSlotsChanged(bool (*is_served)(int slot));

#endif
