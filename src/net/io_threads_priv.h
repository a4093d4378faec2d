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
    JOBS_MAX = 16 * 1024,
    RESULTS_MAX = 16 * 1024,
    HANDSHAKES_MAX = 2, /* of a thread: others must not wait for many of these, which take long */
    BATCHES_MAX = 8,    /* of one thread */
    BATCH_BYTES = 160 * 1024,
    BATCH_RUNS = 16, /* a batch with as many clients is executed, while the thread reads others */
    WRITES_TOGETHER = 16, /* after as many the main thread is woken, if it waits for them */
};

/* What spscItem.kind says. Of jobs, `what` is the client. */
enum ioJob {
    JOB_WATCH,     /* code: enum ioGiven */
    JOB_WRITE,     /* one system call; code: enum ioGiven; number: bytes at most */
    JOB_RELEASE,   /* the client is the main thread's for good */
    JOB_HANDSHAKE, /* one step */
    JOB_PAUSE,     /* stands still until something is in the ring `resume` */
    JOB_STOP,      /* the thread ends */
    JOB_SIGNAL,    /* the thread's ioSignals become `number`: it has made all writes until here */
    JOB_AWAIT,     /* waits until the ioSignals of thread `code` are `number` */
};
/* How a client is given to the thread. Without GIVEN the job is void if the thread has sent the
 * client to the main thread meanwhile. */
enum ioGiven {
    GIVEN = 1,          /* the client is the thread's from now on */
    GIVEN_NEW = 2,      /* it is not watched yet */
    GIVEN_TRUSTED = 4,  /* the limits of its requests: those after the login */
    GIVEN_WRITABLE = 8, /* the main thread is told when its connection takes bytes again */
};
/* Of results. With the first three clients come to the main thread. */
enum ioResult {
    RESULT_BATCH,     /* what: an inputBatch with their requests */
    RESULT_READ,      /* what: a client without a request. number: that of read(); code: errno */
    RESULT_UNREAD,    /* what: a client that was not read, for lack of an empty batch */
    RESULT_WROTE,     /* what: a client. number: that of writev(), code: errno */
    RESULT_WRITABLE,  /* what: a client */
    RESULT_RELEASED,  /* what: a client */
    RESULT_HANDSHAKE, /* what: a client. number: the status of the step, code: what it waits for */
    RESULT_PAUSED,
    RESULT_DONE, /* in the main thread's list: was processed */
};

/* How the main thread sleeps: what it is woken for. */
enum mainSleep {
    MAIN_AWAKE,
    MAIN_WAITS_FOR_REQUESTS, /* reports of what was written may come later */
    MAIN_WAITS_FOR_ALL,
};

/* conn.in_thread, which only the thread reads and writes while it watches the client. */
enum inThread {
    IN_MINE = 1,    /* not at the main thread */
    IN_READY = 2,   /* there may be bytes to read */
    IN_ENDED = 4,   /* the last bytes have arrived, or the connection has failed */
    IN_TRUSTED = 8, /* GIVEN_TRUSTED */
};

typedef struct ioThread {
    void *memory; /* the block that holds it, aligned to cache lines */
    spsc jobs;    /* to the thread */
    spsc spare;   /* empty batches, to the thread */
    spsc resume;  /* ends a pause */
    spsc results; /* to the main thread */
    sleeper rest; /* during a pause */
    loop *loop;
    netThread net; /* the owner of its clients */
    thread os;
    loop *main_loop;
    uint32_t *main_sleep; /* enum mainSleep */
    int64_t bulk_max;     /* limit of an argument; written by the main thread at any time */
    uint32_t asleep;      /* it waits in its loop, or is about to */
    uint64_t busy_ticks;  /* written by the thread */
    /* The thread's own. */
    inputBatch *batch ALIGNED(CACHE_LINE); /* being filled, or NULL */
    bool urgent;                           /* a result for which the main thread is woken */
    int writes;                            /* since the main thread was told of results */
    uint64_t since;                        /* ticks at the end of its last sleep */
    /* The main thread's. */
    uint8_t number ALIGNED(CACHE_LINE); /* conn.thread of its clients: 1 and up */
    int clients;                        /* that it watches */
    int handshakes;
    bool unannounced;     /* jobs were pushed since it was last woken */
    bool pausing, paused; /* JOB_PAUSE was pushed; RESULT_PAUSED has arrived */
    uint64_t busy_before; /* its busy_ticks at the last sample */
    int64_t worked_us;    /* between the last two samples */
    bool wrote;           /* JOB_WRITE was pushed since ioThreadsBeginWrites() */
    uint64_t signal;      /* of its last JOB_SIGNAL */
    bool awaits;          /* before its next JOB_WRITE it has to wait for others */
    int moves;            /* as many of its clients go to another thread as they come by */
} ioThread;

/* How many of the clients of a thread move to another one, by the time that both have worked in a
 * period: half of the difference, if the first one has little time left. */
int ioThreadsToMove(int clients, int64_t busiest_us, int64_t idlest_us, int64_t period_us);

/* The last JOB_SIGNAL that each thread has made, by number. The memory outlives the threads, as one
 * may still look at the signal of another one that has ended. */
typedef struct ioSignal {
    uint64_t at ALIGNED(CACHE_LINE);
} ioSignal;
extern ioSignal ioSignals[IO_THREADS_MAX];

/* What the thread runs; `arg` is an ioThread. */
void *ioWorkerRun(void *arg);

#endif
