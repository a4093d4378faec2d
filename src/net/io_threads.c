/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The main thread's side of I/O threads (io_threads.h): which clients are lent, and what happens
 * when they come back.
 *
 * The loop of the main thread watches all connections. A client with bytes to read, or with output,
 * is pushed as a job to one of the active threads, always the same while their number stays. It
 * comes back as a result: with a batch that holds its requests, or alone. A connection that is lent
 * is watched with `edge`, so an event is reported once: it sets conn.ready, and the client is lent
 * again when it is back.
 *
 * Never lent, but served by the main thread as without threads: links to a primary and replicas,
 * blocked and paused clients, and all clients in a nested turn within a command. Of TLS handshakes
 * single steps are lent, a few at a time; the main thread makes the others.
 *
 * Invariants: a client is lent if and only if it has SESSION_LENT and `owner` is a thread's, which
 * only the main thread changes; it is then in exactly one of the thread's job ring, its batch, its
 * result ring, and `returned`. While no thread is active, clients that are not lent have the
 * callbacks and watches of a server without threads. A thread has at most JOBS_MAX clients. Main
 * thread only. */
#include "net/io_threads.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/stats.h"
#include "net/io_threads_priv.h"
#include "net/net.h"
#include "net/net_priv.h"

static struct {
    ioThread *threads[IO_THREADS_MAX];
    int started;        /* threads that exist */
    int active;         /* clients are lent to the first ones */
    int parked;         /* netThreadsPark() calls that were not undone: nothing is lent */
    size_t lent;        /* clients with SESSION_LENT */
    size_t noted;       /* clients that are lent and have conn.notes */
    spscItem *returned; /* results that were taken from the rings, to be processed */
    size_t returned_cap, returned_count, returned_at;
    inputBatch *first, *last; /* batches to execute */
    uint32_t sleep;           /* enum mainSleep */
    struct {
        uint64_t reads, writes, handshakes, prefetch_batches, prefetch_entries;
    } counted;
    struct {
        int64_t wall_us; /* at the last sample */
        uint64_t busy_us;
        int quiet; /* samples in a row for which fewer threads had sufficed */
    } load;
} io;

bool ioThreadsInUse(void) { return io.active || io.lent; }

bool netThreadsAreActive(void) { return io.active > 0; }

void ioThreadsNote(client *cl, enum ioNote what) {
    hotCheck(what != 0);
    if (!cl->conn.notes) io.noted++;
    cl->conn.notes |= (uint8_t)what;
}

/* ------------------------------------------------------------------ results */

static void keepResult(const spscItem *result) {
    hotCheck(io.returned_count <= io.returned_cap);
    hotCheck(io.returned_at <= io.returned_count);
    if (io.returned_count == io.returned_cap) {
        io.returned_cap = io.returned_cap ? io.returned_cap * 2 : 256;
        io.returned = memRealloc(io.returned, io.returned_cap * sizeof(*io.returned));
    }
    io.returned[io.returned_count++] = *result;
}

/* Takes results from the rings. True if no thread has a client any more. */
static bool takeResults(void) {
    hotCheck(io.started >= io.active);
    int out = 0;
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        spscItem result;
        while (t->out && spscPop(&t->results, &result)) {
            t->out -= result.kind == RESULT_BATCH ? ((inputBatch *)result.what)->run_count : 1;
            keepResult(&result);
        }
        out += t->out;
    }
    return out == 0;
}

/* Wakes threads to which jobs were pushed. */
static void announceJobs(void) {
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        if (!t->unannounced) continue;
        t->unannounced = false;
        sleeperWake(&t->rest, &t->jobs);
    }
}

/* Announces that the main thread is going to sleep. False if there are results already. */
static bool announceSleep(enum mainSleep how) {
    __atomic_store_n(&io.sleep, how, __ATOMIC_SEQ_CST);
    for (int i = 0; i < io.started; i++) {
        if (!spscHasItems(&io.threads[i]->results)) continue;
        __atomic_store_n(&io.sleep, MAIN_AWAKE, __ATOMIC_RELAXED);
        return false;
    }
    return true;
}

