/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations on the whole server (lifecycle.h). Invariant: each function is set once, before the loop starts. Main
 * thread only. */
#include "engine/lifecycle.h"

#include "base/base.h"
#include "store/store.h"

static struct {
    engineShutdownProc *shutdown;
    engineRestartProc *restart;
    engineIdentityProc *identity;
} roof;

void engineSetShutdownProc(engineShutdownProc *proc) { roof.shutdown = proc; }

status engineShutdownAsk(uint32_t flags, bool abort, reason *why) {
    check(roof.shutdown != NULL);
    return roof.shutdown(flags, abort, why);
}

void engineSetRestartProc(engineRestartProc *proc) { roof.restart = proc; }

status engineRestartAsk(bool graceful, int64_t delay_ms, reason *why) {
    check(roof.restart != NULL);
    return roof.restart(graceful, delay_ms, why);
}

void engineSetIdentityProc(engineIdentityProc *proc) { roof.identity = proc; }

void engineIdentify(engineIdentity *out) {
    check(roof.identity != NULL);
    roof.identity(out);
}

int engineDatabaseCount(void) { return storeDbCount(); }
