/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work in small pieces between the requests, which may take a share of the time and no more. Main thread only. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include <stdint.h>

#include "base/clock.h"

typedef struct pace {
    int64_t next_us; /* monotonic: when the next piece may begin */
} pace;

/* A piece lasted from began_us to now_us; the pieces may take `share` percent of the time, 1 to 100. */
static inline void paceTook(pace *p, int64_t began_us, int64_t now_us, int share) {
    p->next_us = now_us + (now_us - began_us) * (100 - share) / share;
}

/* How long the loop may sleep until the next piece, in ms, rounded up. */
static inline int64_t paceLeftMs(const pace *p) {
    int64_t left_us = p->next_us - clockMonoUs();
    return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

#endif
