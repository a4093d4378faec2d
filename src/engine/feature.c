/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine as a feature of the house: its directives, statistics, periodic jobs,
 * transactions. */
#include "engine/engine.h"

#include "engine/engine_priv.h"
#include "engine/pause.h"
#include "engine/stats_priv.h"
#include "engine/transaction_priv.h"

static const gate *const gates[] = {&noMultiGate, &pauseGate, &queueGate, NULL};
static const keyObserver *const observers[] = {&watchObserver, NULL};

const feature engineFeature = {.name = "engine",
                               .options = engineOptions,
                               .info = statsSections,
                               .ticks = statsTicks,
                               .gates = gates,
                               .observers = observers,
                               .on_db = watchDbEvent};
