/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cron timer: hz times per second it reads the clock, handles signals and runs the periodic
 * jobs of all features within a time budget. Main thread only. */
#include "base/base.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/tick.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "server/watchdog.h"

static int64_t cronTurn(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id, (void)arg; /* there is one loop and one cron */
    executeNewTurn();
    watchdogKick();
    int64_t period_ms = 1000 / serverConf.hz;
    /* In a nested turn a command, such as a slow script, is not finished: a shutdown would save half of its changes. */
    if (engineHot.current) return period_ms;
    signalsPoll();
    shutdownPoll();
    /* Jobs may move objects, and expect a whole dataset. */
    if (engineHot.loading) return period_ms;
    int64_t began_us = clockMonoUs();
    ticksRun(period_ms * 1000 / 4); /* jobs may use a quarter of the time */
    serverRunNow()->cron_us += (uint64_t)(clockMonoUs() - began_us);
    return period_ms;
}

void cronStart(void) {
    watchdogSet(serverConf.watchdog_period);
    /* Never removed, so its id is not needed. */
    (void)loopAddTimer(serverRunNow()->loop, 1, cronTurn, NULL);
}
