/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: bytes -> requests -> the engine, in batches over many sessions.
 *
 * A readable connection is read once per turn into a stretch of one arena shared by all; its complete
 * requests are parsed at once and wait in the batch. Stage EXECUTE (or a full batch) brings what they will
 * touch into the cache side by side and then runs them, session by session. Only what is left of an
 * incomplete request moves to a buffer of the client's own, so an idle client owns none, and memory follows
 * what has arrived.
 *
 * Invariants: while a session's run stands in a batch it has SESSION_IN_BATCH and is not read again; parse
 * results never outlive the batch; bytes of requests that did not run go to the client's own buffer and are
 * parsed again when it goes on. Nested turns of the loop (a slow script) use a batch of their own.
 * Main thread only. */
#include "net/client.h"

#include <errno.h>

#include "base/base.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "engine/stream.h"
#include "net/net_priv.h"
#include "net/reader_hostile.h"

enum {
    ARENA_BYTES = 512 * 1024,
    READ_BYTES = 64 * 1024, /* read at most per connection and turn */
    RUNS_MAX = 64,
    OWN_BUFFER_MIN = 256,
    OUTPUT_AT_ONCE =
        128 * 1024, /* replies of a turn that wait for its end; more would fall out of the cache */
};

/* What one client has in the batch. */
typedef struct inputRun {
    client *cl;
    char *buf; /* in the arena, or the client's own buffer */
    size_t len;
    size_t pos;         /* behind the last request parsed */
    size_t parsed_from; /* where the first of its requests in the batch begins */
    int first, count;   /* its requests in the batch */
    requestStatus status;
    requestError error;
} inputRun;

typedef struct inputBatch {
    struct inputBatch *outer; /* of the turn this one is nested in */
    bool running;
    int run_count;
    size_t arena_used;
    size_t output; /* of sessions with more than a block of it, since the last stage WRITE */
    char *arena;
    inputRun runs[RUNS_MAX];
    requestBatch requests;
} inputBatch;

static inputBatch *current_batch;

static inputBatch *batchNew(inputBatch *outer) {
    inputBatch *b = memAlloc(sizeof(*b));
    b->outer = outer;
    b->running = false;
    b->run_count = 0;
    b->arena_used = 0;
    b->output = 0;
    requestBatchInit(&b->requests);
    b->arena = memAlloc(ARENA_BYTES + REQUEST_READ_SLACK);
    return b;
}

/* The batch readers of this turn add to: a new one when the present one is being run. */
static inputBatch *batchOpen(void) {
    if (unlikely(!current_batch) || unlikely(current_batch->running))
        current_batch = batchNew(current_batch);
    return current_batch;
}

void readerOpen(void) { (void)batchOpen(); }

/* Drops a nested turn's batch when it is done. */
static void batchDone(inputBatch *b) {
    if (!b->outer) return;
    current_batch = b->outer;
    memFree(b->arena);
    memFree(b);
}

static requestLimits limitsOf(const session *s) {
    return (requestLimits){.bulk_max = engineBulkMax(),
                           .multibulk_max = INT32_MAX,
                           .authenticated = sessionIsAuthenticated(s)};
}

/* Parses what the run has, as far as the batch has room. */
static void parseRun(inputBatch *b, inputRun *run) {
    session *s = &run->cl->session;
    requestLimits limits = limitsOf(s);
    int max = hostileBatchMax(REQUEST_BATCH_MAX);
    if (max > REQUEST_BATCH_MAX || max < b->requests.count) max = REQUEST_BATCH_MAX;
    /* Each command may be the AUTH that lifts the limits for the next. */
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

/* Remembers the greatest input for INFO, and what the client holds for its limit. */
static void noteInput(client *cl) {
    size_t held = clientInputMemory(cl);
    if (held > netStats()->recent_input_max) netStats()->recent_input_max = held;
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
    noteInput(cl);
}

static void dropOwnBuffer(client *cl) {
    memFree(cl->in);
    cl->in = NULL;
    cl->in_len = cl->in_cap = 0;
}

/* Leaves bytes [pos, len) of the run as all the client's own buffer holds. */
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

/* Says who sent what nobody understands. */
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

/* Runs the requests of one run. True: the run has more to parse. */
static bool executeInput(inputBatch *b, inputRun *run) {
    client *cl = run->cl;
    session *s = &cl->session;
    if (unlikely(hostileKills(cl))) sessionCloseNow(s);
    if (unlikely(s->flags & (SESSION_CLOSE_NOW | SESSION_PRIMARY))) {
        if (s->flags & SESSION_CLOSE_NOW) return false;
        streamBegin(s, run->parsed_from);
    }
    int ran = run->count ? executeRun(s, b->requests.items + run->first, run->count) : 0;
    hostilePoison(b->requests.items + run->first, ran);
    if (s->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON)) return false;
    if (unlikely(outbufMemory(&s->out) > OUTBLOCK_SIZE)) {
        if (limitsCheckOutput(cl)) return false;
        b->output += outbufPending(&s->out);
    }
    bool all = ran == run->count;
    if (!all) rewindRun(b, run, ran);
    s->flags &= ~(uint32_t)SESSION_REPARSE;
    if (s->flags & SESSION_STOPS) return false; /* blocked or paused: the rest waits */
    if (!all) return true;
    if (unlikely(run->status == REQUEST_BAD)) {
        logProtocolError(run);
        executeProtocolError(s, sliceMake(run->error.text, run->error.len));
        return false;
    }
    /* A rest behind requests is looked at once more: only then may it open a block for a large argument. */
    return run->status == REQUEST_BATCH_FULL || (run->count && run->pos < run->len);
}

