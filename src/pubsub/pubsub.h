/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pub/sub, keyspace events, client tracking. So far: MONITOR and directives. Main thread only. */
#ifndef PUBSUB_PUBSUB_H
#define PUBSUB_PUBSUB_H

#include "engine/hooks.h"

extern const feature pubsubFeature;
/* Refuses commands with keys on monitoring sessions. */
extern const gate monitorGate;

#endif
