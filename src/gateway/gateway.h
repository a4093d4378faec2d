/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One endpoint for a whole cluster: sessions of cluster-gateway-port see one server with all keys.
 * Main thread only. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "engine/hooks.h"

extern const feature gatewayFeature;
/* Takes the requests of sessions of cluster-gateway-port; armed for those alone. */
extern const gate gatewayGate;
/* Refuses requests of the gateway of another node for which no user was named; armed for such a
 * connection. */
extern const gate gatewayUserGate;

#endif
