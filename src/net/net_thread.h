/* SPDX-License-Identifier: BSD-3-Clause
 *
 * netThread: what reader and writer need of the thread that they run on: the batch being filled, and counters. There
 * is one today, the main thread's; an I/O thread will have one of its own. A client belongs to one at a time, which
 * alone may touch its connection, input and output; debug builds check it (netThreadOwns()). */
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
    client *waiting; /* the link to the primary, not read while a command runs; else NULL */
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
/* Main thread, while `t` reads nothing: executes what it has read. */
void readerExecuteOf(netThread *t);
/* Frees the empty batch of a thread that ends. */
void readerFree(netThread *t);
/* Main thread, once a turn, while `t` has no clients to serve: adds its counters to netStats() and sets them to 0. */
void netThreadFold(netThread *t);

#endif
