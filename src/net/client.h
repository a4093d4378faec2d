/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client: a session and the connection that carries it. An idle one owns this struct and nothing else:
 * no input buffer, no output block. */
#ifndef NET_CLIENT_H
#define NET_CLIENT_H

#include "ds/list.h"
#include "engine/session.h"
#include "io/conn.h"
#include "resp/resp.h"

typedef struct client {
    session session; /* must be first: carrier functions get a session */
    conn conn;
    listNode all;     /* place on the list of all clients */
    listNode closing; /* place on the list of those to free at stage FREE */
    char *in;         /* bytes that wait for the rest of a request, or for the session to go on */
    size_t in_len, in_cap; /* in_cap leaves REQUEST_READ_SLACK behind it */
    requestParser parser;
    size_t counted;              /* its share of the sum that maxmemory-clients limits */
    int64_t soft_limit_since_ms; /* when the output passed the soft limit; 0 = it has not */
} client;
_Static_assert(offsetof(client, session) == 0, "a session pointer is a client pointer");

static inline client *clientOf(session *s) { return (client *)s; }

/* The loop that carries all connections. */
loop *netLoop(void);

/* A new client on an accepted descriptor; starts reading. NULL when the loop cannot watch it (closed then). */
client *clientNew(int fd, const connType *type, bool local);
/* To be freed at the next stage FREE; no callback reaches it any more. */
void clientCloseLater(client *cl);
/* Frees those that wait for it; stage FREE. */
void clientFreeClosed(void);
/* All clients, oldest first. */
list *clientAll(void);
/* Bytes of memory a client holds beyond its struct's share of nothing: struct, buffers, output. */
size_t clientMemory(const client *cl);
size_t clientInputMemory(const client *cl);

/* The connection's read callback. */
void readerReadable(conn *c);
/* Stage EXECUTE: runs what was read in this turn. */
void readerExecute(void);
/* Gets at start what reading will need, so that it counts as used from the start. */
void readerOpen(void);
/* Parses and runs what waits in a client's own buffer, after it was held back. */
void readerResume(client *cl);

/* Stage WRITE: one writev per session with output. */
void writerRun(void);
/* Writes what can be written now; closes a finished one that is to close. */
void writerWrite(client *cl);

/* True when the output limit of the client's class is passed (and the client is closing now). */
bool limitsCheckOutput(client *cl);
bool limitsCheckInput(client *cl);

/* maxmemory-clients: the client holds more or less than before, or goes. Nothing without the directive. */
void limitsRecount(client *cl);
void limitsUncount(client *cl);
/* Closes the largest clients until the rest fits into maxmemory-clients: at the end of stage WRITE, and before anybody
 * is evicted for their sake. Returns what they held, which comes back at stage FREE. */
size_t limitsEvict(void);

/* The cron job: idle timeouts and soft limits. */
void limitsTick(int64_t budget_us);

/* Appends the peer's address as CLIENT LIST shows it. */
void clientAppendPeer(const client *cl, str *out);
/* Writes the line of CLIENT LIST. */
void clientDescribe(const client *cl, str *out);
/* The same for a log: what users chose is left out where hide-user-data-from-log says so. */
void clientDescribeForLog(const client *cl, str *out);

extern const sessionCarrier clientCarrier;

/* Counters of the door, all since the start or CONFIG RESETSTAT. */
typedef struct netStatistics {
    uint64_t connections, rejected;
    uint64_t bytes_in, bytes_out;
    uint64_t reads, writes;
    uint64_t input_limit_closed, output_limit_closed, evicted;
    uint64_t recent_input_max, recent_output_max;
} netStatistics;
netStatistics *netStats(void);

#endif
