/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Server events for modules. Main thread only. */
#ifndef MODULE_SERVER_EVENTS_H
#define MODULE_SERVER_EVENTS_H

#include "module/registry.h"

/* The module ends: it is told nothing any more. */
void serverEventsRemove(module *m);
/* Tells the other modules that this one was loaded, or is unloaded. */
void serverEventsTellModule(const module *m, bool loaded);

#endif
