/* SPDX-License-Identifier: BSD-3-Clause
 *
 * min-replicas-to-write, min-replicas-max-lag: a primary refuses writes while too few replicas keep
 * up. Main thread only. */
#ifndef REPL_MIN_REPLICAS_H
#define REPL_MIN_REPLICAS_H

#include "engine/hooks.h"
#include "psync/primary.h"

extern const gate minReplicasGate;

/* Called after changes of replicas, directives or the role, and each second. */
void minReplicasUpdate(const replPrimary *p);
/* True if both directives are set. */
bool minReplicasIsOn(void);
/* Number of online replicas within the lag at the last update. */
int minReplicasGood(void);

#endif
