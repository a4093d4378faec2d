/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private declarations of this folder; the directives, which only the registry writes. */
#ifndef PUBSUB_PUBSUB_PRIV_H
#define PUBSUB_PUBSUB_PRIV_H

#include <stdint.h>

#include "config/config.h"
#include "engine/hooks.h"

typedef struct pubsubConfig {
    /* notifyFlag bits; without a channel (K or E) nothing is published. */
    uint32_t notify_keyspace_events;
    int64_t tracking_table_max_keys; /* 0: no limit */
} pubsubConfig;

extern pubsubConfig pubsubConf;
extern const configOption pubsubOptions[];

/* Small in the hostile build, so that tests reach the limits. */
#ifdef HOSTILE_BUILD
#define PUBSUB_CHOOSE(normal, hostile) (hostile)
#else
#define PUBSUB_CHOOSE(normal, hostile) (normal)
#endif

/* monitor.c */
void monitorOnSession(session *s, sessionEvent e);

/* feature.c: calls the functions ...Work() in the following turns of the loop, until they have
 * nothing to do. */
void pubsubWorkLater(void);

#endif
