/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: parses received bytes to requests and passes them to the engine, in batches over many sessions.
 *
 * A readable connection is read once per turn into a part of an arena that all clients share; its complete
 * requests are parsed immediately and wait in the batch. Stage EXECUTE (or a full batch) prefetches what all of
 * them will access, and then runs them session by session. Only the rest of an incomplete request is copied to a
 * buffer of the client's own. So an idle client owns no buffer, and memory is proportional to the bytes received.
 *
 * Invariants: while requests of a session are in a batch, it has SESSION_IN_BATCH and is not read; parse results
 * are not used after the batch; bytes of requests that did not run are copied to the client's own buffer and
 * parsed again when it continues. Nested turns of the loop (during a slow script) use a separate batch. Main
 * thread only. */
#include "net/client.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "engine/stream.h"
#include "net/net_priv.h"
#include "net/net_thread.h"
#include "net/reader_hostile.h"

enum {
    ARENA_BYTES = 512 * 1024,
    RUNS_MAX = 64,
    OWN_BUFFER_MIN = 256,
    OUTPUT_AT_ONCE =
        128 *
        1024, /* size of pending replies above which they are written before the end of the turn, while still in the cache */
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
} inputRun;

typedef struct inputBatch {
    struct inputBatch *outer; /* the batch of the enclosing turn */
    netThread *thread;        /* whose batch it is */
    bool running;
    int run_count;
    size_t arena_used;
    size_t output; /* of sessions with more than one block, since the last stage WRITE */
    char *arena;
    inputRun runs[RUNS_MAX];
    requestBatch requests;
} inputBatch;

static inputBatch *batchNew(netThread *t) {
    inputBatch *b = memAlloc(sizeof(*b));
    b->outer = t->batch;
    b->thread = t;
    b->running = false;
    b->run_count = 0;
    b->arena_used = 0;
    b->output = 0;
    requestBatchInit(&b->requests);
    b->arena = memAlloc(ARENA_BYTES + REQUEST_READ_SLACK);
    return b;
}

/* The batch to which input of this turn is added: a new one if the current one is being executed. */
static inputBatch *batchOpen(netThread *t) {
    if (unlikely(!t->batch) || unlikely(t->batch->running)) t->batch = batchNew(t);
    return t->batch;
}

void readerOpen(void) { (void)batchOpen(netMainThread()); }

/* Frees the batch of a nested turn. */
static void batchDone(inputBatch *b) {
    if (!b->outer) return;
    b->thread->batch = b->outer;
    memFree(b->arena);
    memFree(b);
}

static requestLimits limitsOf(const session *s) {
    return (requestLimits){.bulk_max = engineBulkMax(),
                           .multibulk_max = INT32_MAX,
                           .authenticated = sessionIsAuthenticated(s)};
}

/* Parses requests from the run until the batch is full. */
static void parseRun(inputBatch *b, inputRun *run) {
    session *s = &run->cl->session;
    requestLimits limits = limitsOf(s);
    int max = hostileBatchMax(REQUEST_BATCH_MAX);
    if (max > REQUEST_BATCH_MAX || max < b->requests.count) max = REQUEST_BATCH_MAX;
    /* AUTH may lift the limits for the following requests, so parse one at a time. */
    if (!limits.authenticated && max > b->requests.count) max = b->requests.count + 1;
    run->first = b->requests.count;
    run->parsed_from = run->pos;
    run->status = requestParse(&run->cl->parser, run->buf, &run->len, &run->pos, &limits,
                               &b->requests, max, &run->error);
    if (run->buf == run->cl->in)
        run->cl->in_len = run->len; /* the end may have moved to a large argument's block */
    run->count = b->requests.count - run->first;
    for (int i = run->first; i < b->requests.count; i++) executeResolve(&b->requests.items[i]);
}

/* Records the maximum input for INFO, and the client's memory for its limit. */
static void recordInput(client *cl) {
    size_t held = clientInputMemory(cl);
    netStatistics *counted = &netThreadOf(cl)->counted;
    if (held > counted->recent_input_max) counted->recent_input_max = held;
    limitsRecount(cl);
}

/* Appends to the client's own buffer. */
static void keepBytes(client *cl, const char *bytes, size_t len) {
    if (cl->in_len + len > cl->in_cap) {
        size_t cap = sizeMax(OWN_BUFFER_MIN, sizeMax(cl->in_cap * 2, cl->in_len + len));
        cl->in = memRealloc(cl->in, cap + REQUEST_READ_SLACK);
        cl->in_cap = memSizeOf(cl->in) - REQUEST_READ_SLACK;
    }
    memcpy(cl->in + cl->in_len, bytes, len);
    cl->in_len += len;
    recordInput(cl);
}

