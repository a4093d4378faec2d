/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of map_slots.c that other files of the map call. */
#ifndef BUS_MAP_PRIV_H
#define BUS_MAP_PRIV_H

#include "bus/map.h"

/* map_slots.c: unassigns the slots of a node, and those that are being moved from or to it. */
void mapRemoveSlotsOf(clusterMap *m, const clusterNode *n);
const char *mapVerifySlots(const clusterMap *m);

#endif
