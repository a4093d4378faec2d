/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What commands ask of the server as a whole. The roof knows the answers and hangs up a function
 * for each question before the loop starts. Main thread only. */
#ifndef ENGINE_LIFECYCLE_H
#define ENGINE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

/* SHUTDOWN. `flags` as in hooks.h (SHUTDOWN_...); `abort` takes back a shutdown that waits.
 * OK: it is on its way (or taken back); ERR_AGAIN: it waits for somebody; anything else: refused,
 * nothing has changed and `why` says why. */
typedef status engineShutdownProc(uint32_t flags, bool abort, reason *why);
void engineSetShutdownProc(engineShutdownProc *proc);
status engineShutdownAsk(uint32_t flags, bool abort, reason *why) MUST_USE;

/* Begins the process anew, after an orderly end or without one, `delay_ms` later. Returns only when that was
 * refused: `why` then tells, and nothing has changed. */
typedef status engineRestartProc(bool graceful, int64_t delay_ms, reason *why);
void engineSetRestartProc(engineRestartProc *proc);
status engineRestartAsk(bool graceful, int64_t delay_ms, reason *why) MUST_USE;

/* Who this server says it is. Texts are borrowed until the configuration changes. */
typedef struct engineIdentity {
    const char *version;
    const char *mode;              /* "standalone", "cluster", "sentinel" */
    const char *role;              /* "master", "replica" */
    const char *availability_zone; /* "" when none is configured */
} engineIdentity;
typedef void engineIdentityProc(engineIdentity *out);
void engineSetIdentityProc(engineIdentityProc *proc);
void engineIdentify(engineIdentity *out);

/* How many databases there are: for those who may not ask the store. */
int engineDatabaseCount(void);

#endif
