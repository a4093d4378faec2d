/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of hash slots, as a bitmap with a count. A zeroed set is empty. */
#ifndef TOOLS_CLI_CLUSTER_SLOTS_H
#define TOOLS_CLI_CLUSTER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/str.h"

typedef struct slotSet {
    uint64_t words[SLOT_COUNT / 64];
    int count;
} slotSet;

bool slotSetHas(const slotSet *set, int slot);
/* Adding a slot twice, or removing one that is not in the set, changes nothing. */
void slotSetAdd(slotSet *set, int slot);
void slotSetRemove(slotSet *set, int slot);
void slotSetAddAll(slotSet *set, const slotSet *from);
/* The first slot >= `from` in the set, or -1. */
int slotSetNext(const slotSet *set, int from);
/* The first range of slots that begins at `from` or later; false if there is none. */
bool slotSetRange(const slotSet *set, int from, int *first, int *last);
/* "[0-5],[7]" */
void slotSetPrint(const slotSet *set, str *out);
/* "0-5 7-7", as CLUSTER GETSLOTMIGRATIONS writes ranges. */
void slotSetPrintPlain(const slotSet *set, str *out);

#endif
