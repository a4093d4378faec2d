/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client: a session and its connection. An idle client owns only this struct: no input buffer, no
 * output block. */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

#include "base/alloc.h"
#include "ds/list.h"
#include "engine/session.h"
#include "engine/user.h"
#include "io/conn.h"
#include "resp/resp.h"

typedef struct client {
    session session; /* must be first: carrier functions receive a session */
    conn conn;
    struct netThread *owner; /* who alone may touch it: net_thread.h */
    listNode all;            /* node in the list of all clients */
    listNode closing;        /* node in the list of clients to free in stage FREE */
    char *in; /* bytes waiting for the rest of a request, or for the session to continue */
    size_t in_len;
    requestParser parser;
    uint64_t counted : 39;    /* its memory as included in the sums that are limited (limits.c) */
    uint64_t before_auth : 1; /* it is also included in that of clients that have not logged in */
    uint64_t is_reserved : 1; /* it does not count for the limit of normal clients (priority.h) */
    uint64_t away_units : 23; /* while a thread has it: clientConnMemory() in CLIENT_AWAY_UNITs */
    int64_t soft_limit_since_ms; /* when the output exceeded the soft limit; 0: it does not */
} client;
_Static_assert(offsetof(client, session) == 0, "a session pointer is a client pointer");
_Static_assert(sizeof(client) <= 384, "a size class of the allocator; the next one has 448");

enum { CLIENT_AWAY_UNIT = 64 /* bytes */, CLIENT_AWAY_UNITS_MAX = (1 << 23) - 1 };

static inline client *clientOf(session *s) { return (client *)s; }
/* Size of its input buffer without REQUEST_READ_SLACK; computed, because few clients have one. */
static inline size_t clientInputCap(const client *cl) {
    return cl->in ? memSizeOf(cl->in) - REQUEST_READ_SLACK : 0;
}

/* The event loop of all connections. */
loop *netLoop(void);

/* Creates a client for an accepted descriptor and starts reading. NULL if the loop cannot watch it
 * (it is closed then). `flags` are the session's first ones (SESSION_...); with SESSION_ADMIN_PORT
 * it is served first. */
client *clientNew(int fd, const connType *type, uint64_t flags);
/* Closes the client: it is freed in the next stage FREE, and no callback is called any more. */
void clientCloseLater(client *cl);
/* The same, because reading from it, or writing to it (`what`: "Reading" or "Writing"), has failed:
 * `error` says why; NULL: the other end has closed the connection. Logs it. */
void clientFailed(client *cl, const char *what, const char *error);
/* Stage FREE: frees up to `most` closed clients; the others in the next turns. */
void clientFreeClosed(int most);
/* All clients, oldest first. */
list *clientAll(void);
/* A walk over the clients that exist at its beginning; it may last over several turns, and does not
 * visit those that are freed meanwhile. */
typedef struct clientsWalk {
    listNode node; /* private */
    client **all;  /* NULL: freed */
    size_t count, at;
} clientsWalk;
void clientsWalkBegin(clientsWalk *w);
/* The next client, NULL at the end; valid until the end of the turn. */
client *clientsWalkNext(clientsWalk *w);
void clientsWalkEnd(clientsWalk *w);
/* Memory of a client in bytes: struct, buffers, output. */
size_t clientMemory(const client *cl);
size_t clientInputMemory(const client *cl);
/* The same as maxmemory-clients counts and CLIENT LIST shows it (tot-mem): a block for a large
 * argument counts as asked for, so that a request that fits the limit is not refused because the
 * allocator rounds up. */
size_t clientLimitedMemory(const client *cl);
/* The parts of that: connection and input, which belong to the client's owner; and the rest, the
 * main thread's. */
size_t clientConnMemory(const client *cl);
size_t clientSessionMemory(const client *cl);

