/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of a map share. */
#ifndef BUS_MAP_PRIV_H
#define BUS_MAP_PRIV_H

#include "bus/map.h"

/* map_slots.c: unassigns the slots of a node, and those that are being moved from or to it. */
void mapRemoveSlotsOf(clusterMap *m, const clusterNode *n);
const char *mapVerifySlots(const clusterMap *m);

#endif
