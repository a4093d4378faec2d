/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run, its workers (threads) and their clients.
 *
 * Threads share counters, which are atomic, and what is constant during a run. Everything else of a
 * worker is its own. */
#ifndef TOOLS_BENCHMARK_RUN_PRIV_H
#define TOOLS_BENCHMARK_RUN_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "io/loop.h"
#include "resp/resp.h"
#include "tools/benchmark/run.h"

enum {
    READ_SIZE = 128 * 1024,
    PROGRESS_MS = 250,
};

typedef struct run run;
typedef struct worker worker;

/* A connection with the request that it sends over and over. */
typedef struct client {
    worker *owner;
    const targetNode *node;
    valkeyContext *ctx;
    struct client *next_idle; /* of those that wait for their time to send */
    char *request;            /* prefix, then the batch */
    size_t prefix_len, len, cap, sent;
    uint8_t *classes; /* of the replies, repeated until the end of the batch */
    int class_count, class_next;
    int prefix_pending, pending; /* replies expected */
    int64_t start_ns;
    replyReader reader;
    char *rest; /* bytes of an incomplete reply */
    size_t rest_len, rest_cap;
    uint8_t phase; /* of the run when the batch was sent */
    bool secured, writing, prefixed;
} client;

/* Sends a batch that is due; its latency counts from `start_ns`. */
typedef void paceSend(client *c, int64_t start_ns);

/* When the next batch may be sent, with a limited rate. */
typedef struct pace {
    paceSend *send;
    int64_t interval_ns; /* 0: no limit */
    int64_t next_ns;
    client *idle, **idle_tail;
    int timer_fd;
} pace;

struct worker {
    run *run;
    pthread_t thread;
    int index;
    loop *loop;
    client *clients;
    int client_count, active;
    pace pace;
    char *buffer; /* of READ_SIZE */
    latency latencies;
    atomic_int_least64_t finished,
        latency_us; /* replies of the current phase, and the sum of their latencies */
};

struct run {
    const benchOptions *options;
    const target *target;
    const workload *load;
    keySource keys;
    worker *workers;
    int worker_count;
    int batch; /* replies per batch */
    char **prefixes;
    size_t *prefix_lens;
    int *prefix_commands;
    atomic_int_least64_t issued;
    atomic_bool stop;
    atomic_uchar phase;            /* 0 warming up, 1 measuring */
    atomic_bool slots_changed;     /* a MOVED was received */
    _Atomic(const target *) slots; /* the nodes' current slots */
    atomic_int running;            /* workers */
    int64_t start_ns;              /* of the phase */
    atomic_int_least64_t end_ns;   /* with --duration, while measuring; else 0 */
    /* The progress line. */
    bool silent;
    int shown; /* its length */
    int64_t shown_ns, shown_finished, shown_latency_us;
    runResult *result;
};

/* ------------------------------------------------------------------ client.c */

/* Begins to connect. */
void clientOpen(client *c);
void clientClose(client *c);
/* Sends the next batch, or waits for its time, or closes the client if there is nothing more to
 * send. */
void clientNext(client *c, int64_t now_ns);
paceSend clientSend;

/* ------------------------------------------------------------------ pace.c */

/* `send` is called for a client that has waited. False: there is no timer. */
bool paceInit(worker *w, double rate, paceSend *send);
void paceClear(worker *w);
/* True if a batch may be sent now; else the client waits and is sent when it is due. */
bool paceTake(client *c, int64_t now_ns, int64_t *start_ns);
/* Returns the first client that waits, which does not wait any more; NULL: there is none. */
client *paceRelease(worker *w);

/* ------------------------------------------------------------------ batch.c */

/* Prepares the buffer of a client for batches of the run. */
void batchInit(client *c);
/* Fills in the numbers and hash tags of the next batch. */
void batchFill(client *c);

#endif
