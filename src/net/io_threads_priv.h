/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One I/O thread, as the main thread (io_threads.c) and the thread itself (io_worker.c) see it. */
#ifndef NET_IO_THREADS_PRIV_H
#define NET_IO_THREADS_PRIV_H

#include "io/spsc.h"
#include "io/thread.h"
#include "net/io_threads.h"
#include "net/net_thread.h"

enum {
    JOBS_MAX = 4096, /* clients that a thread has at most */
    HANDSHAKES_MAX =
        2, /* of them in a handshake: others must not wait for many of these, which take long */
    RESULTS_MAX = 8192, /* more than JOBS_MAX, so that it is never full */
    BATCHES_MAX = 8,    /* of one thread */
    BATCH_BYTES = 160 * 1024,
    BATCH_RUNS = 16, /* a batch with as many clients is executed, while the thread reads others */
    WRITES_TOGETHER = 16, /* after as many the main thread is woken, if it waits for them */
    ALL_BUSY_MS =
        1, /* how long the main thread does not look at its sockets while all threads have jobs */
};

/* What spscItem.kind says. Of jobs, `what` is the client. */
enum ioJob {
    JOB_READ,      /* number: limit of an argument; code: enum ioReading */
    JOB_WRITE,     /* one system call */
    JOB_HANDSHAKE, /* one step */
    JOB_STOP,      /* the thread ends */
};
enum ioReading {
    READ_AUTHENTICATED = 1, /* the limits of its requests */
    READ_KEEP = 2,          /* what is read is not parsed yet */
};
/* Of results: all other clients come back with the batch that holds their requests. */
enum ioResult {
    RESULT_BATCH, /* what: an inputBatch */
    /* What: a client without a request. number: that of read(); code: errno, or 1 if more bytes may
     * wait. */
    RESULT_READ,
    RESULT_UNREAD,    /* what: a client that was not read, for lack of an empty batch */
    RESULT_WROTE,     /* what: a client. number: that of writev(), code: errno */
    RESULT_HANDSHAKE, /* what: a client. number: the status of the step, code: what it waits for */
};

/* How the main thread sleeps: what it is woken for. */
enum mainSleep {
    MAIN_AWAKE,
    MAIN_WAITS_FOR_REQUESTS, /* clients whose output was written may come back later */
    MAIN_WAITS_FOR_ALL,
};

typedef struct ioThread {
    void *memory; /* the block that holds it, aligned to cache lines */
    spsc jobs;    /* to the thread */
    spsc spare;   /* empty batches, to the thread */
    spsc results; /* to the main thread */
    sleeper rest;
    netThread net; /* the owner of its clients */
    thread os;
    loop *main_loop;
    uint32_t *main_sleep; /* enum mainSleep */
    uint64_t busy_ticks;  /* written by the thread */
    /* The thread's own. */
    inputBatch *batch ALIGNED(CACHE_LINE); /* being filled, or NULL */
    bool urgent;                           /* a result for which the main thread is woken */
    int writes;                            /* since the main thread was told of results */
    /* The main thread's. */
    int out ALIGNED(CACHE_LINE); /* clients whose results have not arrived */
    int handshakes;              /* of them in a handshake */
    bool unannounced;            /* jobs were pushed since it was last woken */
    uint64_t busy_before;        /* its busy_ticks at the last sample */
} ioThread;

/* What the thread runs; `arg` is an ioThread. */
void *ioWorkerRun(void *arg);

#endif
