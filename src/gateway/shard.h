/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shard channels of other nodes for clients of the gateway. This node subscribes to each channel
 * once, at the owner of its slot, and passes messages on to its clients. Main thread only. */
#ifndef GATEWAY_SHARD_H
#define GATEWAY_SHARD_H

#include "base/slice.h"
#include "gateway/client_priv.h"

/* SSUBSCRIBE, SUNSUBSCRIBE: held back until the owners of the slots will send messages. */
gateVerdict shardAdmit(gatewayClient *gc, ctx *c);
/* A message, or the end of a subscription, has come from a node. */
void shardTakePush(slice push);
/* Follows slots that move, and links that end. */
void shardTick(void);

#endif
