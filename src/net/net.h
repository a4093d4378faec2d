/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The door: sockets to sessions and back. Listens, reads, hands batches of requests to the engine, writes
 * what the engine has answered, closes whom the limits say. Main thread only unless marked. */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/hooks.h"
#include "io/loop.h"

extern const feature netFeature;

/* The configured TCP port. */
int netPort(void);
/* Makes room for maxclients descriptors, or fewer clients: `why` then tells, and ERR_LIMIT says that not even one
 * would fit. */
status netFitDescriptors(reason *why);
/* INFO's listenerN lines. */
void netPrintListeners(str *out);
/* Bytes of memory all clients hold. */
size_t netClientsMemory(void);

/* The loop that carries the connections; before netListen(). */
void netSetLoop(loop *l);
/* Opens every configured listener; on failure says which and why, and the start must end. */
status netListen(reason *why);
/* Logs one "Ready to accept connections ..." line per listener. */
void netLogReady(void);
/* Closes all listeners and removes the Unix socket's file. */
void netStopListening(void);
/* Writes what can be written without waiting and closes every client: the end of the server. */
void netCloseAll(void);

/* Appends a line of CLIENT LIST for each client, at most so many. `for_log`: without what users chose, where
 * hide-user-data-from-log says so. */
void netDescribeClients(int most, bool for_log, str *out);
/* The line for a log of one session, without a line end; false when no connection carries it. */
bool netDescribeForLog(const session *s, str *out);
/* The addresses of `bind`; a '-' in front of one forgives that it is missing. Returns how many; borrowed. */
int netBindAddresses(const char *const **addrs);
/* protected-mode: who needs no password may come from this machine only. */
bool netIsProtected(void);
int netClientCount(void);
/* The session of a client id, NULL when it is gone. */
session *netFindClient(uint64_t id);
/* The first configured address and the port as the process title shows them: "127.0.0.1:6379" or "*:6379". */
void netListenText(char *dst, size_t cap);

#endif
