/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The other end of a gateway's link: which user a request is executed for. A connection that has
 * proven that it knows cluster-bus-secret may name any user; GATEWAY LINK and GATEWAY AS. Main
 * thread only. */
#ifndef GATEWAY_IDENTITY_H
#define GATEWAY_IDENTITY_H

#include <stdbool.h>

#include "base/str.h"
#include "engine/ctx.h"

/* The key of the exchange of bus_secret.h on such a connection: not that of the bus, so that
 * messages of one cannot be used for the other. */
void identityKey(str *out);
/* True if the connection has proven itself; else the error was replied. */
bool identityIsLink(ctx *c);
/* True if there is a connection that has proven itself. */
int identityLinks(void);

#endif
