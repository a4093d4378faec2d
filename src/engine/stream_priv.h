/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of stream.h called by the execution of requests. */
#ifndef ENGINE_STREAM_PRIV_H
#define ENGINE_STREAM_PRIV_H

#include "engine/stream.h"

/* Called after a request of the session has run, was refused or was queued. */
void streamRequestDone(session *s, const request *r);

#endif
