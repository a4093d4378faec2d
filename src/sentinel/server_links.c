/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connections of this Sentinel with the instances that it watches, and a cache of the addresses
 * of host names.
 *
 * Invariant: either a link and its connection refer to each other, or neither refers to the other.
 * A connection that ends while readable() handles its input is freed when readable() returns. Main
 * thread only. */
#include "sentinel/server_links.h"

#include <errno.h>

#include "base/base.h"
#include "engine/lifecycle.h"
#include "io/conn.h"
#include "io/net_addr.h"
#include "io/resolve.h"
#include "io/tls.h"
#include "monitor/machine.h"
#include "net/net.h"
#include "resp/resp.h"
#include "sentinel/server_sentinel.h"

enum {
    READ_BYTES = 16 * 1024,
    READS_PER_EVENT = 16,
    REPLY_BYTES_MAX = 1024 * 1024, /* INFO of 10,000 replicas; longer replies end the connection */
    /* Names of hosts. Beyond the first number one that no instance has makes room; names of
     * instances are limited by their number alone. */
    NAMES_MAX = 64,
    NAMES_LIMIT = 8192,
    NAMES_ASKED_MAX = 8, /* look-ups at once of names that no instance has */
    NAME_FRESH_MS = 5000,
};

/* A connection. */
typedef struct serverConn {
    conn conn;
    sentinelLink *link; /* NULL: it has ended */
    bool pubsub;
    bool is_reading; /* its callback is running, and frees it */
    str in, out;
    size_t sent; /* of `out` */
    replyReader reader;
    sentinelReply reply;
    str text, items[SENTINEL_REPLY_ITEMS];
    int item_count;
    int requests, replies; /* of a connection for messages, whose last request is SUBSCRIBE */
} serverConn;

/* ------------------------------------------------------------------ life */

static serverConn *connOf(const sentinelLink *l, bool pubsub) {
    return pubsub ? l->pubsub_carrier : l->command_carrier;
}

static void freeConn(serverConn *sc) {
    check(!sc->link);
    check(!sc->is_reading);
    strFree(&sc->in);
    strFree(&sc->out);
    strFree(&sc->text);
    for (int i = 0; i < SENTINEL_REPLY_ITEMS; i++) strFree(&sc->items[i]);
    memFree(sc);
}

static void closeConn(serverConn *sc) {
    check(sc->link);
    if (sc->pubsub) {
        sc->link->pubsub_carrier = NULL;
    } else {
        sc->link->command_carrier = NULL;
    }
    sc->link = NULL;
    connClose(&sc->conn);
    if (!sc->is_reading) freeConn(sc);
}

/* The connection has failed or ended. */
static void ended(serverConn *sc, bool refused) {
    sentinelLink *l = sc->link;
    bool pubsub = sc->pubsub;
    closeConn(sc);
    sentinelLinkClosed(serverViewNow(), l, pubsub, refused);
}

/* Closes the link. Orders may have been added immediately before, so pending bytes are written as
 * far as the system accepts them at once. */
void serverLinkDisconnect(sentinelView *v, sentinelLink *l, bool pubsub) {
    hotCheck(v == &serverView);
    serverConn *sc = connOf(l, pubsub);
    if (!sc) return;
    while (sc->sent < sc->out.len && sc->conn.state == CONN_OPEN) {
        struct iovec iov = {sc->out.ptr + sc->sent, sc->out.len - sc->sent};
        ssize_t n = connWritev(&sc->conn, &iov, 1);
        if (n <= 0) break; /* the server may not read the rest, as it may not read the others */
        sc->sent += (size_t)n;
    }
    closeConn(sc);
}

/* ------------------------------------------------------------------ sending */

static void writable(conn *c) {
    serverConn *sc = CONTAINER_OF(c, serverConn, conn);
    while (sc->sent < sc->out.len) {
        struct iovec iov = {sc->out.ptr + sc->sent, sc->out.len - sc->sent};
        ssize_t n = connWritev(c, &iov, 1);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            ended(sc, false);
            return;
        }
        sc->sent += (size_t)n;
    }
    strFree(&sc->out);
    sc->sent = 0;
    if (connOnWrite(c, NULL) != OK) ended(sc, false);
}

/* If it fails, the connection ends when the loop reports so, not inside of the caller. */
void serverLinkSend(sentinelView *v, sentinelLink *l, bool pubsub, int count, const slice *words) {
    serverConn *sc = connOf(l, pubsub);
    size_t len;
    hotCheck(v == &serverView);
    check(sc);
    sc->requests++;
    char *bytes = respRequest(count, words, &len);
    strAppend(&sc->out, bytes, len);
    memFree(bytes);
    if (connOnWrite(&sc->conn, writable) != OK) logDebug("A link of Sentinel cannot be observed");
}

/* ------------------------------------------------------------------ replies */