/* Callback for readable connections. */
void readerReadable(conn *c);
/* Adds bytes that were received before the client was created; they are run in this turn. */
void readerBegin(client *cl, slice bytes);
/* Stage EXECUTE, after the requests of others: continues pipelines that took long. */
void readerContinue(void);
/* Frees the input of a client that is being closed, unless it is in use in this turn. */
void readerDropInput(client *cl);
/* Visits the sessions of all clients. */
void clientWalk(sessionVisitProc *visit, void *arg);
/* It does not count for the limit of normal clients (priority.h). */
void clientReserve(client *cl);
/* The connection is open: counts and logs it. False if it is refused, with an error (protected
 * mode). */
bool clientAdmit(client *cl);
/* Stage EXECUTE: runs what was read in this turn. */
void readerExecute(void);
/* Allocates at startup what reading needs, so that it is included in the initial memory. */
void readerOpen(void);
/* Parses and runs requests in a client's own buffer after it was suspended. */
void readerResume(client *cl);

/* Stage WRITE: one writev() per session with output. */
void writerRun(void);
/* Writes as much as possible; closes a client that is to be closed after its output. */
void writerWrite(client *cl);
/* The same without output that is held: see netSetHold(). */
void writerWriteReleased(client *cl);

/* True if a limit of the client's class was exceeded; the client is being closed then. */
bool limitsCheckOutput(client *cl);
bool limitsCheckInput(client *cl);

/* Update the sums that are limited after a client's memory changed, and before it is closed. No
 * effect on a client that has logged in unless there is a limit (maxmemory-clients). */
void limitsRecount(client *cl);
void limitsUncount(client *cl);
/* Closes the largest clients until maxmemory-clients is met: at the end of stage WRITE, and before
 * keys are evicted. Returns the memory of the closed clients, which is freed in stage FREE. */
size_t limitsEvict(void);
/* The client is going to run requests of that many bytes, which its memory does not include: closes
 * the largest clients if this exceeds maxmemory-clients. False if it is one of them. */
bool limitsAdmitInput(client *cl, size_t bytes);

/* Adds to, or subtracts from, the memory of clients that have not logged in what this one has
 * `counted`. Adding closes the largest ones if they have too much (client-memory-before-auth). */
void beforeAuthAdd(client *cl);
void beforeAuthSubtract(client *cl);

/* sessionAppendMemoryClasses(): the classes are powers of two. */
bool limitsAppendClasses(str *out);

/* Periodic job: idle timeouts and soft limits. */
void limitsTick(int64_t budget_us);
/* For tickJob.is_busy: a client may reach a limit without an event. */
bool limitsAreBusy(void);

/* Appends the peer's address in the format of CLIENT LIST. */
void clientAppendPeer(const client *cl, str *out);
/* Appends the line of CLIENT LIST. */
void clientDescribe(const session *s, str *out);
/* Keeps the client's addresses for its following lines, which then need no system calls. */
void clientKeepAddresses(client *cl);
/* Like clientDescribe() for a log: omits user data if hide-user-data-from-log is on. */
void clientDescribeForLog(const client *cl, str *out);
/* Who a client is, without what it does, as Valkey logs it with an order. `hides`: without the
 * names that it and its user have. */
void clientDescribeShort(const client *cl, bool hides, str *out);

/* Functions of clientCarrier: see sessionCarrier. */
bool converseWriteAll(session *s);
size_t converseReadWait(session *s, void *dst, size_t cap);
void converseHandOver(session *s);

extern const sessionCarrier clientCarrier;

/* Counters of network activity, since the start or CONFIG RESETSTAT. */
typedef struct netStatistics {
    uint64_t connections, rejected, rejected_priority;
    uint64_t bytes_in, bytes_out;
    uint64_t repl_in, repl_out;   /* from a primary and to replicas; part of the two above */
    uint64_t slots_in, slots_out; /* of slots that are moved; part of them, too */
    uint64_t reads, writes;
    uint64_t input_limit_closed, output_limit_closed, evicted;
    uint64_t recent_input_max, recent_output_max;
    uint64_t failed_handshakes; /* TLS */
} netStatistics;
/* All of them, those of this turn included. Main thread. */
netStatistics *netStats(void);
/* Without the counts of readers and writers since the last netThreadFold(). */
netStatistics *netTotals(void);

/* For qsort() of pointers to clients: those that count for more memory come first. */
int clientCompareCounted(const void *a, const void *b);

#endif
