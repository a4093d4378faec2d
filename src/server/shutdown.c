/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of the house: wings are asked in reverse order of their start, then doors close, files go, and the
 * process exits 0. A wing may refuse (the save failed) or ask to be called again (replicas lag).
 * Main thread only. */
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "metrics/metrics.h"
#include "net/net.h"
#include "server/roof.h"
#include "server/server_priv.h"
#include "store/store.h"

static struct {
    bool waiting; /* a wing asked for more time */
    bool announced;
    uint32_t flags;
    int64_t deadline_ms; /* monotonic: how long wings may ask for more (shutdown-timeout) */
} ending;

/* Files go, and with them the process. */
static void __attribute__((noreturn)) end(void) {
    metricsStop();
    netStopListening();
    netCloseAll();
    daemonRemovePidFile();
#ifdef LEAK_CHECKED
    storeShutdown(); /* table words are no pointers to a leak checker */
#endif
    logWarning("Valkey is now ready to exit, bye bye...");
    exit(0);
}

/* Who asked: a client's line, or a signal. */
static void announce(void) {
    str line = STR_EMPTY;
    if (engineHot.current && netDescribeForLog(engineHot.current->who, &line)) {
        logNotice("User requested shutdown... (user request from '%s')", strText(&line));
    } else {
        logNotice("User requested shutdown...");
    }
    strFree(&line);
}

status shutdownNow(uint32_t flags, reason *why) {
    if (!ending.announced) {
        announce();
        daemonNotify("STATUS=Shutting down\nSTOPPING=1\n");
        ending.announced = true;
        ending.deadline_ms = clockMonoMs() + (int64_t)serverConf.shutdown_timeout * 1000;
    }
    if (clockMonoMs() >= ending.deadline_ms) flags |= SHUTDOWN_NOW;
    ending.flags = flags;
    status st = hooksShutdown(flags, why);
    ending.waiting = st == ERR_AGAIN;
    if (st == OK) end();
    if (st != ERR_AGAIN) {
        ending.announced = false;
        daemonNotify("STATUS=Shutdown failed, still serving\n");
    }
    return st;
}

void shutdownPoll(void) {
    if (!ending.waiting) return;
    reason why = {""};
    status st = shutdownNow(ending.flags, &why);
    if (st != ERR_AGAIN && why.text[0]) logWarning("%s", why.text);
}

int64_t shutdownLeftMs(void) {
    if (!ending.waiting) return -1;
    int64_t left_ms = ending.deadline_ms - clockMonoMs();
    return left_ms > 0 ? left_ms : 0;
}

status shutdownAsk(uint32_t flags, bool abort, reason *why) {
    if (!abort) return shutdownNow(flags, why);
    if (!ending.waiting) return reasonSet(why, ERR_NOT_FOUND, "No shutdown in progress.");
    logNotice("Shutdown manually aborted.");
    ending.waiting = ending.announced = false;
    daemonReady();
    return OK;
}