void ioThreadsSettle(void) {
    hotCheck(threadIsMain());
    announceJobs();
    while (!takeResults()) {
        if (announceSleep(MAIN_WAITS_FOR_ALL)) loopWaitWake(netLoop());
    }
    if (io.returned_count) loopLimitSleep(netLoop(), 0);
}

void netThreadsPark(void) {
    io.parked++;
    ioThreadsSettle();
}

void netThreadsUnpark(void) {
    check(io.parked > 0);
    io.parked--;
}

void netActAsMain(bool yes) { netThreadEnter(yes ? netMainThread() : NULL); }

/* ------------------------------------------------------------------ lending */

static bool mayBeLent(const client *cl) {
    const uint64_t never = SESSION_REPLAY | SESSION_REPLICA | SESSION_BLOCKED | SESSION_PAUSED |
                           SESSION_CLOSE_NOW | SESSION_IN_BATCH | SESSION_LENT;
    return io.active && !io.parked && !(cl->session.flags & never) && !engineHot.current &&
           cl->conn.state == CONN_OPEN && !cl->conn.priority;
}

/* The thread that serves the client, with space for one more job. */
static ioThread *threadOf(const client *cl) {
    hotCheck(io.active > 0);
    hotCheck(io.active <= io.started);
    ioThread *t = io.threads[cl->session.id % (uint64_t)io.active];
    if (unlikely(t->out == JOBS_MAX)) ioThreadsSettle();
    return t;
}

/* From here on the client is the thread's. */
static void pushJob(ioThread *t, client *cl, spscItem *job) {
    check(!io.parked);
    cl->conn.notes = 0;
    sessionLend(&cl->session);
    cl->owner = &t->net;
    io.lent++;
    t->out++;
    t->unannounced = true;
    job->what = cl;
    check(spscPush(&t->jobs, job));
}

bool ioThreadsHandshake(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    if (!io.active || io.parked || engineHot.current) return false;
    if (cl->session.flags & SESSION_CLOSE_NOW) return false;
    ioThread *t = threadOf(cl);
    if (t->handshakes == HANDSHAKES_MAX) return false;
    t->handshakes++;
    connLendHandshake(c);
    pushJob(t, cl, &(spscItem){.kind = JOB_HANDSHAKE});
    return true;
}

/* Called by the loop for a client that is lent. */
static void noteReadable(conn *c) { ioThreadsNote(CONTAINER_OF(c, client, conn), NOTE_READABLE); }

static void lend(client *cl, spscItem *job) {
    hotCheck(!(cl->session.flags & SESSION_LENT));
    if (connSetEdge(&cl->conn, true) != OK) {
        clientCloseLater(cl);
        return;
    }
    ioThread *t = threadOf(cl);
    connLend(&cl->conn, job->kind == JOB_READ);
    cl->conn.on_read = noteReadable;
    pushJob(t, cl, job);
}

static void lendToRead(client *cl) {
    hotCheck(!listHas(&cl->closing));
    const session *s = &cl->session;
    requestLimits limits = readerLimits(s);
    int32_t how = (limits.authenticated ? READ_AUTHENTICATED : 0) |
                  (s->flags & SESSION_STOPS ? READ_KEEP : 0);
    lend(cl, &(spscItem){.kind = JOB_READ, .number = limits.bulk_max, .code = how});
}

/* Back to what a client is without threads. */
static void serveHere(client *cl) {
    if (connSetEdge(&cl->conn, false) != OK) clientCloseLater(cl);
}

/* Callback for readable connections while threads are active. */
static void readable(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    if (!c->edge && !mayBeLent(cl)) {
        readerReadable(c);
    } else {
        ioThreadsServe(cl);
    }
}

