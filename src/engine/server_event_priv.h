/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Server events that follow from the hooks on_db and on_child. */
#ifndef ENGINE_SERVER_EVENT_PRIV_H
#define ENGINE_SERVER_EVENT_PRIV_H

#include "engine/hooks.h"
#include "engine/server_event.h"

void serverEventOnDb(const dbEvent *e);
void serverEventOnChild(childEvent e, int kind, int exit_code);
void serverEventUninstall(void); /* for tests */

#endif
