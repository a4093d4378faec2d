/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pauses: for a time, requests of clients are held back, all or those that may write; meanwhile no key goes by
 * itself. Each reason has a pause of its own; what is held is what any of them holds. Main thread only. */
#ifndef ENGINE_PAUSE_H
#define ENGINE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/hooks.h"
#include "engine/session.h"

typedef enum pauseReason {
    PAUSE_BY_COMMAND,   /* CLIENT PAUSE */
    PAUSE_FOR_SHUTDOWN, /* replicas catch up first */
    PAUSE_FOR_FAILOVER,
    PAUSE_FOR_SLOT_MIGRATION,
    PAUSE_REASONS,
} pauseReason;

typedef enum pauseScope { PAUSE_NONE, PAUSE_WRITES, PAUSE_ALL } pauseScope;

/* Holds requests back; the last of the gates that ask, before the queue of MULTI. */
extern const gate pauseGate;

/* Begins a pause or changes the one of that reason: it never ends earlier and never gets weaker. `end_ms` is wall
 * time. */
void pauseBegin(pauseReason reason, pauseScope scope, int64_t end_ms);
/* Ends the pause of that reason now. */
void pauseEnd(pauseReason reason);
/* The strongest of all pauses. */
pauseScope pauseNow(void);
/* Wall time at which the last of them ends; 0 when there is none. */
int64_t pauseEndMs(void);
/* "client_pause" and so on, of the pause that lasts longest: INFO. "none" without one. */
const char *pauseReasonName(void);

/* The next held session that may go on, taken off the list; NULL when there is none. */
session *pauseNextReleased(void);
/* How many requests are held. */
int pauseHeldCount(void);
/* Forgets a session that ends. */
void pauseForget(session *s);

#endif
