/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of the house: wings are asked in reverse order of their start, then doors close, files go, and the
 * process exits 0. A wing may refuse (the save failed) or ask to be called again (replicas lag).
 * Main thread only. */
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "net/net.h"
#include "server/roof.h"
#include "store/store.h"

static struct {
    bool waiting; /* a wing asked for more time */
    bool announced;
    uint32_t flags;
} ending;

status shutdownNow(uint32_t flags, reason *why) {
    if (!ending.announced) {
        logNotice("User requested shutdown...");
        daemonNotify("STOPPING=1\n");
        ending.announced = true;
    }
    ending.flags = flags;
    status st = hooksShutdown(flags, why);
    if (st == ERR_AGAIN) {
        ending.waiting = true;
        return st;
    }
    if (st != OK) {
        ending.waiting = ending.announced = false;
        return st;
    }
    netStopListening();
    netCloseAll();
    daemonRemovePidFile();
#ifdef LEAK_CHECKED
    storeShutdown(); /* table words are no pointers to a leak checker */
#endif
    logWarning("Valkey is now ready to exit, bye bye...");
    exit(0);
}

status shutdownAsk(uint32_t flags, bool abort, reason *why) {
    if (!abort) return shutdownNow(flags, why);
    if (!ending.waiting) return reasonSet(why, ERR_NOT_FOUND, "No shutdown in progress.");
    logNotice("Shutdown manually aborted.");
    ending.waiting = ending.announced = false;
    return OK;
}
