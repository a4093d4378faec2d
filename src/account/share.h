/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares of the main thread's time: of users (the rule cpu= of ACL SETUSER), of databases (db-cpu-
 * share) and of single clients (client-cpu-share). Requests beyond the share are not refused: the
 * server stops reading from the client, and requests that were read already wait in their order
 * until there is credit or no other client wants to run (cpu_bucket.h).
 *
 * Only sessions with a share are observed; others cost nothing. Main thread only. */
#ifndef ACCOUNT_SHARE_H
#define ACCOUNT_SHARE_H

#include "engine/hooks.h"

typedef struct share share;

typedef struct shareReport {
    int percent;
    uint64_t used_us;  /* time in commands of the user, since the start or CONFIG RESETSTAT */
    uint64_t commands; /* commands that clients have sent */
    uint64_t held;     /* requests that had to wait */
} shareReport;

/* Holds requests of sessions without credit back. */
extern const gate shareGate;
extern const feature shareFeature;

/* Creates the share of a user and sets the field `share` of the user; `percent` is 1 to 100. With
 * 100, time is counted and not limited. */
void shareNew(user *u, int percent);
/* Removes the share of a user, if there is one. */
void shareFree(user *u);
void shareSetPercent(share *s, int percent);
/* Parses a share of 0 to 100, "25%" or "25". */
bool shareParsePercent(slice text, int *out);
void shareRead(const share *s, shareReport *out);

/* True if a session is held back. */
bool sharesHold(void);
/* Removes and returns the next held session that may continue; NULL if there is none. `net` calls
 * it in each turn of the event loop, after the other sessions were served. `turn` is the number of
 * the turn. */
session *shareNextReleased(uint64_t turn);
/* Milliseconds until a held session may continue. At least one session must be held. */
int64_t shareNextMs(void);

#endif
