/* SPDX-License-Identifier: BSD-3-Clause
 *
 * I/O threads: read, parse and write for the main thread, which lends them clients. A client that
 * is lent (SESSION_LENT) belongs to one thread until it comes back: meanwhile the main thread does
 * not touch its connection and input, and does not change its output; what it wants to do with it
 * is noted and done afterwards. Main thread only. */
#ifndef NET_IO_THREADS_H
#define NET_IO_THREADS_H

#include "net/batch.h"

enum { IO_THREADS_MAX = 256 }; /* the limit of io-threads, which includes the main thread */

/* Effect of io-threads and io-threads-always-active: starts and ends threads. No effect before
 * netListen(). */
status ioThreadsApply(reason *why);
/* At shutdown: takes all clients back and ends the threads. */
void ioThreadsStop(void);
/* True if clients may be lent, or are. False for good with `io-threads 1`. */
bool ioThreadsInUse(void);

/* The client has bytes to read (conn.ready): lends it, if it can be. */
void ioThreadsServe(client *cl);
/* A step of the TLS handshake of a client: true if a thread makes it. A connLendProc. */
bool ioThreadsHandshake(conn *c);
/* Stage WRITE: lends a client with output, or writes it here if it cannot be lent. */
void ioThreadsWrite(client *cl);
/* Stage EXECUTE: executes what the threads have read, and takes clients back. */
void ioThreadsExecute(void);
/* The last stage: wakes threads that have work. */
void ioThreadsBeforeSleep(void);
/* Something to be done with a client that is lent: the main thread is woken when it comes back. */
enum ioNote {
    NOTE_RESUMES = 1,  /* readerResume() was called */
    NOTE_OUTPUT = 2,   /* it has output to be written */
    NOTE_READABLE = 4, /* it has bytes to be read */
    NOTE_CLOSE = 8,    /* it is to be closed */
};
void ioThreadsNote(client *cl, enum ioNote what);
/* Waits until no thread has a client: all clients may be read, until the loop continues. Those that
 * were lent are formally so until stage EXECUTE. */
void ioThreadsSettle(void);
/* Returns a batch, which is empty, to the thread that has filled it. */
void ioThreadsGiveBack(inputBatch *b);

/* Periodic job: adapts the number of threads in use to the load. */
void ioThreadsTick(int64_t budget_us);
/* For tickJob.is_busy: threads may have to be put to sleep. */
bool ioThreadsAreBusy(void);
/* The lines io_threaded_* of INFO. */
void ioThreadsPrintStats(str *out);
void ioThreadsResetStats(void);

#endif
