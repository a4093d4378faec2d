/* SPDX-License-Identifier: BSD-3-Clause
 *
 * maxmemory: keys are evicted until what is used fits, and when that fails what would use more is refused.
 * Judged before each batch of requests, so a batch of small ones may pass the limit by its own size.
 * Main thread only. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "base/error.h"
#include "engine/hooks.h"

/* Refuses commands that may need memory, and whatever MULTI would queue, while nothing more can be evicted. */
extern const gate memoryGate;

/* Evicts until memory fits the limit, for as long as maxmemory-eviction-tenacity allows, and arms the gate when no
 * victim is left. Only while engineHot.memory_limited. */
void memoryKeep(void);
/* maxmemory in bytes, 0 when there is none. */
uint64_t memoryLimit(void);
/* After maxmemory has changed. */
status memoryApplyLimit(reason *why);

#endif
