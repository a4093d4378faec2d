/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The HTTP server of the metrics port. It runs in the main event loop.
 *
 * Invariants: a connection either reads a request or writes a response, never both. It holds at
 * most HEAD_MAX bytes of input. There are at most CONNECTIONS_MAX connections; a new one
 * closes the oldest. A connection that does not complete a request within its deadline is closed.
 * So slow or malicious clients cost at most a few kilobytes. */
#include <stdio.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/base.h"
#include "ds/list.h"
#include "io/conn.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "metrics/metrics.h"
#include "metrics/metrics_priv.h"
#include "net/net.h"

enum {
    HEAD_MAX = 4096,
    CONNECTIONS_MAX = 16,
    LISTENERS_MAX = 16,
    BACKLOG = 128,
    REQUEST_TIMEOUT_MS = 10 * 1000,
    LINGER_MS = 1000,
    ACCEPTS_PER_TURN = 32,
};

typedef struct httpConn {
    conn conn;
    listNode node; /* oldest first */
    int64_t deadline_ms;
    bool close_after_response; /* after the response; further input is discarded */
    /* Response sent, waiting for the peer to close because it may still be sending. */
    bool lingering;
    bool is_local;
    size_t in_len;
    char in[HEAD_MAX];
    str head; /* of the response, and a short body */
    httpResponse response;
    size_t sent; /* bytes of header and body sent */
} httpConn;

typedef struct listeners {
    int fds[LISTENERS_MAX];
    int count;
} listeners;

static struct {
    loop *loop;
    listeners open;
    str bound; /* value of `bind` when they were opened */
    list conns;
    int conn_count;
} server;

/* ------------------------------------------------------------------ connections */

static void readable(conn *c);
static void writable(conn *c);

_Static_assert(offsetof(httpConn, conn) == 0, "a connection's pointer is ours");

static void drop(httpConn *h) {
    listRemove(&server.conns, &h->node);
    server.conn_count--;
    connClose(&h->conn);
    strFree(&h->head);
    strFree(&h->response.body);
    memFree(h);
}

/* Called when everything was sent: continues with the next request or closes the connection. If a
 * request body is unread, closing would make the kernel reset the connection and discard the
 * response; then the connection waits until the peer closes it or the deadline passes.
 * Returns false if the connection was freed. */
static bool finish(httpConn *h) {
    hotCheck(!h->lingering || h->close_after_response);
    strClear(&h->head);
    strFree(&h->response.body);
    h->sent = 0;
    h->deadline_ms = clockMonoMs() + (h->close_after_response ? LINGER_MS : REQUEST_TIMEOUT_MS);
    bool goes_on = !h->close_after_response || h->lingering;
    if (goes_on && connOnWrite(&h->conn, NULL) == OK && connOnRead(&h->conn, readable) == OK)
        return true;
    drop(h);
    return false;
}

/* Returns true if the whole response was sent; false if more has to be sent later or the connection
 * was freed. */
static bool sendMore(httpConn *h) {
    slice body = h->response.page.len ? h->response.page : strSlice(&h->response.body);
    while (h->sent < h->head.len + body.len) {
        size_t from_body = h->sent > h->head.len ? h->sent - h->head.len : 0;
        size_t from_head = sizeMin(h->sent, h->head.len);
        struct iovec parts[2] = {{h->head.ptr + from_head, h->head.len - from_head},
                                 {(void *)(uintptr_t)(body.ptr + from_body), body.len - from_body}};
        ssize_t sent = connWritev(&h->conn, parts, 2);
        if (sent > 0) {
            h->sent += (size_t)sent;
            continue;
        }
        bool waits = h->conn.state == CONN_OPEN && connOnRead(&h->conn, NULL) == OK &&
                     connOnWrite(&h->conn, writable) == OK;
        if (!waits) drop(h);
        return false;
    }
    return true;
}

static const char *reasonOf(int code) {
    switch (code) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
    }
}

/* The header that belongs to a status code. */
static const char *headerOf(int code) {
    if (code == 401) return "WWW-Authenticate: Basic realm=\"valkey\"\r\n";
    return code == 405 ? "Allow: GET, HEAD\r\n" : "";
}

