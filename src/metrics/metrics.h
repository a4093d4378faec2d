/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The metrics port: what the server says of itself over HTTP, to those who watch it. Read only, without
 * passwords, and so without user data where the server has a password. Main thread only. */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include "base/error.h"
#include "engine/hooks.h"
#include "io/loop.h"

extern const feature metricsFeature;

/* Opens the port, if there is one, on the addresses of `bind`; `l` carries its connections from now on. */
status metricsListen(loop *l, reason *why) MUST_USE;
/* Closes the port and all its connections. */
void metricsStop(void);

#endif