void ioThreadsServe(client *cl) {
    hotCheck(threadIsMain());
    uint64_t flags = cl->session.flags;
    if (flags & (SESSION_IN_BATCH | SESSION_CLOSE_SOON)) {
        check(connOnRead(&cl->conn, NULL) == OK); /* until endRun() */
    } else if (mayBeLent(cl)) {
        lendToRead(cl);
    } else if (!(flags & SESSION_LENT)) {
        check(connOnRead(&cl->conn, readable) == OK);
        serveHere(cl);
    }
}

void ioThreadsWrite(client *cl) {
    hotCheck(threadIsMain());
    session *s = &cl->session;
    if (s->flags & SESSION_LENT) {
        ioThreadsNote(cl, NOTE_OUTPUT);
        return;
    }
    if (!mayBeLent(cl) || !outbufPending(&s->out)) {
        writerWrite(cl);
        return;
    }
    netStatistics *counted = &netMainThread()->counted;
    size_t pending = outbufPending(&s->out);
    if (pending > counted->recent_output_max) counted->recent_output_max = pending;
    lend(cl, &(spscItem){.kind = JOB_WRITE});
    if (unlikely(s->flags & SESSION_CLOSE_SOON) && s->flags & SESSION_LENT)
        ioThreadsNote(cl, NOTE_CLOSE);
}

/* ------------------------------------------------------------------ clients that come back */

static void own(client *cl) {
    check(cl->session.flags & SESSION_LENT);
    io.lent--;
    cl->owner = netMainThread();
    sessionReturn(&cl->session);
    if (cl->conn.notes) io.noted--;
}

static void handshakeBack(const spscItem *result) {
    client *cl = result->what;
    for (int i = 0; i < io.started; i++) {
        if (cl->owner == &io.threads[i]->net) io.threads[i]->handshakes--;
    }
    own(cl);
    bool closes = cl->session.flags & SESSION_CLOSE_NOW;
    cl->conn.notes = 0;
    if (result->number != ERR_AGAIN) io.counted.handshakes++;
    if (closes) clientCloseLater(cl);
    if (!listHas(&cl->closing))
        connReturnHandshake(&cl->conn, (status)result->number, result->code);
}

/* The client is the main thread's again: what was noted is done, except reading. */
static void takeBack(client *cl) {
    session *s = &cl->session;
    own(cl);
    connReturn(&cl->conn, netLoop());
    cl->conn.on_read = NULL;
    if (unlikely(cl->conn.notes & NOTE_OUTPUT)) sessionWantWrite(s);
    if (unlikely(s->flags & SESSION_CLOSE_NOW)) {
        clientCloseLater(cl);
    } else if (unlikely(!io.active)) {
        serveHere(cl);
    }
    hotCheck(!(cl->session.flags & SESSION_LENT));
}

/* Reads on. */
static void restart(client *cl) {
    bool resumes = cl->conn.notes & NOTE_RESUMES;
    cl->conn.notes = 0;
    if (listHas(&cl->closing)) return;
    if (unlikely(resumes)) readerResume(cl);
    if (cl->session.flags & (SESSION_IN_BATCH | SESSION_PAUSED | SESSION_CLOSE_SOON)) return;
    if (readerStart(cl) != OK) clientCloseLater(cl);
}

static void wroteBack(const spscItem *result) {
    client *cl = result->what;
    takeBack(cl);
    netMainThread()->counted.writes++;
    io.counted.writes++;
    if (listHas(&cl->closing)) return;
    if (result->number < 0 && result->code != EAGAIN) {
        logVerbose("Error writing to client: %s", connErrorText(&cl->conn));
        clientCloseLater(cl);
        return;
    }
    if (result->number > 0) writerSent(cl, (size_t)result->number);
    bool full = result->code == EAGAIN;
    if (full || !outbufPending(&cl->session.out)) {
        writerEnd(cl, full);
    } else {
        limitsRecount(cl);
        if (!limitsCheckOutput(cl)) sessionWantWrite(&cl->session);
    }
    restart(cl);
}

