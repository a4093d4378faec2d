/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares of the main thread's time: of users (the rule cpu= of ACL SETUSER) and of single clients
 * (client-cpu-share). Requests over the share are not refused: the client is not read, and what was
 * read waits, in its order, until there is credit or nobody else wants to run (cpu_bucket.h).
 *
 * Only sessions with a share are observed; others cost nothing. Main thread only. */
#ifndef ACCOUNT_SHARE_H
#define ACCOUNT_SHARE_H

#include "engine/hooks.h"

typedef struct share share;

typedef struct shareReport {
    int percent;
    uint64_t used_us;  /* time in commands of the user, since the start or CONFIG RESETSTAT */
    uint64_t commands; /* those that clients have sent */
    uint64_t held;     /* requests that had to wait */
} shareReport;

/* Holds requests back. */
extern const gate shareGate;
extern const feature shareFeature;

/* The share of a user, whose field `share` is set; `percent` is 1 to 100, 100: counted only. */
void shareNew(user *u, int percent);
/* The user has no share any more. May be called if there was none. */
void shareFree(user *u);
void shareSetPercent(share *s, int percent);
void shareRead(const share *s, shareReport *out);

/* True if a session is held back. */
bool sharesHold(void);
/* For `net`, in each turn with held sessions, after others were served: removes and returns the
 * next session that may continue; NULL if there is none. `turn` is the number of the turn. */
session *shareNextReleased(uint64_t turn);
/* Milliseconds until another one may continue; one is held back. */
int64_t shareNextMs(void);

#endif
