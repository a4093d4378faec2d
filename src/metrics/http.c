/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The HTTP server of the metrics port, in the server's own loop.
 *
 * Invariants: a connection either reads a request or writes an answer, never both; it holds at most HEAD_MAX bytes of
 * input, at most CONNECTIONS_MAX live (the oldest makes room), and none lives longer than its deadline without
 * having finished a request. So nobody slow or hostile costs more than a few kilobytes. */
#include <stdio.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/base.h"
#include "ds/list.h"
#include "io/conn.h"
#include "io/net_addr.h"
#include "metrics/metrics.h"
#include "metrics/metrics_priv.h"
#include "net/net.h"

enum {
    HEAD_MAX = 4096,
    CONNECTIONS_MAX = 16,
    LISTENERS_MAX = 16,
    BACKLOG = 128,
    PATIENCE_MS = 10 * 1000,
    LINGER_MS = 1000,
    ACCEPTS_A_TURN = 32,
};

typedef struct httpConn {
    conn conn;
    listNode node; /* oldest first */
    int64_t deadline_ms;
    bool closes;  /* behind the answer: nothing more is read as a request */
    bool lingers; /* until the peer has closed, for it may still be sending */
    bool is_local;
    size_t in_len;
    char in[HEAD_MAX];
    str head; /* of the answer, and a short body */
    httpAnswer answer;
    size_t sent; /* of both */
} httpConn;

typedef struct listeners {
    int fds[LISTENERS_MAX];
    int count;
} listeners;

static struct {
    loop *loop;
    listeners open;
    str bound; /* what `bind` was when they were opened */
    list conns;
    int conn_count;
} door;

/* ------------------------------------------------------------------ life of a connection */

static void readable(conn *c);
static void writable(conn *c);

_Static_assert(offsetof(httpConn, conn) == 0, "a connection's pointer is ours");

static void drop(httpConn *h) {
    listRemove(&door.conns, &h->node);
    door.conn_count--;
    connClose(&h->conn);
    strFree(&h->head);
    strFree(&h->answer.body);
    memFree(h);
}

/* Everything is sent: the next request, or the end. A body we have not read would make the kernel reset the
 * connection and the answer with it, so then the peer closes first, or time does. False: it is gone. */
static bool finish(httpConn *h) {
    strClear(&h->head);
    strFree(&h->answer.body);
    h->sent = 0;
    h->deadline_ms = clockMonoMs() + (h->closes ? LINGER_MS : PATIENCE_MS);
    bool goes_on = !h->closes || h->lingers;
    if (goes_on && connOnWrite(&h->conn, NULL) == OK && connOnRead(&h->conn, readable) == OK)
        return true;
    drop(h);
    return false;
}

/* True when all of the answer is sent; false: later, or the connection is gone. */
static bool sendMore(httpConn *h) {
    slice body = h->answer.page.len ? h->answer.page : strSlice(&h->answer.body);
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
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Service Unavailable";
    }
}

/* Writes the head; a HEAD request gets no body behind it. */
static void beginAnswer(httpConn *h, bool head_only) {
    h->deadline_ms = clockMonoMs() + PATIENCE_MS;
    slice body = h->answer.page.len ? h->answer.page : strSlice(&h->answer.body);
    strAppendFormat(&h->head,
                    "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                    "Content-Security-Policy: frame-ancestors 'none'\r\n%s%s\r\n",
                    h->answer.code, reasonOf(h->answer.code), h->answer.type, body.len,
                    h->answer.code == 405 ? "Allow: GET, HEAD\r\n" : "",
                    h->closes ? "Connection: close\r\n" : "");
    if (!head_only) return;
    h->answer.page = SLICE("");
    strFree(&h->answer.body);
}

static void refuse(httpConn *h, int code, const char *text) {
    h->answer =
        (httpAnswer){.code = code, .type = "text/plain; charset=utf-8", .page = sliceOf(text)};
    h->closes = h->lingers = true;
}

/* ------------------------------------------------------------------ requests */

/* Decides the answer to a whole request. */
static void judge(httpConn *h, const httpRequest *r) {
    bool get = sliceEqual(r->method, SLICE("GET")), head = sliceEqual(r->method, SLICE("HEAD"));
    h->closes = !r->keep_alive || r->has_body;
    h->lingers = r->has_body;
    if (!h->is_local && netIsProtected() && !aclDefaultNeedsPassword()) {
        refuse(
            h, 403,
            "Protected mode: without a password this server answers its own machine only. Set requirepass, "
            "or protected-mode no.\n");
    } else if (!get && !head) {
        refuse(h, 405, "GET and HEAD only: nothing can be changed here.\n");
    } else {
        routeAnswer(r->path, r->accept, &h->answer);
    }
    beginAnswer(h, head);
}

