/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inputBatch: requests of several clients that were read and parsed together, with the arena that
 * holds their bytes. Filled by the thread that owns the clients, the main thread or an I/O thread;
 * executed by the main thread (reader.c). */
#ifndef NET_BATCH_H
#define NET_BATCH_H

#include "base/bytes.h"
#include "engine/execute.h"
#include "net/client.h"
#include "net/reader_hostile.h"

enum {
    RUNS_MAX = 64,
};

/* The input of one client in the batch. */
typedef struct inputRun {
    client *cl;
    char *buf; /* in the arena, or the client's own buffer */
    size_t len;
    size_t pos;         /* after the last parsed request */
    size_t parsed_from; /* start of its first request in the batch */
    int first, count;   /* index of its first request in the batch; their number */
    requestStatus status;
    requestError error;
    size_t received; /* bytes read; set by I/O threads */
} inputRun;

typedef struct inputBatch {
    struct inputBatch *outer;   /* the batch of the enclosing turn */
    struct inputBatch *next;    /* in the list of batches to execute */
    struct netThread *thread;   /* whose batch it is */
    struct ioThread *filled_by; /* an I/O thread, which gets it back; NULL: the main thread */
    bool running;
    int request_max; /* its limit of requests */
    int run_count;
    int quarters; /* of a millisecond that have passed in commands, as far as executeIsDue() told */
    size_t arena_used, arena_bytes;
    size_t output; /* of sessions with more than one block, since the last stage WRITE */
    char *arena;
    inputRun runs[RUNS_MAX];
    requestBatch requests;
} inputBatch;

/* What batchReceive() has read. */
typedef struct receivedInput {
    char *buf;  /* to be parsed next: in the arena, or the client's own buffer */
    size_t len; /* 0: all bytes belong to a large argument */
    bool more;  /* all space was used: more bytes may wait */
} receivedInput;

/* Of a large argument in one call: while the sender goes on, the system would fill any space. */
enum { RECEIVE_LARGE_MAX = 1024 * 1024 };

/* ANY_THREAD: each batch is used by one thread at a time. `request_max` is at most
 * REQUEST_BATCH_MAX. */
inputBatch *batchNew(size_t arena_bytes, int request_max);
void batchFree(inputBatch *b);
/* True if another client with up to `read_bytes` can be read. */
static inline bool batchHasSpace(const inputBatch *b, size_t read_bytes) {
    return b->arena_bytes - b->arena_used >= read_bytes && b->run_count < RUNS_MAX &&
           b->requests.count < b->request_max;
}
/* Appends to the client's own buffer. */
void batchKeep(client *cl, const char *bytes, size_t len);
/* Reads the next bytes of a large argument into its block `tail` of `cap` bytes, and what follows
 * it in the same call to `at`. */
ssize_t batchReceiveLarge(client *cl, char *tail, size_t cap, char *at, size_t most,
                          receivedInput *in);
/* Reads once from the client's connection: into the arena, which has space for `most` bytes, into
 * its own buffer if that holds bytes already or `keep` is set, or into its large argument. Returns
 * what connRead() does. */
static inline ssize_t batchReceive(inputBatch *b, client *cl, size_t most, bool keep,
                                   receivedInput *in) {
    char *at = b->arena + b->arena_used;
    if (unlikely(cl->parser.partial != NULL)) {
        size_t large_cap;
        char *tail = requestParserTail(&cl->parser, &large_cap);
        large_cap = sizeMin(large_cap, RECEIVE_LARGE_MAX);
        if (tail) return batchReceiveLarge(cl, tail, large_cap, at, most, in);
    }
    most = hostileReadMax(most);
    ssize_t n = connRead(&cl->conn, at, most);
    if (unlikely(n <= 0)) return n;
    in->more = (size_t)n == most;
    if (unlikely(cl->in_len) || unlikely(keep)) {
        batchKeep(cl, at, (size_t)n);
        in->buf = cl->in;
        in->len = cl->in_len;
        return n;
    }
    b->arena_used += sizeRoundUp((size_t)n, CACHE_LINE);
    in->buf = at;
    in->len = (size_t)n;
    return n;
}
/* Begins a run of the client, without requests yet. */
inputRun *batchAddRun(inputBatch *b, client *cl, char *buf, size_t len);
/* Parses and resolves requests from the run until the batch is full. */
void batchParse(inputBatch *b, inputRun *run, const requestLimits *limits);

#endif
