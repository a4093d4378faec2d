/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Propagation of an execution unit (a command, a whole EXEC or script) to AOF, replicas and slot
 * export. Commands are queued in order, each with its targets; at the end of the unit a target
 * receives a single command as it is, several between MULTI and EXEC. Main thread only. */
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/slice.h"
#include "engine/ctx.h"
#include "resp/resp.h"

/* Destination of an entry. */
typedef struct propagateTo {
    int db_id;
    uint32_t targets; /* enum propagateTarget */
    int slot;         /* -1: none or several, or no slots here */
} propagateTo;
/* For changes of keys without a command (expired, evicted): to all targets. */
propagateTo propagateToKey(int db_id, slice key);
/* For the changes of a command: its session's database, its targets, the slot of its keys. Computes
 * the key positions, so call it only while a sink is armed. */
propagateTo propagateToOf(const ctx *c);

/* Queues a copy of `argv`. No effect if no sink is armed or there is no target. */
void propagateCopy(propagateTo to, int argc, const slice *argv);
/* The same for a command's request unchanged, with its raw bytes if available. It is borrowed until
 * propagateUnitEnd() if it is the whole unit, and copied otherwise. */
void propagateRequest(const ctx *c);
/* Appends a SELECT as a sink writes it. */
void propagateAppendSelect(str *out, int db_id);
/* Commands queued from now on are forms of the running command. They are propagated after the
 * commands that callbacks in the middle of it propagate. */
void propagateOwnBegins(void);
/* Called before and after such a callback; `begun` is the value that the first function returned.
 * `has_own`: the command has already queued its form, which is moved after the commands of the
 * callback. */
typedef struct propagateMark {
    int own_from, count;
} propagateMark;
propagateMark propagateCallbackBegins(void);
void propagateCallbackEnded(propagateMark begun, bool has_own);
/* Units nest; the queue is handed to the sinks when the outermost one ends. */
void propagateUnitBegin(void);
void propagateUnitEnd(void);
/* A unit of what is no part of the command that runs, if there is one: it is handed over at its own
 * end, unless that command has queued something already. The end gets what the begin returned. */
int propagateOwnUnitBegin(void);
void propagateOwnUnitEnd(int outer);
/* Calls `proc`, the same for all, once before the queue of the outermost unit is handed over: what
 * it changes is a part of the unit. Without a unit: at the end of the next one. */
typedef void propagateEndProc(void);
void propagateAtEnd(propagateEndProc *proc);
/* The commands queued by the open unit are sent one by one, without MULTI: for expired keys found
 * by commands without key arguments. No effect in nested units. */
void propagateUnwrapped(void);
/* Number of units that were handed to sinks; and the number of the last one with changes of this
 * session's commands, 0 if there is none. */
uint64_t propagateCount(void);
uint64_t propagateNumberOf(const session *s);
/* As if the session had made all changes so far: others have made them for it. */
void propagateNoteAll(session *s);
/* Registers a function of a layer above, which notes the same in its own measure. */
typedef void propagateNoteProc(session *s);
void propagateSetNoteProc(propagateNoteProc *note);

#endif