/* Writes the header of the response; the response to HEAD has no body. */
static void beginResponse(httpConn *h, bool head_only) {
    h->deadline_ms = clockMonoMs() + REQUEST_TIMEOUT_MS;
    slice body = h->response.page.len ? h->response.page : strSlice(&h->response.body);
    strAppendFormat(&h->head,
                    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                    "Content-Security-Policy: frame-ancestors 'none'\r\n%s%s\r\n",
                    h->response.code, reasonOf(h->response.code), h->response.type, body.len,
                    headerOf(h->response.code),
                    h->close_after_response ? "Connection: close\r\n" : "");
    if (!head_only) return;
    h->response.page = SLICE("");
    strFree(&h->response.body);
}

static void refuse(httpConn *h, int code, const char *text) {
    h->response =
        (httpResponse){.code = code, .type = "text/plain; charset=utf-8", .page = sliceOf(text)};
    h->close_after_response = h->lingering = true;
}

/* ------------------------------------------------------------------ requests */

/* Orchestrators ask without a password whether the server is alive. */
static bool isProbe(slice path) {
    return sliceEqual(path, SLICE("/livez")) || sliceEqual(path, SLICE("/readyz"));
}

/* Produces the response to a complete request. */
static void handleRequest(httpConn *h, const httpRequest *r) {
    bool get = sliceEqual(r->method, SLICE("GET")), head = sliceEqual(r->method, SLICE("HEAD"));
    h->close_after_response = !r->keep_alive || r->has_body;
    h->lingering = r->has_body;
    if (!h->is_local && netIsProtected() && !aclDefaultNeedsPassword()) {
        refuse(
            h, 403,
            "Protected mode: without a password, only local connections are accepted. Set requirepass "
            "or protected-mode no.\n");
    } else if (metricsConf.auth && !isProbe(r->path) && !httpIsAuthorized(r->authorization)) {
        refuse(h, 401, "Name and password of a user that may run INFO are required.\n");
    } else if (!get && !head) {
        refuse(h, 405, "Only GET and HEAD are supported.\n");
    } else {
        routeRespond(r->path, r->accept, &h->response);
    }
    beginResponse(h, head);
}

/* Processes all complete requests. May free the connection. */
static void handleRequests(httpConn *h) {
    while (h->in_len && !h->close_after_response) {
        httpRequest r;
        int64_t size = httpParse(sliceMake(h->in, h->in_len), &r);
        if (size == 0 && h->in_len < HEAD_MAX) return;
        if (size > 0) {
            handleRequest(h, &r);
            h->in_len -= (size_t)size;
            memmove(h->in, h->in + size, h->in_len);
        } else {
            refuse(h, size < 0 ? 400 : 431,
                   size < 0 ? "Not an HTTP request.\n" : "Request header too long.\n");
            beginResponse(h, false);
        }
        if (!sendMore(h) || !finish(h)) return;
    }
}

static void readable(conn *c) {
    httpConn *h = (httpConn *)c;                /* `conn` is the first member */
    if (h->close_after_response) h->in_len = 0; /* discard input after the last request */
    ssize_t got = connRead(c, h->in + h->in_len, HEAD_MAX - h->in_len);
    if (got <= 0) {
        if (c->state != CONN_OPEN) drop(h);
        return;
    }
    h->in_len += (size_t)got;
    handleRequests(h);
}

static void writable(conn *c) {
    httpConn *h = (httpConn *)c; /* `conn` is the first member */
    if (sendMore(h) && finish(h)) handleRequests(h);
}

/* ------------------------------------------------------------------ the port */

static void acceptOne(int fd) {
    if (server.conn_count == CONNECTIONS_MAX)
        drop(LIST_OWNER(listFirst(&server.conns), httpConn, node));
    httpConn *h = memNew(httpConn);
    connInit(&h->conn, metricsConf.tls ? &connTls : &connTcp, server.loop, fd, CONN_OPEN);
    h->is_local = netPeerIsLocal(fd);
    h->deadline_ms = clockMonoMs() + REQUEST_TIMEOUT_MS;
    listAppend(&server.conns, &h->node);
    server.conn_count++;
    if ((metricsConf.tls && netTlsAccept(&h->conn) != OK) || connOnRead(&h->conn, readable) != OK)
        drop(h);
}

static void acceptable(loop *l, int fd, void *arg, int mask) {
    (void)mask; /* only readability is watched */
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int accepted = netAccept(fd);
        if (accepted < 0) {
            netAcceptFailed(&(netAccepter){l, fd, acceptable, arg, false});
            return;
        }
        acceptOne(accepted);
    }
}

