/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What leaves an execution unit (one command, or all of EXEC or a script) towards AOF and replicas.
 * Commands queue in order, each with its targets; at the unit's end a target gets one bare, several between MULTI and
 * EXEC.
 * Main thread only. */
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
/* What the open unit queues goes out one by one, without MULTI around it: dead keys met by a command that names
 * none. Nothing where units are nested. */
void propagateUnwrapped(void);
/* How deep units are nested now. */
int propagateUnitDepth(void);

#endif
