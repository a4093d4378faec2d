/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bus of this server: gives the state machine of bus.h sockets, clock and directives. Output is
 * sent after the map has been saved (STAGE_LOG before STAGE_REPLICATE), so what a message promises
 * is on disk before it is sent. Main thread only. */
#ifndef CLUSTER_SERVER_BUS_H
#define CLUSTER_SERVER_BUS_H

#include "base/error.h"
#include "base/str.h"
#include "bus/bus.h"

/* Used only if the cluster is enabled. */
extern clusterBus serverBus;

/* Opens the port of the bus; after serverMapInit(). */
status serverBusInit(reason *why) MUST_USE;
/* The port of the bus: as it was at the start. Unless it is configured, it follows from the port
 * for clients, that of TLS with tls-cluster. */
int serverBusPort(void);
int serverBusBasePort(void);
/* The time of the bus and of the map in ms: like wall time, but it does not jump. */
int64_t serverBusNowMs(void);
/* Takes the rules from the directives. */
void serverBusTakeRules(void);
/* Periodic job, every BUS_TICK_MS. */
void serverBusTick(int64_t budget_us);
/* What follows from what has happened in this turn; before the map is saved. */
void serverBusStep(void);
/* Sends what is pending. */
void serverBusFlush(void);
/* Takes what other nodes have sent, outside of the event loop. */
void serverBusRead(void);
/* Memory of all links in bytes. */
size_t serverBusMemory(void);
/* Bytes sent, and how often a link has exceeded cluster-link-sendbuf-limit. */
uint64_t serverBusSentBytes(void);
uint64_t serverBusLimitExceeded(void);
/* CONFIG RESETSTAT. */
void serverBusResetStats(void);

#endif