/* Answers the requests that are complete. The connection may be gone afterwards. */
static void answerAll(httpConn *h) {
    while (h->in_len && !h->closes) {
        httpRequest r;
        int64_t size = httpParse(sliceMake(h->in, h->in_len), &r);
        if (size == 0 && h->in_len < HEAD_MAX) return;
        if (size > 0) {
            judge(h, &r);
            h->in_len -= (size_t)size;
            memmove(h->in, h->in + size, h->in_len);
        } else {
            refuse(h, size < 0 ? 400 : 431,
                   size < 0 ? "This is no HTTP request.\n" : "Too long.\n");
            beginAnswer(h, false);
        }
        if (!sendMore(h) || !finish(h)) return;
    }
}

static void readable(conn *c) {
    httpConn *h = (httpConn *)c;  /* its first member */
    if (h->closes) h->in_len = 0; /* what comes behind the last request is not looked at */
    ssize_t got = connRead(c, h->in + h->in_len, HEAD_MAX - h->in_len);
    if (got <= 0) {
        if (c->state != CONN_OPEN) drop(h);
        return;
    }
    h->in_len += (size_t)got;
    answerAll(h);
}

static void writable(conn *c) {
    httpConn *h = (httpConn *)c; /* its first member */
    if (sendMore(h) && finish(h)) answerAll(h);
}

/* ------------------------------------------------------------------ the port */

static void acceptOne(int fd) {
    if (door.conn_count == CONNECTIONS_MAX)
        drop(LIST_OWNER(listFirst(&door.conns), httpConn, node));
    httpConn *h = memNew(httpConn);
    connInit(&h->conn, &connTcp, door.loop, fd, CONN_OPEN);
    h->is_local = netPeerIsLocal(fd);
    h->deadline_ms = clockMonoMs() + PATIENCE_MS;
    listAppend(&door.conns, &h->node);
    door.conn_count++;
    if (connOnRead(&h->conn, readable) != OK) drop(h);
}

static void acceptable(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)arg, (void)mask; /* one loop, and only readiness to read is watched */
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int accepted = netAccept(fd);
        if (accepted < 0) return;
        acceptOne(accepted);
    }
}

static void closeListeners(listeners *l) {
    for (int i = 0; i < l->count; i++) {
        loopUnwatch(door.loop, l->fds[i], LOOP_READ);
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
    if (to->count == LISTENERS_MAX || loopWatch(door.loop, fd, LOOP_READ, acceptable, NULL) != OK) {
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

static void noteBind(str *out) {
    strClear(out);
    configGet(configFind(SLICE("bind")), out);
}

status metricsRelisten(reason *why) {
    if (!door.loop) return OK; /* the start opens it */
    listeners opened;
    status st = openListeners(&opened, why);
    if (st != OK) return st;
    closeListeners(&door.open);
    door.open = opened;
    noteBind(&door.bound);
    return OK;
}

/* `bind` may have changed: the addresses are the same for both ports. */
static void followBind(void) {
    str now = STR_EMPTY;
    noteBind(&now);
    bool same = sliceEqual(strSlice(&now), strSlice(&door.bound));
    strFree(&now);
    if (same) return;
    closeListeners(&door.open); /* a wider address would collide with an old one */
    reason why = {""};
    if (metricsRelisten(&why) == OK) return;
    logWarning("%s", why.text);
    noteBind(&door.bound); /* said once */
}

status metricsListen(loop *l, reason *why) {
    door.loop = l;
    listInit(&door.conns);
    status st = metricsRelisten(why);
    if (st == OK && metricsConf.port)
        logNotice("Metrics and the status page are on http port %d", metricsConf.port);
    return st;
}

void metricsStop(void) {
    if (!door.loop) return;
    closeListeners(&door.open);
    while (door.conn_count) drop(LIST_OWNER(listFirst(&door.conns), httpConn, node));
    strFree(&door.bound);
}

static void tick(int64_t budget_us) {
    (void)budget_us; /* a few connections at most */
    if (!door.loop || !metricsConf.port) return;
    followBind();
    int64_t now_ms = clockMonoMs();
    for (listNode *n = listFirst(&door.conns), *next; n; n = next) {
        next = listNext(&door.conns, n);
        httpConn *h = LIST_OWNER(n, httpConn, node);
        if (h->deadline_ms <= now_ms) drop(h);
    }
}

static const tickJob ticks[] = {{"metrics", 500, tick}, {0}};

const feature metricsFeature = {.name = "metrics", .options = metricsOptions, .ticks = ticks};
