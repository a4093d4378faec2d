/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What only the engine sets on the request path. */
#ifndef ENGINE_EXECUTE_PRIV_H
#define ENGINE_EXECUTE_PRIV_H

#include "engine/ctx.h"
#include "engine/measure.h"

/* Runs a request that was admitted and kept since (EXEC, a wait) inside `outer`: what may have changed meanwhile is
 * judged again, the command behind the name and gates that ask for it. `flags` go to its ctx. */
void executeKept(ctx *outer, request *r, uint32_t flags);
/* Counts a command that waited and was answered without running: calls, and as refused. */
void executeAccount(session *s, const command *cmd, bool rejected);
/* From which cost on a command is told to measureNote(). */
void executeSetLimits(const measureLimits *limits);

#endif
