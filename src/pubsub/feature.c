/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pub/sub, keyspace events, client tracking. So far: MONITOR and directives. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"

static const gate *const gates[] = {&monitorGate, NULL};

const feature pubsubFeature = {
    .name = "pubsub", .options = pubsubOptions, .gates = gates, .on_session = monitorOnSession};
