/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels, patterns and shard channels with at least one subscriber, and the subscriptions of each
 * session. Names are binary. Main thread only. */
#ifndef PUBSUB_CHANNELS_H
#define PUBSUB_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/hashtable.h"
#include "ds/hashtable_walk.h"
#include "engine/session.h"

typedef enum channelKind {
    CHANNEL_PLAIN,
    CHANNEL_PATTERN,
    CHANNEL_SHARD,
    CHANNEL_KINDS
} channelKind;

/* The subscriptions of one session; it outlives the session while many of them are being
 * removed. */
typedef struct subscriber {
    session *who; /* NULL: the session has ended */
    hashtable of[CHANNEL_KINDS];
    listNode ended;
} subscriber;

/* A channel exists while it has subscribers. Its subscribers are in an array: new ones are
 * appended; removal moves the last one, but leaves a NULL while a walk over the array is in
 * progress. */
typedef struct pubsubChannel {
    union {
        subscriber *one; /* cap 0 */
        subscriber **many;
    } of;
    uint32_t count; /* entries of the array, NULLs included */
    uint32_t cap;
    uint32_t holes;    /* NULLs in it */
    uint32_t walks;    /* walks in progress */
    uint32_t index_at; /* of a pattern: its position in a group of the index */
    uint32_t len;
    channelKind kind;
    char name[];
} pubsubChannel;

static inline slice channelName(const pubsubChannel *t) { return sliceMake(t->name, t->len); }
static inline subscriber *channelSubscriber(const pubsubChannel *t, uint32_t at) {
    return t->cap ? t->of.many[at] : t->of.one;
}

/* The channel with this name; NULL if it has no subscribers. */
pubsubChannel *channelFind(channelKind kind, slice name);
/* Number of subscribers that are connected. */
uint64_t channelCount(const pubsubChannel *t);
/* Number of channels of a kind. */
uint64_t channelsOfKind(channelKind kind);
/* Visits all channels of a kind; `visit` must not change subscriptions. */
typedef void channelVisitProc(void *arg, pubsubChannel *t);
void channelsEach(channelKind kind, channelVisitProc *visit, void *arg);
/* A part of such a walk, which may last over several turns: those of `buckets` buckets, of some 7
 * each. Channels that come or go meanwhile are visited or not. True: there is more. */
bool channelsWalk(channelKind kind, hashtableCut *cut, uint64_t buckets, channelVisitProc *visit,
                  void *arg);
void channelsWalkBegin(channelKind kind, hashtableCut *cut);

/* While a walk is in progress, entries of the array keep their positions, and those appended follow
 * them. */
void channelWalkBegin(pubsubChannel *t);
/* May free the channel if its last subscriber has left meanwhile. */
void channelWalkEnd(pubsubChannel *t);

/* Adds a subscription; false if the session has it. */
bool subscriptionAdd(session *s, channelKind kind, slice name);
/* Removes a subscription; false if the session does not have it. `name` may be that of the
 * channel. */
bool subscriptionRemove(session *s, channelKind kind, slice name);
/* Some channel of a kind that the session is subscribed to; NULL if there is none. */
pubsubChannel *subscriptionAny(const session *s, channelKind kind);
/* Visits the subscriptions of a session until `visit` returns false, which is returned then.
 * `visit` must not change subscriptions. */
typedef bool subscriptionVisitProc(session *s, channelKind kind, slice name);
bool subscriptionsEach(session *s, subscriptionVisitProc *visit);
/* Number of subscriptions of a session. */
uint64_t subscriptionCount(const session *s, channelKind kind);
/* True if the session is subscribed to the channel. */
bool subscriptionHas(const session *s, const pubsubChannel *t);
/* Removes all subscriptions of a session that ends or is reset. If there are thousands, they do not
 * count any more, but are removed later, in steps: subscriptionsWork(). */
void subscriptionsDrop(session *s);
/* Continues the removal for sessions that have ended; false if nothing remains to be done. */
bool subscriptionsWork(void);

#endif
