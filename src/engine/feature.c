/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of the engine: directives, statistics, periodic jobs, gates, observers. */
#include "engine/engine.h"

#include "engine/block.h"
#include "engine/child.h"
#include "engine/deliver_priv.h"
#include "engine/engine_priv.h"
#include "engine/hot.h"
#include "engine/hotkeys_priv.h"
#include "engine/expiry_gate.h"
#include "engine/job_gate.h"
#include "engine/key_index.h"
#include "engine/pause.h"
#include "engine/stats_priv.h"
#include "engine/transaction_priv.h"

static status onShutdown(uint32_t flags, reason *why) {
    (void)flags, (void)why;
    childKill();
    childKillBeside();
    return OK;
}

static void onDb(const dbEvent *e) {
    hotkeysWindowDbEvent(e);
    watchDbEvent(e);
    blockDbEvent(e);
}

/* WAKE: for keys that changed without a command. */
/* In a nested turn the command that changed keys is not finished; its waits are checked after
 * it. */
static void wake(void) {
    if (!engineHot.current) blockWake();
}

static const stageJob stages[] = {{STAGE_WAKE, wake}, {STAGE_LOG, deliverAll}, {0}};
static const tickJob ticks[] = {
    {"rates", 100, statsSampleRates, NULL},
    {"windows of hot keys", 100, hotkeysWindowTick, NULL},
    {"child", 0, childPoll, childIsPolled},
    {0},
};
static const gate *const gates[] = {&noMultiGate, &pauseGate,  &queueGate, &jobGate,
                                    &claimGate,   &expiryGate, NULL};
static const keyObserver *const observers[] = {&keyIndexObserver, NULL};
static const commandObserver *const command_observers[] = {&hotkeysWindowObserver, NULL};

const feature engineFeature = {.name = "engine",
                               .options = engineOptions,
                               .info = statsSections,
                               .ticks = ticks,
                               .stages = stages,
                               .gates = gates,
                               .observers = observers,
                               .command_observers = command_observers,
                               .on_db = onDb,
                               .on_shutdown = onShutdown};
