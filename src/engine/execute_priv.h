/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of the request path for the engine. */
#ifndef ENGINE_EXECUTE_PRIV_H
#define ENGINE_EXECUTE_PRIV_H

#include "base/str.h"
#include "engine/ctx.h"
#include "engine/measure.h"

/* Runs a request that was admitted earlier and kept (EXEC, a blocked request) inside `outer`. What
 * may have changed meanwhile is checked again: the command of the name, and gates with `again`.
 * `flags` are set in its ctx. */
void executeKept(ctx *outer, request *r, uint32_t flags);
/* Looks up the command of a kept request again, after commands were loaded or unloaded. False:
 * there is none that fits, and the error is appended to `why`. */
bool executeRebind(request *r, str *why);
/* Runs a part of a command that was admitted earlier, such as its end after it was blocked, as a
 * unit: what it changes is propagated, and requests blocked on it run. `c` is from
 * ctxInitLater(). Returns its duration in ticks, with those that are in `*work` when it has
 * ended. */
uint64_t executeLater(ctx *c, commandProc *part, const uint64_t *work);
/* Processes what a command that has returned has changed: it is propagated. For a command that is
 * not run by the functions here, within a unit. */
void executeEffects(ctx *c);
/* Counts a blocked command that was replied by executeLater(): as a call, and optionally as
 * rejected or failed. */
void executeAccount(ctx *c, bool rejected, bool failed, uint64_t ticks);
/* The same for one whose run has ended, after some slices: command observers see its end. */
void executeAccountRun(ctx *c, uint64_t ticks);
/* Sets the thresholds above which measureNote() is called. */
void executeSetLimits(const measureLimits *limits);

#endif
