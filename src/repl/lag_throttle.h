/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast writers may be so that no replica reaches its output limit (repl-throttling-enabled): a
 * plain struct, updated ten times a second. Example: the limit is 64 MB, writers add 30 MB/s to the
 * stream, and a replica takes 10 MB/s. At 16 MB, a quarter, 20 MB/s more would pass the target,
 * half of the limit, within 30 s: throttling begins with a rate of 30 MB/s, which falls by 5 % each
 * 100 ms as long as that holds, and rises by as much when it does not. One thread at a time. */
#ifndef REPL_LAG_THROTTLE_H
#define REPL_LAG_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THROTTLE_PERIOD_MS = 100 };

typedef struct lagThrottle {
    bool is_active;
    double rate;     /* bytes per second that writers may add; if is_active */
    double floor;    /* writers keep this much: a twentieth of what they had */
    double produced; /* bytes per second, of late */
    double growth;   /* of `held`, of late */
    size_t held;
    int quiet;            /* periods in a row in which writers did not reach the rate */
    int64_t over_ms;      /* since when `held` is above the target; 0: it is not */
    uint64_t activations; /* how often it has begun */
    uint64_t floor_periods, more, less;
} lagThrottle;

/* A period has passed in which the stream grew by `produced` bytes. `held`: bytes of it that are
 * kept for the replica that lags most, which may have `limit`; 0: there is none. `was_limited`:
 * writers had to wait. */
void lagThrottleUpdate(lagThrottle *t, size_t held, size_t limit, size_t produced, bool was_limited,
                       int64_t now_ms);
void lagThrottleStop(lagThrottle *t);
/* A replica is not to be closed for its soft limit now. */
bool lagThrottleExempts(const lagThrottle *t, int64_t now_ms);

#endif
