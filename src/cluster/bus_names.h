/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of nodes that announce a name as their address. Main thread only. */
#ifndef CLUSTER_BUS_NAMES_H
#define CLUSTER_BUS_NAMES_H

#include <stdint.h>

/* The literal address of a host: itself, or what the resolver has found in the last seconds. NULL:
 * it has none, or is being looked up, without waiting: ask again. Valid until the next call. */
const char *busNameAddress(const char *host, int64_t now_ms);

#endif
