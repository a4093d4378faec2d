/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Network connections of clients: listens, reads, passes batches of requests to the engine, writes
 * replies, enforces limits. Main thread only unless marked. */
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
/* Refuses commands of connections on trial (trial.h). */
extern const gate trialGate;

/* I/O threads: INFO's io_threads_active, and the lines with the time in which each has worked. */
bool netThreadsAreActive(void);
void netPrintThreadTimes(str *out);
/* Takes all clients back from the I/O threads, which have nothing to do until netThreadsUnpark():
 * while the main thread changes what they read (the table of commands: commandLoad()), or forks a
 * process that goes on in all of it. The calls nest; the main thread serves all clients
 * meanwhile. */
void netThreadsPark(void);
void netThreadsUnpark(void);
/* The calling thread acts for the main thread from now on, or does so no more: one that holds a
 * lock for which the main thread waits. Builds with checks refuse clients to other threads. */
void netActAsMain(bool yes);

/* The configured TCP port; that of TLS if there is no other. */
int netPort(void);
/* True if there is cluster-gateway-port or cluster-gateway-tls-port: their sessions have
 * SESSION_GATEWAY. */
bool netHasGateway(void);
/* The configured ports without and with TLS; 0: none. */
void netListenPorts(int *tcp, int *tls);
/* Raises the limit of descriptors for maxclients, or reduces maxclients: `why` explains it then.
 * ERR_LIMIT: not even one client would be possible. */
status netFitDescriptors(reason *why);
/* The value of maxclients. */
int64_t netMaxClients(void);
/* INFO's listenerN lines. */
void netPrintListeners(str *out);
/* Memory of one client that has a connection, in bytes. */
size_t netClientMemory(const session *s);
/* Memory of all clients but replicas in bytes. */
size_t netClientsMemory(void);
/* Memory of the large arguments of requests that are being executed, in bytes. */
size_t netArgumentsMemory(void);
/* Memory of commands that clients with a login have sent a part of. Visits all clients. */
size_t netUnfinishedMemory(void);
/* The one of them with the most memory; NULL if there is none. Visits all clients. */
const session *netLargestClient(void);

/* A listening socket, as loopWatch() knows it. */
typedef struct netAccepter {
    loop *loop;
    int fd;
    loopFdProc *proc;
    void *arg;
    bool has_priority;
} netAccepter;
/* netAccept() has failed, with errno. If the process has no descriptors or memory left the socket
 * is not read for a while, instead of again and again, and the log says so. */
void netAcceptFailed(const netAccepter *from);
/* Before such a socket is closed. */
void netAcceptForget(int fd);

/* Sets the event loop of the connections; before netListen(). */
void netSetLoop(loop *l);
/* Opens all configured listeners; on failure `why` says which one failed, and the start must be
 * aborted. */
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
/* The same for those with the most memory, largest first; at most NET_LARGEST_MAX. Replicas and
 * the like count too. A walk over all clients. */
enum { NET_LARGEST_MAX = 16 };
void netDescribeLargest(int most, str *out);
/* The line of one session for a log, without a line end; false if it has no connection. */
bool netDescribeForLog(const session *s, str *out);
/* The same in short, for the log of an order to this server: "(user request from '...')". */
bool netDescribeOrderer(const session *s, str *out);
/* On: the session's connection is served before others, also in the middle of a turn that takes
 * long. No effect on a session without a connection. */
void netSetPriority(session *s, bool on);
/* bind-source-addr, for connections that this server opens; "" if it is not set. */
const char *netSourceAddress(void);
/* max-new-connections-per-cycle, or that of TLS. */
int netMostAccepts(bool tls);
/* The addresses of `bind`, borrowed; a leading '-' means that a missing address is not an error.
 * Returns their number. */
int netBindAddresses(const char *const **addrs);
/* True if tls-port, tls-replication or tls-cluster is set. */
bool netTlsIsOn(void);
/* Begins the server's side of TLS on an accepted connection of another folder, initialised with
 * connTls. Fails while TLS is off. Client certificates are asked for as tls-auth-clients says. */
status netTlsAccept(conn *c) MUST_USE;
/* The same for other nodes of a cluster: they must have a certificate. */
status netTlsAcceptNode(conn *c) MUST_USE;
/* tls-replication: links to a primary use TLS, and replicas connect to the TLS port. */
bool netTlsForReplication(void);
/* The port to which replicas of this server connect. */
int netReplicationPort(void);
/* tls-cluster: links to other nodes, and MIGRATE, use TLS. */
bool netTlsForCluster(void);
/* Begins the client's side of TLS on a connecting connection, initialised with connTls, with the
 * certificate for outgoing links. `host` is what the user named; the certificate must be issued for
 * it with tls-check-hostname. Fails while TLS is off. */
