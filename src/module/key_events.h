/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keyspace events for modules, and jobs after the commands that caused them. Main thread only. */
#ifndef MODULE_KEY_EVENTS_H
#define MODULE_KEY_EVENTS_H

#include "module/registry.h"

/* The module ends: it is told nothing any more, and its jobs are dropped. */
void keyEventsRemove(module *m);

#endif
