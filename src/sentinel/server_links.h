/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connections of this Sentinel with the instances that it watches. */
#ifndef SENTINEL_SERVER_LINKS_H
#define SENTINEL_SERVER_LINKS_H

#include "monitor/view.h"

/* See sentinelEnv. */
void serverLinkConnect(sentinelView *v, sentinelInstance *i, bool pubsub);
void serverLinkDisconnect(sentinelView *v, sentinelLink *l, bool pubsub);
void serverLinkSend(sentinelView *v, sentinelLink *l, bool pubsub, int count, const slice *words);
bool serverLinkOwnIp(sentinelView *v, const sentinelLink *l, char ip[SENTINEL_IP_MAX]);
/* Names of hosts; they are looked up in the background once the loop runs. */
bool serverLinkResolve(sentinelView *v, slice host, char ip[SENTINEL_IP_MAX]);

#endif
