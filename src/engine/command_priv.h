/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lookup of a request's first word, for callers within the engine. */
#ifndef ENGINE_COMMAND_PRIV_H
#define ENGINE_COMMAND_PRIV_H

#include "engine/command.h"

/* commandFind() for a name of 1 to 8 bytes: `bytes` begins with them, in the order of memory, and
 * ends with zeros. ANY_THREAD. */
const command *commandFindShort(uint64_t bytes, size_t len);

#endif