static void dropOwnBuffer(client *cl) {
    memFree(cl->in);
    cl->in = NULL;
    cl->in_len = cl->in_cap = 0;
}

/* Copies bytes [pos, len) of the run to the client's own buffer. */
static void keepRest(inputRun *run) {
    client *cl = run->cl;
    size_t rest = run->len - run->pos;
    if (run->buf == cl->in) {
        if (rest == 0) {
            dropOwnBuffer(cl);
        } else if (run->pos) {
            memmove(cl->in, cl->in + run->pos, rest);
            cl->in_len = rest;
        }
    } else if (rest) {
        keepBytes(cl, run->buf + run->pos, rest);
    }
}

/* Moves `pos` back to the first request that did not run. */
static void rewindRun(inputBatch *b, inputRun *run, int ran) {
    run->pos = ran ? b->requests.items[run->first + ran - 1].raw_end : run->parsed_from;
    requestPutBack(&run->cl->parser, &b->requests.items[run->first + ran]);
}

/* Logs a protocol error with the client and the start of its input. */
static void logProtocolError(const inputRun *run) {
    enum { SHOWN_MAX = 128 };
    static const char before[] = "ERR Protocol error: ";
    str who = STR_EMPTY, input = STR_EMPTY;
    clientDescribeForLog(run->cl, &who);
    if (engineHidesUserData()) {
        strAppendText(&input, "*redacted*");
    } else {
        strAppendQuoted(&input,
                        sliceMake(run->buf + run->pos, sizeMin(run->len - run->pos, SHOWN_MAX)));
    }
    logVerbose("Protocol error (%s) from client: %s. Query buffer: %s",
               run->error.text + sizeof(before) - 1, strText(&who), strText(&input));
    strFree(&who);
    strFree(&input);
}

/* A primary sends arrays and blank lines only: the number of requests before the first inline one. */
static int primaryRequests(const inputRun *run, const request *requests) {
    int count = 0;
    while (count < run->count && requests[count].raw.len) count++;
    return count;
}

static void refuseInline(inputRun *run) {
    session *s = &run->cl->session;
    logWarning(
        "WARNING: Receiving inline protocol from primary, primary stream corruption? Closing "
        "the primary connection and discarding the cached primary.");
    run->error.len =
        (size_t)snprintf(run->error.text, sizeof(run->error.text),
                         "ERR Protocol error: Master using the inline protocol. Desync?");
    logProtocolError(run);
    streamBreak(s, sliceMake(run->error.text, run->error.len));
    sessionCloseNow(s);
}

/* Runs the requests of one run; returns their number. */
static int runRequests(inputBatch *b, inputRun *run) {
    session *s = &run->cl->session;
    request *requests = b->requests.items + run->first;
    if (likely(!(s->flags & SESSION_PRIMARY)))
        return run->count ? executeRun(s, requests, run->count) : 0;
    streamBegin(s, run->buf, run->parsed_from, requests);
    int count = primaryRequests(run, requests), ran = 0;
    if (count) ran = executeRun(s, requests, count);
    streamEnd(s, ran);
    if (ran == count && count < run->count) refuseInline(run);
    return ran;
}

/* Executes the requests of one run. True if the run has more to parse. */
static bool executeInput(inputBatch *b, inputRun *run) {
    client *cl = run->cl;
    session *s = &cl->session;
    if (unlikely(hostileCloses(cl))) sessionCloseNow(s);
    if (unlikely(s->flags & SESSION_CLOSE_NOW)) return false;
    int ran = runRequests(b, run);
    hostilePoison(b->requests.items + run->first, ran);
    if (s->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON)) return false;
    if (unlikely(outbufMemory(&s->out) > OUTBLOCK_SIZE)) {
        if (limitsCheckOutput(cl)) return false;
        b->output += outbufPending(&s->out);
    }
    bool all = ran == run->count;
    if (!all) rewindRun(b, run, ran);
    if (unlikely(s->flags & SESSION_PRIMARY)) streamSkip(s, run->pos);
    s->flags &= ~(uint32_t)SESSION_REPARSE;
    if (s->flags & SESSION_STOPS) return false; /* blocked or paused: keep the rest */
    if (!all) return true;
    if (unlikely(run->status == REQUEST_BAD)) {
        logProtocolError(run);
        slice error = sliceMake(run->error.text, run->error.len);
        if (unlikely(s->flags & SESSION_PRIMARY)) streamBreak(s, error);
        executeProtocolError(s, error);
        return false;
    }
    /* Parse the rest after requests once more, because only then may a block for a large argument be opened. */
    return run->status == REQUEST_BATCH_FULL || (run->count && run->pos < run->len);
}

