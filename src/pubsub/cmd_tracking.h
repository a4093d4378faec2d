/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of tracking.c for its commands. */
#ifndef PUBSUB_CMD_TRACKING_H
#define PUBSUB_CMD_TRACKING_H

#include "pubsub/tracking.h"

/* The tracker of a session; creates it, switched off. */
tracker *trackerFor(session *s);
/* Switches tracking on, or replaces its options; `target` NULL: no redirection. Prefixes are
 * kept. */
void trackingOn(tracker *t, uint32_t flags, session *target);
/* Switches tracking off, and removes the prefixes. */
void trackingOff(tracker *t);

#endif
