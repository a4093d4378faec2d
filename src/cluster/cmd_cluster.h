/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of CLUSTER share. Main thread only. */
#ifndef CLUSTER_CMD_CLUSTER_H
#define CLUSTER_CMD_CLUSTER_H

#include <stdbool.h>

#include "bus/map.h"
#include "engine/ctx.h"

/* True if the server is a cluster node. False: the error was replied. */
bool clusterIsNode(ctx *c);
/* The node whose id is the third word. NULL: the error was replied. */
clusterNode *clusterNodeArg(ctx *c);
/* Describes the client of the request for the log; the caller frees it. Empty without a
 * connection. */
str clusterClientOf(const ctx *c);
/* A slot that is an argument. False: the error was replied. */
bool clusterSlotArg(ctx *c, int arg_index, int *out);
/* Undoes what SETSLOT has done at replicas and could not undo in time, and tells them what has
 * become of the marks of slots without an order. */
void clusterSetslotTick(void);

#endif