static void readBack(const spscItem *result) {
    client *cl = result->what;
    takeBack(cl);
    if (listHas(&cl->closing)) return;
    if (result->kind == RESULT_UNREAD) {
        cl->conn.ready = true;
    } else if (result->number <= 0) {
        readerFailed(cl, (ssize_t)result->number, result->code);
    } else {
        io.counted.reads++;
        readerCount(cl, (ssize_t)result->number);
        readerRecord(cl);
        if (limitsCheckInput(cl)) return;
        if (result->code) cl->conn.ready = true;
    }
    restart(cl);
}

static void batchBack(inputBatch *b) {
    hotCheck(b->run_count > 0);
    for (int i = 0; i < b->run_count; i++) {
        const inputRun *run = &b->runs[i];
        client *cl = run->cl;
        takeBack(cl);
        cl->session.flags |= SESSION_IN_BATCH;
        cl->conn.notes = 0; /* its own buffer is in the run */
        if (run->more) cl->conn.ready = true;
        io.counted.reads++;
        readerCount(cl, (ssize_t)run->received);
        if (cl->in) readerRecord(cl);
    }
    b->next = NULL;
    if (io.last) {
        io.last->next = b;
    } else {
        io.first = b;
    }
    io.last = b;
}

/* Processes the results; requests wait to be executed. */
static void processResults(void) {
    /* More results may be added meanwhile. */
    while (io.returned_at < io.returned_count) {
        spscItem result = io.returned[io.returned_at++];
        if (result.kind == RESULT_BATCH) {
            batchBack(result.what);
        } else if (result.kind == RESULT_WROTE) {
            wroteBack(&result);
        } else if (result.kind == RESULT_HANDSHAKE) {
            handshakeBack(&result);
        } else {
            readBack(&result);
        }
    }
    io.returned_at = io.returned_count = 0;
}

/* Executes batches in steps: their lookups are prefetched together. A nested turn may execute some
 * of them. */
static void executeBatches(void) {
    while (io.first) {
        io.counted.prefetch_batches++;
        int prefetched = readerPrefetch(io.first), step = 0;
        do {
            inputBatch *b = io.first;
            io.first = b->next;
            if (!io.first) io.last = NULL;
            io.counted.prefetch_entries += (uint64_t)b->requests.count;
            readerExecuteBatch(b, prefetched > 0);
        } while (++step < prefetched && io.first);
    }
}

void ioThreadsExecute(void) {
    hotCheck(threadIsMain());
    __atomic_store_n(&io.sleep, MAIN_AWAKE, __ATOMIC_RELAXED);
    (void)takeResults(); /* the rest later */
    processResults();
    /* With little to execute one wake-up at the end of the turn suffices. */
    if (io.first && io.first->next) announceJobs();
    executeBatches();
}

/* True if a client that becomes readable now would only wait in the queue of its thread. */
static bool allAreBusy(void) {
    hotCheck(io.active <= io.started);
    for (int i = 0; i < io.active; i++) {
        if (!io.threads[i]->out) return false;
    }
    return io.active > 0;
}

void ioThreadsBeforeSleep(void) {
    hotCheck(threadIsMain());
    announceJobs();
    bool busy = allAreBusy();
    bool all = busy || io.noted > 0 || deliverHasWaiting();
    if (io.returned_count || !announceSleep(all ? MAIN_WAITS_FOR_ALL : MAIN_WAITS_FOR_REQUESTS)) {
        loopLimitSleep(netLoop(), 0);
    } else if (busy) {
        loopSleepUntilWake(netLoop(), ALL_BUSY_MS);
    }
}

void ioThreadsGiveBack(inputBatch *b) {
    hotCheck(threadIsMain());
    ioThread *t = b->filled_by;
    b->arena_used = 0;
    b->output = 0;
    for (int i = 0; i < io.started; i++) {
        if (io.threads[i] == t && spscPush(&t->spare, &(spscItem){.what = b})) return;
    }
    batchFree(b); /* the thread has ended */
}

