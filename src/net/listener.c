/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listening sockets: binds all configured addresses, accepts a limited number of connections per
 * turn, and refuses connections because of maxclients or protected mode, with an error. Main thread
 * only. */
#include "net/net.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/execute.h"
#include "engine/lifecycle.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "net/accept_pause.h"
#include "net/client.h"
#include "net/io_threads.h"
#include "net/net_priv.h"
#include "net/net_thread.h"
#include "net/priority.h"
#include "net/trial.h"

enum {
    LISTENERS_MAX = 5 * BIND_MAX + 1, /* five ports and the Unix socket */
    HANDSHAKE_TIMEOUT_MS = 10000,
    HANDSHAKE_STEPS_PER_TURN = 16, /* each takes up to a millisecond */
    ADMIN_EXTRA = 8, /* connections to admin-port beyond maxclients and those on trial */
};

/* What is accepted at a port. */
typedef struct portKind {
    const connType *type;
    bool is_admin;
    uint64_t flags; /* of its sessions */
} portKind;
static const portKind port_tcp = {&connTcp, false, 0};
static const portKind port_tls = {&connTls, false, 0};
static const portKind port_unix = {&connUnix, false, 0};
static const portKind port_admin = {&connTcp, true, SESSION_ADMIN_PORT};
static const portKind port_admin_tls = {&connTls, true, SESSION_ADMIN_PORT};
static const portKind port_gateway = {&connTcp, false, SESSION_GATEWAY};
static const portKind port_gateway_tls = {&connTls, false, SESSION_GATEWAY};

typedef struct listener {
    int fd;
    const portKind *kind;
} listener;

static struct {
    loop *loop;
    listener list[LISTENERS_MAX];
    int count;
    bool opened; /* netListen() has been called */
} listeners;

static const char protected_text[] =
    "-DENIED Running in protected mode because protected mode is enabled and no password is set for the default "
    "user. In this mode connections are only accepted from the loopback interface. If you want to connect from "
    "external computers, you may adopt one of the following solutions: 1) Disable protected mode by sending the "
    "command 'CONFIG SET protected-mode no' from the loopback interface by connecting from the same host the "
    "server is running, however MAKE SURE it is not publicly accessible from internet if you do so. Use CONFIG "
    "REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing "
    "the configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If "
    "you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up "
    "an authentication password for the default user. NOTE: You only need to do one of the above things in order "
    "for the server to start accepting connections from the outside.\r\n";

static const char full_text[] = "-ERR max number of clients reached\r\n";
static const char cluster_full_text[] =
    "-ERR max number of clients + cluster connections reached\r\n";

void netSetLoop(loop *l) {
    listeners.loop = l;
    netThreadEnter(netMainThread());
    userSetSessionWalk(clientWalk);
}

loop *netLoop(void) { return listeners.loop; }

/* Sends an error and closes the socket. The socket is new, so its buffer is empty and the text
 * fits. */
static void refuse(int fd, const char *text, size_t len) {
    conn c;
    connInit(&c, &connTcp, listeners.loop, fd, CONN_OPEN);
    struct iovec iov = {(void *)(uintptr_t)text, len};
    (void)connWritev(&c, &iov, 1); /* best effort */
    connClose(&c);
    netStats()->rejected++;
}

bool clientAdmit(client *cl) {
    netStats()->connections++;
    limitsRecount(cl);
    /* A session that is authenticated from the start needs no password: then only local connections
     * are accepted. */
    bool local = cl->session.flags & SESSION_LOCAL;
    if (netConf.protected_mode && !local && sessionIsAuthenticated(&cl->session)) {
        outbufAppend(&cl->session.out, protected_text, sizeof(protected_text) - 1);
        sessionCloseSoon(&cl->session);
        netStats()->rejected++;
        return false;
    }
    char peer[NET_ADDR_TEXT_MAX];
    if (LOG_VERBOSE >= logLevelNow) {
        (void)netPeerText(cl->conn.fd, peer); /* "?:0" on failure */
        logVerbose("Accepted %s", peer);
    }
    return true;
}

/* There are as many clients as there may be: connections of which places are reserved for others
 * count for the limit of all, and normal ones for a limit of their own. */
static bool isFull(const portKind *kind, bool has_priority) {
    const engineClusterProcs *cluster = engineCluster();
    int64_t most = netConf.maxclients + (kind->is_admin ? ADMIN_EXTRA + TRIAL_PLACES : 0);
    if (netClientCount() + (cluster ? (int)cluster->links() : 0) >= most) return true;
    return !has_priority && netClientCount() - priorityClients() >= priorityNormalMax();
}

/* True if a connection beyond maxclients is accepted on trial: it may be a replica, which clients
 * must not keep out. */
