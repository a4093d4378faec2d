/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyspace events (events.h).
 *
 * Invariant: the key observer is armed if and only if a class of events and a kind of channel are
 * enabled and there is a channel or pattern that could receive such a message; so events that
 * nobody listens to cost nothing. The same holds for notes of new keys and misses by the store.
 *
 * Cost of an event that is published: two texts, and a lookup for each of them. */
#include "pubsub/events.h"

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
    uint64_t keyspace_channels, keyevent_channels; /* that could receive such a message */
    str text;                                      /* reused */
    uint32_t wanted; /* notifyFlag bits of what is enabled and has listeners */
} events;

/* ------------------------------------------------------------------ publishing */

static void publishOne(slice start, const db *d, slice of, slice message) {
    hotCheck(start.len > 0);
    strClear(&events.text);
    strAppendSlice(&events.text, start);
    strAppendInt(&events.text, dbId(d));
    strAppendText(&events.text, "__:");
    strAppendSlice(&events.text, of);
    publishEvent(strSlice(&events.text), message);
}

static void notify(db *d, slice key, const keyEvent *event) {
    enum { TEXT_KEPT_MAX = 4096 };
    if (!event || !(event->class & events.wanted) || engineHot.loading) return;
    if (event == &eventDropped) return;
    slice name = sliceOf(event->name);
    if (events.wanted & NOTIFY_KEYSPACE) publishOne(KEYSPACE_START, d, key, name);
    if (events.wanted & NOTIFY_KEYEVENT) publishOne(KEYEVENT_START, d, name, key);
    if (events.text.cap > TEXT_KEPT_MAX) strFree(&events.text);
}

/* What costs something where it arises. */
static uint32_t notesWanted(void) { return events.wanted & (NOTIFY_NEW | NOTIFY_KEY_MISS); }

static const keyObserver observer = {
    .name = "keyspace-events", .changed = notify, .event = notify, .notes = notesWanted};

/* ------------------------------------------------------------------ arming */

void eventsApply(void) {
    hotCheck(threadIsMain());
    const uint32_t channels = NOTIFY_KEYSPACE | NOTIFY_KEYEVENT;
    uint32_t wanted = pubsubConf.notify_keyspace_events;
    if (!events.keyspace_channels) wanted &= ~(uint32_t)NOTIFY_KEYSPACE;
    if (!events.keyevent_channels) wanted &= ~(uint32_t)NOTIFY_KEYEVENT;
    if (!(wanted & channels) || !(wanted & ~channels)) wanted = 0;
    if (wanted == events.wanted) return;
    events.wanted = wanted;
    keyObserverArm(&observer, wanted != 0);
    if (!wanted) strFree(&events.text);
}

/* True if names that start with `start` can equal a channel, or match a pattern. */
static bool couldReceive(const pubsubChannel *t, slice start) {
    hotCheck(t->kind != CHANNEL_SHARD);
    char prefix[PATTERN_PREFIX_MAX];
    slice name = channelName(t);
    if (t->kind == CHANNEL_PATTERN) {
        name = sliceMake(prefix, patternPrefix(name, prefix));
    } else if (name.len < start.len) {
        return false;
    }
    return memcmp(name.ptr, start.ptr, sizeMin(name.len, start.len)) == 0;
}

static void count(const pubsubChannel *t, uint64_t change) {
    if (t->kind == CHANNEL_SHARD) return;
    events.keyspace_channels += couldReceive(t, KEYSPACE_START) ? change : 0;
    events.keyevent_channels += couldReceive(t, KEYEVENT_START) ? change : 0;
    if (pubsubConf.notify_keyspace_events) eventsApply();
}

void eventsChannelAdded(const pubsubChannel *t) { count(t, 1); }

void eventsChannelRemoved(const pubsubChannel *t) { count(t, (uint64_t)-1); }
