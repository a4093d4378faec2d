/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What leaves an execution unit (one command, or all of EXEC or a script) towards AOF and replicas.
 * Commands queue in order; at the unit's end one goes out bare, several between MULTI and EXEC.
 * Main thread only. */
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/slice.h"
#include "resp/resp.h"

/* Queues a copy of `argv`. Nothing when no sink is armed. */
void propagateCopy(int db_id, int argc, const slice *argv);
/* Queues a request as it came: its own bytes when it has them. Borrowed until propagateUnitEnd() when the
 * unit is this request alone, copied otherwise. */
void propagateRequest(int db_id, const request *r, int argc, const slice *argv);
/* Units nest; the queue is handed to the sinks when the outermost one ends. */
void propagateUnitBegin(void);
void propagateUnitEnd(void);
/* What the open unit queues goes out one by one, without MULTI around it: dead keys met by a command that names
 * none. Nothing where units are nested. */
void propagateUnwrapped(void);
/* How deep units are nested now. */
int propagateUnitDepth(void);

#endif
