/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Input: parses received bytes to requests and passes them to the engine, in batches over many
 * sessions.
 *
 * A readable connection is read once per turn into a part of an arena that all clients share; its
 * complete requests are parsed immediately and wait in the batch. Stage EXECUTE (or a full batch)
 * prefetches what all of them will access, and then runs them session by session. Only the rest of
 * an incomplete request is copied to a buffer of the client's own. So an idle client owns no
 * buffer, and memory is proportional to the bytes received.
 *
 * Invariants: while requests of a session are in a batch, it has SESSION_IN_BATCH and is not read;
 * parse results are not used after the batch; bytes of requests that did not run are copied to the
 * client's own buffer and parsed again when it continues. Nested turns of the loop (during a slow
 * script) use a separate batch. Main thread only. */
#include "net/client.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "engine/stream.h"
#include "io/net_addr.h"
#include "net/batch.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"
#include "net/reader_hostile.h"

enum {
    ARENA_BYTES = 512 * 1024,
    /* Size of pending replies above which they are written before the end of the turn, while still
     * in the cache. */
    OUTPUT_AT_ONCE = 128 * 1024,
};

/* The batch to which input of this turn is added: a new one if the current one is being
 * executed. */
static inputBatch *batchOpen(netThread *t) {
    if (unlikely(!t->batch) || unlikely(t->batch->running)) {
        inputBatch *b = batchNew(ARENA_BYTES, EXECUTE_PREFETCH_MAX);
        b->outer = t->batch;
        b->thread = t;
        t->batch = b;
    }
    return t->batch;
}

void readerOpen(void) {
    (void)batchOpen(netMainThread());
    executeYield(); /* for long pipelines */
}

size_t netArgumentsMemory(void) {
    hotCheck(threadIsMain());
    size_t sum = 0;
    for (const inputBatch *b = netMainThread()->batch; b; b = b->outer)
        sum += requestBatchMemory(&b->requests);
    return sum;
}

/* Removes a batch of an I/O thread from the chain, or frees that of a nested turn. */
static void batchDone(inputBatch *b) {
    if (likely(!b->outer)) return;
    inputBatch **at = &b->thread->batch;
    while (*at != b) at = &(*at)->outer; /* a batch of a nested turn may still be in front of it */
    *at = b->outer;
    if (b->filled_by) {
        ioThreadsGiveBack(b);
    } else {
        batchFree(b);
    }
}

/* Parses requests from the run until the batch is full. */
static void parseRun(inputBatch *b, inputRun *run) {
    requestLimits limits = readerLimits(&run->cl->session);
    batchParse(b, run, &limits);
}

requestLimits readerLimits(const session *s) {
    return (requestLimits){.bulk_max = engineBulkMax(),
                           .multibulk_max = INT32_MAX,
                           .authenticated = sessionIsAuthenticated(s),
                           .trusted = s->flags & SESSION_REPLAY};
}

static connProc *read_proc = readerReadable;

void readerSetProc(connProc *proc) { read_proc = proc; }

status readerStart(client *cl) {
    status st = connOnRead(&cl->conn, read_proc);
    if (st == OK && unlikely(cl->conn.thread)) ioThreadsServe(cl);
    return st;
}

void readerRecord(client *cl) {
    hotCheck(threadIsMain());
    size_t held = clientInputMemory(cl);
    netStatistics *counted = &netThreadOf(cl)->counted;
    if (held > counted->recent_input_max) counted->recent_input_max = held;
    limitsRecount(cl);
}

/* Appends to the client's own buffer. */
static void keepBytes(client *cl, const char *bytes, size_t len) {
    batchKeep(cl, bytes, len);
    readerRecord(cl);
}

static void dropOwnBuffer(client *cl) {
    memFree(cl->in);
    cl->in = NULL;
    cl->in_len = 0;
}

void readerDropInput(client *cl) {
    if (cl->session.flags & SESSION_IN_BATCH || clientIsAway(cl)) return;
    requestParserClear(&cl->parser);
    dropOwnBuffer(cl);
}

/* Copies bytes [pos, len) of the run to the client's own buffer. */
static void keepRest(inputRun *run) {
    hotCheck(run->pos <= run->len);
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
    hotCheck(ran >= 0);
    hotCheck(ran <= run->count);
    run->pos = ran ? b->requests.items[run->first + ran - 1].raw_end : run->parsed_from;
    requestPutBack(&run->cl->parser, &b->requests.items[run->first + ran]);
}

