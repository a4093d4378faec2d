/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The metrics port: server statistics over HTTP for monitoring. Read-only. With `metrics-auth` a
 * request needs the credentials of a user that may run INFO. No user data is shown if the server
 * has a password. Main thread only. */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include "base/error.h"
#include "engine/hooks.h"
#include "io/loop.h"

extern const feature metricsFeature;

/* Opens the metrics port, if configured, on the addresses of `bind`; connections are handled by
 * `l`. */
status metricsListen(loop *l, reason *why) MUST_USE;
/* Closes the port and all its connections. */
void metricsStop(void);

#endif