/* Ends the run for this turn: nothing of it remains in the arena. */
static void endRun(inputRun *run) {
    client *cl = run->cl;
    session *s = &cl->session;
    s->flags &= ~(uint32_t)SESSION_IN_BATCH;
    if (s->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON)) {
        requestParserClear(&cl->parser);
        dropOwnBuffer(cl);
        return;
    }
    keepRest(run);
    limitsRecount(cl);
    if (limitsCheckInput(cl) || listHas(&cl->closing)) return;
    if (unlikely(!cl->conn.on_read) && !(s->flags & SESSION_PAUSED)) {
        if (connOnRead(&cl->conn, readerReadable) != OK) clientCloseLater(cl);
    }
}

/* Writes long replies while their bytes are in the cache, and before those of many sessions accumulate. */
static void writeLongReplies(inputBatch *b) {
    if (likely(b->output < OUTPUT_AT_ONCE)) return;
    b->output = 0;
    stagesRun(STAGE_LOG, STAGE_WRITE);
}

static void prefetchRuns(const inputBatch *b) {
    executePart parts[RUNS_MAX];
    for (int i = 0; i < b->run_count; i++) {
        const inputRun *run = &b->runs[i];
        parts[i] = (executePart){&run->cl->session, b->requests.items + run->first, run->count};
    }
    executePrefetch(parts, b->run_count);
}

/* Executes the batch until no run has requests that can be executed now. */
static void runBatch(inputBatch *b) {
    b->running = true;
    while (b->run_count) {
        prefetchRuns(b);
        int left = 0;
        for (int i = 0; i < b->run_count; i++) {
            inputRun *run = &b->runs[i];
            if (executeInput(b, run)) {
                hostileMoveBuffer(run->cl, &run->buf, &run->len, &run->pos);
                if (left != i) b->runs[left] = *run;
                left++;
            } else {
                endRun(run);
            }
        }
        requestBatchClear(&b->requests);
        b->run_count = left;
        writeLongReplies(b);
        for (int i = 0; i < left; i++) parseRun(b, &b->runs[i]);
    }
    b->arena_used = 0;
    b->running = false;
    batchDone(b);
}

/* In a nested turn: moves the runs after the one that is being executed from its batch to the nested one, so that
 * their clients are served like those whose input arrives only now. Protocol errors and the stream of a primary
 * wait. */
static void takeWaitingRuns(inputBatch *b) {
    int from = b->run_count;
    while (from > 0 && &b->runs[from - 1].cl->session != engineHot.current->who) from--;
    if (from == 0) return; /* the command is not of this batch */
    int end = b->run_count;
    b->run_count = from;
    for (int i = from; i < end; i++) {
        inputRun run = b->runs[i];
        if (run.status == REQUEST_BAD || (run.cl->session.flags & SESSION_PRIMARY)) {
            b->runs[b->run_count++] = run;
            continue;
        }
        if (run.count) rewindRun(b, &run, 0);
        endRun(&run);
        readerResume(run.cl);
    }
}

void readerExecuteOf(netThread *t) {
    inputBatch *b = t->batch;
    if (b && !b->running) b = b->outer;
    if (unlikely(b) && engineHot.current) takeWaitingRuns(b);
    if (t->batch && !t->batch->running && t->batch->run_count) runBatch(t->batch);
    if (unlikely(t->waiting != NULL) && !engineHot.current) {
        client *cl = t->waiting;
        t->waiting = NULL;
        if (connOnRead(&cl->conn, readerReadable) != OK) clientCloseLater(cl);
    }
}

void readerExecute(void) { readerExecuteOf(netMainThread()); }

void readerFree(netThread *t) {
    inputBatch *b = t->batch;
    if (!b) return;
    check(b->run_count == 0);
    check(!b->outer);
    memFree(b->arena);
    memFree(b);
    t->batch = NULL;
}

static void addRun(client *cl, char *buf, size_t len) {
    inputBatch *b = batchOpen(netThreadOf(cl));
    inputRun *run = &b->runs[b->run_count++];
    run->cl = cl;
    run->buf = buf;
    run->len = len;
    run->pos = 0;
    cl->session.flags |= SESSION_IN_BATCH;
    parseRun(b, run);
    if (b->requests.count == REQUEST_BATCH_MAX || b->run_count == RUNS_MAX) runBatch(b);
}

