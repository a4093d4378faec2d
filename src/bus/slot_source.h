/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node as the source of slots (slot_moves.h): when writes to them wait, when the target may take
 * them, and what is known of them afterwards. Pure. One thread at a time. */
#ifndef BUS_SLOT_SOURCE_H
#define BUS_SLOT_SOURCE_H

#include "bus/slot_moves.h"

/* The walk over the keys waits while more than this is unsent. With twice as much, changes wait,
 * until it has been sent, and as many bytes of keys: so keys get half of what the target takes. */
enum { SLOT_UNSENT_MAX = 512 * 1024 };

/* A new job: connects to the target in the next step. `ranges` move to it. */
slotJob *slotSourceBegin(slotMoves *m, slotRanges *ranges, const clusterNode *target);
/* An event of its state, or a word of the target. */
void slotSourceOn(slotMoves *m, slotJob *job, slotJobEvent event);
/* No effect if it has ended. */
void slotSourceFail(slotMoves *m, slotJob *job, const char *message);
void slotSourceFailAll(slotMoves *m, const char *message);
/* The connection is lost: fails the job, unless the target may own the slots already. */
void slotSourceLost(slotMoves *m, slotJob *job, const char *message);
/* False: there are none. */
bool slotSourceCancelAll(slotMoves *m);

/* What becomes of a change of keys of a slot, in the database and order of execution. */
typedef enum slotChange {
    SLOT_CHANGE_IGNORED, /* the job does not need it */
    SLOT_CHANGE_WALKED,  /* passed on behind the keys that it changes, as they were */
    SLOT_CHANGE_SENT,
    SLOT_CHANGE_LATE, /* it must not be: the target may own the slot */
} slotChange;
slotChange slotSourceTakes(const slotJob *job, int slot);
/* Adds the slots whose writes wait; returns until when, 0: there are none. */
int64_t slotSourcePaused(const slotMoves *m, slotMask *slots);
/* The owners of slots have changed. */
void slotSourceCheckOwners(slotMoves *m);

/* ---- slot_moves.c ---- */

void slotSourceStep(slotMoves *m);
void slotSourceTick(slotMoves *m);

#endif
