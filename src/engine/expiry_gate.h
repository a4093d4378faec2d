/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that wait until expired members of a large set or sorted set are hidden or removed. Main
 * thread only. */
#ifndef ENGINE_EXPIRY_GATE_H
#define ENGINE_EXPIRY_GATE_H

#include "engine/hooks.h"
#include "engine/session.h"

/* Holds back requests of clients with a key of which more than a few members have expired since it
 * was used last, while these are hidden or removed in slices of command-slice-us. Armed from the
 * moment on at which a set or sorted set has many members with TTLs; after queueGate. */
extern const gate expiryGate;

/* Arms it. */
void expiryGateArm(void);
/* So many held sessions may be admitted again. For jobNextReleased() alone, which is called in each
 * turn. */
extern size_t expiryReleased;
/* Removes and returns the next of them; there are some. NULL: not now. */
session *expiryNextReleased(void);
/* Requests that were held back. */
uint64_t expiryGateCount(void);
void expiryGateResetStats(void);

#endif