static void setText(str *to, slice text) {
    strClear(to);
    strAppendSlice(to, text);
}

/* Adds an event to the reply. True if it is complete. */
static bool takeEvent(serverConn *sc, const replyEvent *e) {
    hotCheck(e->depth >= 0);
    sentinelReply *r = &sc->reply;
    bool is_aggregate = e->kind >= REPLY_ARRAY && e->kind <= REPLY_ATTRIBUTE;
    if (e->depth == 0) {
        *r = (sentinelReply){.kind = e->kind, .integer = e->integer};
        r->count = is_aggregate ? (int)(e->integer < 1000 ? e->integer : 1000) : 0;
        setText(&sc->text, e->text);
        sc->item_count = 0;
    } else if (e->depth == 1 && sc->item_count < SENTINEL_REPLY_ITEMS) {
        int at = sc->item_count++;
        r->items[at].kind = e->kind;
        r->items[at].integer = e->integer;
        setText(&sc->items[at], e->text);
    }
    if (!e->complete) return false;
    r->text = strSlice(&sc->text);
    for (int i = 0; i < sc->item_count; i++) r->items[i].text = strSlice(&sc->items[i]);
    return true;
}

/* Without SUBSCRIBE the connection is of no use: to users it is as if there was none. */
static bool isRefused(serverConn *sc) {
    hotCheck(sc->pubsub);
    if (sc->replies >= sc->requests || ++sc->replies < sc->requests) return false;
    if (sc->reply.kind != REPLY_ERROR) {
        sc->link->refusals = 0;
        return false;
    }
    const sentinelInstance *i = sentinelLinkUser(&serverView, sc->link);
    if (sc->link->refusals++ == 0 && i)
        logWarning("%s replies to SUBSCRIBE: %.*s", strText(&i->name), (int)sc->reply.text.len,
                   sc->reply.text.ptr);
    return true;
}

/* False: the connection is to be closed. */
static bool deliver(serverConn *sc) {
    hotCheck(sc->link);
    const sentinelReply *r = &sc->reply;
    sentinelView *v = serverViewNow();
    if (!sc->pubsub) return sentinelReplied(v, sc->link, r);
    if (isRefused(sc)) return false;
    sentinelHeard(v, sc->link);
    bool is_message = r->count == 3 && sc->item_count == 3 &&
                      sliceIs(r->items[0].text, "message") && r->items[2].kind == REPLY_BULK;
    if (is_message) sentinelHello(v, r->items[2].text, false);
    return true;
}

/* Hands over what is complete. False: the connection is to be closed. */
static bool readReplies(serverConn *sc) {
    size_t pos = 0;
    bool fine = true;
    while (sc->link && fine) {
        replyEvent e;
        replyReadStatus st = replyRead(&sc->reader, sc->in.ptr, sc->in.len, &pos, &e);
        if (st == REPLY_NEED_MORE) break;
        fine = st == REPLY_EVENT;
        if (fine && takeEvent(sc, &e)) fine = deliver(sc);
    }
    if (pos == sc->in.len) {
        strFree(&sc->in);
    } else {
        memmove(sc->in.ptr, sc->in.ptr + pos, sc->in.len - pos);
        strCut(&sc->in, sc->in.len - pos);
    }
    return fine && sc->in.len <= REPLY_BYTES_MAX;
}

static void readable(conn *c) {
    serverConn *sc = CONTAINER_OF(c, serverConn, conn);
    sc->is_reading = true;
    for (int i = 0; i < READS_PER_EVENT && sc->link; i++) {
        char *to = strReserve(&sc->in, READ_BYTES);
        ssize_t n = connRead(c, to, READ_BYTES);
        if (n < 0 && errno == EAGAIN) break;
        if (n > 0) strGrow(&sc->in, (size_t)n);
        if ((n <= 0 || !readReplies(sc)) && sc->link) ended(sc, false);
        if (n < READ_BYTES) break;
    }
    sc->is_reading = false;
    if (!sc->link) freeConn(sc);
}

/* ------------------------------------------------------------------ connecting */

static void connected(conn *c) {
    serverConn *sc = CONTAINER_OF(c, serverConn, conn);
    check(sc->link);
    if (c->state == CONN_FAILED) {
        ended(sc, c->last_errno == ECONNREFUSED);
        return;
    }
    if (connOnWrite(c, NULL) != OK || connOnRead(c, readable) != OK) {
        ended(sc, false);
        return;
    }
    sentinelInstance *i = sentinelLinkUser(&serverView, sc->link);
    check(i);
    sentinelLinkOpened(serverViewNow(), i, sc->pubsub);
}

