/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pauses of writes to some slots. Commands without keys that may write wait, too. Main thread
 * only. */
#ifndef CLUSTER_SLOT_PAUSE_H
#define CLUSTER_SLOT_PAUSE_H

#include "base/slots.h"

typedef enum slotPauseCause {
    SLOT_PAUSE_HANDOVER, /* another node is about to own them */
    SLOT_PAUSE_UNSAVED,  /* the configuration file does not say yet that they are of this node */
    SLOT_PAUSE_CAUSES,
} slotPauseCause;

/* Writes to these slots, instead of those before, wait until `end_ms` (wall time). */
void slotPauseSet(slotPauseCause cause, const slotMask *slots, int64_t end_ms);
void slotPauseEnd(slotPauseCause cause);

#endif