status netTlsConnect(conn *c, const char *host) MUST_USE;
/* Connections that this server opens and that may become clients, as the link to a primary does.
 * Connects to a literal address, with TLS if tls-replication is on; `host` is the name that the
 * user gave. The caller sets the callbacks of the connection, and closes it unless it was adopted.
 * NULL with the reason in `why`. */
conn *netOutgoingOpen(const char *addr, int port, const char *host, bool mptcp, reason *why);
void netOutgoingClose(conn *c);
/* Makes a client of an open connection. It is closed by its session, like all clients. On failure
 * the connection remains the caller's. */
status netOutgoingAdopt(conn *c, session **out) MUST_USE;
/* Afterwards, when the session is prepared: begins to read. `received`: bytes that have been read
 * already. */
void netOutgoingStart(session *s, slice received);
/* Output that is not to be sent yet. In stage WRITE the function is asked how many bytes of the
 * session's output may leave now (SIZE_MAX: all); it calls sessionWantWrite() when more may. It is
 * not asked about sessions that execute a command. NULL: all output leaves at once. */
typedef size_t netHoldProc(session *s);
void netSetHold(netHoldProc *proc);
/* Called between stage REPLICATE and a write if output was added in between: messages to sessions
 * that an I/O thread has just given back, and what is written when the process ends. The function
 * may change the output of sessions. NULL: there is none. */
typedef void netLateOutputProc(void);
void netSetLateOutput(netLateOutputProc *proc);
/* Called when the connection of a session with SESSION_REPLICA has ended or failed. `why`: a
 * sentence without its point. NULL: of no interest. */
typedef void netReplicaEndProc(session *s, const char *why);
void netSetReplicaEnd(netReplicaEndProc *proc);
/* Counts bytes received from a primary by a connection that is not a client (yet). */
void netCountDataset(size_t received);
/* Counts bytes of slots that are imported; those who read from a client count what they get. */
void netCountSlots(size_t received);
/* Adds bytes of a dataset that a child has sent to a replica. */
void netCountDatasetSent(size_t sent);
/* The hard output limit of replicas in bytes; 0: none. */
size_t netReplicaOutputLimit(void);
/* The connection of a client, for direct output; NULL: the session is none. */
conn *netOutgoingConn(session *s);
/* Sends what is pending. Returns a descriptor of the connection for a child, to which nothing is
 * sent by this process from then on; the caller closes it. -1: it uses TLS, has failed, or does not
 * take what is pending. */
int netLendToChild(session *s);
/* The process is about to end, and the I/O threads are parked. Writes what the connection takes of
 * the session's output; if it takes nothing, waits for up to `wait_ms` first. False: it takes
 * nothing. */
bool netSendNow(session *s, int wait_ms);
/* Ends the output of a session. Bytes that were received are read and dropped: otherwise the system
 * could reset the connection, and lose bytes that were sent. */
void netSendEnd(session *s);
/* Bytes that were received, but not executed: incomplete requests, and those that a pause holds. */
size_t netOutgoingWaiting(session *s);
/* A turn reads at most so many bytes of a connection. */
size_t netReadMax(void);
/* protected-mode: without a password, only local connections are accepted. */
bool netIsProtected(void);
/* Applies the output limits of class replica: `held` bytes of the replication stream are kept for
 * the session, which is closed if that is too much. Limits below the size of the backlog are raised
 * to it. */
void netLimitReplica(session *s, size_t held, size_t backlog_limit);
/* The soft limit of that class, or the hard one if there is none; 0: no limit. */
size_t netReplicaSoftLimit(size_t backlog_limit);
/* TCP_NODELAY of the session's connection; off: the kernel may delay packets to fill them. */
void netSetDelay(session *s, bool delay);
/* True if the connection of a session is encrypted. */
bool netIsTls(const session *s);
/* The address by which the client has reached this server, without port and brackets; empty if it
 * has none, or it does not fit. */
void netLocalIp(const session *s, char *dst, size_t size);
/* The certificate of the session's client in PEM; false if it has none. */
bool netPeerPem(const session *s, str *out);
int netClientCount(void);
/* The session with a client id, NULL if it was closed. */
session *netFindClient(uint64_t id);
/* The first configured address and the port for the process title: "127.0.0.1:6379" or "*:6379". */
void netListenText(char *dst, size_t cap);

#endif
