/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Propagation of an execution unit (a command, a whole EXEC or script) to AOF, replicas and slot export. Commands are
 * queued in order, each with its targets; at the end of the unit a target gets a single one alone, several between
 * MULTI and EXEC. Main thread only. */
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/slice.h"
#include "engine/ctx.h"
#include "resp/resp.h"

/* Where an entry goes. */
typedef struct propagateTo {
    int db_id;
    uint32_t targets; /* enum propagateTarget */
    int slot;         /* -1: none or several, or no slots here */
} propagateTo;
/* For the keys that no command changes (expired, evicted): to all. */
propagateTo propagateToKey(int db_id, slice key);
/* For what the command changes: its session's database, its targets, the slot of its keys. Asks for the positions of
 * keys: only while a sink is armed. */
propagateTo propagateToOf(const ctx *c);

/* Queues a copy of `argv`. Nothing when no sink is armed, or for no target. */
void propagateCopy(propagateTo to, int argc, const slice *argv);
/* Queues a request as it came: its own bytes when it has them. Borrowed until propagateUnitEnd() when the
 * unit is this request alone, copied otherwise. */
void propagateRequest(propagateTo to, const request *r, int argc, const slice *argv);
/* Units nest; the queue is handed to the sinks when the outermost one ends. */
void propagateUnitBegin(void);
void propagateUnitEnd(void);
/* The commands queued by the open unit are sent one by one, without MULTI: for expired keys found by commands that do
 * not name keys. No effect in nested units. */
void propagateUnwrapped(void);
/* Nesting depth of units. */
int propagateUnitDepth(void);

#endif
