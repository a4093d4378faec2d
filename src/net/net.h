/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Network connections of clients: listens, reads, passes batches of requests to the engine, writes replies,
 * enforces limits. Main thread only unless marked. */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/hooks.h"
#include "io/conn.h"
#include "io/loop.h"

extern const feature netFeature;

/* The configured TCP port. */
int netPort(void);
/* Raises the limit of descriptors for maxclients, or reduces maxclients: `why` explains it then. ERR_LIMIT: not
 * even one client would be possible. */
status netFitDescriptors(reason *why);
/* INFO's listenerN lines. */
void netPrintListeners(str *out);
/* Memory of all clients in bytes. */
size_t netClientsMemory(void);

/* Sets the event loop of the connections; before netListen(). */
void netSetLoop(loop *l);
/* Opens all configured listeners; on failure `why` says which one failed, and the start must be aborted. */
status netListen(reason *why);
/* Logs one "Ready to accept connections ..." line per listener. */
void netLogReady(void);
/* Closes all listeners and removes the file of the Unix socket. */
void netStopListening(void);
/* At shutdown: writes what can be written without blocking and closes all clients. */
void netCloseAll(void);

/* Appends the line of CLIENT LIST for at most `most` clients. `for_log`: omits user data if
 * hide-user-data-from-log is on. */
void netDescribeClients(int most, bool for_log, str *out);
/* The line of one session for a log, without a line end; false if it has no connection. */
bool netDescribeForLog(const session *s, str *out);
/* The addresses of `bind`, borrowed; a leading '-' means that a missing address is not an error. Returns their
 * number. */
int netBindAddresses(const char *const **addrs);
/* True if tls-port, tls-replication or tls-cluster is set. */
bool netTlsIsOn(void);
/* Begins the server's side of TLS on an accepted connection of another folder, initialised with connTls. Fails while TLS
 * is off. Client certificates are asked for as tls-auth-clients says. */
status netTlsAccept(conn *c) MUST_USE;
/* tls-cluster: links to other nodes, and MIGRATE, use TLS. */
bool netTlsForCluster(void);
/* Begins the client's side of TLS on a connecting connection, initialised with connTls, with the certificate for outgoing
 * links. `host` is what the user named; the certificate's name is not compared with it. Fails while TLS is off. */
status netTlsConnect(conn *c, const char *host) MUST_USE;
/* protected-mode: without a password, only local connections are accepted. */
bool netIsProtected(void);
int netClientCount(void);
/* The session with a client id, NULL if it was closed. */
session *netFindClient(uint64_t id);
/* The first configured address and the port for the process title: "127.0.0.1:6379" or "*:6379". */
void netListenText(char *dst, size_t cap);

#endif
