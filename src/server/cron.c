/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cron timer: hz times per second it reads the clock, handles signals and runs the periodic
 * jobs of all features within a time budget. Main thread only.
 *
 * When only the cron has woken the loop for some seconds and no job is busy, it rests: it runs once
 * per second until something happens. Whatever wakes the loop makes it run at once, before requests
 * of that turn are executed, so that they find the clock and the samples as always. */
#include "base/base.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/server_event.h"
#include "engine/tick.h"
#include "server/server.h"
#include "server/server_priv.h"
#include "server/watchdog.h"

static struct {
    uint64_t timer;
    uint64_t turns;         /* serverRun.turns in the last run */
    int64_t quiet_since_ms; /* monotonic */
    int64_t rest_until_ms;  /* 0: it does not rest */
} cron;

/* True if only the cron has woken the loop for so long that all rates in INFO have become 0. */
static bool isQuiet(int64_t period_ms) {
    hotCheck(period_ms > 0);
    enum { SAMPLE_MS = 100, SAMPLES = sizeof(((rate *)0)->samples) / sizeof(uint64_t) };
    uint64_t turns = serverRunNow()->turns;
    bool alone = turns - cron.turns <= 1;
    cron.turns = turns;
    int64_t now_ms = clockMonoMs();
    if (!alone) cron.quiet_since_ms = now_ms;
    int64_t sample_ms = period_ms > SAMPLE_MS ? period_ms : SAMPLE_MS;
    return now_ms - cron.quiet_since_ms > 2 * SAMPLES * sample_ms;
}

static bool mayRest(int64_t period_ms) {
    hotCheck(period_ms > 0);
    return isQuiet(period_ms) && !serverConf.watchdog_period && shutdownRemainingMs() < 0 &&
           !ticksAreBusy() && !serverEventIsWanted(SERVER_CRON);
}

void cronWake(void) {
    hotCheck(threadIsMain());
    if (likely(!cron.rest_until_ms)) return;
    int64_t now_ms = clockMonoMs();
    bool is_due = now_ms >= cron.rest_until_ms;
    cron.rest_until_ms = 0;
    if (is_due) return;
    cron.quiet_since_ms = now_ms;
    loopRemoveTimer(serverRunNow()->loop, cron.timer);
    cronStart();
}

static int64_t cronTurn(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id, (void)arg; /* there is one loop and one cron */
    executeNewTurn();
    watchdogKick();
    int64_t period_ms = 1000 / tickDrawHz();
    /* In a nested turn a command, such as a slow script, is not finished: a shutdown would save
     * half of its changes. */
    if (engineHot.current) return period_ms;
    signalsPoll();
    shutdownPoll();
    /* Jobs may move objects, and expect a whole dataset. */
    if (engineHot.loading) return period_ms;
    int64_t began_us = clockMonoUs();
    ticksRun(period_ms * 1000 / 4); /* jobs may use a quarter of the time */
    serverEventSignal(&(serverEvent){.kind = SERVER_CRON, .cron = {.hz = tickHz()}});
    serverRunNow()->cron_us += (uint64_t)(clockMonoUs() - began_us);
    enum { REST_MS = 1000 };
    if (period_ms >= REST_MS || !mayRest(period_ms)) return period_ms;
    cron.rest_until_ms = clockMonoMs() + REST_MS;
    return REST_MS;
}

static int configuredHz(void) { return serverConf.hz; }

void cronInit(void) { tickSetHzProc(configuredHz); }

void cronStart(void) { cron.timer = loopAddTimer(serverRunNow()->loop, 0, cronTurn, NULL); }
