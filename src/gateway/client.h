/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients of cluster-gateway-port: their gate, and the order of their replies. Main thread only. */
#ifndef GATEWAY_CLIENT_H
#define GATEWAY_CLIENT_H

#include "engine/ctx.h"
#include "engine/hooks.h"

/* Implements on_session. */
void gatewaySessionEvent(session *s, sessionEvent e);
/* Commands were loaded: their routes are found anew. */
void gatewayCommandsChanged(void);
/* Something has ended for which requests may have been held back. */
void gatewayProgress(void);
/* In each turn: requests that were held back are asked about again, after progress or some ms. */
void gatewayResume(void);
/* Before output is written: replies that may leave are added to the output of their clients. */
void gatewaySettle(void);

typedef struct gatewayCounts {
    int clients, held;
    uint64_t here, elsewhere, merged, holds;
} gatewayCounts;
gatewayCounts gatewayCountsNow(void);

#endif
