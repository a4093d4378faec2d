/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of the server (replication, loading, shutdown and others) that modules listen to. Main
 * thread only. */
#ifndef MODULE_SERVER_EVENTS_H
#define MODULE_SERVER_EVENTS_H

#include "engine/session.h"
#include "module/registry.h"

/* The module ends: it is told nothing any more. */
void serverEventsRemove(module *m);
/* Tells the other modules that this one was loaded, or is unloaded. */
void serverEventsTellModule(const module *m, bool loaded);

/* Tells that a callback of this module has decided about a login. */
void serverEventsTellLogin(const module *m, const session *who, slice name, bool granted);

#endif
