/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pauses of writes to some slots (slot_pause.h).
 *
 * Invariant: the set of slots of a cause that does not apply is empty. */
#include "cluster/slot_pause.h"

#include "base/base.h"
#include "engine/job.h"
#include "engine/pause.h"
#include "engine/transaction.h"

static slotMask paused[SLOT_PAUSE_CAUSES];

static pauseReason reasonOf(slotPauseCause cause) {
    check(cause < SLOT_PAUSE_CAUSES);
    return cause == SLOT_PAUSE_HANDOVER ? PAUSE_FOR_SLOT_HANDOVER : PAUSE_FOR_CLUSTER_CONFIG;
}

static bool isPausedSlot(int slot) {
    for (int i = 0; i < SLOT_PAUSE_CAUSES; i++)
        if (slotMaskHas(&paused[i], slot)) return true;
    return false;
}

/* Commands without keys may write anything: a script, FUNCTION, FLUSHALL. */
static bool isPaused(ctx *c) {
    int slot = c->cmd->flags & CMD_RUNS_QUEUE
                   ? transactionSlot(c->who)
                   : commandSlots(COMMAND_NO_SLOT, c->cmd, c->argv, c->argc);
    return slot < 0 || isPausedSlot(slot);
}

void slotPauseSet(slotPauseCause cause, const slotMask *slots, int64_t end_ms) {
    check(end_ms > 0);
    paused[cause] = *slots;
    pauseSelect(isPaused);
    (void)jobEndChanges(); /* a change that has begun has its effect before */
    pauseBegin(reasonOf(cause), PAUSE_SOME, end_ms);
}

void slotPauseEnd(slotPauseCause cause) {
    paused[cause] = (slotMask){{0}};
    pauseEnd(reasonOf(cause));
    check(!pauseIsFor(reasonOf(cause)));
}
