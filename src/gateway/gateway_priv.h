/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the gateway. Each field is named after its directive; only the configuration
 * registry writes them. */
#ifndef GATEWAY_GATEWAY_PRIV_H
#define GATEWAY_GATEWAY_PRIV_H

#include <stdint.h>

#include "config/config.h"

typedef struct gatewayConfig {
    int64_t cluster_gateway_retry_ms;
    int64_t cluster_gateway_fetch; /* bytes; 0: off */
} gatewayConfig;

extern gatewayConfig gatewayConf;
extern const configOption gatewayOptions[];

#endif
