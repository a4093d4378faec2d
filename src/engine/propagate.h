/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Propagation of an execution unit (a command, a whole EXEC or script) to AOF and replicas. Commands are queued in
 * order; at the end of the unit a single one is sent alone, several between MULTI and EXEC. Main thread only. */
#ifndef ENGINE_PROPAGATE_H
#define ENGINE_PROPAGATE_H

#include "base/slice.h"
#include "resp/resp.h"

/* Queues a copy of `argv`. No effect if no sink is armed. */
void propagateCopy(int db_id, int argc, const slice *argv);
/* Queues a request with its original bytes, if available: borrowed until propagateUnitEnd() if the unit consists of
 * this request only, else copied. */
void propagateRequest(int db_id, const request *r, int argc, const slice *argv);
/* Units can be nested; the queue is passed to the sinks when the outermost one ends. */
void propagateUnitBegin(void);
void propagateUnitEnd(void);
/* The commands queued by the open unit are sent one by one, without MULTI: for expired keys found by commands that do
 * not name keys. No effect in nested units. */
void propagateUnwrapped(void);
/* Nesting depth of units. */
int propagateUnitDepth(void);

#endif
