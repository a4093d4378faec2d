/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directive cluster-seeds: addresses at which this node looks for other nodes when they do not
 * answer at the addresses that it knows; and the time at which the name of a host is looked up
 * again. Pure. ANY_THREAD. */
#ifndef BUS_SEEDS_H
#define BUS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* The pauses between attempts become longer: twice the last one, up to a maximum. */
typedef struct seekTimer {
    int64_t due_ms, pause_ms;
} seekTimer;

/* True if the next attempt is due; the one after it is then due later. The first one is at once. */
bool seekIsDue(const seekTimer *t, int64_t now_ms);
void seekBegun(seekTimer *t, int64_t pause_max_ms, int64_t now_ms);

typedef struct clusterSeed {
    str host;           /* a name or an address */
    int port, bus_port; /* of the bus: unless it is given, `port` plus CLUSTER_BUS_PORT_OFFSET */
    bool has_bus_port;  /* it is given */
    seekTimer timer;
} clusterSeed;

enum { SEEDS_MAX = 256 };

typedef struct clusterSeeds {
    clusterSeed *items;
    int count;
} clusterSeeds;

/* Adds words "HOST:PORT" or "HOST:PORT@BUSPORT"; an address of IPv6 may be in brackets. If one is
 * invalid or there are too many, nothing is added. */
status seedsAdd(clusterSeeds *s, const slice *words, int count, reason *why) MUST_USE;
/* Appends the words, with a blank between two. */
void seedsPrint(const clusterSeeds *s, str *out);
void seedsClear(clusterSeeds *s);

#endif
