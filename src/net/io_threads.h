/* SPDX-License-Identifier: BSD-3-Clause
 *
 * I/O threads: they watch, read, parse and write for the main thread, which executes. A client that
 * a thread watches (conn.thread) is either away, with that thread (clientIsAway()), or at the main
 * thread, with its requests, until these have run. The output of a client that is away is the main
 * thread's, except while it is being written (SESSION_LENT). Main thread only. */
#ifndef NET_IO_THREADS_H
#define NET_IO_THREADS_H

#include "net/batch.h"

enum { IO_THREADS_MAX = 256 }; /* the limit of io-threads, which includes the main thread */

/* Effect of io-threads and io-threads-always-active: starts and ends threads. No effect before
 * netListen(). */
status ioThreadsApply(reason *why);
/* At shutdown: takes all clients back and ends the threads. */
void ioThreadsStop(void);
/* True if threads have clients, or may get some. False for good with `io-threads 1`. */
bool ioThreadsInUse(void);

/* A new client that no loop watches, while threads are active: one of them gets it. */
void ioThreadsTakeNew(client *cl);
/* A client that a thread watches is to be read: gives it to this thread, or to the main thread's
 * loop if that has to serve it now. No effect while its requests run, or if its output is going to
 * be written in this turn. */
void ioThreadsServe(client *cl);
/* A client that a thread watches is going to be closed: its peer notices it now, the client is
 * freed when the thread has released it. */
void ioThreadsClose(client *cl);
/* Of a client that a thread watches: the thread writes at most `most` bytes of its output, because
 * the rest is held. False: the main thread has to. */
bool ioThreadsWritePart(client *cl, size_t most);
/* A step of the TLS handshake of a client: true if a thread makes it. A connLendProc. */
bool ioThreadsHandshake(conn *c);
/* Stage WRITE: threads learn what has been configured, before any reply to that is sent. */
void ioThreadsBeginWrites(void);
/* Stage WRITE, after what is written before replies: replies are written after all of that, also
 * those that other threads write. */
void ioThreadsBeginReplies(void);
/* Stage WRITE: a thread writes the output of a client, or this function does. */
void ioThreadsWrite(client *cl);
/* Stage EXECUTE: executes what the threads have read. */
void ioThreadsExecute(void);
/* The last stage: wakes threads that have work. */
void ioThreadsBeforeSleep(void);
/* Something to be done with a client that is away. */
enum ioNote {
    NOTE_RESUMES = 1, /* readerResume() was called: done when it has come back, for good */
    NOTE_CLOSE = 2,   /* it is to be closed: the same */
    NOTE_OUTPUT = 4,  /* it has more output than is being written */
    NOTE_RELEASE = 8, /* it is coming back for good */
    NOTE_MOVES = 16,  /* with NOTE_RELEASE: to go to another thread */
};
void ioThreadsNote(client *cl, enum ioNote what);
/* Counts all that has been written as written: before clients are closed for what they hold. */
void ioThreadsCountWritten(void);
/* Waits until all threads stand still: all clients may be read, until the loop continues. */
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
