/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of stream.h for the engine. */
#ifndef ENGINE_STREAM_PRIV_H
#define ENGINE_STREAM_PRIV_H

#include "engine/stream.h"

/* MULTI of the stream is running: what follows is applied by its EXEC. */
void streamOpenTransaction(session *s);
/* The running command of the stream has failed. */
void streamCommandFailed(ctx *c, slice error);

#endif