/* Handles a failed read: closes the client unless it was only EAGAIN. */
static void readFailed(client *cl, ssize_t n) {
    if (n < 0 && errno == EAGAIN) return;
    if (n == 0) {
        logVerbose("Client closed connection id=%llu", (unsigned long long)cl->session.id);
    } else {
        logVerbose("Reading from client id=%llu: %s", (unsigned long long)cl->session.id,
                   connErrorText(&cl->conn));
    }
    clientCloseLater(cl);
}

static void countRead(client *cl, ssize_t n) {
    cl->session.bytes_in += (uint64_t)n;
    cl->session.active_ms = engineHot.now_ms;
    netStatistics *counted = &netThreadOf(cl)->counted;
    counted->bytes_in += (uint64_t)n;
    if (unlikely(cl->session.flags & SESSION_PRIMARY)) counted->repl_in += (uint64_t)n;
    counted->reads++;
}

/* The current batch, with space in its arena for one more read. */
static inputBatch *batchWithSpace(netThread *t) {
    inputBatch *b = batchOpen(t);
    if (likely(ARENA_BYTES - b->arena_used >= t->read_bytes_max)) return b;
    runBatch(b);
    return batchOpen(t);
}

/* Reads the next bytes of a large argument into its block, and what follows it in the same call. */
static void readLarge(client *cl, char *tail, size_t cap) {
    inputBatch *b = batchWithSpace(netThreadOf(cl));
    if (unlikely(cl->session.flags & SESSION_CLOSE_NOW))
        return; /* closed by a command of the batch that was executed to make space */
    char *at = b->arena + b->arena_used;
    struct iovec iov[2] = {{tail, cap}, {at, b->thread->read_bytes_max}};
    ssize_t n = connReadv(&cl->conn, iov, cap == requestParserMissing(&cl->parser) ? 2 : 1);
    if (n <= 0) {
        readFailed(cl, n);
        return;
    }
    countRead(cl, n);
    size_t taken = sizeMin((size_t)n, cap);
    requestParserCommit(&cl->parser, taken);
    if ((size_t)n > taken) keepBytes(cl, at, (size_t)n - taken);
    recordInput(cl);
    if (limitsCheckInput(cl) || (cl->session.flags & SESSION_STOPS)) return;
    if ((size_t)n > taken) addRun(cl, cl->in, cl->in_len);
}

/* In a nested turn the stream of the primary is not read: its commands must not run within another one. */
static void waitForCommand(client *cl) {
    check(connOnRead(&cl->conn, NULL) == OK);
    netThreadOf(cl)->waiting = cl;
}

void readerReadable(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    session *s = &cl->session;
    if (s->flags & (SESSION_IN_BATCH | SESSION_CLOSE_SOON)) {
        check(connOnRead(c, NULL) == OK);
        return;
    }
    if (unlikely(s->flags & SESSION_PRIMARY) && engineHot.current) {
        waitForCommand(cl);
        return;
    }
    size_t large_cap;
    char *tail = requestParserTail(&cl->parser, &large_cap);
    if (tail) {
        readLarge(cl, tail, large_cap);
        return;
    }
    inputBatch *b = batchWithSpace(netThreadOf(cl));
    if (unlikely(s->flags & SESSION_CLOSE_NOW))
        return; /* closed by a command of the batch that was executed to make space */
    char *at = b->arena + b->arena_used;
    ssize_t n = connRead(c, at, hostileReadMax(b->thread->read_bytes_max));
    if (n <= 0) {
        readFailed(cl, n);
        return;
    }
    countRead(cl, n);
    if (unlikely(cl->in_len)) {
        keepBytes(cl, at, (size_t)n);
        if (limitsCheckInput(cl)) return;
        if (!(s->flags & SESSION_STOPS)) addRun(cl, cl->in, cl->in_len);
        return;
    }
    if (unlikely(s->flags & SESSION_STOPS)) {
        keepBytes(cl, at, (size_t)n);
        (void)limitsCheckInput(cl); /* closes the client if the limit is exceeded */
        return;
    }
    b->arena_used += sizeRoundUp((size_t)n, CACHE_LINE);
    addRun(cl, at, (size_t)n);
}

void readerResume(client *cl) {
    if (cl->session.flags & (SESSION_IN_BATCH | SESSION_STOPS) || !cl->in_len) return;
    addRun(cl, cl->in, cl->in_len);
}

void readerBegin(client *cl, slice bytes) {
    if (bytes.len == 0) return;
    keepBytes(cl, bytes.ptr, bytes.len);
    loopLimitSleep(netLoop(), 0);
    readerResume(cl);
}
