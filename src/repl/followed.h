/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which data this replica keeps if its primary has lost them (replica-refuse-empty-primary): those
 * of the primary that it has followed, until somebody orders it to follow one. Main thread only. */
#ifndef REPL_FOLLOWED_H
#define REPL_FOLLOWED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "psync/birth.h"
#include "psync/link.h"
#include "psync/primary.h"

/* The dataset is that of the primary at the configured address, whose birth was told, or NULL. */
void followedNote(const replBirth *birth);
/* After the start of a replica whose dataset was loaded: it may be that of its primary. */
void followedAfterStart(void);
/* An order to follow a server, or to become a primary: what is here may be replaced. */
void followedForget(void);
/* Sets `keeps_data` and `kept_birth`. */
void followedFillSettings(linkSettings *s);
/* A dataset is going to be received: says so in the log if it replaces keys here and is that of a
 * primary that was started without one. */
void followedLogOrder(const replLink *link);

/* A replica was refused, as it keeps data that this primary has lost. */
void lostDataNote(const replPeer *peer);
/* A replica was not refused: if it was the last one that was, it has got an order. */
void lostDataEnd(const replPeer *peer);
/* How long ago that was last; -1: never, or this server is a replica now. */
int64_t lostDataMs(void);
/* Fields of INFO replication of a primary. */
void lostDataPrintInfo(str *out);
/* CONFIG SET replica-refuse-empty-primary */
status followedApply(reason *why);

#endif