/* ----------------------------------------------------------------- the number of active threads */

/* Gives clients that are not lent the callback for readable connections. */
static void setCallbacks(connProc *from, connProc *to) {
    readerSetProc(to);
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (listHas(&cl->closing) || cl->session.flags & SESSION_LENT) continue;
        if (cl->conn.on_read == from && connOnRead(&cl->conn, to) != OK) clientCloseLater(cl);
        if (to == readerReadable && !listHas(&cl->closing)) serveHere(cl);
    }
}

static void setActive(int count) {
    hotCheck(count >= 0);
    hotCheck(count <= io.started);
    if (count == io.active) return;
    bool was_active = io.active > 0;
    io.active = count;
    if (!was_active) setCallbacks(readerReadable, readable);
    if (!count) setCallbacks(readable, readerReadable);
}

/* Of a thread that has ended or was not started, and has no client. */
static void threadFree(ioThread *t) {
    spscItem spare;
    while (spscPop(&t->spare, &spare)) batchFree(spare.what);
    if (t->batch) batchFree(t->batch);
    spscFree(&t->jobs);
    spscFree(&t->results);
    spscFree(&t->spare);
    sleeperFree(&t->rest);
    memFree(t->memory);
}

static ioThread *threadNew(int number, reason *why) {
    char *memory = memAlloc(sizeof(ioThread) + CACHE_LINE);
    ioThread *t = (ioThread *)(memory + (CACHE_LINE - (uintptr_t)memory % CACHE_LINE));
    *t = (ioThread){.memory = memory,
                    .net = {.read_bytes_max = netMainThread()->read_bytes_max},
                    .main_loop = netLoop(),
                    .main_sleep = &io.sleep};
    spscInit(&t->jobs, JOBS_MAX);
    spscInit(&t->results, RESULTS_MAX);
    spscInit(&t->spare, BATCHES_MAX);
    sleeperInit(&t->rest);
    for (int i = 0; i < BATCHES_MAX; i++) {
        inputBatch *b = batchNew(BATCH_BYTES, REQUEST_BATCH_MAX);
        b->filled_by = t;
        check(spscPush(&t->spare, &(spscItem){.what = b}));
    }
    char name[24]; /* the kernel keeps 15 bytes */
    snprintf(name, sizeof(name), "io_thd_%d", number);
    /* The thread inherits the processors of the main thread, those of server-cpulist. */
    if (threadStart(&t->os, name, "", ioWorkerRun, t, why) == OK) return t;
    threadFree(t);
    return NULL;
}

/* Ends the last threads until `count` are left. */
static void endThreads(int count) {
    if (io.active > count) setActive(count);
    ioThreadsSettle();
    while (io.started > count) {
        ioThread *t = io.threads[--io.started];
        check(spscPush(&t->jobs, &(spscItem){.kind = JOB_STOP}));
        sleeperWake(&t->rest, &t->jobs);
        threadJoin(&t->os);
        threadFree(t);
    }
}

static status startThreads(int count, reason *why) {
    hotCheck(count >= 0);
    while (io.started < count) {
        ioThread *t = threadNew(io.started + 1, why);
        if (!t) return ERR_IO;
        io.threads[io.started++] = t;
    }
    return OK;
}

status ioThreadsApply(reason *why) {
    hotCheck(threadIsMain());
    if (!netIsListening()) return OK;
    int count = netConf.io_threads - 1;
    if (count != io.started)
        logNotice("Changing number of IO threads from %d to %d.", io.started + 1, count + 1);
    if (count < io.started) endThreads(count);
    status st = startThreads(count, why);
    if (st == OK && netConf.io_threads_always_active) setActive(io.started);
    return st;
}

