/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The feature of `server` itself: directives of the process, its INFO sections and periodic
 * jobs. */
#include "engine/server_event.h"
#include "server/kernel.h"
#include "server/server.h"
#include "server/server_priv.h"

static const tickJob ticks[] = {
    {"memory-peak", 100, infoMemoryTick, NULL},
    {"loop-rates", 100, infoLoopTick, NULL},
    {"supervisor", 0, daemonTick, daemonIsWatched},
    {0},
};

/* The kernel's score of this process for the case of too little memory depends on the role. */
static void applyRole(const serverEvent *e) {
    (void)e;                     /* asks for the role itself */
    (void)kernelApplyOomScore(); /* a failure is logged; the server can run anyway */
}

static status init(reason *why) {
    (void)why; /* cannot fail */
    serverEventsListen(applyRole, 1u << SERVER_ROLE);
    return OK;
}

/* The sections that Sentinel does not have are not printed: serverMode.info_orders. */
const feature sentinelServerFeature = {
    .name = "server", .info = serverSections, .ticks = ticks, .on_stats_reset = infoResetStats};

const feature serverFeature = {.name = "server",
                               .options = serverOptions,
                               .info = serverSections,
                               .ticks = ticks,
                               .on_child = kernelChildEvent,
                               .on_stats_reset = infoResetStats,
                               .init = init};
