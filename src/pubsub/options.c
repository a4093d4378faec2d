/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of keyspace events and client tracking. Main thread only. */
#include "base/base.h"
#include "pubsub/events.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"

pubsubConfig pubsubConf;

/* In the order of CONFIG GET. */
static const struct {
    char letter;
    uint32_t flag;
} event_letters[] = {
    {'g', NOTIFY_GENERIC},  {'$', NOTIFY_STRING},   {'l', NOTIFY_LIST},     {'s', NOTIFY_SET},
    {'h', NOTIFY_HASH},     {'z', NOTIFY_ZSET},     {'x', NOTIFY_EXPIRED},  {'e', NOTIFY_EVICTED},
    {'t', NOTIFY_STREAM},   {'d', NOTIFY_MODULE},   {'n', NOTIFY_NEW},      {'p', NOTIFY_PATHHASH},
    {'K', NOTIFY_KEYSPACE}, {'E', NOTIFY_KEYEVENT}, {'m', NOTIFY_KEY_MISS},
};

static status setEvents(const slice *words, int count, bool more, reason *why) {
    (void)count, (void)more; /* the registry checks for one word; the last line applies */
    uint32_t flags = 0;
    for (size_t i = 0; i < words[0].len; i++) {
        char letter = words[0].ptr[i];
        uint32_t flag = letter == 'A' ? NOTIFY_ALL : 0;
        for (size_t j = 0; j < COUNT_OF(event_letters); j++) {
            if (event_letters[j].letter == letter) flag = event_letters[j].flag;
        }
        if (!flag) {
            return reasonSet(why, ERR_SYNTAX,
                             "Invalid event class character. Use 'Ag$lshzxeKEtmdnp'.");
        }
        flags |= flag;
    }
    pubsubConf.notify_keyspace_events = flags;
    eventsApply();
    return OK;
}

uint32_t pubsubKeyEventClasses(void) { return pubsubConf.notify_keyspace_events; }

static void getEvents(str *out) {
    uint32_t flags = pubsubConf.notify_keyspace_events;
    bool all = (flags & NOTIFY_ALL) == NOTIFY_ALL;
    if (all) strAppendByte(out, 'A');
    for (size_t i = 0; i < COUNT_OF(event_letters); i++) {
        if (all && (event_letters[i].flag & NOTIFY_ALL)) continue;
        if (flags & event_letters[i].flag) strAppendByte(out, event_letters[i].letter);
    }
}

static const configSpecial key_events = {.set = setEvents, .get = getEvents};

/* A lower limit removes keys in the next turns of the loop. */
static status applyTrackedKeys(reason *why) {
    (void)why; /* cannot fail */
    pubsubWorkLater();
    return OK;
}

const configOption pubsubOptions[] = {
    CONFIG_SPECIAL("notify-keyspace-events", &key_events, ""),
    CONFIG_INT("tracking-table-max-keys", pubsubConf.tracking_table_max_keys, 1000000, 0, INT64_MAX,
               .apply = applyTrackedKeys),
    CONFIG_END,
};
