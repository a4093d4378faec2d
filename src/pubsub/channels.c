/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels and subscriptions (channels.h).
 *
 * Invariants: a channel is in the table of its kind if and only if its array has an entry other
 * than NULL, or a walk is in progress. A subscription is a node in the table of its subscriber; its
 * `at` is the position of the subscriber in the channel's array. SESSION_PUBSUB is set, and the
 * gate of the RESP2 context armed, if and only if a session has a subscription. Patterns are in the
 * index of pattern_index.h as long as they exist.
 *
 * Cost: subscribing and unsubscribing take O(1). Memory of a subscription: 16 bytes for the node,
 * about 10 in the table of the subscriber and 8 in the array of the channel; of a channel: 40 bytes
 * and its name, and 10 in its table. */
#include "pubsub/channels.h"

#include "base/base.h"
#include "base/hash.h"
#include "engine/session_slot.h"
#include "pubsub/events.h"
#include "pubsub/pattern_index.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"

enum { ENDED_AT_ONCE_MAX = 1000, ENDED_STEP = 256, MANY_MIN = 4 };

typedef struct subscription {
    pubsubChannel *of;
    uint32_t at;
} subscription;

static struct {
    hashtable of[CHANNEL_KINDS];
    list ended; /* subscribers whose session has ended */
} channels;

/* ------------------------------------------------------------------ tables */

static uint64_t hashOfChannel(const void *entry) {
    const pubsubChannel *t = entry;
    return hashBytes(t->name, t->len);
}

static bool channelMatches(const void *entry, const void *name, size_t len) {
    const pubsubChannel *t = entry;
    return t->len == len && memcmp(t->name, name, len) == 0;
}

static const hashtableType channels_type = {.hash_of = hashOfChannel, .match = channelMatches};

static uint64_t hashOfSubscription(const void *entry) {
    return hashOfChannel(((const subscription *)entry)->of);
}

static bool subscriptionMatches(const void *entry, const void *name, size_t len) {
    return channelMatches(((const subscription *)entry)->of, name, len);
}

static const hashtableType subscriptions_type = {.hash_of = hashOfSubscription,
                                                 .match = subscriptionMatches};

static subscription *findSubscription(const subscriber *by, channelKind kind, slice name,
                                      uint64_t hash) {
    return hashtableFind(&by->of[kind], &subscriptions_type, hash, name.ptr, name.len);
}

pubsubChannel *channelFind(channelKind kind, slice name) {
    hotCheck(kind < CHANNEL_KINDS);
    if (!hashtableCount(&channels.of[kind])) return NULL;
    return hashtableFind(&channels.of[kind], &channels_type, hashBytes(name.ptr, name.len),
                         name.ptr, name.len);
}

uint64_t channelCount(const pubsubChannel *t) {
    hotCheck(t->holes <= t->count);
    if (likely(!channels.ended.count)) return t->count - t->holes;
    uint64_t count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const subscriber *by = channelSubscriber(t, i);
        count += by && by->who;
    }
    return count;
}

uint64_t channelsOfKind(channelKind kind) { return hashtableCount(&channels.of[kind]); }

void channelsEach(channelKind kind, channelVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    void *found[64];
    uint64_t place = 0;
    size_t count;
    while ((count = hashtableNextEntries(&channels.of[kind], &channels_type, &place, found,
                                         COUNT_OF(found)))) {
        for (size_t i = 0; i < count; i++) visit(arg, found[i]);
    }
}

void channelsWalkBegin(channelKind kind, hashtableCut *cut) {
    hotCheck(threadIsMain());
    hashtableCutBegin(cut, &channels.of[kind]);
}

typedef struct visitor {
    channelVisitProc *visit;
    void *arg;
} visitor;

static bool visitEntry(void *context, void *entry, unsigned flags) {
    (void)flags; /* none */
    const visitor *v = context;
    v->visit(v->arg, entry);
    return true;
}

bool channelsWalk(channelKind kind, hashtableCut *cut, uint64_t buckets, channelVisitProc *visit,
                  void *arg) {
    hotCheck(buckets > 0);
    visitor v = {visit, arg};
    return channels.of[kind].body &&
           hashtableWalk(&channels.of[kind], &channels_type, cut, buckets, visitEntry, &v);
}

/* ------------------------------------------------------------------ arrays of subscribers */

