/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sentinel: watches primaries, their replicas and other Sentinels, and replaces a primary that has
 * failed. A mode of the process (server/server.h). Main thread only. */
#ifndef SENTINEL_SENTINEL_H
#define SENTINEL_SENTINEL_H

#include "config/config.h"
#include "engine/hooks.h"

extern const feature sentinelFeature;
/* The directive "sentinel" of this mode. */
extern const configOption sentinelOptions[];

/* Before the configuration is read. */
void sentinelPrepare(void);
/* After the listeners are open: begins to watch. */
void sentinelBegin(void);
/* ROLE in this mode. */
void sentinelReplyRole(ctx *c);

#endif
