/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replica migration: a replica of a primary that has several joins a primary that has lost all of
 * its own. Pure: a map and the time in, the primary to follow out. */
#ifndef BUS_ORPHANS_H
#define BUS_ORPHANS_H

#include "bus/map.h"
#include "bus/rules.h"

/* Called every 100 ms: records since when primaries are orphaned. Returns the orphaned primary that
 * this node, a replica, must follow from now on; NULL, in nearly all calls, if there is none. The
 * map is not changed otherwise. `cluster_ok`: the state of the cluster. */
clusterNode *orphansTick(clusterMap *m, const busRules *rules, bool cluster_ok, int64_t now_ms);

#endif
