/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that wait for the end of jobs that read or change their keys. Main thread only. */
#ifndef ENGINE_JOB_GATE_H
#define ENGINE_JOB_GATE_H

#include "engine/hooks.h"
#include "engine/session.h"

/* Holds back requests of clients that may write to a key that a job reads, or that touch one that a
 * job changes. Armed while there are jobs with keys; after queueGate. */
extern const gate jobGate;

/* While jobs change keys in place: holds back requests of clients that read such a key, and ends
 * those jobs before a command that cannot wait looks at one. Armed while there are such jobs; after
 * jobGate. */
extern const gate claimGate;

/* Removes and returns the next session held by these gates or by expiryGate that may be admitted
 * again; NULL if there is none. */
session *jobNextReleased(void);
/* A job with keys has ended: all held requests may be admitted again. */
void jobGateRelease(void);
/* A turn begins: the waits of those that were released and are not held again are over. */
void jobGateEndWaits(void);
/* The database (NULL: any) and hash of the key for which a request has waited longer than
 * JOB_WAIT_MS; false: there is none. */
bool jobGateOverdue(const db **d, uint64_t *hash);
/* The longest wait so far in microseconds, and the number of waits. */
int64_t jobGateLongestUs(void);
uint64_t jobGateCount(void);
void jobGateResetStats(void);

#endif
