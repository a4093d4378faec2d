/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life cycle of a client: created on accept, closed for a reason, freed in stage FREE.
 * Invariant: a client is in the list of all clients from its creation until it is freed; one that
 * is waiting to be freed has no callbacks but one that does nothing, so that it cannot be reached.
 * Main thread only. */
#include "net/client.h"

#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/base.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/server_event.h"
#include "engine/session_slot.h"
#include "engine/transaction.h"
#include "engine/watch.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_thread.h"
#include "net/priority.h"
#include "net/tls.h"
#include "net/trial.h"
#include "resp/outbuf_drop.h"

static struct {
    list all;
    list closing;
    int closed_in_turn;
    netStatistics stats;
} clients;

static list walks; /* of clientsWalk */

/* The client is going to be freed. */
static void leaveWalks(const client *cl) {
    if (likely(!walks.count)) return;
    for (listNode *n = listFirst(&walks); n; n = listNext(&walks, n)) {
        const clientsWalk *w = LIST_OWNER(n, clientsWalk, node);
        for (size_t i = w->at; i < w->count; i++) {
            if (w->all[i] == cl) w->all[i] = NULL;
        }
    }
}

void clientsWalkBegin(clientsWalk *w) {
    const list *all = clientAll();
    if (!walks.head.next) listInit(&walks);
    *w = (clientsWalk){.all = memNewArray(client *, all->count + 1)};
    for (listNode *n = listFirst(all); n; n = listNext(all, n))
        w->all[w->count++] = LIST_OWNER(n, client, all);
    listAppend(&walks, &w->node);
}

client *clientsWalkNext(clientsWalk *w) {
    hotCheck(listHas(&w->node));
    while (w->at < w->count) {
        client *cl = w->all[w->at++];
        if (cl) return cl;
    }
    return NULL;
}

void clientsWalkEnd(clientsWalk *w) {
    check(listHas(&w->node));
    listRemove(&walks, &w->node);
    memFree(w->all);
}

list *clientAll(void) {
    if (!clients.all.head.next) {
        listInit(&clients.all);
        listInit(&clients.closing);
    }
    return &clients.all;
}

netStatistics *netTotals(void) { return &clients.stats; }

netStatistics *netStats(void) {
    netThreadFold(netMainThread());
    return &clients.stats;
}

static void signalClient(client *cl, bool connected) {
    serverEventSignal(&(serverEvent){.kind = SERVER_CLIENT, .client = {&cl->session, connected}});
}

client *clientNew(int fd, const connType *type, uint64_t flags) {
    bool priority = flags & SESSION_ADMIN_PORT;
    list *all = clientAll();
    client *cl = memNew(client);
    cl->owner = netMainThread();
    connInit(&cl->conn, type, netLoop(), fd, CONN_OPEN);
    if (priority) connSetPriority(&cl->conn, true);
    bool is_given = type != &connTls && !priority && netThreadsAreActive();
    status st = OK;
    if (!is_given) st = type == &connTls ? netTlsBegin(cl) : readerStart(cl);
    if (st != OK) {
        connClose(&cl->conn);
        memFree(cl);
        return NULL;
    }
    if (type == &connUnix) flags |= SESSION_UNIX_SOCKET | SESSION_LOCAL;
    sessionInit(&cl->session, &clientCarrier, flags);
    listAppend(all, &cl->all);
    signalClient(cl, true);
    if (unlikely(is_given)) ioThreadsTakeNew(cl);
    return cl;
}

void clientReserve(client *cl) {
    if (cl->is_reserved || listHas(&cl->closing)) return;
    cl->is_reserved = true;
    priorityCount(1);
}

void netSetPriority(session *s, bool on) {
    hotCheck(threadIsMain());
    if (s->carrier != &clientCarrier) return;
    connSetPriority(&clientOf(s)->conn, on);
    if (on) trialEnd(clientOf(s));
    if (on) clientReserve(clientOf(s));
}

/* A closed client whose events are still registered has one. */
static void ignoreReadable(conn *c) {
    hotCheck(CONTAINER_OF(c, client, conn)->session.flags & SESSION_CLOSE_NOW);
    check(connOnRead(c, NULL) == OK);
}

