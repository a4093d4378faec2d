/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lookup of a request's first word, for callers inside the engine that own the bytes. */
#ifndef ENGINE_COMMAND_PRIV_H
#define ENGINE_COMMAND_PRIV_H

#include "engine/command.h"

/* commandFind() for a slice with 16 readable bytes from its beginning on, as input buffers guarantee
 * (REQUEST_READ_SLACK). About 3 ns for names up to 16 bytes. ANY_THREAD. */
const command *commandFindFast(slice name);

#endif