static void closeListeners(listeners *l) {
    for (int i = 0; i < l->count; i++) {
        netAcceptForget(l->fds[i]);
        loopUnwatch(server.loop, l->fds[i], LOOP_READ);
        close(l->fds[i]);
    }
    l->count = 0;
}

static status openOne(const char *addr, listeners *to, reason *why) {
    bool optional = addr[0] == '-', unsupported = false;
    netListenOptions options = {.backlog = BACKLOG, .ip6_only = true};
    reason detail;
    int fd = netListenTcp(addr + optional, metricsConf.port, &options, &unsupported, &detail);
    if (fd < 0 && optional && unsupported) return OK;
    if (fd < 0) {
        return reasonSet(why, ERR_IO, "Failed listening on metrics-port %d (%s): %s",
                         metricsConf.port, addr, detail.text);
    }
    if (to->count == LISTENERS_MAX ||
        loopWatch(server.loop, fd, LOOP_READ, acceptable, NULL) != OK) {
        close(fd);
        return reasonSet(why, ERR_IO, "Failed listening on metrics-port %d", metricsConf.port);
    }
    to->fds[to->count++] = fd;
    return OK;
}

static status openListeners(listeners *to, reason *why) {
    *to = (listeners){.count = 0};
    if (!metricsConf.port) return OK;
    const char *const *addrs;
    int count = netBindAddresses(&addrs);
    status st = OK;
    for (int i = 0; i < count && st == OK; i++) st = openOne(addrs[i], to, why);
    if (st == OK && to->count == 0)
        st = reasonSet(why, ERR_IO, "Failed listening on metrics-port %d", metricsConf.port);
    if (st != OK) closeListeners(to);
    return st;
}

static void copyBind(str *out) {
    strClear(out);
    configGet(configFind(SLICE("bind")), out);
}

status metricsRelisten(reason *why) {
    hotCheck(threadIsMain());
    if (!server.loop) return OK; /* not started yet; metricsListen() opens the port */
    listeners opened;
    status st = openListeners(&opened, why);
    if (st != OK) return st;
    closeListeners(&server.open);
    server.open = opened;
    if (!metricsConf.port) historyFree();
    copyBind(&server.bound);
    return OK;
}

/* Reopens the listeners if `bind` has changed, as the metrics port uses the same addresses. */
static void followBind(void) {
    str now = STR_EMPTY;
    copyBind(&now);
    bool same = sliceEqual(strSlice(&now), strSlice(&server.bound));
    strFree(&now);
    if (same) return;
    closeListeners(&server.open); /* a wildcard address would conflict with the old addresses */
    reason why = {""};
    if (metricsRelisten(&why) == OK) return;
    logWarning("%s", why.text);
    copyBind(&server.bound); /* so that a failure is logged once only */
}

status metricsListen(loop *l, reason *why) {
    hotCheck(threadIsMain());
    server.loop = l;
    listInit(&server.conns);
    status st = metricsRelisten(why);
    if (st == OK && metricsConf.port)
        logNotice("Metrics and status page available on %s port %d",
                  metricsConf.tls ? "https" : "http", metricsConf.port);
    return st;
}

void metricsStop(void) {
    hotCheck(threadIsMain());
    if (!server.loop) return;
    closeListeners(&server.open);
    while (server.conn_count) drop(LIST_OWNER(listFirst(&server.conns), httpConn, node));
    strFree(&server.bound);
    historyFree();
}

static void tick(int64_t budget_us) {
    (void)budget_us; /* there are only a few connections */
    if (!server.loop || !metricsConf.port) return;
    followBind();
    int64_t now_ms = clockMonoMs();
    for (listNode *n = listFirst(&server.conns), *next; n; n = next) {
        next = listNext(&server.conns, n);
        httpConn *h = LIST_OWNER(n, httpConn, node);
        if (h->deadline_ms <= now_ms) drop(h);
    }
}

static bool isBusy(void) { return server.conn_count; }

static const tickJob ticks[] = {{"metrics", 500, tick, isBusy},
                                {"metrics-history", HISTORY_INTERVAL_MS, historyTick, NULL},
                                {0}};

const feature metricsFeature = {.name = "metrics",
                                .options = metricsOptions,
                                .ticks = ticks,
                                .on_stats_reset = historyResetStats};
