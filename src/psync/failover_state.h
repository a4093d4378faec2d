/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER as a state machine: writes are paused until a replica has everything, then this server
 * follows it and asks it to take over.
 *
 *   state                 event                          next
 *   no-failover           FAILOVER                       waiting-for-sync: writes paused
 *   waiting-for-sync      a target has acknowledged all  failover-in-progress: replica of the
 *   target
 *                         timeout, FORCE                 failover-in-progress
 *                         timeout, ABORT, link lost      no-failover
 *   failover-in-progress  the target accepts             no-failover: stays its replica
 *                         refuses, no answer, ABORT      no-failover: primary again
 *
 * Each state but the first has an end in time, so writes are never paused for good: that of
 * TIMEOUT, else `limit_ms` of failoverBegin(). It acts through a table of functions. One thread at
 * a time. */
#ifndef PSYNC_FAILOVER_STATE_H
#define PSYNC_FAILOVER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef enum failoverState {
    FAILOVER_NONE,
    FAILOVER_WAITING_FOR_SYNC,
    FAILOVER_IN_PROGRESS
} failoverState;

typedef enum failoverTarget {
    FAILOVER_TARGET_GONE, /* not connected: it cannot come back while writes are paused for it */
    FAILOVER_TARGET_BEHIND,
    FAILOVER_TARGET_SYNCED,
} failoverTarget;

/* All functions get the `arg` of failoverInit(). */
typedef struct failoverEnv {
    /* The state of the replica with this address. An empty `host` stands for any replica; if one is
     * in sync, host and port are set to its address. */
    failoverTarget (*find)(void *arg, str *host, int64_t *port);
    /* Follows it and asks it to take over; failoverAnswered() follows, unless the link is lost. */
    void (*follow)(void *arg, slice host, int64_t port);
    /* Becomes a primary again. */
    void (*promote)(void *arg);
    /* The state has changed: writes are paused unless it is FAILOVER_NONE. */
    void (*changed)(void *arg, failoverState state);
} failoverEnv;

typedef struct replFailover {
    const failoverEnv *env;
    void *arg;
    failoverState state;
    str host; /* of the target; empty: any replica */
    int64_t port;
    bool force;
    int64_t deadline_ms; /* of the state; monotonic */
    int64_t limit_ms;
} replFailover;

typedef struct failoverRequest {
    slice host; /* empty: any replica */
    int64_t port;
    bool force;
    int64_t deadline_ms; /* monotonic; 0: no TIMEOUT */
    int64_t limit_ms;    /* longest time in a state without a deadline */
} failoverRequest;

void failoverInit(replFailover *f, const failoverEnv *env, void *arg);
void failoverClear(replFailover *f);
/* The state must be FAILOVER_NONE. */
void failoverBegin(replFailover *f, const failoverRequest *r, int64_t now_ms);
/* Ends the failover, in any state but FAILOVER_NONE; this server is a primary then. */
void failoverAbort(replFailover *f, const char *why);
/* The target's answer. */
void failoverAnswered(replFailover *f, bool accepted);
/* Time passes: at least ten times a second. */
void failoverAdvance(replFailover *f, int64_t now_ms);

#endif
