/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The execution's part of stream.h. */
#ifndef ENGINE_STREAM_PRIV_H
#define ENGINE_STREAM_PRIV_H

#include "engine/stream.h"

/* A request of the session has run, was refused, or was queued. */
void streamRequestDone(session *s, const request *r);

#endif
