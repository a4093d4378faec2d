/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica leaves expired keys to its primary. Keys whose TTL was set by clients of a writable
 * replica are unknown to the primary, so the replica tracks and removes them itself. Main thread
 * only. */
#ifndef REPL_LOCAL_EXPIRY_H
#define REPL_LOCAL_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/hooks.h"

extern const keyObserver localExpiryObserver;

/* While on, keys that get a TTL by a command of a client are tracked; off: the next tick forgets
 * them. */
void localExpirySet(bool on);
/* The dataset was replaced. */
void localExpiryForget(void);
/* Removes expired ones; ten times a second. */
void localExpiryTick(void);
/* slave_expires_tracked_keys. */
uint64_t localExpiryCount(void);

#endif