static pubsubChannel *channelNew(channelKind kind, slice name, uint64_t hash) {
    check(name.len <= UINT32_MAX);
    pubsubChannel *t = memAlloc(sizeof(*t) + name.len);
    *t = (pubsubChannel){.kind = kind, .len = (uint32_t)name.len};
    memcpy(t->name, name.ptr, name.len);
    hashtableInsert(&channels.of[kind], &channels_type, hash, t, 0);
    if (kind == CHANNEL_PATTERN) patternIndexAdd(t);
    eventsChannelAdded(t);
    return t;
}

static void channelFree(pubsubChannel *t) {
    if (t->kind == CHANNEL_PATTERN) patternIndexRemove(t);
    eventsChannelRemoved(t);
    check(hashtableDeleteEntry(&channels.of[t->kind], &channels_type, hashOfChannel(t), t));
    if (t->cap) memFree(t->of.many);
    memFree(t);
}

static void setCapacity(pubsubChannel *t, uint32_t cap) {
    hotCheck(cap >= t->count);
    if (!t->cap) {
        subscriber *one = t->of.one;
        t->of.many = memNewArray(subscriber *, cap);
        t->of.many[0] = one;
    } else {
        t->of.many = memRealloc(t->of.many, cap * sizeof(*t->of.many));
    }
    t->cap = cap;
}

/* Returns the position of the new entry. */
static uint32_t append(pubsubChannel *t, subscriber *by) {
    if (!t->count && !t->cap) {
        t->of.one = by;
    } else {
        if (t->count >= t->cap) {
            check(t->cap < UINT32_MAX / 2);
            setCapacity(t, t->cap ? 2 * t->cap : MANY_MIN);
        }
        t->of.many[t->count] = by;
    }
    return t->count++;
}

/* Stores the subscriber of position `from` at position `to`. */
static void moveEntry(pubsubChannel *t, uint32_t from, uint32_t to) {
    hotCheck(to < t->count);
    hotCheck(!t->walks);
    subscriber *moved = t->of.many[from];
    t->of.many[to] = moved;
    findSubscription(moved, t->kind, channelName(t), hashOfChannel(t))->at = to;
}

static void shrink(pubsubChannel *t) {
    if (t->cap > MANY_MIN && t->count < t->cap / 4) setCapacity(t, t->cap / 2);
}

static void removeAt(pubsubChannel *t, uint32_t at) {
    hotCheck(at < t->count);
    if (t->walks) {
        t->of.many[at] = NULL;
        t->holes++;
        return;
    }
    uint32_t last = --t->count;
    if (!t->count) {
        channelFree(t);
        return;
    }
    if (at != last) moveEntry(t, last, at);
    shrink(t);
}

void channelWalkBegin(pubsubChannel *t) {
    if (!t->cap) setCapacity(t, MANY_MIN);
    t->walks++;
    hotCheck(t->walks > 0);
}

void channelWalkEnd(pubsubChannel *t) {
    hotCheck(threadIsMain());
    check(t->walks > 0);
    if (--t->walks || !t->holes) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (!t->of.many[i]) continue;
        if (i != kept) moveEntry(t, i, kept);
        kept++;
    }
    t->count = kept;
    t->holes = 0;
    if (kept) {
        shrink(t);
    } else {
        channelFree(t);
    }
}

/* ------------------------------------------------------------------ subscribers */

static void freeSubscriber(session *s, void *state) {
    (void)s;
    subscriber *by = state;
    for (int kind = 0; kind < CHANNEL_KINDS; kind++) check(!hashtableCount(&by->of[kind]));
    memFree(by);
}

static size_t subscriberMemory(const void *state) {
    const subscriber *by = state;
    size_t bytes = sizeof(*by);
    for (int kind = 0; kind < CHANNEL_KINDS; kind++) {
        bytes += hashtableBytes(&by->of[kind]) +
                 (size_t)hashtableCount(&by->of[kind]) * sizeof(subscription);
    }
    return bytes;
}

static const sessionSlot subscriber_slot = {"subscriptions", freeSubscriber, subscriberMemory};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&subscriber_slot);
    return index;
}

static subscriber *subscriberOf(const session *s) { return sessionSlotGet(s, slotIndex()); }

static void setPubsub(session *s, bool on) {
    if (on) {
        s->flags |= SESSION_PUBSUB;
    } else {
        s->flags &= ~SESSION_PUBSUB;
    }
    gateArmSession(s, &pubsubContextGate, on);
}