/* Calls of the kernel for each of thousands of clients that one command closes would stall others:
 * after the first ones of a turn, the connection's events are ignored until it is freed. */
static bool closesFew(void) {
    enum { AT_ONCE = 64 };
    return clients.closed_in_turn < AT_ONCE;
}

static void ignoreEvents(client *cl) {
    check(connOnWrite(&cl->conn, NULL) == OK);
    if (closesFew() || cl->conn.thread) {
        check(connOnRead(&cl->conn, NULL) == OK);
    } else if (cl->conn.on_read) {
        check(connOnRead(&cl->conn, ignoreReadable) == OK);
    }
    clients.closed_in_turn++;
}

void clientCloseLater(client *cl) {
    hotCheck(threadIsMain());
    if (listHas(&cl->closing)) return;
    cl->session.flags |= SESSION_CLOSE_NOW;
    limitsUncount(cl);
    trialEnd(cl);
    if (unlikely(clientIsAway(cl))) {
        ioThreadsNote(cl, NOTE_CLOSE);
        return;
    }
    hotCheck(netThreadIsCurrent(cl->owner));
    if (unlikely(cl->owner->waiting_count + cl->owner->postponed_count)) readerForgetWaiting(cl);
    ignoreEvents(cl);
    listAppend(&clients.closing, &cl->closing);
    if (cl->is_reserved) priorityCount(-1);
    if (unlikely(cl->conn.thread)) ioThreadsClose(cl);
    loopLimitSleep(netLoop(), 0); /* FREE must not wait for the next event */
}

static netReplicaEndProc *replicaEnd;

void netSetReplicaEnd(netReplicaEndProc *proc) { replicaEnd = proc; }

void clientFailed(client *cl, const char *what, const char *error) {
    char why[100] = "It has closed the connection";
    if (error) {
        snprintf(why, sizeof(why), "%s failed: %s", what, error);
        logVerbose("%s of client id=%llu failed: %s", what, (unsigned long long)cl->session.id,
                   error);
    } else {
        logVerbose("Client closed connection id=%llu", (unsigned long long)cl->session.id);
    }
    if (unlikely(cl->session.flags & SESSION_REPLICA) && replicaEnd) replicaEnd(&cl->session, why);
    clientCloseLater(cl);
}

static void clientFree(client *cl) {
    hotCheck(listHas(&cl->closing));
    listRemove(&clients.closing, &cl->closing);
    leaveWalks(cl);
    listRemove(&clients.all, &cl->all);
    /* The link to the primary was opened by this server. */
    if (cl->session.origin != ORIGIN_PRIMARY) signalClient(cl, false);
    sessionClear(&cl->session);
    connClose(&cl->conn);
    requestParserClear(&cl->parser);
    memFree(cl->in);
    memFree(cl);
}

void clientFreeClosed(int most) {
    hotCheck(threadIsMain());
    check(most > 0);
    clients.closed_in_turn = 0;
    if (!clients.closing.head.next) return;
    for (listNode *n = listFirst(&clients.closing); n;) {
        client *cl = LIST_OWNER(n, client, closing);
        n = listNext(&clients.closing, n);
        if (cl->session.flags & SESSION_IN_BATCH || sessionIsExecuting(&cl->session)) continue;
        if (unlikely(cl->conn.thread)) continue; /* until it is released */
        if (!most--) {
            loopLimitSleep(netLoop(), 0);
            return;
        }
        clientFree(cl);
    }
}

size_t clientInputMemory(const client *cl) {
    return (cl->in ? memSizeOf(cl->in) : 0) + requestParserMemory(&cl->parser);
}

size_t clientConnMemory(const client *cl) {
    if (clientIsAway(cl)) return (size_t)cl->away_units * CLIENT_AWAY_UNIT;
    return tlsMemory(&cl->conn) + clientInputMemory(cl) - requestParserRounding(&cl->parser);
}

size_t clientSessionMemory(const client *cl) {
    const session *s = &cl->session;
    return sizeof(*cl) + outbufMemory(&s->out) + transactionMemory(s) + watchMemory(s) +
           blockMemory(s) + sessionSlotMemory(s);
}