static bool mayTry(void) {
    return trialHasPlace() && netClientCount() < netConf.maxclients + TRIAL_PLACES;
}

static slice fullText(void) {
    return engineCluster() ? SLICE(cluster_full_text) : SLICE(full_text);
}

static void refuseAsFull(int fd, const portKind *kind, bool has_priority) {
    slice text = fullText();
    netStats()->connections++;
    netStats()->rejected_priority += has_priority;
    if (kind->type == &connTls) { /* an error text would need a handshake */
        close(fd);
        netStats()->rejected++;
    } else {
        refuse(fd, text.ptr, text.len);
    }
}

static void acceptOne(int fd, const portKind *kind) {
    const connType *type = kind->type;
    bool local = netPeerIsLocal(fd), has_priority = kind->is_admin || priorityHas(fd);
    bool full = isFull(kind, has_priority);
    if (full && (has_priority || !mayTry())) {
        refuseAsFull(fd, kind, has_priority);
        return;
    }
    if (type != &connUnix) {
        /* Replies are sent without delay. A socket that refuses these options still works. */
        (void)netSetNoDelay(fd, true);
        if (netConf.tcp_keepalive) (void)netSetKeepAlive(fd, netConf.tcp_keepalive);
    }
    client *cl = clientNew(fd, type, kind->flags | (local ? SESSION_LOCAL : 0));
    if (!cl) {
        logWarning("Error registering fd event for the new client: %s", strerror(errno));
        return;
    }
    if (has_priority) clientReserve(cl);
    if (full) trialBegin(cl, fullText());
    if (type != &connTls) (void)clientAdmit(cl); /* if refused, it is being closed */
}

int netMostAccepts(bool tls) {
    return tls ? netConf.max_new_tls_connections_per_cycle : netConf.max_new_connections_per_cycle;
}

static struct { acceptRate all, tls; } rates;

/* How many connections may be accepted in this turn. */
static int mostNow(const portKind *kind) {
    bool tls = kind->type == &connTls;
    int most = netMostAccepts(tls);
    int64_t now_ms = clockMonoMs();
    if (kind->is_admin) return most;
    most = acceptRateAllows(&rates.all, netConf.maxclients_per_second, most, now_ms);
    if (!tls || !most) return most;
    return acceptRateAllows(&rates.tls, netConf.max_tls_handshakes_per_second, most, now_ms);
}

static void acceptable(loop *l, int fd, void *arg, int mask) {
    enum { RATE_PAUSE_MS = 10 };
    (void)mask; /* only readability is watched */
    const portKind *kind = arg;
    const netAccepter self = {l, fd, acceptable, arg, kind->is_admin};
    int most = mostNow(kind);
    if (!most) netAcceptPause(&self, RATE_PAUSE_MS);
    for (int i = 0; i < most; i++) {
        int accepted = netAccept(fd);
        if (accepted < 0) {
            netAcceptFailed(&self);
            return;
        }
        if (!kind->is_admin) {
            acceptRateTake(&rates.all, netConf.maxclients_per_second);
            if (kind->type == &connTls)
                acceptRateTake(&rates.tls, netConf.max_tls_handshakes_per_second);
        }
        acceptOne(accepted, kind);
    }
}

static status watchListener(int fd, const portKind *kind, reason *why) {
    check(listeners.count < LISTENERS_MAX);
    if (loopWatch(listeners.loop, fd, LOOP_READ, acceptable, (void *)(uintptr_t)kind) != OK) {
        close(fd);
        return reasonSet(why, ERR_IO, "Unrecoverable error creating a listening file event.");
    }
    if (kind->is_admin) loopSetPriority(listeners.loop, fd, true);
    listeners.list[listeners.count++] = (listener){fd, kind};
    return OK;
}

/* Closes listeners [from, to) and removes them from the list. */
static void closeListeners(int from, int to) {
    hotCheck(from >= 0);
    hotCheck(from <= to);
    for (int i = from; i < to; i++) {
        netAcceptForget(listeners.list[i].fd);
        loopUnwatch(listeners.loop, listeners.list[i].fd, LOOP_READ);
        close(listeners.list[i].fd);
    }
    memmove(listeners.list + from, listeners.list + to,
            (size_t)(listeners.count - to) * sizeof(listener));
    listeners.count -= to - from;
}