void ioThreadsStop(void) {
    hotCheck(threadIsMain());
    setActive(0);
    ioThreadsSettle();
    processResults();
    for (inputBatch *b; (b = io.first) != NULL;) {
        io.first = b->next;
        requestBatchClear(&b->requests);
        batchFree(b);
    }
    io.last = NULL;
    endThreads(0);
}

/* ------------------------------------------------------------------ adaptation to the load */

/* Sums the time in which the threads have worked since the last call, in us. */
static int64_t workedUs(void) {
    uint64_t ticks = 0;
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        uint64_t now = __atomic_load_n(&t->busy_ticks, __ATOMIC_RELAXED);
        ticks += now - t->busy_before;
        t->busy_before = now;
    }
    return clockTicksToNs(ticks) / 1000;
}

/* The number of threads for a load in percent of one processor: that of the main thread, and the
 * sum of the active ones. Grows by one; the second limit of each pair is lower, so that it does not
 * alternate. */
static int threadsFor(int active, int64_t main_percent, int64_t worked_percent) {
    hotCheck(active >= 0);
    hotCheck(main_percent >= 0);
    enum { MAIN_HIGH = 60, SUM_LOW = 40, WORKED_HIGH = 80, WORKED_LOW = 50 };
    if (active == 0) return main_percent >= MAIN_HIGH ? 1 : 0;
    if (worked_percent >= WORKED_HIGH * active) return active + 1;
    if (main_percent + worked_percent < SUM_LOW) return 0;
    if (active > 1 && worked_percent < WORKED_LOW * (active - 1)) return active - 1;
    return active;
}

void ioThreadsTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* takes no time */
    enum { QUIET_SAMPLES = 10 };
    if (!io.started) return;
    int64_t wall_us = clockMonoUs();
    uint64_t busy_us = statsBusyUs();
    int64_t passed_us = wall_us - io.load.wall_us;
    int64_t main_us = (int64_t)(busy_us - io.load.busy_us), worked_us = workedUs();
    io.load.wall_us = wall_us;
    io.load.busy_us = busy_us;
    if (netConf.io_threads_always_active || passed_us <= 0) return;
    int wanted = threadsFor(io.active, main_us * 100 / passed_us, worked_us * 100 / passed_us);
    if (wanted > io.started) wanted = io.started;
    io.load.quiet = wanted < io.active ? io.load.quiet + 1 : 0;
    if (wanted > io.active || io.load.quiet >= QUIET_SAMPLES) {
        io.load.quiet = 0;
        setActive(wanted);
    }
}

bool ioThreadsAreBusy(void) { return io.active && !netConf.io_threads_always_active; }

/* ------------------------------------------------------------------ INFO */

void netPrintThreadTimes(str *out) {
    hotCheck(threadIsMain());
    for (int i = 0; i < io.started; i++) {
        uint64_t ticks = __atomic_load_n(&io.threads[i]->busy_ticks, __ATOMIC_RELAXED);
        strAppendFormat(out, "used_active_time_io_thread_%d:%.6f\r\n", i + 1,
                        (double)clockTicksToNs(ticks) / 1e9);
    }
}

void ioThreadsPrintStats(str *out) {
    hotCheck(threadIsMain());
    const struct {
        const char *name;
        uint64_t count;
    } fields[] = {
        {"reads_processed", io.counted.reads},
        {"writes_processed", io.counted.writes},
        {"freed_objects", 0}, /* the main thread frees what it has allocated */
        {"accept_processed", io.counted.handshakes},
        {"poll_processed", 0}, /* and waits for events */
        {"total_prefetch_batches", io.counted.prefetch_batches},
        {"total_prefetch_entries", io.counted.prefetch_entries},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        strAppendFormat(out, "io_threaded_%s:%llu\r\n", fields[i].name,
                        (unsigned long long)fields[i].count);
    }
}

void ioThreadsResetStats(void) { memset(&io.counted, 0, sizeof(io.counted)); }
