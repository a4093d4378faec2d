/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranges of slots as words of a command and as text. One thread at a time. */
#ifndef BUS_SLOT_RANGES_H
#define BUS_SLOT_RANGES_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slots.h"
#include "base/str.h"
#include "bus/map.h"

typedef struct slotRanges {
    slotRange *items; /* owned */
    size_t count;
} slotRanges;

void slotRangesClear(slotRanges *r);
/* Reads pairs of numbers from `argv` up to the first other word. All slots must have one owner in
 * the map, which is stored in *owner. *used: number of words read. On failure `why` has the text of
 * the error, without its code; `out` is to be cleared in any case. */
status slotRangesParse(slotRanges *out, const clusterMap *m, int argc, const slice *argv, int *used,
                       clusterNode **owner, reason *why) MUST_USE;
/* Appends "0-5 7-7". */
void slotRangesPrint(const slotRanges *r, str *out);
bool slotRangesHave(const slotRanges *r, int slot);
/* True if some slot is in both. */
bool slotRangesOverlap(const slotRanges *a, const slotRanges *b);
void slotRangesAddTo(const slotRanges *r, slotMask *mask);
/* A copy of borrowed ranges. */
slotRanges slotRangesCopy(const slotRange *items, size_t count);
/* True if all their slots are owned by the node. */
bool slotRangesAreOf(const slotRanges *r, const clusterMap *m, const clusterNode *owner);

/* True if the argument is this word, ignoring case and what follows a NUL: the released client
 * sends its words with one. */
bool slotWordIs(slice argument, const char *word);

#endif
