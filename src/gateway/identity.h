/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The other end of a gateway's link: which user a request is executed for. A connection that has
 * proven that it knows cluster-bus-secret may name any user and, for logs, any client: GATEWAY
 * LINK, AS and FOR. Main thread only. */
#ifndef GATEWAY_IDENTITY_H
#define GATEWAY_IDENTITY_H

#include <stdbool.h>

#include "base/str.h"
#include "engine/ctx.h"

/* The key of the exchange of bus_secret.h on such a connection: not that of the bus, so that
 * messages of one cannot be used for the other. */
void identityKey(str *out);
/* At the start. */
void identityInit(void);
/* The error for requests of a user that the other end does not have. */
#define IDENTITY_NOBODY "NOPERM The node that owns the key does not have this user"
/* The user of a session with SESSION_NODE_LINK has changed, or was switched on or off. */
void identityUserChanged(session *s);
/* True if the connection has proven itself; else the error was replied. */
bool identityIsLink(ctx *c);
/* The number of connections that have proven themselves. */
int identityLinks(void);

#endif