size_t clientLimitedMemory(const client *cl) {
    if (unlikely(clientIsAway(cl))) ioThreadsSettle();
    return clientSessionMemory(cl) + clientConnMemory(cl);
}

size_t clientMemory(const client *cl) {
    if (unlikely(clientIsAway(cl))) ioThreadsSettle();
    return clientSessionMemory(cl) + tlsMemory(&cl->conn) + clientInputMemory(cl);
}

static void carrierPauseReading(session *s, bool paused) {
    client *cl = clientOf(s);
    if (listHas(&cl->closing)) return;
    status st = paused ? connOnRead(&cl->conn, NULL) : readerStart(cl);
    if (st != OK) clientCloseLater(cl);
}

static void carrierResume(session *s) { readerResume(clientOf(s)); }

static void carrierCloseSoon(session *s) {
    sessionWantWrite(s); /* the writer closes it when everything was written */
}

static void carrierOutputGrew(session *s) {
    if (unlikely(sessionOutputMemory(s) > OUTBLOCK_SIZE))
        (void)limitsCheckOutput(clientOf(s)); /* closes the client if a limit is exceeded */
}

/* A command that closes another client is replied before stage FREE: the peer is told at once, so
 * that the connection has ended when the reply arrives; of thousands only the first ones are. TLS
 * says so itself when it is closed. */
static void carrierCloseNow(session *s) {
    const ctx *c = engineHot.current;
    client *cl = clientOf(s);
    if (c && c->who != s && closesFew() && !netIsTls(s))
        (void)shutdown(cl->conn.fd, SHUT_RDWR); /* fails if the peer has ended it already */
    clientCloseLater(cl);
}

static void carrierPeer(const session *s, str *out) { clientAppendPeer((const client *)s, out); }

const sessionCarrier clientCarrier = {.pause_reading = carrierPauseReading,
                                      .resume = carrierResume,
                                      .close_soon = carrierCloseSoon,
                                      .close_now = carrierCloseNow,
                                      .peer = carrierPeer,
                                      .output_grew = carrierOutputGrew,
                                      .write_all = converseWriteAll,
                                      .read_wait = converseReadWait,
                                      .hand_over = converseHandOver};

void clientWalk(sessionVisitProc *visit, void *arg) {
    hotCheck(threadIsMain());
    for (listNode *n = listFirst(clientAll()), *next; n; n = next) {
        next = listNext(&clients.all, n);
        visit(&LIST_OWNER(n, client, all)->session, arg);
    }
}

void netSetDelay(session *s, bool delay) {
    (void)netSetNoDelay(clientOf(s)->conn.fd, !delay); /* not supported by Unix sockets */
}

void netLocalIp(const session *s, char *dst, size_t size) {
    char text[NET_ADDR_TEXT_MAX];
    check(size > 0);
    dst[0] = 0;
    if (s->flags & SESSION_UNIX_SOCKET || !netLocalText(((const client *)s)->conn.fd, text)) return;
    (void)netSplitText(text, dst, size); /* the port is not needed */
}

bool netIsTls(const session *s) { return ((const client *)s)->conn.type == &connTls; }

bool netPeerPem(const session *s, str *out) {
    return netIsTls(s) && tlsPeerPem(&((const client *)s)->conn, out);
}

int netClientCount(void) { return (int)(clientAll()->count - clients.closing.count); }

session *netFindClient(uint64_t id) {
    for (listNode *n = listFirst(clientAll()); n; n = listNext(&clients.all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (cl->session.id == id && !(cl->session.flags & SESSION_CLOSE_NOW)) return &cl->session;
    }
    return NULL;
}

void netCloseAll(void) {
    hotCheck(threadIsMain());
    ioThreadsStop();
    writerLateOutput();
    for (listNode *n = listFirst(clientAll()); n; n = listNext(&clients.all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (!listHas(&cl->closing)) writerWriteReleased(cl);
        cl->session.flags &= ~SESSION_IN_BATCH;
        clientCloseLater(cl);
    }
    clientFreeClosed(INT_MAX);
    (void)outbufFreeDropped(SIZE_MAX); /* nothing is left */
}
