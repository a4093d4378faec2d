/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels, keyspace events, client tracking. Today: its directives. Main thread only. */
#ifndef PUBSUB_PUBSUB_H
#define PUBSUB_PUBSUB_H

#include "engine/hooks.h"

extern const feature pubsubFeature;
/* Refuses keys to those who monitor. */
extern const gate monitorGate;

#endif
