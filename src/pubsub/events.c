/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyspace events (events.h).
 *
 * Invariant: the key observer is armed if and only if a class of events and a kind of channel are enabled and there is
 * a channel or pattern that could receive such a message; so events that nobody listens to cost nothing. The same
 * holds for notes of new keys and misses by the store.
 *
 * Cost of an event that is published: two texts, and a lookup for each of them. */
#include "pubsub/events.h"

#include <stdlib.h>

#include "base/base.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "pubsub/pattern_index.h"
#include "pubsub/publish.h"
#include "pubsub/pubsub_priv.h"
#include "store/store.h"

static const slice KEYSPACE_START = SLICE("__keyspace@");
static const slice KEYEVENT_START = SLICE("__keyevent@");

static struct {
    uint64_t keyspace_topics, keyevent_topics; /* that could receive such a message */
    str text;                                  /* reused */
    uint32_t wanted; /* notifyFlag bits of what is enabled and has listeners */
} events;

/* ------------------------------------------------------------------ classes */

typedef struct eventClass {
    const char *event;
    uint32_t flag;
} eventClass;

/* Sorted by name. */
static const eventClass classes[] = {
    {"append", NOTIFY_STRING},
    {"copy_to", NOTIFY_GENERIC},
    {"del", NOTIFY_GENERIC},
    {"evicted", NOTIFY_EVICTED},
    {"expire", NOTIFY_GENERIC},
    {"expired", NOTIFY_EXPIRED},
    {"georadiusstore", NOTIFY_ZSET},
    {"geosearchstore", NOTIFY_ZSET},
    {"hdel", NOTIFY_HASH},
    {"hexpire", NOTIFY_HASH},
    {"hexpired", NOTIFY_HASH},
    {"hincrby", NOTIFY_HASH},
    {"hincrbyfloat", NOTIFY_HASH},
    {"hpersist", NOTIFY_HASH},
    {"hset", NOTIFY_HASH},
    {"incrby", NOTIFY_STRING},
    {"incrbyfloat", NOTIFY_STRING},
    {"keymiss", NOTIFY_KEY_MISS},
    {"linsert", NOTIFY_LIST},
    {"lpop", NOTIFY_LIST},
    {"lpush", NOTIFY_LIST},
    {"lrem", NOTIFY_LIST},
    {"lset", NOTIFY_LIST},
    {"ltrim", NOTIFY_LIST},
    {"move_from", NOTIFY_GENERIC},
    {"move_to", NOTIFY_GENERIC},
    {"new", NOTIFY_NEW},
    {"persist", NOTIFY_GENERIC},
    {"pfadd", NOTIFY_STRING},
    {"rename_from", NOTIFY_GENERIC},
    {"rename_to", NOTIFY_GENERIC},
    {"restore", NOTIFY_GENERIC},
    {"rpop", NOTIFY_LIST},
    {"rpush", NOTIFY_LIST},
    {"sadd", NOTIFY_SET},
    {"sdiffstore", NOTIFY_SET},
    {"set", NOTIFY_STRING},
    {"setbit", NOTIFY_STRING},
    {"setrange", NOTIFY_STRING},
    {"sinterstore", NOTIFY_SET},
    {"sortstore", NOTIFY_LIST},
    {"spop", NOTIFY_SET},
    {"srem", NOTIFY_SET},
    {"sunionstore", NOTIFY_SET},
    {"xadd", NOTIFY_STREAM},
    {"xdel", NOTIFY_STREAM},
    {"xgroup-create", NOTIFY_STREAM},
    {"xgroup-createconsumer", NOTIFY_STREAM},
    {"xgroup-delconsumer", NOTIFY_STREAM},
    {"xgroup-destroy", NOTIFY_STREAM},
    {"xgroup-setid", NOTIFY_STREAM},
    {"xsetid", NOTIFY_STREAM},
    {"xtrim", NOTIFY_STREAM},
    {"zadd", NOTIFY_ZSET},
    {"zdiffstore", NOTIFY_ZSET},
    {"zincr", NOTIFY_ZSET},
    {"zinterstore", NOTIFY_ZSET},
    {"zpopmax", NOTIFY_ZSET},
    {"zpopmin", NOTIFY_ZSET},
    {"zrangestore", NOTIFY_ZSET},
    {"zrem", NOTIFY_ZSET},
    {"zremrangebylex", NOTIFY_ZSET},
    {"zremrangebyrank", NOTIFY_ZSET},
    {"zremrangebyscore", NOTIFY_ZSET},
    {"zunionstore", NOTIFY_ZSET},
};

