/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The roof's own feature: the directives of the process, its INFO sections, its periodic jobs. */
#include "server/kernel.h"
#include "server/roof.h"
#include "server/server_priv.h"

static const tickJob ticks[] = {
    {"memory-peak", 100, infoMemoryTick},
    {"loop-rates", 100, infoLoopTick},
    {"supervisor", 0, daemonTick},
    {0},
};

const feature serverFeature = {.name = "server",
                               .options = serverOptions,
                               .info = serverSections,
                               .ticks = ticks,
                               .on_child = kernelChildEvent,
                               .on_stats_reset = infoResetStats};
