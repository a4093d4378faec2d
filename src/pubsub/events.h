/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyspace events: messages about changes of keys, to the channels __keyspace@<db>__:<key> and
 * __keyevent@<db>__:<event>. Main thread only. */
#ifndef PUBSUB_EVENTS_H
#define PUBSUB_EVENTS_H

#include <stdbool.h>

#include "pubsub/channels.h"

/* notify-keyspace-events has changed. */
void eventsApply(void);
/* A channel or pattern came into being, or is about to be freed. */
void eventsChannelAdded(const pubsubChannel *t);
void eventsChannelRemoved(const pubsubChannel *t);

#endif
