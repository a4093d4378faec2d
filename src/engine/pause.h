/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pauses: for a time, all client requests, or only requests that may write, are delayed; meanwhile
 * keys neither expire nor are evicted. There is one pause per reason; the strongest scope applies.
 * Main thread only. */
#ifndef ENGINE_PAUSE_H
#define ENGINE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/hooks.h"
#include "engine/session.h"

typedef enum pauseReason {
    PAUSE_BY_COMMAND,   /* CLIENT PAUSE */
    PAUSE_FOR_SHUTDOWN, /* until replicas have caught up */
    PAUSE_FOR_FAILOVER,
    PAUSE_FOR_SLOT_MIGRATION,
    PAUSE_FOR_SLOT_HANDOVER,  /* to another node, of slots that it is about to own */
    PAUSE_FOR_CLUSTER_CONFIG, /* the file that says which slots are those of this node */
    PAUSE_FOR_SNAPSHOT,       /* which cannot be written as fast as keys change */
    PAUSE_FOR_AOF,            /* which the disk does not accept */
    PAUSE_FOR_LAG,            /* of a replica that takes less than is written */
    PAUSE_REASONS,
} pauseReason;

/* PAUSE_SOME: writes that a function selects: pauseSelect(). */
typedef enum pauseScope { PAUSE_NONE, PAUSE_SOME, PAUSE_WRITES, PAUSE_ALL } pauseScope;

/* Holds requests back; evaluated after all other gates except the one that queues commands in
 * MULTI. */
extern const gate pauseGate;

/* Starts a pause or extends the one of that reason: its end is never moved forward and its scope
 * never weakened. `end_ms` is wall time. Changes in slices that have begun go on (engine/job.h): a
 * pause after which no write may follow calls jobEndChanges() before. One that only limits how fast
 * keys change may begin within a lookup, the result of which jobEndChanges() would invalidate. */
void pauseBegin(pauseReason reason, pauseScope scope, int64_t end_ms);
/* Which requests that may write PAUSE_SOME holds back. What it holds back may have changed: held
 * requests are asked about again. There must be one before PAUSE_SOME begins. */
typedef bool pauseSelectProc(ctx *c);
void pauseSelect(pauseSelectProc *selects);
/* Ends the pause of that reason. */
void pauseEnd(pauseReason reason);
/* The strongest scope of all pauses. */
pauseScope pauseNow(void);
/* True while there is a pause of that reason. */
bool pauseIsFor(pauseReason reason);
/* The number of the present pause of that reason, which no other one has; 0: there is none. */
uint64_t pauseNumber(pauseReason reason);
/* Wall time at which the last pause ends; 0 if there is none. */
int64_t pauseEndMs(void);
/* "client_pause" etc. for the pause that ends last, for INFO. "none" without a pause. */
const char *pauseReasonName(void);

/* True while a pause holds back writes of clients like this one. */
bool pauseHoldsWrite(ctx *c);
/* True while a pause holds back the stream of the primary. */
bool pauseHoldsStream(void);
/* For another gate: holds the session's request back until a pause ends, and returns GATE_HELD.
 * There must be a pause. pauseHoldWrite(): until no pause holds writes. */
gateVerdict pauseHold(session *s);
gateVerdict pauseHoldWrite(session *s);

/* Removes and returns the next held session that may continue; NULL if there is none. */
session *pauseNextReleased(void);
/* Number of held requests. */
int pauseHeldCount(void);
/* Called when a session ends. */
void pauseForget(session *s);

#endif
