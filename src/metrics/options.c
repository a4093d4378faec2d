/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of the metrics port. */
#include "metrics/metrics_priv.h"
#include "net/net.h"

metricsConfig metricsConf;

static status checkTls(reason *why) {
    if (!metricsConf.tls || netTlsIsOn()) return OK;
    return reasonSet(why, ERR_DENIED, "metrics-tls needs tls-port");
}

const configOption metricsOptions[] = {
    /* Not a directive of Valkey; disabled by default. */
    CONFIG_INT("metrics-port", metricsConf.port, 0, 0, CONFIG_PORT_MAX, .apply = metricsRelisten),
    /* HTTPS with the certificate of tls-port; not a directive of Valkey either. */
    CONFIG_BOOL("metrics-tls", metricsConf.tls, false, .flags = CONFIG_APPLY_AT_START,
                .apply = checkTls),
    /* Not a directive of Valkey; disabled by default. */
    CONFIG_BOOL("metrics-auth", metricsConf.auth, false),
    CONFIG_END,
};