static int compareEvents(const void *name, const void *class) {
    return strcmp(name, ((const eventClass *)class)->event);
}

/* The class of an event; those of modules have their own. */
static uint32_t classOf(const char *event) {
    const eventClass *found =
        bsearch(event, classes, COUNT_OF(classes), sizeof(*classes), compareEvents);
    return found ? found->flag : NOTIFY_MODULE;
}

/* ------------------------------------------------------------------ publishing */

static void publishOne(slice start, const db *d, slice of, slice message) {
    strClear(&events.text);
    strAppendSlice(&events.text, start);
    strAppendInt(&events.text, dbId(d));
    strAppendText(&events.text, "__:");
    strAppendSlice(&events.text, of);
    (void)publishToChannel(strSlice(&events.text), message); /* how many got it is not needed */
}

static void notify(db *d, slice key, const char *event) {
    enum { TEXT_KEPT_MAX = 4096 };
    if (!event || !(classOf(event) & events.wanted) || engineHot.loading) return;
    slice name = sliceOf(event);
    if (events.wanted & NOTIFY_KEYSPACE) publishOne(KEYSPACE_START, d, key, name);
    if (events.wanted & NOTIFY_KEYEVENT) publishOne(KEYEVENT_START, d, name, key);
    if (events.text.cap > TEXT_KEPT_MAX) strFree(&events.text);
}

static const keyObserver observer = {.name = "keyspace-events", .changed = notify, .event = notify};

/* ------------------------------------------------------------------ arming */

void eventsApply(void) {
    const uint32_t channels = NOTIFY_KEYSPACE | NOTIFY_KEYEVENT;
    uint32_t wanted = pubsubConf.notify_keyspace_events;
    if (!events.keyspace_topics) wanted &= ~(uint32_t)NOTIFY_KEYSPACE;
    if (!events.keyevent_topics) wanted &= ~(uint32_t)NOTIFY_KEYEVENT;
    if (!(wanted & channels) || !(wanted & ~channels)) wanted = 0;
    if (wanted == events.wanted) return;
    events.wanted = wanted;
    keyObserverArm(&observer, wanted != 0);
    keyspaceSetNotes(wanted & NOTIFY_NEW, wanted & NOTIFY_KEY_MISS);
    if (!wanted) strFree(&events.text);
}

/* True if names that start with `start` can equal a channel, or match a pattern. */
static bool couldReceive(const topic *t, slice start) {
    char prefix[PATTERN_PREFIX_MAX];
    slice name = topicName(t);
    if (t->kind == TOPIC_PATTERN) {
        name = sliceMake(prefix, patternPrefix(name, prefix));
    } else if (name.len < start.len) {
        return false;
    }
    return memcmp(name.ptr, start.ptr, sizeMin(name.len, start.len)) == 0;
}

static void count(const topic *t, uint64_t change) {
    if (t->kind == TOPIC_SHARD) return;
    events.keyspace_topics += couldReceive(t, KEYSPACE_START) ? change : 0;
    events.keyevent_topics += couldReceive(t, KEYEVENT_START) ? change : 0;
    if (pubsubConf.notify_keyspace_events) eventsApply();
}

void eventsTopicAdded(const topic *t) { count(t, 1); }

void eventsTopicRemoved(const topic *t) { count(t, (uint64_t)-1); }
