/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replication stream from the primary: how many of its bytes a session has applied. A transaction counts as a whole
 * after its execution. Sessions of other origins have no cost. Main thread only. */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include "engine/session.h"

/* Sets the offset, in the buffer they were parsed from, of the requests about to run. Called by the carrier before
 * executeRun() for a session of ORIGIN_PRIMARY; without it nothing is counted. */
void streamBegin(session *s, size_t parsed_from);
/* After executeRun(): the buffer up to this offset holds no further request to be run, only blank lines. They count
 * with the next request. */
void streamSkip(session *s, size_t to);
/* Bytes applied since the session got its origin, those of large arguments, blank lines and inline requests among
 * them. */
uint64_t streamApplied(const session *s);

#endif