/* Listens on all addresses of `bind`. */
static status listenPort(int port, const portKind *kind, reason *why) {
    hotCheck(port >= 0);
    hotCheck(port <= 65535);
    if (port == 0) return OK;
    netListenOptions options = {.backlog = netConf.tcp_backlog,
                                .mark = (uint32_t)netConf.socket_mark_id,
                                .mptcp = netConf.mptcp,
                                .ip6_only = true};
    int before = listeners.count;
    status st = OK;
    for (int i = 0; st == OK && i < netConf.bind_count; i++) {
        const char *addr = netConf.bind[i];
        bool optional = addr[0] == '-';
        if (optional) addr++;
        bool unsupported = false;
        reason detail;
        int fd = netListenTcp(addr, port, &options, &unsupported, &detail);
        if (fd < 0 && optional && unsupported) continue;
        if (fd < 0) {
            logWarning("Warning: Could not create server TCP listening socket %s:%d: %s", addr,
                       port, detail.text);
            st = ERR_IO;
        } else {
            st = watchListener(fd, kind, why);
            if (st != OK) break;
        }
    }
    if (st == OK && (listeners.count > before || netConf.bind_count == 0)) return OK;
    closeListeners(before, listeners.count);
    return reasonSet(why, ERR_IO, "Failed listening on port %d (%s), aborting.", port,
                     kind->type->name);
}

static status listenTcp(reason *why) {
    bool only_tls = !netConf.port && netConf.tls_port;
    status st = listenPort(netConf.port, &port_tcp, why);
    if (st == OK) st = listenPort(netConf.tls_port, &port_tls, why);
    if (st != OK) return st;
    st = listenPort(netConf.admin_port, only_tls ? &port_admin_tls : &port_admin, why);
    if (st == OK) st = listenPort(netConf.cluster_gateway_port, &port_gateway, why);
    if (st == OK) st = listenPort(netConf.cluster_gateway_tls_port, &port_gateway_tls, why);
    return st;
}

bool netIsListening(void) { return listeners.opened; }

status netRelisten(reason *why) {
    hotCheck(threadIsMain());
    if (!listeners.opened) return OK;
    /* The old sockets are closed first: a wildcard address on the same port would conflict with
     * them. They are opened again after the registry has restored the old values. */
    for (int i = listeners.count - 1; i >= 0; i--) {
        if (listeners.list[i].kind != &port_unix) closeListeners(i, i + 1);
    }
    return listenTcp(why);
}

static status listenUnix(reason *why) {
    if (!netConf.unixsocket[0]) return OK;
    reason detail;
    int fd = netListenUnix(netConf.unixsocket, (mode_t)netConf.unixsocketperm,
                           netConf.unixsocketgroup, netConf.tcp_backlog, &detail);
    if (fd < 0)
        return reasonSet(why, ERR_IO, "Failed opening Unix socket: %s: %s", netConf.unixsocket,
                         detail.text);
    return watchListener(fd, &port_unix, why);
}

status netListen(reason *why) {
    hotCheck(threadIsMain());
    listeners.opened = true;
    connLimitHandshakes(HANDSHAKE_TIMEOUT_MS, HANDSHAKE_STEPS_PER_TURN);
    readerOpen();
    status st = ioThreadsApply(why);
    if (st == OK) st = listenTcp(why);
    if (st == OK) st = listenUnix(why);
    if (st == OK && listeners.count == 0) {
        st = reasonSet(why, ERR_IO, "Configured to not listen anywhere, exiting.");
    }
    return st;
}

void netLogReady(void) {
    hotCheck(threadIsMain());
    static const connType *const types[] = {&connTcp, &connUnix, &connTls};
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        int i = 0;
        while (i < listeners.count && listeners.list[i].kind->type != types[t]) i++;
        if (i < listeners.count) logNotice("Ready to accept connections %s", types[t]->name);
    }
}

void netStopListening(void) {
    hotCheck(threadIsMain());
    bool unix_socket = false;
    for (int i = 0; i < listeners.count; i++)
        unix_socket = unix_socket || listeners.list[i].kind == &port_unix;
    closeListeners(0, listeners.count);
    if (!unix_socket) return;
    logNotice("Removing the unix socket file.");
    (void)unlink(netConf.unixsocket); /* it may have been removed by someone else */
}

void listenerChildEvent(childEvent e, int kind, int exit_code, int signal) {
    hotCheck(threadIsMain());
    (void)kind, (void)exit_code, (void)signal;
    if (e != CHILD_IN_CHILD) return;
    for (int i = 0; i < listeners.count; i++)
        close(listeners.list[i].fd); /* without the loop, which is shared with the parent */
}

void netListenText(char *dst, size_t cap) {
    hotCheck(cap > 0);
    hotCheck(threadIsMain());
    const char *addr = netConf.bind_count ? netConf.bind[0] : "*";
    if (addr[0] == '-') addr++;
    if (netPort() == 0 && netConf.unixsocket[0]) {
        snprintf(dst, cap, "unixsocket:%s", netConf.unixsocket);
    } else {
        snprintf(dst, cap, "%s:%d", addr, netPort());
    }
}
