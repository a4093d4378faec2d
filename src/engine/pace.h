/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pacing of background work in small steps between requests, limited to a share of CPU time. Main
 * thread only. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include <stdint.h>

#include "base/clock.h"

typedef struct pace {
    int64_t next_us; /* monotonic: earliest start of the next step */
} pace;

/* Records a step from began_us to now_us; all steps together may use `share` percent of the time, 1
 * to 100. */
static inline void paceTook(pace *p, int64_t began_us, int64_t now_us, int share) {
    p->next_us = now_us + (now_us - began_us) * (100 - share) / share;
}

/* How long the loop may sleep before the next step, in ms, rounded up. */
static inline int64_t paceLeftMs(const pace *p) {
    int64_t left_us = p->next_us - clockMonoUs();
    return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

#endif
