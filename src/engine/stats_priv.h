/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics on the request path. */
#ifndef ENGINE_STATS_PRIV_H
#define ENGINE_STATS_PRIV_H

#include "base/histogram.h"
#include "engine/command.h"
#include "engine/hooks.h"

extern const infoSection statsSections[];
/* Periodic job: samples the rates of the instantaneous_... fields. */
void statsSampleRates(int64_t budget_us);

/* Allocates the command's histogram. */
void statsMakeHistogram(command *cmd);

static inline void statsRecordLatency(command *cmd, int64_t ns, uint32_t count) {
    if (__builtin_expect(!cmd->latency, 0)) statsMakeHistogram(cmd);
    histogramRecord(cmd->latency, ns, count);
}

#endif
