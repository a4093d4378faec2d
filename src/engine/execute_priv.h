/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What only the engine sets on the request path. */
#ifndef ENGINE_EXECUTE_PRIV_H
#define ENGINE_EXECUTE_PRIV_H

#include "engine/measure.h"

/* Counts a command that waited and was answered without running: calls, and as refused. */
void executeAccount(session *s, const command *cmd, bool rejected);
/* From which cost on a command is told to measureNote(). */
void executeSetLimits(const measureLimits *limits);

#endif
