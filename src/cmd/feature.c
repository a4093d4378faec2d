/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of the commands' directives, of the gate of DEBUG, and of the count of
 * checked payloads. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "cmd/cmd.h"
#include "cmd/cmd_priv.h"
#include "cmd/hash_priv.h"
#include "cmd/hotkeys_priv.h"
#include "ds/stream_producers.h"
#include "format/rdb_settings.h"

static const gate *const gates[] = {&debugGate, NULL};
static const commandObserver *const command_observers[] = {&hotkeysObserver, NULL};

static void printStats(str *out) {
    strAppendField(out, "dump_payload_sanitizations", rdbPackedChecks());
}

/* Removes ids of producers that have expired. */
static void expireProduced(int64_t budget_us) {
    (void)budget_us; /* the call takes less time than the budget */
    streamProducersExpireSome(engineHot.now_ms);
}

static const tickJob ticks[] = {
    {.name = "ids of producers", .period_ms = 100, .run = expireProduced},
    {0},
};

static const infoSection sections[] = {
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

/* The gate is always armed: it selects DEBUG only, so other commands are not affected. */
static status init(reason *why) {
    (void)why; /* cannot fail */
    gateArm(&debugGate, true);
    return OK;
}

const feature cmdFeature = {.name = "cmd",
                            .options = cmdOptions,
                            .info = sections,
                            .gates = gates,
                            .command_observers = command_observers,
                            .on_session = hashImportSessionEvent,
                            .ticks = ticks,
                            .on_stats_reset = rdbResetPackedChecks,
                            .init = init};
