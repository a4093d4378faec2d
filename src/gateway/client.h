/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients of cluster-gateway-port: their gate, and the order of their replies. Main thread only. */
#ifndef GATEWAY_CLIENT_H
#define GATEWAY_CLIENT_H

#include "engine/ctx.h"
#include "engine/hooks.h"

/* Implements on_session. */
void gatewaySessionEvent(session *s, sessionEvent e);
/* Called after commands were loaded: finds their routes anew. */
void gatewayCommandsChanged(void);
/* Called after the end of a call or link for which requests may have been held back. */
void gatewayProgress(void);
/* Called in each turn: admits requests again that were held back, after progress or some ms. */
void gatewayResume(void);
/* Called before output is written: moves replies that may be sent to the output of their
 * clients. */
void gatewaySettle(void);

typedef struct gatewayCounts {
    int clients, held;
    uint64_t here, elsewhere, merged, holds;
} gatewayCounts;
gatewayCounts gatewayCountsNow(void);

#endif
