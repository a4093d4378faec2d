/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node as the target of slots, and the replicas of one (slot_moves.h): when it may take them, and
 * what becomes of keys that it has received if it does not. The slots of active jobs, and no
 * others, are hidden. Pure. One thread at a time. */
#ifndef BUS_SLOT_TARGET_H
#define BUS_SLOT_TARGET_H

#include "bus/slot_moves.h"

/* Whether an import may begin, else the text of the error, without its code, in `why`. `source` and
 * `name` are those of the job; `owner` is that of all the slots. */
status slotTargetCheck(const slotMoves *m, slice source, slice name, const slotRanges *ranges,
                       const clusterNode *owner, reason *why) MUST_USE;
/* A job whose source is connected. `ranges` move to it. */
slotJob *slotTargetBegin(slotMoves *m, slice source, slice name, slotRanges *ranges);
/* The same on a replica, or as a file says. NULL: it is known already, and has not ended. */
slotJob *slotTargetFollow(slotMoves *m, slice name, slotRanges *ranges);
/* A word of the source. */
void slotTargetOn(slotMoves *m, slotJob *job, slotJobEvent event);
/* A job that occurs on the primary has ended there; so has one of this node, if it was that primary
 * until now. */
void slotTargetFinish(slotMoves *m, slotJob *job, bool success, slice message);
/* What is wrong: keys that are hidden are deleted, then the job has failed. */
void slotTargetFail(slotMoves *m, slotJob *job, const char *message);
/* The same for a source that sends what none does: its connection is closed without a word. */
void slotTargetReject(slotMoves *m, slotJob *job, const char *message);
void slotTargetFailAll(slotMoves *m, const char *message);
/* Hides the slots of all jobs, after a dataset was loaded. */
void slotTargetHideAll(const slotMoves *m);
/* The dataset was loaded at the start: nothing follows for jobs that have not ended. */
void slotTargetAfterLoad(slotMoves *m);

/* ---- slot_moves.c ---- */

void slotTargetStep(slotMoves *m);
void slotTargetTick(slotMoves *m);
/* Another dataset follows. */
void slotTargetForget(slotMoves *m);

#endif
