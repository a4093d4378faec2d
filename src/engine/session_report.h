/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What subsystems above the engine know of a session, for CLIENT LIST and the like. Main thread
 * only. */
#ifndef ENGINE_SESSION_REPORT_H
#define ENGINE_SESSION_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/session.h"

/* How far a command that runs in slices is. */
typedef struct jobProgress {
    uint64_t visited;  /* elements; more than all if some are visited repeatedly */
    uint64_t elements; /* as many as it is going to visit, about */
    int64_t us;        /* sum of its slices */
    int64_t elapsed_us;
} jobProgress;

typedef struct sessionReport {
    uint64_t channels, patterns, shard_channels; /* subscriptions */
    bool tracking, tracking_broken, tracking_broadcast;
    /* Id of the session that gets its invalidations; 0: itself, -1: not tracking. */
    int64_t redirect;
    bool is_replica;
    bool is_throttled;   /* its write waits as a replica lags: repl-throttling-enabled */
    bool output_is_held; /* it waits for replicas: replication-quorum */
    bool has_job;        /* its command runs in slices: job.h */
    jobProgress job;     /* if it has one */
    size_t stream_bytes; /* of the replication stream kept for a replica, and their blocks */
    int64_t stream_blocks;
} sessionReport;

/* The session with that id that has a connection; NULL if there is none. Walks over all
 * sessions. */
session *sessionFindById(uint64_t id);
/* Registers the function that finds it; called once, by net. */
void sessionSetFindProc(session *(*find)(uint64_t id));
/* Appends the numbers of sessions by classes of the memory that maxmemory-clients limits, one line
 * per class. False if there is no limit. */
bool sessionAppendMemoryClasses(str *out);
/* Registers the function that does; called once, by net. */
void sessionSetMemoryClassesProc(bool (*append)(str *out));
/* Appends the session's line of CLIENT LIST without a line end, also for one without a connection.
 * Nothing if no function for it is registered. */
void sessionDescribe(const session *s, str *out);
/* Registers the function that does; called once, by net. */
void sessionSetDescribeProc(void (*describe)(const session *s, str *out));
/* The number of sessions whose reads are tracked. */
uint64_t sessionTrackingCount(void);
/* Registers the function that returns it; called once, by pubsub. */
void sessionSetTrackingCountProc(uint64_t (*count)(void));
/* Reads all that is known of a session. */
void sessionReportRead(const session *s, sessionReport *out);
/* Registers a function that fills in a part of it; called once by each subsystem that knows one. */
void sessionReportAddProc(void (*proc)(const session *s, sessionReport *out));

#endif
