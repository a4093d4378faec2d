/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of the command log for the engine. */
#ifndef ENGINE_COMMANDLOG_PRIV_H
#define ENGINE_COMMANDLOG_PRIV_H

#include "engine/commandlog.h"
#include "engine/ctx.h"

/* Logs the command if its value has reached the log's threshold. */
void commandlogNote(const ctx *c, commandlogKind kind, int64_t value, int64_t elapsed_us);
/* Threshold of a log; -1 if it is off. */
int64_t commandlogLimit(commandlogKind kind);

#endif
