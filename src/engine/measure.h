/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Thresholds of the command log and the latency monitor, combined into three numbers that the
 * request path compares with. Main thread only. */
#ifndef ENGINE_MEASURE_H
#define ENGINE_MEASURE_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/ctx.h"

/* measureNote() is called for values above. */
typedef struct measureLimits {
    uint64_t ticks;
    int64_t request_bytes, reply_bytes;
} measureLimits;

/* Updates the limits from the directives; the `apply` of these directives. */
status measureApply(reason *why);
/* Called for a command that exceeded a limit; informs the command log and the latency monitor.
 * Bytes may be -1: not to be checked. */
void measureNote(ctx *c, uint64_t ticks, int64_t request_bytes, int64_t reply_bytes);
/* Size of the request of the ctx in bytes, as received. */
int64_t measureRequestBytes(const ctx *c);

#endif
