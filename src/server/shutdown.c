/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shutdown. The features' shutdown functions run in reverse order of their start; then the
 * replicas are sent what is missing of the stream, the listeners are closed, files removed, and the
 * process exits with 0. A feature may refuse (the save failed) or ask to be called again (replicas
 * lag). Main thread only. */
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/cluster.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "engine/server_event.h"
#include "metrics/metrics.h"
#include "net/net.h"
#include "persist/persist.h"
#include "repl/repl.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "store/store.h"

static struct {
    bool waiting; /* a feature asked for more time */
    bool announced;
    uint32_t flags;
    /* Monotonic: until when features may ask for more time (shutdown-timeout). */
    int64_t deadline_ms;
} shutdown_state;

/* Removes the files of this run and exits. */
static void __attribute__((noreturn)) finish(void) {
    serverEventSignal(&(serverEvent){.kind = SERVER_SHUTDOWN});
    bool has_dataset = serverModeNow()->has_dataset;
    if (has_dataset) {
        clusterAtExit(shutdown_state.flags);
        replSendLast(!persistKeepsDataset(shutdown_state.flags) &&
                     !(shutdown_state.flags & SHUTDOWN_FAILOVER));
    }
    metricsStop();
    netStopListening();
    if (has_dataset) replStop();
    netCloseAll();
    daemonRemovePidFile();
#ifdef LEAK_CHECKED
    storeShutdown(); /* leak checkers do not recognise the pointers in table words */
#endif
    logWarning("%s", serverModeNow()->farewell);
    exit(0);
}

/* Logs who requested the shutdown: a client or a signal. */
static void announce(void) {
    str line = STR_EMPTY;
    if (engineHot.current && netDescribeOrderer(engineHot.current->who, &line)) {
        logNotice("User requested shutdown... (user request from '%s')", strText(&line));
    } else {
        logNotice("User requested shutdown...");
    }
    strFree(&line);
}

status shutdownNow(uint32_t flags, reason *why) {
    hotCheck(threadIsMain());
    if (!shutdown_state.announced) {
        announce();
        daemonNotify("STATUS=Shutting down\nSTOPPING=1\n");
        shutdown_state.announced = true;
        shutdown_state.deadline_ms = clockMonoMs() + (int64_t)serverConf.shutdown_timeout * 1000;
    }
    if (clockMonoMs() >= shutdown_state.deadline_ms) flags |= SHUTDOWN_NOW;
    shutdown_state.flags = flags;
    status st = hooksShutdown(flags, why);
    shutdown_state.waiting = st == ERR_AGAIN;
    if (st == OK) finish();
    engineSetShutdownWaits(shutdown_state.waiting);
    if (st != ERR_AGAIN) {
        if (why->text[0]) logWarning("%s", why->text);
        logWarning("Errors trying to shut down the server. Check the logs for more information.");
        shutdown_state.announced = false;
        pauseEnd(PAUSE_FOR_SHUTDOWN);
        daemonNotify("STATUS=Shutdown failed, still serving\n");
    }
    return st;
}

void shutdownPoll(void) {
    hotCheck(threadIsMain());
    if (!shutdown_state.waiting) return;
    reason why = {""};
    (void)shutdownNow(shutdown_state.flags, &why); /* has logged why it failed */
}

int64_t shutdownRemainingMs(void) {
    hotCheck(threadIsMain());
    if (!shutdown_state.waiting) return -1;
    int64_t left_ms = shutdown_state.deadline_ms - clockMonoMs();
    return left_ms > 0 ? left_ms : 0;
}

status shutdownRequest(uint32_t flags, bool abort, reason *why) {
    hotCheck(threadIsMain());
    if (!abort) return shutdownNow(flags, why);
    if (!signalsForget() && !shutdown_state.waiting)
        return reasonSet(why, ERR_NOT_FOUND, "No shutdown in progress.");
    logNotice("Shutdown manually aborted.");
    shutdown_state.waiting = shutdown_state.announced = false;
    pauseEnd(PAUSE_FOR_SHUTDOWN);
    engineSetShutdownWaits(false);
    daemonReady();
    return OK;
}
