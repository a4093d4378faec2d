/* SPDX-License-Identifier: BSD-3-Clause
 *
 * netThread: what reader and writer need of the thread that they run on: the batch being filled,
 * and counters. The main thread has one, and each I/O thread. A client belongs to one at a time,
 * which alone may touch its connection and input. */
#ifndef NET_NET_THREAD_H
#define NET_NET_THREAD_H

#include <stdint.h>

#include "base/assert.h"
#include "net/client.h"

typedef struct netThread {
    struct inputBatch *batch; /* reader.c; NULL before readerOpen() */
    netStatistics counted;    /* since netThreadFold() */
    size_t read_bytes_max;    /* of one connection in one turn */
    size_t write_bytes_max;
    client **waiting; /* streams that are not read while a command runs; NULL if there are none */
    int waiting_count;
    client **postponed; /* whose pipelines continue in the next turn, in this order; or NULL */
    int postponed_count;
} netThread;

/* The main thread's, for new clients. */
netThread *netMainThread(void);
/* The calling thread serves the clients of `t` from now on. */
void netThreadEnter(netThread *t);
/* True if the calling thread serves the clients of `t`. ANY_THREAD. */
bool netThreadIsCurrent(const netThread *t);
/* The thread that owns a client, which must be the calling one. */
static inline netThread *netThreadOf(const client *cl) {
    hotCheck(netThreadIsCurrent(cl->owner));
    return cl->owner;
}
/* True if a thread other than the main one owns the client. Main thread. */
static inline bool clientIsAway(const client *cl) { return cl->owner != netMainThread(); }
/* --------------------------------------------- parts of the reader for I/O threads; main thread */

/* Sets the callback for readable connections; clients that exist keep theirs. */
void readerSetProc(connProc *proc);
/* A client that is going to be closed is not waiting any more, nor postponed. */
void readerForgetWaiting(client *cl);
/* Starts or continues reading. If that fails, the caller closes the client. */
status readerStart(client *cl) MUST_USE;
/* What the requests of the session may contain. */
requestLimits readerLimits(const session *s);
/* Counts `n` bytes read from the client. */
void readerCount(client *cl, ssize_t n);
/* Records the maximum input for INFO, and the client's memory for its limit. */
void readerRecord(client *cl);
/* After a read returned `n` <= 0: closes the client unless errno was EAGAIN. */
void readerFailed(client *cl, ssize_t n, int error);
/* Prefetches for the first batches of a list, as many as fit in one step; returns their number: 0
 * if the first one does not. */
int readerPrefetch(struct inputBatch *first);
/* Executes a batch that an I/O thread has filled; its clients are the main thread's. */
void readerExecuteBatch(struct inputBatch *b, bool prefetched);
/* After `written` bytes of the output were sent: removes them; the caller counts them. */
void writerSent(client *cl, size_t written);
/* After writing: applies limits, closes the client, or waits until the rest can be written. */
void writerEnd(client *cl);
/* Cuts off what is beyond `most` bytes; returns the number of parts that are left. ANY_THREAD. */
int writerLimitIovecs(struct iovec *iov, int count, size_t most);
/* The connection takes bytes again: a connProc. */
void writerWritable(conn *c);

/* Main thread, while `t` reads nothing: executes what it has read. */
void readerExecuteOf(netThread *t);
/* Frees the empty batch of a thread that ends. */
void readerFree(netThread *t);
/* Main thread, once a turn, while `t` has no clients to serve: adds its counters to netStats() and
 * sets them to 0. */
void netThreadFold(netThread *t);

#endif
