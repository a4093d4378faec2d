/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections for which places are reserved: priority-subnets, maxclients-reserved. A client is
 * told apart once, when it is accepted, by its address. Main thread only. */
#ifndef NET_PRIORITY_H
#define NET_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* True if the other end of this socket is in one of the subnets. */
bool priorityHas(int fd);
/* How many normal clients there may be at most. */
int64_t priorityNormalMax(void);
/* Clients that are told apart: `by` 1 or -1. */
void priorityCount(int by);
int priorityClients(void);
/* CONFIG SET priority-subnets */
status priorityApply(reason *why);

#endif