bool subscriptionAdd(session *s, channelKind kind, slice name) {
    hotCheck(kind < CHANNEL_KINDS);
    uint64_t hash = hashBytes(name.ptr, name.len);
    subscriber *by = subscriberOf(s);
    if (!by) {
        by = memNew(subscriber);
        by->who = s;
        sessionSlotSet(s, slotIndex(), by);
    } else if (findSubscription(by, kind, name, hash)) {
        return false;
    }
    pubsubChannel *t = hashtableFind(&channels.of[kind], &channels_type, hash, name.ptr, name.len);
    if (!t) t = channelNew(kind, name, hash);
    subscription *added = memNew(subscription);
    added->of = t;
    added->at = append(t, by);
    hashtableInsert(&by->of[kind], &subscriptions_type, hash, added, 0);
    if (!(s->flags & SESSION_PUBSUB)) setPubsub(s, true);
    return true;
}

static bool hasAny(const subscriber *by) {
    for (int kind = 0; kind < CHANNEL_KINDS; kind++) {
        if (hashtableCount(&by->of[kind])) return true;
    }
    return false;
}

/* Takes the subscription, which is in no table any more. */
static void endSubscription(subscription *ended) {
    removeAt(ended->of, ended->at);
    memFree(ended);
}

bool subscriptionRemove(session *s, channelKind kind, slice name) {
    hotCheck(kind < CHANNEL_KINDS);
    subscriber *by = subscriberOf(s);
    if (!by) return false;
    subscription *removed = hashtableDelete(&by->of[kind], &subscriptions_type,
                                            hashBytes(name.ptr, name.len), name.ptr, name.len);
    if (!removed) return false;
    endSubscription(removed);
    if (!hasAny(by)) setPubsub(s, false);
    return true;
}

pubsubChannel *subscriptionAny(const session *s, channelKind kind) {
    hotCheck(kind < CHANNEL_KINDS);
    const subscriber *by = subscriberOf(s);
    const subscription *any = by ? hashtableRandom(&by->of[kind], &subscriptions_type) : NULL;
    return any ? any->of : NULL;
}

bool subscriptionsEach(session *s, subscriptionVisitProc *visit) {
    const subscriber *by = subscriberOf(s);
    bool all = true;
    for (int kind = 0; by && all && kind < CHANNEL_KINDS; kind++) {
        hashtableIterator it;
        const subscription *each;
        hashtableIteratorInit(&it, &by->of[kind], &subscriptions_type);
        while (all && (each = hashtableIteratorNext(&it, NULL)))
            all = visit(s, (channelKind)kind, channelName(each->of));
        hashtableIteratorClear(&it);
    }
    return all;
}

uint64_t subscriptionCount(const session *s, channelKind kind) {
    hotCheck(kind < CHANNEL_KINDS);
    const subscriber *by = subscriberOf(s);
    return by ? hashtableCount(&by->of[kind]) : 0;
}

bool subscriptionHas(const session *s, const pubsubChannel *t) {
    const subscriber *by = subscriberOf(s);
    return by && findSubscription(by, t->kind, channelName(t), hashOfChannel(t));
}

/* Removes up to `most` subscriptions; false if none remain. */
static bool dropSome(subscriber *by, uint64_t most) {
    hotCheck(most > 0);
    for (int kind = 0; kind < CHANNEL_KINDS; kind++) {
        subscription *next;
        while (most && (next = hashtablePop(&by->of[kind], &subscriptions_type))) {
            endSubscription(next);
            most--;
        }
    }
    return hasAny(by);
}

void subscriptionsDrop(session *s) {
    hotCheck(threadIsMain());
    subscriber *by = subscriberOf(s);
    if (!by) return;
    sessionSlotSet(s, slotIndex(), NULL);
    if (s->flags & SESSION_PUBSUB) setPubsub(s, false);
    by->who = NULL;
    if (!dropSome(by, ENDED_AT_ONCE_MAX)) {
        memFree(by);
        return;
    }
    if (!channels.ended.head.next) listInit(&channels.ended);
    listAppend(&channels.ended, &by->ended);
    pubsubWorkLater();
}

bool subscriptionsWork(void) {
    if (!channels.ended.count) return false;
    subscriber *by = LIST_OWNER(listFirst(&channels.ended), subscriber, ended);
    if (!dropSome(by, ENDED_STEP)) {
        listRemove(&channels.ended, &by->ended);
        memFree(by);
    }
    return channels.ended.count > 0;
}
