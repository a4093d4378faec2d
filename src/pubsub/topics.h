/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Topics: channels, patterns and shard channels with at least one subscriber, and the subscriptions of each session.
 * Names are binary. Main thread only. */
#ifndef PUBSUB_TOPICS_H
#define PUBSUB_TOPICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/hashtable.h"
#include "engine/session.h"

typedef enum topicKind { TOPIC_CHANNEL, TOPIC_PATTERN, TOPIC_SHARD, TOPIC_KINDS } topicKind;

/* The subscriptions of one session; it outlives the session while many of them are being removed. */
typedef struct subscriber {
    session *who; /* NULL: the session has ended */
    hashtable of[TOPIC_KINDS];
    listNode ended;
} subscriber;

/* A topic exists while it has subscribers. Its subscribers are in an array: new ones are appended; removal moves the
 * last one, but leaves a NULL while a walk over the array is in progress. */
typedef struct topic {
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
    topicKind kind;
    char name[];
} topic;

static inline slice topicName(const topic *t) { return sliceMake(t->name, t->len); }
static inline subscriber *topicSubscriber(const topic *t, uint32_t at) {
    return t->cap ? t->of.many[at] : t->of.one;
}

/* The topic with this name; NULL if it has no subscribers. */
topic *topicFind(topicKind kind, slice name);
/* Number of subscribers that are connected. */
uint64_t topicCount(const topic *t);
/* Number of topics of a kind. */
uint64_t topicsOfKind(topicKind kind);
/* Visits all topics of a kind; `visit` must not change subscriptions. */
typedef void topicVisitProc(void *arg, topic *t);
void topicsEach(topicKind kind, topicVisitProc *visit, void *arg);

/* While a walk is in progress, entries of the array keep their positions, and those appended follow them. */
void topicWalkBegin(topic *t);
/* May free the topic if its last subscriber has left meanwhile. */
void topicWalkEnd(topic *t);

/* Adds a subscription; false if the session has it. */
bool subscriptionAdd(session *s, topicKind kind, slice name);
/* Removes a subscription; false if the session does not have it. `name` may be that of the topic. */
bool subscriptionRemove(session *s, topicKind kind, slice name);
/* Some topic of a kind that the session is subscribed to; NULL if there is none. */
topic *subscriptionAny(const session *s, topicKind kind);
/* Visits the subscriptions of a session until `visit` returns false, which is returned then. `visit` must not change
 * subscriptions. */
typedef bool subscriptionVisitProc(session *s, topicKind kind, slice name);
bool subscriptionsEach(session *s, subscriptionVisitProc *visit);
/* Number of subscriptions of a session. */
uint64_t subscriptionCount(const session *s, topicKind kind);
/* True if the session is subscribed to the topic. */
bool subscriptionHas(const session *s, const topic *t);
/* Removes all subscriptions of a session that ends or is reset. If there are thousands, they do not count any more,
 * but are removed later, in steps: subscriptionsWork(). */
void subscriptionsDrop(session *s);
/* Continues the removal for sessions that have ended; false if nothing remains to be done. */
bool subscriptionsWork(void);

#endif
