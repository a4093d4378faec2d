/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the loop and its back ends: what a way to wait for descriptors must offer. Private to
 * io. */
#ifndef IO_LOOP_BACKEND_H
#define IO_LOOP_BACKEND_H

#include <stdint.h>

#include "base/error.h"

#define LOOP_EVENTS_MAX 1024 /* taken from the kernel in one turn; the rest waits for the next */

typedef struct loopReady {
    int fd;
    int mask;
    uint32_t generation; /* filled in by the loop */
} loopReady;

typedef struct loopBackend {
    const char *name;
    /* The back end's state, NULL with errno on failure. */
    void *(*open)(void);
    void (*close)(void *state);
    /* What is watched on `fd` becomes `mask` where it was `old_mask`. 0, or -1 with errno. */
    int (*change)(void *state, int fd, int old_mask, int mask);
    /* Waits up to `timeout_ms` (-1: for ever) and fills `ready` with up to LOOP_EVENTS_MAX; an
     * error or hang-up counts as both directions. Returns their count; 0 when a signal came. */
    int (*wait)(void *state, int timeout_ms, loopReady *ready);
} loopBackend;

/* NULL where the platform does not have it. */
extern const loopBackend *const loopEpoll;
extern const loopBackend *const loopKqueue;
extern const loopBackend *const loopPoll;

#endif
