/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is remarkable about an executed command: the limits of the command log and of the latency monitor, folded
 * into three numbers that the request path compares with. Main thread only. */
#ifndef ENGINE_MEASURE_H
#define ENGINE_MEASURE_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/ctx.h"

/* Whatever lies above is told to measureNote(). */
typedef struct measureLimits {
    uint64_t ticks;
    int64_t request_bytes, reply_bytes;
} measureLimits;

/* Takes the directives' values into the limits; an `apply` of theirs. */
status measureApply(reason *why);
/* A command passed one of the limits: who cares is told. Bytes may be -1: not to be judged. */
void measureNote(ctx *c, uint64_t ticks, int64_t request_bytes, int64_t reply_bytes);
/* The bytes of the request that the ctx runs, as they came over the wire. */
int64_t measureRequestBytes(const ctx *c);

#endif