void serverLinkConnect(sentinelView *v, sentinelInstance *i, bool pubsub) {
    reason why;
    sentinelLink *l = i->link;
    bool tls = netTlsForReplication();
    check(!connOf(l, pubsub));
    int fd = netConnectTcp(i->addr.ip, i->addr.port, netSourceAddress(), false, &why);
    if (fd < 0) {
        sentinelLinkClosed(v, l, pubsub, errno == ECONNREFUSED);
        return;
    }
    (void)netSetNoDelay(fd, true); /* without it commands are only slower */
    serverConn *sc = memNew(serverConn);
    sc->link = l;
    sc->pubsub = pubsub;
    replyReaderInit(&sc->reader);
    connInit(&sc->conn, tls ? &connTls : &connTcp, engineLoop(), fd, CONN_CONNECTING);
    if (pubsub) {
        l->pubsub_carrier = sc;
    } else {
        l->command_carrier = sc;
    }
    if ((tls && netTlsConnect(&sc->conn, strText(&i->addr.host)) != OK) ||
        connOnWrite(&sc->conn, connected) != OK)
        ended(sc, false);
}

/* ------------------------------------------------------------------ addresses */

bool serverLinkOwnIp(sentinelView *v, const sentinelLink *l, char ip[SENTINEL_IP_MAX]) {
    char text[NET_ADDR_TEXT_MAX];
    const serverConn *sc = l->command_carrier;
    hotCheck(v == &serverView);
    if (!sc || !netLocalText(sc->conn.fd, text)) return false;
    (void)netSplitText(text, ip, SENTINEL_IP_MAX); /* the port is not needed */
    return ip[0] != '\0';
}

/* A name that was looked up. */
typedef struct knownName {
    str host;
    char ip[SENTINEL_IP_MAX]; /* empty: unknown */
    int64_t asked_ms, used_ms;
    bool is_asked; /* the answer has not come: the worker refers to this entry */
} knownName;
static knownName **names;
static int name_count, names_asked;

static void lookedUp(void *arg, const char *addr) {
    knownName *name = arg;
    check(name->is_asked);
    name->is_asked = false;
    names_asked--;
    if (addr && strlen(addr) < SENTINEL_IP_MAX) memcpy(name->ip, addr, strlen(addr) + 1);
}

/* The one that was used longest ago among those that no instance has; NULL: there is none. Anybody
 * may tell of hosts, so these names may be as many as one likes. */
static knownName *dispensable(const sentinelView *v) {
    knownName *oldest = NULL;
    hotCheck(name_count >= NAMES_MAX);
    for (int i = 0; i < name_count; i++) {
        knownName *name = names[i];
        if (name->is_asked || (oldest && name->used_ms >= oldest->used_ms)) continue;
        if (!sentinelUsesHost(v, strSlice(&name->host))) oldest = name;
    }
    return oldest;
}

static knownName *nameOf(const sentinelView *v, slice host) {
    for (int i = 0; i < name_count; i++) {
        if (sliceEqual(strSlice(&names[i]->host), host)) return names[i];
    }
    knownName *name = name_count < NAMES_MAX ? NULL : dispensable(v);
    if (name) {
        strFree(&name->host);
    } else {
        if (name_count == NAMES_LIMIT) return NULL;
        names = memRealloc(names, (size_t)(name_count + 1) * sizeof(*names));
        names[name_count++] = name = memNew(knownName);
    }
    *name = (knownName){.host = strNew(host)};
    return name;
}

/* In the background: the answer is used the next time. */
static void lookUp(const sentinelView *v, knownName *name, const char *host) {
    hotCheck(names_asked >= 0);
    bool is_fresh = name->asked_ms && v->now_ms - name->asked_ms <= NAME_FRESH_MS;
    if (name->is_asked || is_fresh) return;
    if (names_asked >= NAMES_ASKED_MAX && !sentinelUsesHost(v, strSlice(&name->host))) return;
    name->is_asked = true;
    name->asked_ms = v->now_ms;
    names_asked++;
    resolveHost(host, lookedUp, name);
}

bool serverLinkResolve(sentinelView *v, slice host, char ip[SENTINEL_IP_MAX]) {
    char text[NET_ADDR_TEXT_MAX];
    if (host.len == 0 || host.len >= sizeof(text)) return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (netAddrIsValid(text)) {
        if (host.len >= SENTINEL_IP_MAX) return false;
        memcpy(ip, text, host.len + 1);
        return true;
    }
    knownName *name = v->resolve_hostnames ? nameOf(v, host) : NULL;
    if (!name) return false;
    name->used_ms = v->now_ms;
    if (!serverSentinelIsRunning()) {
        if (!name->ip[0] && resolveHostNow(text, text) && strlen(text) < SENTINEL_IP_MAX)
            memcpy(name->ip, text, strlen(text) + 1);
    } else {
        lookUp(v, name, text);
    }
    if (!name->ip[0]) return false;
    memcpy(ip, name->ip, sizeof(name->ip));
    return true;
}
