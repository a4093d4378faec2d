/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER between this server and one of its replicas; the states are described in
 * failover_state.h. Main thread only. */
#ifndef REPL_FAILOVER_H
#define REPL_FAILOVER_H

#include <stdbool.h>
#include <stdint.h>

/* master_failover_state of INFO. */
const char *failoverStateName(void);
/* True while this server is a replica of its successor, which has not taken over. Writes are paused
 * meanwhile. */
bool failoverIsInProgress(void);
/* True meanwhile, and after this server has handed over its role, until the CLIENT PAUSE ends that
 * was in force: writes are held, not refused. */
bool failoverHoldsWrites(void);
/* Ten times per second. */
void failoverTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool failoverIsBusy(void);

#endif
