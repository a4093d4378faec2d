/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Features of the engine. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/hooks.h"

/* Statistics, their INFO sections and directives. */
extern const feature engineFeature;
/* maxmemory: eviction and what it counts. */
extern const feature memoryFeature;
/* Values compressed in memory. */
extern const feature compressValuesFeature;
/* Events and INFO sections of the keyspace. */
extern const feature keyspaceFeature;
#ifdef HOT_CHECKS
/* Records what is propagated, for tests. */
extern const feature recordFeature;
extern const feature recordEventsFeature;
#endif

#endif
