/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where a client is told to connect to: the address by its own family, the port by whether it uses
 * TLS, the host by cluster-preferred-endpoint-type. Main thread only. */
#ifndef CLUSTER_ENDPOINT_H
#define CLUSTER_ENDPOINT_H

#include "bus/map.h"
#include "engine/ctx.h"

/* A client that asks. */
nodeViewer endpointViewer(const session *who);
/* That of the outermost command. */
nodeViewer endpointViewerOf(const ctx *c);
/* The address or name; ptr NULL: it is to use the host that it knows. */
slice endpointHost(const clusterNode *n, const nodeViewer *viewer);

#endif