/* Once per second, as port scans must not fill the log. */
static void logTlsHello(const client *cl) {
    static int64_t logged_ms;
    if (engineHot.now_ms - logged_ms < 1000) return;
    logged_ms = engineHot.now_ms;
    char peer[NET_ADDR_TEXT_MAX], local[NET_ADDR_TEXT_MAX];
    bool has_peer = netPeerText(cl->conn.fd, peer), has_local = netLocalText(cl->conn.fd, local);
    logWarning("TLS client on a port without TLS (addr=%s laddr=%s)", has_peer ? peer : "",
               has_local ? local : "");
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

/* Streams consist of arrays and blank lines only: the number of requests before the first inline
 * one. */
static int streamRequests(const inputRun *run, const request *requests) {
    hotCheck(run->count >= 0);
    int count = 0;
    while (count < run->count && requests[count].raw.len) count++;
    return count;
}

static void refuseInline(inputRun *run) {
    session *s = &run->cl->session;
    if (s->flags & SESSION_PRIMARY)
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

/* Runs many requests in steps: what is prefetched in one step is still in the cache when it is
 * used. */
static NO_INLINE int runInSteps(session *s, request *requests, int count) {
    hotCheck(count >= 0);
    int ran = 0;
    while (true) {
        int step = count - ran < EXECUTE_PREFETCH_MAX ? count - ran : EXECUTE_PREFETCH_MAX;
        int done = executeRun(s, requests + ran, step);
        ran += done;
        if (done < step || ran == count) return ran;
        executePrefetch(&(executePart){s, requests + ran, count - ran}, 1);
    }
}

/* Runs the requests of one run; returns their number. */
static int runRequests(inputBatch *b, inputRun *run) {
    session *s = &run->cl->session;
    request *requests = b->requests.items + run->first;
    if (likely(!(s->flags & SESSION_REPLAY))) {
        if (unlikely(run->count > EXECUTE_PREFETCH_MAX)) return runInSteps(s, requests, run->count);
        return run->count ? executeRun(s, requests, run->count) : 0;
    }
    streamBegin(s, run->buf, run->parsed_from, requests);
    int count = streamRequests(run, requests), ran = 0;
    if (count) ran = executeRun(s, requests, count);
    streamEnd(s, ran);
    if (ran == count && count < run->count) refuseInline(run);
    return ran;
}

/* Bytes of the requests of a run that are not a part of its client's memory any more, or not
 * yet. */
static size_t runBytes(const inputBatch *b, const inputRun *run) {
    size_t bytes = run->buf == run->cl->in ? 0 : run->len;
    const request *r = b->requests.items + run->first;
    for (const request *end = r + run->count; r < end; r++) {
        for (int i = 0; i < r->large_count; i++) bytes += r->large[i].bytes->len;
    }
    return bytes;
}

static bool isAdmitted(const inputBatch *b, const inputRun *run) {
    if (likely(!netConf.maxmemory_clients)) return true;
    return limitsAdmitInput(run->cl, runBytes(b, run));
}

/* Executes the requests of one run. True if the run has more to parse. */
static bool executeInput(inputBatch *b, inputRun *run) {
    client *cl = run->cl;
    session *s = &cl->session;
    if (unlikely(hostileCloses(cl))) sessionCloseNow(s);
    if (unlikely(s->flags & SESSION_CLOSE_NOW) || !isAdmitted(b, run)) return false;
    int ran = runRequests(b, run);
    hostilePoison(b->requests.items + run->first, ran);
    if (s->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON)) return false;
    if (unlikely(outbufMemory(&s->out) > OUTBLOCK_SIZE)) {
        limitsRecount(cl);
        (void)limitsEvict(); /* how much that frees does not matter */
        if (limitsCheckOutput(cl)) return false;
        b->output += outbufPending(&s->out);
    }
    bool all = ran == run->count;
    if (!all) rewindRun(b, run, ran);
    if (unlikely(s->flags & SESSION_REPLAY)) streamSkip(s, run->pos);
    s->flags &= ~SESSION_REPARSE;
    if (s->flags & SESSION_STOPS) return false; /* blocked or paused: keep the rest */
    if (!all) return true;
    if (unlikely(run->status == REQUEST_BAD)) {
        if (run->error.tls_hello) logTlsHello(run->cl);
        logProtocolError(run);
        slice error = sliceMake(run->error.text, run->error.len);
        if (unlikely(s->flags & SESSION_REPLAY)) streamBreak(s, error);
        executeProtocolError(s, error);
        return false;
    }
    /* Parse the rest after requests once more, because only then may a block for a large argument
     * be opened. */
    return run->status == REQUEST_BATCH_FULL || (run->count && run->pos < run->len);
}

/* True if input is kept, whose size has a limit. */
static bool keepsInput(const client *cl) {
    return cl->in_len | (uintptr_t)cl->parser.partial | (uintptr_t)cl->session.multi;
}

/* Ends the run for this turn: nothing of it remains in the arena. */
static void endRun(inputRun *run) {
    client *cl = run->cl;
    session *s = &cl->session;
    s->flags &= ~SESSION_IN_BATCH;
    if (s->flags & (SESSION_CLOSE_NOW | SESSION_CLOSE_SOON)) {
        requestParserClear(&cl->parser);
        dropOwnBuffer(cl);
        return;
    }
    keepRest(run);
    limitsRecount(cl);
    if (unlikely(keepsInput(cl)) && limitsCheckInput(cl)) return;
    if (listHas(&cl->closing)) return;
    if (unlikely(!cl->conn.on_read) && !(s->flags & SESSION_PAUSED) && readerStart(cl) != OK)
        clientCloseLater(cl);
}

/* Writes long replies while their bytes are in the cache, and before those of many sessions
 * accumulate. */
static void writeLongReplies(inputBatch *b) {
    if (likely(b->output < OUTPUT_AT_ONCE)) return;
    b->output = 0;
    stagesRun(STAGE_LOG, STAGE_WRITE);
}

/* In the middle of a long turn: serves the connections with priority. */
static NO_INLINE void servePriority(void) {
    enum { ROUNDS = 3 }; /* what was accepted in one is read in the next */
    static bool serving;
    if (serving || engineHot.current) return;
    serving = true;
    for (int i = 0; i < ROUNDS && loopServePriority(netLoop()); i++) {
        readerExecute();
        stagesRun(STAGE_LOG, STAGE_WRITE);
    }
    serving = false;
}

static int partsOf(inputBatch *b, int from, int to, executePart *parts) {
    for (int i = from; i < to; i++) {
        const inputRun *run = &b->runs[i];
        parts[i - from] =
            (executePart){&run->cl->session, b->requests.items + run->first, run->count};
    }
    return to - from;
}

/* The end of the runs from `from` on that have EXECUTE_PREFETCH_MAX requests together; at least one
 * run. */
static int windowEnd(const inputBatch *b, int from) {
    int at = from, left = EXECUTE_PREFETCH_MAX;
    do { left -= b->runs[at++].count; } while (at < b->run_count && b->runs[at].count <= left);
    return at;
}

/* Prefetches for as many runs from `from` on as fit in one step; returns the end of these runs. */
static int prefetchRuns(inputBatch *b, int from) {
    executePart parts[RUNS_MAX];
    int to = likely(b->requests.count <= EXECUTE_PREFETCH_MAX) ? b->run_count : windowEnd(b, from);
    executePrefetch(parts, partsOf(b, from, to, parts));
    return to;
}

/* Executes the requests of the batch, and parses what is left of its runs. Its first `prefetched`
 * runs were prefetched. */
static void stepBatch(inputBatch *b, int prefetched) {
    int left = 0;
    for (int i = 0; i < b->run_count; i++) {
        inputRun *run = &b->runs[i];
        if (unlikely(i == prefetched)) prefetched = prefetchRuns(b, i);
        if (executeInput(b, run)) {
            hostileMoveBuffer(run->cl, &run->buf, &run->len, &run->pos);
            if (left != i) b->runs[left] = *run;
            left++;
        } else {
            endRun(run);
        }
        if (unlikely(executeIsDue())) {
            b->quarters++;
            servePriority();
        }
    }
    requestBatchClear(&b->requests);
    b->run_count = left;
    writeLongReplies(b);
    for (int i = 0; i < left; i++) parseRun(b, &b->runs[i]);
}

static void clientsAdd(client ***clients, int *count, client *cl) {
    hotCheck(*count >= 0);
    *clients = memRealloc(*clients, (size_t)(*count + 1) * sizeof(client *));
    (*clients)[(*count)++] = cl;
}

/* Streams are executed as they come. Of a long input only what is small beside what was executed
 * since it was last moved: to postpone a run moves its rest. */
static bool mayPostpone(const inputBatch *b, const inputRun *run) {
    enum { SMALL = 64 * 1024, SHARE = 8 };
    const client *cl = run->cl;
    size_t rest = run->len - run->parsed_from;
    if (b->filled_by || cl->conn.thread || cl->session.flags & SESSION_REPLAY) return false;
    return run->status != REQUEST_BAD && (rest <= SMALL || rest / SHARE <= run->parsed_from);
}

/* The runs of a batch that has taken long continue in the next turns, after the requests of
 * others. */
static NO_INLINE void postponeRuns(inputBatch *b) {
    netThread *t = b->thread;
    int kept = 0;
    b->quarters = 0;
    for (int i = 0; i < b->run_count; i++) {
        inputRun run = b->runs[i];
        client *cl = run.cl;
        if (!mayPostpone(b, &run)) {
            b->runs[kept++] = run;
            continue;
        }
        if (run.count) rewindRun(b, &run, 0);
        endRun(&run);
        if (listHas(&cl->closing)) continue;
        check(connOnRead(&cl->conn, NULL) == OK);
        clientsAdd(&t->postponed, &t->postponed_count, cl);
    }
    b->run_count = kept;
}

/* Executes the batch until no run has requests that can be executed now, or, if that takes long,
 * the first part. */
static void runBatch(inputBatch *b) {
    enum { QUARTERS_MAX = 2 };
    b->running = true;
    while (b->run_count) {
        stepBatch(b, 0);
        if (unlikely(b->quarters >= QUARTERS_MAX)) postponeRuns(b);
    }
    b->quarters = 0;
    b->arena_used = 0;
    b->running = false;
    batchDone(b);
}

int readerPrefetch(inputBatch *first) {
    executePart parts[RUNS_MAX];
    int left = EXECUTE_PREFETCH_MAX, count = 0, batches = 0;
    for (inputBatch *b = first; b; b = b->next, batches++) {
        if (b->requests.count > left || count + b->run_count > (int)COUNT_OF(parts)) break;
        count += partsOf(b, 0, b->run_count, parts + count);
        left -= b->requests.count;
    }
    executePrefetch(parts, count);
    return batches;
}

void readerExecuteBatch(inputBatch *b, bool prefetched) {
    hotCheck(threadIsMain());
    netThread *t = netMainThread();
    check(b->filled_by != NULL);
    b->thread = t;
    b->outer = batchOpen(t);
    t->batch = b;
    b->running = true;
    if (b->run_count) stepBatch(b, prefetched ? b->run_count : 0);
    runBatch(b);
}

/* In a nested turn: moves the runs after the one that is being executed from its batch to the
 * nested one, so that their clients are served like those whose input arrives only now. Protocol
 * errors and streams wait. */
static void takeWaitingRuns(inputBatch *b) {
    int from = b->run_count;
    while (from > 0 && &b->runs[from - 1].cl->session != engineHot.current->who) from--;
    if (from == 0) return; /* the command is not of this batch */
    int end = b->run_count;
    b->run_count = from;
    for (int i = from; i < end; i++) {
        inputRun run = b->runs[i];
        if (run.status == REQUEST_BAD || (run.cl->session.flags & SESSION_REPLAY)) {
            b->runs[b->run_count++] = run;
            continue;
        }
        if (run.count) rewindRun(b, &run, 0);
        endRun(&run);
        readerResume(run.cl);
    }
}

/* In a nested turn streams are not read: their commands must not run within another one. */
static void waitForCommand(client *cl) {
    netThread *t = netThreadOf(cl);
    check(connOnRead(&cl->conn, NULL) == OK);
    clientsAdd(&t->waiting, &t->waiting_count, cl);
}

/* Returns the new count. */
static int clientsDrop(client **clients, int count, const client *cl) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (clients[i] != cl) clients[kept++] = clients[i];
    }
    return kept;
}

