/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the gateway; its port is one of net. Main thread only. */
#include "gateway/gateway_priv.h"

gatewayConfig gatewayConf;

const configOption gatewayOptions[] = {
    CONFIG_MEMORY("cluster-gateway-fetch", gatewayConf.cluster_gateway_fetch, 0, 0, INT64_MAX),
    CONFIG_INT("cluster-gateway-retry-ms", gatewayConf.cluster_gateway_retry_ms, 5000, 0, 600000),
    CONFIG_END,
};
