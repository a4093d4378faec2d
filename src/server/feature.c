/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The feature of `server` itself: directives of the process, its INFO sections and periodic
 * jobs. */
#include "server/kernel.h"
#include "server/server.h"
#include "server/server_priv.h"

static const tickJob ticks[] = {
    {"memory-peak", 100, infoMemoryTick, NULL},
    {"loop-rates", 100, infoLoopTick, NULL},
    {"supervisor", 0, daemonTick, daemonIsWatched},
    {0},
};

const feature serverFeature = {.name = "server",
                               .options = serverOptions,
                               .info = serverSections,
                               .ticks = ticks,
                               .on_child = kernelChildEvent,
                               .on_stats_reset = infoResetStats};
