/* SPDX-License-Identifier: BSD-3-Clause
 *
 * maxmemory: keys are evicted until used memory fits; if that is not possible, commands that would use more are
 * refused. Checked before each batch of requests, so a batch of small writes may exceed the limit by its own size.
 * Main thread only. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "base/error.h"
#include "engine/hooks.h"

/* Refuses commands that may need memory, including those queued by MULTI, while no key can be evicted. */
extern const gate memoryGate;

/* Evicts until memory fits, for at most the time allowed by maxmemory-eviction-tenacity, and arms the gate if no key
 * is left to evict. Only if engineHot.memory_limited. */
void memoryKeep(void);
/* maxmemory in bytes, 0 if there is no limit. */
uint64_t memoryLimit(void);
/* Called after maxmemory has changed. */
status memoryApplyLimit(reason *why);

#endif
