/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Authentication by modules: callbacks that AUTH and HELLO ask before passwords, and clients whose
 * user a module has set. Main thread only. */
#ifndef MODULE_AUTH_H
#define MODULE_AUTH_H

#include "engine/hooks.h"
#include "module/registry.h"

/* The on_auth and on_session of the feature. */
authVerdict authAsk(ctx *c, slice name, slice password, user **who);
void authOnSession(session *s, sessionEvent e);
/* The module ends: its callbacks are not called any more, and the clients that it has authenticated
 * with a callback are closed. */
void authRemove(module *m);

#endif
