/* SPDX-License-Identifier: BSD-3-Clause
 *
<<<<<<< HEAD
 * What leaves an execution unit (one command, or all of EXEC or a script) towards AOF and replicas.
 * Commands queue in order, each with its targets; at the unit's end a target gets one bare, several between MULTI and
 * EXEC.
 * Main thread only. */
=======
 * Propagation of an execution unit (a command, a whole EXEC or script) to AOF and replicas. Commands are queued in
 * order; at the end of the unit a single one is sent alone, several between MULTI and EXEC. Main thread only. */
>>>>>>> main
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/slice.h"
#include "engine/ctx.h"
#include "resp/resp.h"

<<<<<<< HEAD
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
=======
/* Queues a copy of `argv`. No effect if no sink is armed. */
void propagateCopy(int db_id, int argc, const slice *argv);
/* Queues a request with its original bytes, if available: borrowed until propagateUnitEnd() if the unit consists of
 * this request only, else copied. */
void propagateRequest(int db_id, const request *r, int argc, const slice *argv);
/* Units can be nested; the queue is passed to the sinks when the outermost one ends. */
>>>>>>> main
void propagateUnitBegin(void);
void propagateUnitEnd(void);
/* The commands queued by the open unit are sent one by one, without MULTI: for expired keys found by commands that do
 * not name keys. No effect in nested units. */
void propagateUnwrapped(void);
/* Nesting depth of units. */
int propagateUnitDepth(void);

#endif
