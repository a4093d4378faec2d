/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FAILOVER: writes are paused until a replica has everything, then this server follows it and asks it to take over.
 *
 *   state                 event                          next
 *   no-failover           FAILOVER                       waiting-for-sync: writes paused
 *   waiting-for-sync      a target has acknowledged all  failover-in-progress: replica of the target
 *                         timeout, FORCE                 failover-in-progress
 *                         timeout, ABORT                 no-failover
 *   failover-in-progress  the target accepts             no-failover: stays its replica
 *                         the target refuses, ABORT      no-failover: primary again
 *
 * Main thread only. */
#ifndef REPL_FAILOVER_H
#define REPL_FAILOVER_H

#include <stdbool.h>
#include <stdint.h>

/* master_failover_state of INFO. */
const char *failoverStateName(void);
/* True while this server is a replica of its successor, which has not taken over. Writes are paused meanwhile. */
bool failoverIsInProgress(void);
/* Ten times per second. */
void failoverTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool failoverIsBusy(void);

#endif
