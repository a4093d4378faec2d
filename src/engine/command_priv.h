/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lookup of a request's first word, for callers within the engine. */
#ifndef ENGINE_COMMAND_PRIV_H
#define ENGINE_COMMAND_PRIV_H

#include "engine/command.h"

/* commandFind() for a slice with 16 readable bytes from its start, as guaranteed by input buffers
 * (REQUEST_READ_SLACK). About 3 ns for names up to 16 bytes. ANY_THREAD. */
const command *commandFindFast(slice name);

#endif
