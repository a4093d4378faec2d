/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the cluster as a node sees it: whether it serves requests. An instance without clock
 * or configuration. */
#ifndef BUS_CLUSTER_STATE_H
#define BUS_CLUSTER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bus/map.h"
#include "bus/rules.h"

typedef struct clusterState {
    bool ok;
    const char *wrong;   /* why it is not; NULL: not known yet, or it is */
    int size;            /* primaries with slots */
    int64_t first_ms;    /* time of the first update */
    int64_t minority_ms; /* last time the majority of the voting nodes was not reachable */
    /* Kept by the owner: this node waits for users or functions that the nodes share. */
    bool lacks_shared;
} clusterState;

/* Updates the state. It is ok if all slots are covered (if required), the majority of voting nodes
 * is reachable, and, on a primary, some time has passed since it was not or since the first update.
 * `lost_data`: this node has lost its data, and waits to be replaced by a replica that has them. */
void clusterStateUpdate(clusterState *s, const clusterMap *m, const busRules *rules, bool lost_data,
                        int64_t now_ms);
/* The number of slots whose owner has one of these flags. */
int clusterMapCountSlots(const clusterMap *m, uint32_t flags);

#endif