void readerForgetWaiting(client *cl) {
    netThread *t = cl->owner;
    t->waiting_count = clientsDrop(t->waiting, t->waiting_count, cl);
    t->postponed_count = clientsDrop(t->postponed, t->postponed_count, cl);
}

/* Continues clients in the order in which they were postponed, until one is postponed again: a turn
 * has one of them at most that takes long. */
void readerContinue(void) {
    netThread *t = netMainThread();
    if (likely(!t->postponed_count) || engineHot.current) return;
    int before;
    do {
        client *cl = t->postponed[0];
        before = t->postponed_count = clientsDrop(t->postponed, t->postponed_count, cl);
        /* One that a thread has got meanwhile is read by it. */
        if (!cl->conn.thread && readerStart(cl) != OK) {
            clientCloseLater(cl);
            continue;
        }
        readerResume(cl);
        if (t->batch->run_count && !t->batch->running) runBatch(t->batch);
    } while (t->postponed_count && t->postponed_count <= before);
    if (t->postponed_count) {
        loopLimitSleep(netLoop(), 0);
    } else {
        memFree(t->postponed);
        t->postponed = NULL;
    }
}

static void readWaiting(netThread *t) {
    client **list = t->waiting;
    int count = t->waiting_count;
    t->waiting = NULL;
    t->waiting_count = 0;
    for (int i = 0; i < count; i++) {
        if (readerStart(list[i]) != OK) clientCloseLater(list[i]);
    }
    memFree(list);
}

