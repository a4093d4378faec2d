/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ids of nodes that were forgotten. They must not be added again for some time, and after it only
 * by an order. */
#ifndef BUS_MAP_BLACKLIST_H
#define BUS_MAP_BLACKLIST_H

#include "bus/map.h"

void clusterMapForbid(clusterMap *m, slice id, int64_t until_ms);
bool clusterMapIsForbidden(clusterMap *m, slice id, int64_t now_ms);
/* True also after that time, until the node is known again: it is not added because it asks. */
bool clusterMapWasForgotten(const clusterMap *m, slice id);
/* The node has been added again. */
void clusterMapTakeBack(clusterMap *m, slice id, int64_t now_ms);
/* The id with that index, and for how long it is still forbidden; 0 or less: not any more. */
const char *clusterMapForbidden(const clusterMap *m, int index, int64_t now_ms, int64_t *left_ms);
void clusterMapForbidNone(clusterMap *m);

#endif
