/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Publishing of messages to subscribers. Main thread only. */
#ifndef PUBSUB_PUBLISH_H
#define PUBSUB_PUBLISH_H

#include "engine/ctx.h"
#include "pubsub/channels.h"

/* Sends a message to the subscribers of a channel and of the patterns that match it. Returns the
 * number of deliveries. If there are thousands of receivers, they get the message in this and the
 * following turns of the loop, in order with other messages. */
uint64_t publishToChannel(slice channel, slice message);
/* A message that tells of a change: sent before the reply to the command that has made it, to up to
 * 2,048 receivers. */
void publishEvent(slice channel, slice message);
/* Like publishToChannel() to the subscribers of a shard channel. */
uint64_t publishToShard(slice channel, slice message);

/* Sends what was published before to those that have not received it yet, before subscriptions of a
 * receiver change. No effect if the channel (NULL: every channel) has no such message. */
void publishFinish(const pubsubChannel *t);
/* Periodic job: frees the blocks of channels to which nothing is published any more. */
void publishLogsAge(int64_t budget_us);
/* Continues unfinished deliveries; false if nothing remains to be done. */
bool publishWork(void);

#endif
