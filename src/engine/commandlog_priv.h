/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command log's door for the engine. */
#ifndef ENGINE_COMMANDLOG_PRIV_H
#define ENGINE_COMMANDLOG_PRIV_H

#include "engine/commandlog.h"
#include "engine/ctx.h"

/* Logs the command when its value has reached the log's limit. */
void commandlogNote(const ctx *c, commandlogKind kind, int64_t value);
/* The value from which on that log takes commands; -1 when it takes none. */
int64_t commandlogLimit(commandlogKind kind);

#endif