void readerExecuteOf(netThread *t) {
    hotCheck(threadIsMain());
    inputBatch *b = t->batch;
    if (b && !b->running) b = b->outer;
    if (unlikely(b) && engineHot.current) takeWaitingRuns(b);
    if (t->batch && !t->batch->running && t->batch->run_count) runBatch(t->batch);
    if (unlikely(t->waiting_count) && !engineHot.current) readWaiting(t);
}

void readerExecute(void) { readerExecuteOf(netMainThread()); }

void readerFree(netThread *t) {
    hotCheck(threadIsMain());
    inputBatch *b = t->batch;
    if (!b) return;
    check(b->run_count == 0);
    check(!b->outer);
    batchFree(b);
    t->batch = NULL;
}

static void addRun(client *cl, char *buf, size_t len) {
    inputBatch *b = batchOpen(netThreadOf(cl));
    inputRun *run = batchAddRun(b, cl, buf, len);
    cl->session.flags |= SESSION_IN_BATCH;
    parseRun(b, run);
    if (b->requests.count == b->request_max || b->run_count == RUNS_MAX) runBatch(b);
}

void readerFailed(client *cl, ssize_t n, int error) {
    hotCheck(threadIsMain());
    if (n < 0 && error == EAGAIN) return;
    clientFailed(cl, "Reading", n == 0 ? NULL : connErrorText(&cl->conn));
}

