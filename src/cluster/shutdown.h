/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHUTDOWN of a node of a cluster. Main thread only. */
#ifndef CLUSTER_SHUTDOWN_H
#define CLUSTER_SHUTDOWN_H

#include "engine/hooks.h"

/* Implements on_shutdown: SHUTDOWN SAFE. */
status clusterBeforeShutdown(uint32_t flags, reason *why);

#endif
