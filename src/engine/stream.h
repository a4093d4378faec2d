/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of our primary: how many of its bytes a session has had applied. A transaction counts when it has been
 * run, as one. Sessions of other origins pay nothing. Main thread only. */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include "engine/session.h"

/* The requests that are about to be run begin at this offset of the buffer they were parsed from. By the carrier,
 * before executeRun(), for a session of ORIGIN_PRIMARY; else nothing is counted. */
void streamBegin(session *s, size_t parsed_from);
/* After executeRun(): the buffer up to this offset holds no further request to be run, only blank lines. They count
 * with the next request. */
void streamSkip(session *s, size_t to);
/* Bytes applied since the session got its origin, those of large arguments, blank lines and inline requests among
 * them. */
uint64_t streamApplied(const session *s);

#endif
