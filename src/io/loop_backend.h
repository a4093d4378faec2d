/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Interface between the loop and its back ends. Private to io. */
#ifndef IO_LOOP_BACKEND_H
#define IO_LOOP_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* In the masks of change(): events are reported when the descriptor becomes ready, only then. */
#define LOOP_EDGE 4

#define LOOP_EVENTS_MAX 1024 /* maximum per turn; the rest is delivered in the next one */

typedef struct loopReady {
    int fd;
    int mask;
    uint32_t generation; /* filled in by the loop */
} loopReady;

typedef struct loopBackend {
    const char *name;
    bool has_edge; /* knows LOOP_EDGE */
    /* Returns the back end's state, NULL with errno on failure. */
    void *(*open)(void);
    void (*close)(void *state);
    /* Changes what is watched on `fd` from `old_mask` to `mask`. Returns 0, or -1 with errno. */
    int (*change)(void *state, int fd, int old_mask, int mask);
    /* Waits up to `timeout_ms` (-1: no limit) and fills `ready` with up to LOOP_EVENTS_MAX entries;
     * an error or hang-up counts as both directions and adds LOOP_HANGUP, which a back end without
     * LOOP_EDGE need not report. Returns their number; 0 if interrupted by a signal. */
    int (*wait)(void *state, int timeout_ms, loopReady *ready);
    /* These may be NULL: adds a watched descriptor to those that wait_priority() looks at for
     * readability, or removes it (0, or -1 with errno); wait_priority() returns at once. */
    int (*set_priority)(void *state, int fd, bool on);
    int (*wait_priority)(void *state, loopReady *ready, int ready_max);
} loopBackend;

/* NULL if not available on this platform. */
extern const loopBackend *const loopEpoll;
extern const loopBackend *const loopPoll;

#endif
