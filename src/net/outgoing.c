/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections opened by this server that may become clients (net.h). The memory is that of a client
 * from the start, so that the connection does not move; its session is initialised when it becomes
 * one. Main thread only. */
#include "base/base.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "net/client.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"

const char *netSourceAddress(void) { return netConf.bind_source_addr; }

conn *netOutgoingOpen(const char *addr, int port, const char *host, bool mptcp, reason *why) {
    int fd = netConnectTcp(addr, port, netSourceAddress(), mptcp, why);
    if (fd < 0) return NULL;
    client *cl = memNew(client);
    cl->owner = netMainThread();
    bool tls = netConf.tls_replication;
    connInit(&cl->conn, tls ? &connTls : &connTcp, netLoop(), fd, CONN_CONNECTING);
    if (!tls || netTlsConnect(&cl->conn, host) == OK) return &cl->conn;
    (void)reasonSet(why, ERR_DENIED, "TLS is not configured");
    netOutgoingClose(&cl->conn);
    return NULL;
}

void netOutgoingClose(conn *c) {
    connClose(c);
    memFree(CONTAINER_OF(c, client, conn));
}

status netOutgoingAdopt(conn *c, session **out) {
    hotCheck(threadIsMain());
    client *cl = CONTAINER_OF(c, client, conn);
    check(c->state == CONN_OPEN);
    status st = connOnWrite(c, NULL);
    if (st == OK) st = connOnRead(c, NULL);
    if (st != OK) return st;
    sessionInit(&cl->session, &clientCarrier, SESSION_LOCAL);
    listAppend(clientAll(), &cl->all);
    *out = &cl->session;
    return OK;
}

void netOutgoingStart(session *s, slice received) {
    hotCheck(threadIsMain());
    client *cl = clientOf(s);
    readerBegin(cl, received);
    if (cl->session.flags & SESSION_CLOSE_NOW) return;
    if (readerStart(cl) != OK) clientCloseLater(cl);
}

size_t netClientMemory(const session *s) { return clientMemory((const client *)s); }

conn *netOutgoingConn(session *s) {
    return s->carrier == &clientCarrier ? &clientOf(s)->conn : NULL;
}
size_t netOutgoingWaiting(session *s) { return clientOf(s)->in_len; }
size_t netReadMax(void) { return netMainThread()->read_bytes_max; }
