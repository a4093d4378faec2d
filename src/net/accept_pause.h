/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listening sockets that are not read for a while: the process has no descriptors left, or more
 * connections come than a directive allows. What waits meanwhile is in the kernel's queue. Main
 * thread only. */
#ifndef NET_ACCEPT_PAUSE_H
#define NET_ACCEPT_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "io/loop.h"
#include "net/net.h"

enum { ACCEPT_RETRY_MS = 100 };

/* The watched listener is not read for `ms`; then it is watched again, with these arguments. */
void netAcceptPause(const netAccepter *from, int64_t ms);

/* A rate that a directive limits, as a plain struct: a credit grows with time, up to that of a
 * tenth of a second, or of one. */
typedef struct acceptRate {
    int64_t credit; /* in thousandths */
    int64_t at_ms;
} acceptRate;
/* How many of `most` may come now; takes nothing. `per_second` 0: all. */
int acceptRateAllows(acceptRate *r, int64_t per_second, int most, int64_t now_ms);
void acceptRateTake(acceptRate *r, int64_t per_second);

#endif