void readerCount(client *cl, ssize_t n) {
    hotCheck(threadIsMain());
    cl->session.bytes_in += (uint64_t)n;
    cl->session.active_ms = engineHot.now_ms;
    netStatistics *counted = &netThreadOf(cl)->counted;
    counted->bytes_in += (uint64_t)n;
    if (unlikely(cl->session.flags & SESSION_REPLAY))
        *(cl->session.flags & SESSION_PRIMARY ? &counted->repl_in : &counted->slots_in) +=
            (uint64_t)n;
    counted->reads++;
}

/* The current batch, with space in its arena for one more read. */
static inputBatch *batchWithSpace(netThread *t) {
    inputBatch *b = batchOpen(t);
    if (likely(b->arena_bytes - b->arena_used >= t->read_bytes_max)) return b;
    runBatch(b);
    return batchOpen(t);
}

void readerReadable(conn *c) {
    hotCheck(threadIsMain());
    client *cl = CONTAINER_OF(c, client, conn);
    session *s = &cl->session;
    if (s->flags & (SESSION_IN_BATCH | SESSION_CLOSE_SOON)) {
        check(connOnRead(c, NULL) == OK);
        return;
    }
    if (unlikely(s->flags & SESSION_REPLAY) && engineHot.current) {
        waitForCommand(cl);
        return;
    }
    inputBatch *b = batchWithSpace(netThreadOf(cl));
    if (unlikely(s->flags & SESSION_CLOSE_NOW))
        return; /* closed by a command of the batch that was executed to make space */
    receivedInput in;
    ssize_t n = batchReceive(b, cl, b->thread->read_bytes_max, s->flags & SESSION_STOPS, &in);
    if (n <= 0) {
        readerFailed(cl, n, errno);
        return;
    }
    readerCount(cl, n);
    if (unlikely(in.buf == cl->in)) {
        readerRecord(cl);
        if (limitsCheckInput(cl) || (s->flags & SESSION_STOPS) || !in.len) return;
    }
    addRun(cl, in.buf, in.len);
}

void readerResume(client *cl) {
    hotCheck(threadIsMain());
    if (unlikely(clientIsAway(cl))) {
        ioThreadsNote(cl, NOTE_RESUMES);
        return;
    }
    if (cl->session.flags & (SESSION_IN_BATCH | SESSION_STOPS) || !cl->in_len) return;
    addRun(cl, cl->in, cl->in_len);
}

void readerBegin(client *cl, slice bytes) {
    hotCheck(threadIsMain());
    if (bytes.len == 0) return;
    keepBytes(cl, bytes.ptr, bytes.len);
    loopLimitSleep(netLoop(), 0);
    readerResume(cl);
}