/* The run is over for this turn: nothing of it stays in the arena. */
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

/* Sends long replies while their bytes are still in the cache, and before many sessions' add up. */
static void writeLong(inputBatch *b) {
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

/* Runs the batch until every run has nothing left that could run now. */
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
        writeLong(b);
        for (int i = 0; i < left; i++) parseRun(b, &b->runs[i]);
    }
    b->arena_used = 0;
    b->running = false;
    batchDone(b);
}

void readerExecute(void) {
    if (current_batch && !current_batch->running && current_batch->run_count)
        runBatch(current_batch);
}

static void addRun(client *cl, char *buf, size_t len) {
    inputBatch *b = batchOpen();
    inputRun *run = &b->runs[b->run_count++];
    run->cl = cl;
    run->buf = buf;
    run->len = len;
    run->pos = 0;
    cl->session.flags |= SESSION_IN_BATCH;
    parseRun(b, run);
    if (b->requests.count == REQUEST_BATCH_MAX || b->run_count == RUNS_MAX) runBatch(b);
}

/* A read that brought nothing: the client is over unless it was only early. */
static void readFailed(client *cl, ssize_t n) {
    if (n < 0 && errno == EAGAIN) return;
    if (n == 0) {
        logVerbose("Client closed connection id=%llu", (unsigned long long)cl->session.id);
    } else {
        logVerbose("Reading from client id=%llu: %s", (unsigned long long)cl->session.id,
                   strerror(errno));
    }
    clientCloseLater(cl);
}

static void countRead(client *cl, ssize_t n) {
    cl->session.bytes_in += (uint64_t)n;
    cl->session.active_ms = engineHot.now_ms;
    netStats()->bytes_in += (uint64_t)n;
    netStats()->reads++;
}

/* The batch with room in its arena for one more read. */
static inputBatch *batchWithRoom(void) {
    inputBatch *b = batchOpen();
    if (likely(ARENA_BYTES - b->arena_used >= READ_BYTES)) return b;
    runBatch(b);
    return batchOpen();
}

/* Reads on into a large argument's own block, and what follows it in the same call. */
static void readLarge(client *cl, char *tail, size_t cap) {
    inputBatch *b = batchWithRoom();
    if (unlikely(cl->session.flags & SESSION_CLOSE_NOW))
        return; /* by a command of the batch that made room */
    char *at = b->arena + b->arena_used;
    struct iovec iov[2] = {{tail, cap}, {at, READ_BYTES}};
    ssize_t n = connReadv(&cl->conn, iov, cap == requestParserMissing(&cl->parser) ? 2 : 1);
    if (n <= 0) {
        readFailed(cl, n);
        return;
    }
    countRead(cl, n);
    size_t taken = sizeMin((size_t)n, cap);
    requestParserCommit(&cl->parser, taken);
    if ((size_t)n > taken) keepBytes(cl, at, (size_t)n - taken);
    noteInput(cl);
    if (limitsCheckInput(cl) || (cl->session.flags & SESSION_STOPS)) return;
    if ((size_t)n > taken) addRun(cl, cl->in, cl->in_len);
}

void readerReadable(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    session *s = &cl->session;
    if (s->flags & (SESSION_IN_BATCH | SESSION_CLOSE_SOON)) {
        check(connOnRead(c, NULL) == OK);
        return;
    }
    size_t large_cap;
    char *tail = requestParserTail(&cl->parser, &large_cap);
    if (tail) {
        readLarge(cl, tail, large_cap);
        return;
    }
    inputBatch *b = batchWithRoom();
    if (unlikely(s->flags & SESSION_CLOSE_NOW))
        return; /* by a command of the batch that made room */
    char *at = b->arena + b->arena_used;
    ssize_t n = connRead(c, at, hostileReadMax(READ_BYTES));
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
        (void)limitsCheckInput(cl); /* it has closed the client when it says so */
        return;
    }
    b->arena_used += sizeRoundUp((size_t)n, CACHE_LINE);
    addRun(cl, at, (size_t)n);
}

void readerResume(client *cl) {
    if (cl->session.flags & (SESSION_IN_BATCH | SESSION_STOPS) || !cl->in_len) return;
    addRun(cl, cl->in, cl->in_len);
}
