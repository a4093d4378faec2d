/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each slot costs: processor time, bytes of requests and of what they cause to be sent. With
 * cluster-slot-stats-enabled all commands are observed and timed one by one; without it nothing is
 * counted and requests cost nothing more. Main thread only. */
#ifndef CLUSTER_SLOT_STATS_H
#define CLUSTER_SLOT_STATS_H

#include "base/error.h"
#include "engine/hooks.h"

typedef struct slotUsage {
    uint64_t cpu_us, bytes_in, bytes_out;
} slotUsage;

extern const commandObserver slotStatsObserver;
extern const sink slotStatsSink;

/* Begins or ends counting as the directive says; also its `apply`. */
status slotStatsApply(reason *why);
/* The counters of one slot; zeros without the directive. */
slotUsage slotStatsOf(int slot);
/* Clears the counters of all slots; of those that this node has served and serves no more, or the
 * reverse. */
void slotStatsReset(void);
void slotStatsSlotsChanged(void);
/* A message was given to the subscribers of a shard channel. */
void slotStatsDelivered(slice channel, slice text);

#endif
