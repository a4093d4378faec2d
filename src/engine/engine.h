/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the roof hangs up of the engine itself. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/hooks.h"

/* Statistics, their INFO sections and directives. */
extern const feature engineFeature;
/* activedefrag. */
extern const feature defragFeature;
/* maxmemory: eviction and what it counts. */
extern const feature memoryFeature;
/* The keyspace's news and INFO sections. */
extern const feature keyspaceFeature;
#ifdef HOT_CHECKS
/* Tests read from it what was propagated. */
extern const feature recordFeature;
#endif

#endif
