/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directive of the metrics port. */
#include "metrics/metrics_priv.h"

metricsConfig metricsConf;

const configOption metricsOptions[] = {
    /* Not a directive of Valkey; disabled by default. */
    CONFIG_INT("metrics-port", metricsConf.port, 0, 0, CONFIG_PORT_MAX, .apply = metricsRelisten),
    CONFIG_END,
};
