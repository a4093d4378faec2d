/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The main thread's side of I/O threads (io_threads.h): which clients they get, and what happens
 * when these come with requests.
 *
 * One of the active threads gets a client when it is accepted (conn.thread), or, if it was in the
 * loop of the main thread, when it becomes readable; the thread watches it from then on. It comes
 * to the main thread in a batch with its requests, or alone when there is something to decide, and
 * is given back when these have run: with the job to write its output, or to watch it. Messages for
 * this client from others are written by a job, too.
 *
 * The main thread's loop serves, as without threads: links to a primary and replicas, connections
 * with priority, blocked and paused clients. A client that becomes one of these is released by its
 * thread, and may be given to one again when it is readable. Threads also run steps of TLS
 * handshakes, a few at a time.
 *
 * Invariants: a client is away if and only if `owner` is a thread's, which only the main thread
 * changes. One that a thread watches is freed only after RESULT_RELEASED. A job for a client that
 * is away may cross with the client: then it has no effect, and the thread's result with the client
 * comes before those of later jobs. Main thread only. */
#include "net/io_threads.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "engine/stats.h"
#include "net/io_threads_priv.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/reader_hostile.h"

static struct {
    ioThread *threads[IO_THREADS_MAX];
    int started;        /* threads that exist */
    int wanted;         /* those beyond end when they have no clients */
    int active;         /* the first ones get clients */
    int parked;         /* netThreadsPark() calls that were not undone */
    size_t clients;     /* that have conn.thread, or are in a handshake that a thread makes */
    size_t noted;       /* clients that are away and have conn.notes */
    spscItem *returned; /* results that were taken from the rings, to be processed */
    size_t returned_cap, returned_count, returned_at;
    inputBatch *first, *last; /* batches to execute */
    uint32_t sleep;           /* enum mainSleep */
    bool awaits;              /* before its next write the main thread waits for threads */
    struct {
        uint64_t reads, writes, handshakes, prefetch_batches, prefetch_entries;
    } counted;
    struct {
        int64_t wall_us; /* at the last sample */
        uint64_t busy_us;
        int quiet; /* samples in a row for which fewer threads had sufficed */
    } load;
} io;

bool ioThreadsInUse(void) { return io.active || io.clients || io.started > io.wanted; }

bool netThreadsAreActive(void) { return io.active > 0; }

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

/* Takes results from the rings. */
static void takeResults(void) {
    hotCheck(io.started >= io.active);
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        spscItem result;
        while (spscPop(&t->results, &result)) {
            if (unlikely(result.kind == RESULT_PAUSED)) {
                t->paused = true;
            } else {
                keepResult(&result);
            }
        }
    }
}

static void wakeThread(ioThread *t) {
    hotCheck(threadIsMain());
    t->unannounced = false;
    spscPublish(&t->jobs);
    if (!__atomic_load_n(&t->asleep, __ATOMIC_SEQ_CST)) return;
    if (__atomic_exchange_n(&t->asleep, 0, __ATOMIC_SEQ_CST)) loopWake(t->loop);
}

/* Wakes threads to which jobs were pushed. */
static void announceJobs(void) {
    for (int i = 0; i < io.started; i++) {
        if (io.threads[i]->unannounced) wakeThread(io.threads[i]);
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

/* Waits for results. */
static void awaitResults(void) {
    announceJobs();
    if (announceSleep(MAIN_WAITS_FOR_ALL)) loopWaitWake(netLoop());
    takeResults();
}

/* Ends the pauses of ioThreadsSettle(). */
static void resumeThreads(void) {
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        if (likely(!t->pausing) || io.parked) continue;
        if (!t->paused) continue; /* within ioThreadsSettle() */
        t->pausing = t->paused = false;
        check(spscPush(&t->resume, &(spscItem){.what = NULL}));
        sleeperWake(&t->rest, &t->resume);
    }
}

static void pushJob(ioThread *t, const spscItem *job) {
    hotCheck(threadIsMain());
    t->unannounced = true;
    while (unlikely(!spscPush(&t->jobs, job))) {
        wakeThread(t);
        takeResults();   /* the thread may wait for space */
        resumeThreads(); /* or stand still */
        sched_yield();
        t->unannounced = true;
    }
}

/* ------------------------------------------------------------------ the order of writes */

/* True if the thread has made the writes before its last JOB_SIGNAL. */
static bool hasSignalled(const ioThread *t) {
    return __atomic_load_n(&ioSignals[t->number].at, __ATOMIC_ACQUIRE) >= t->signal;
}

void ioThreadsBeginReplies(void) {
    hotCheck(threadIsMain());
    bool any = false;
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        if (likely(!t->wrote)) continue;
        any = true;
        t->signal++;
        pushJob(t, &(spscItem){.number = (int64_t)t->signal, .kind = JOB_SIGNAL});
        wakeThread(t);
    }
    if (likely(!any)) return;
    for (int i = 0; i < io.started; i++) io.threads[i]->awaits = true;
    io.awaits = true;
}

/* The next write of the thread waits for the signals of the others. */
static NO_INLINE void pushAwaits(ioThread *t) {
    t->awaits = false;
    for (int i = 0; i < io.started; i++) {
        const ioThread *other = io.threads[i];
        if (other == t || hasSignalled(other)) continue;
        pushJob(t, &(spscItem){
                       .number = (int64_t)other->signal, .kind = JOB_AWAIT, .code = other->number});
    }
}

/* The same before the main thread writes. */
static NO_INLINE void awaitSignals(void) {
    io.awaits = false;
    for (int i = 0; i < io.started; i++) {
        while (!io.parked && !hasSignalled(io.threads[i])) {
            takeResults();   /* the thread may wait for space */
            resumeThreads(); /* or stand still */
            sched_yield();
        }
    }
}

static void pushWrite(ioThread *t, client *cl, size_t most, int32_t given) {
    hotCheck(most > 0);
    if (unlikely(t->awaits)) pushAwaits(t);
    t->wrote = true;
    sessionLend(&cl->session);
    pushJob(t, &(spscItem){.what = cl, .number = (int64_t)most, .kind = JOB_WRITE, .code = given});
}

/* ------------------------------------------------------------------ pauses */

void ioThreadsSettle(void) {
    hotCheck(threadIsMain());
    for (;;) {
        bool all = true;
        for (int i = 0; i < io.started; i++) {
            ioThread *t = io.threads[i];
            if (!t->pausing) {
                t->pausing = true;
                pushJob(t, &(spscItem){.kind = JOB_PAUSE});
            }
            all &= t->paused;
        }
        if (all) break;
        awaitResults();
    }
    loopLimitSleep(netLoop(), 0);
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

/* ------------------------------------------------------------------ giving */

static bool mayBeGiven(const client *cl) {
    const uint64_t never = SESSION_REPLAY | SESSION_REPLICA | SESSION_SLOT_EXPORT |
                           SESSION_BLOCKED | SESSION_PAUSED | SESSION_CLOSE_SOON |
                           SESSION_CLOSE_NOW;
    return cl->conn.thread <= io.active && !(cl->session.flags & never) &&
           cl->conn.state == CONN_OPEN && !cl->conn.priority && !(cl->conn.notes & NOTE_RELEASE);
}

/* The active thread with the fewest clients. */
static ioThread *smallestThread(void) {
    hotCheck(io.active > 0);
    ioThread *found = io.threads[0];
    for (int i = 1; i < io.active; i++) {
        if (io.threads[i]->clients < found->clients) found = io.threads[i];
    }
    return found;
}

/* The active thread that had the least to do. */
static ioThread *idlestThread(void) {
    hotCheck(io.active > 0);
    ioThread *found = io.threads[0];
    for (int i = 1; i < io.active; i++) {
        if (io.threads[i]->worked_us < found->worked_us) found = io.threads[i];
    }
    return found;
}

/* From here on the client is the thread's, and of its output `most` bytes, if there are any. */
static void give(client *cl, size_t most, int32_t given) {
    hotCheck(cl->conn.thread);
    hotCheck(!clientIsAway(cl));
    session *s = &cl->session;
    ioThread *t = io.threads[cl->conn.thread - 1];
    given |= GIVEN;
    if (sessionIsAuthenticated(s)) given |= GIVEN_TRUSTED;
    if (unlikely(cl->conn.on_write != NULL)) given |= GIVEN_WRITABLE;
    size_t units = 0;
    if (unlikely(cl->in) || unlikely(cl->parser.partial) || unlikely(cl->conn.secure))
        units = sizeMin(clientConnMemory(cl) / CLIENT_AWAY_UNIT + 1, CLIENT_AWAY_UNITS_MAX);
    cl->away_units = units & CLIENT_AWAY_UNITS_MAX;
    cl->owner = &t->net;
    if (most) {
        pushWrite(t, cl, most, given);
    } else {
        pushJob(t, &(spscItem){.what = cl, .kind = JOB_WATCH, .code = given});
    }
}

/* A client that no loop watches becomes one of a thread. */
static void giveTo(ioThread *t, client *cl) {
    hotCheck(!cl->conn.thread);
    t->clients++;
    io.clients++;
    cl->conn.thread = t->number;
    give(cl, 0, GIVEN_NEW);
}

/* A client of the main thread's loop becomes one of a thread. */
static void giveNew(client *cl) {
    check(connOnRead(&cl->conn, NULL) == OK);
    bool writes = cl->conn.on_write;
    check(connOnWrite(&cl->conn, NULL) == OK);
    connDetach(&cl->conn);
    if (writes) cl->conn.on_write = writerWritable;
    giveTo(smallestThread(), cl);
}

void ioThreadsTakeNew(client *cl) {
    hotCheck(threadIsMain());
    if (mayBeGiven(cl)) {
        connDetach(&cl->conn);
        giveTo(smallestThread(), cl);
    } else if (readerStart(cl) != OK) { /* who was told of it closes it */
        clientCloseLater(cl);
    }
}

bool ioThreadsHandshake(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    if (!io.active || io.parked || engineHot.current) return false;
    if (cl->session.flags & SESSION_CLOSE_NOW) return false;
    ioThread *t = io.threads[cl->session.id % (uint64_t)io.active];
    if (t->handshakes == HANDSHAKES_MAX) return false;
    t->handshakes++;
    io.clients++;
    connLendHandshake(c);
    cl->owner = &t->net;
    sessionLend(&cl->session);
    pushJob(t, &(spscItem){.what = cl, .kind = JOB_HANDSHAKE});
    return true;
}

/* Callback for readable connections while threads are active. */
static void readable(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    if (mayBeGiven(cl) && !(cl->session.flags & SESSION_IN_BATCH)) {
        giveNew(cl);
    } else {
        readerReadable(c);
    }
}

static uint8_t takeNotes(client *cl, uint8_t which) {
    uint8_t taken = cl->conn.notes & which;
    if (!taken) return 0;
    cl->conn.notes &= (uint8_t)~which;
    if (!cl->conn.notes) io.noted--;
    return taken;
}

static void release(client *cl) {
    hotCheck(cl->conn.thread);
    if (cl->conn.notes & NOTE_RELEASE) return;
    if (!cl->conn.notes) io.noted++;
    cl->conn.notes |= NOTE_RELEASE;
    pushJob(io.threads[cl->conn.thread - 1], &(spscItem){.what = cl, .kind = JOB_RELEASE});
}

void ioThreadsClose(client *cl) {
    conn *c = &cl->conn;
    /* A forked process may go on with a connection that has failed for this one. */
    bool open = clientIsAway(cl) || c->state == CONN_OPEN;
    if (open && !c->secure) c->type->shutdown(c);
    release(cl);
}

void ioThreadsNote(client *cl, enum ioNote what) {
    hotCheck(clientIsAway(cl));
    if (!cl->conn.notes) io.noted++;
    cl->conn.notes |= (uint8_t)what;
    if (what == NOTE_CLOSE && cl->conn.thread) ioThreadsClose(cl);
    if (what == NOTE_RESUMES) release(cl);
}

/* True if the client goes to another thread instead of its own. */
static bool moves(client *cl) {
    ioThread *t = io.threads[cl->conn.thread - 1];
    if (likely(!t->moves) && !hostileMovesClient()) return false;
    if (t->moves) t->moves--;
    release(cl);
    cl->conn.notes |= NOTE_MOVES;
    return true;
}

void ioThreadsServe(client *cl) {
    hotCheck(threadIsMain());
    hotCheck(cl->conn.thread);
    session *s = &cl->session;
    if (s->flags & SESSION_IN_BATCH || clientIsAway(cl) || listHas(&cl->closing)) return;
    if (unlikely(engineHot.current != NULL) && sessionIsExecuting(s)) return;
    if (!mayBeGiven(cl)) {
        release(cl);
    } else if (!(s->flags & SESSION_PENDING) && !moves(cl)) {
        give(cl, 0, 0);
    }
}

/* The output of a client that is away, or that is given back with it; it is not empty. False: the
 * main thread has to write. */
static bool sendOutput(client *cl, size_t most) {
    session *s = &cl->session;
    size_t pending = outbufPending(&s->out);
    netStatistics *counted = &netMainThread()->counted;
    bool away = clientIsAway(cl);
    if (!away && (!mayBeGiven(cl) || s->flags & SESSION_IN_BATCH || listHas(&cl->closing) ||
                  (engineHot.current && sessionIsExecuting(s))))
        return false;
    if (pending > counted->recent_output_max) counted->recent_output_max = pending;
    if (!away) {
        give(cl, most, 0);
        (void)moves(cl); /* after it was written */
    } else if (unlikely(cl->conn.notes & NOTE_RELEASE)) {
        ioThreadsNote(cl, NOTE_OUTPUT); /* the thread must get no job after JOB_RELEASE */
    } else if (most) {
        pushWrite(io.threads[cl->conn.thread - 1], cl, most, 0);
    }
    return true;
}

bool ioThreadsWritePart(client *cl, size_t most) {
    hotCheck(threadIsMain());
    if (!clientIsAway(cl) && cl->session.flags & SESSION_CLOSE_SOON) return false;
    limitsRecount(cl);
    return limitsCheckOutput(cl) || sendOutput(cl, most);
}

void ioThreadsWrite(client *cl) {
    hotCheck(threadIsMain());
    session *s = &cl->session;
    size_t pending = outbufPending(&s->out);
    if (s->flags & SESSION_LENT) {
        ioThreadsNote(cl, NOTE_OUTPUT);
    } else if (clientIsAway(cl) && !pending) {
        if (s->flags & SESSION_CLOSE_SOON) clientCloseLater(cl);
    } else if (!cl->conn.thread || !pending || !sendOutput(cl, pending)) {
        if (unlikely(io.awaits) && pending) awaitSignals();
        writerWrite(cl);
        if (cl->conn.thread) ioThreadsServe(cl);
    }
}

/* ------------------------------------------------------------------ clients that come back */

/* The client is the main thread's. If it was to be written, the job has no effect. */
static void own(client *cl) {
    check(clientIsAway(cl));
    cl->owner = netMainThread();
    bool unwritten = cl->session.flags & SESSION_LENT;
    if (unlikely(unwritten)) sessionReturn(&cl->session);
    if (takeNotes(cl, NOTE_OUTPUT) || unwritten) sessionWantWrite(&cl->session);
}

static void handshakeBack(const spscItem *result) {
    client *cl = result->what;
    for (int i = 0; i < io.started; i++) {
        if (cl->owner == &io.threads[i]->net) io.threads[i]->handshakes--;
    }
    io.clients--;
    cl->owner = netMainThread();
    sessionReturn(&cl->session);
    uint8_t notes = takeNotes(cl, UINT8_MAX);
    if (result->number != ERR_AGAIN) io.counted.handshakes++;
    if (notes & NOTE_OUTPUT) sessionWantWrite(&cl->session);
    if (cl->session.flags & SESSION_CLOSE_NOW) clientCloseLater(cl);
    if (!listHas(&cl->closing))
        connReturnHandshake(&cl->conn, (status)result->number, result->code);
}

/* The client is at the main thread until it is given back. */
static void takeBack(client *cl) {
    own(cl);
    cl->conn.on_read = NULL;
    if (unlikely(cl->session.flags & SESSION_CLOSE_NOW)) clientCloseLater(cl);
}

/* Reads on. */
static void restart(client *cl) {
    if (listHas(&cl->closing)) return;
    if (cl->session.flags & (SESSION_IN_BATCH | SESSION_PAUSED | SESSION_CLOSE_SOON)) return;
    if (readerStart(cl) != OK) clientCloseLater(cl);
}

static void releasedBack(client *cl) {
    check(cl->conn.thread);
    ioThread *t = io.threads[cl->conn.thread - 1];
    uint8_t notes = takeNotes(cl, UINT8_MAX);
    t->clients--;
    io.clients--;
    cl->conn.thread = 0;
    if (clientIsAway(cl)) takeBack(cl);
    bool here = notes & NOTE_RESUMES || cl->session.flags & SESSION_IN_BATCH ||
                listHas(&cl->closing) || !io.active;
    if (notes & NOTE_MOVES && !here && mayBeGiven(cl)) {
        if (notes & NOTE_OUTPUT) sessionWantWrite(&cl->session);
        giveTo(idlestThread(), cl);
        return;
    }
    if (connAttach(&cl->conn, netLoop()) != OK) clientCloseLater(cl);
    if (listHas(&cl->closing)) {
        loopLimitSleep(netLoop(), 0); /* stage FREE */
        return;
    }
    if (notes & NOTE_OUTPUT) sessionWantWrite(&cl->session);
    if (notes & NOTE_RESUMES) readerResume(cl);
    restart(cl);
}

static void wroteBack(const spscItem *result) {
    client *cl = result->what;
    session *s = &cl->session;
    hotCheck(clientIsAway(cl));
    netStatistics *counted = &netMainThread()->counted;
    counted->writes++;
    io.counted.writes++;
    sessionReturn(s);
    if (unlikely(takeNotes(cl, NOTE_OUTPUT))) sessionWantWrite(s);
    if (s->flags & SESSION_CLOSE_NOW) return; /* it is coming back */
    if (result->number < 0 && result->code != EAGAIN) {
        clientFailed(cl, "Writing", strerror(result->code));
        return;
    }
    if (result->number > 0) {
        writerSent(cl, (size_t)result->number);
        counted->bytes_out += (uint64_t)result->number;
    }
    if (result->code == EAGAIN || !outbufPending(&s->out)) {
        writerEnd(cl);
    } else {
        limitsRecount(cl);
        if (!limitsCheckOutput(cl)) sessionWantWrite(s);
    }
}

/* Results of this kind may be processed before others that have arrived earlier: a client whose
 * output a thread has was away. */
static void processWritten(void) {
    for (size_t i = io.returned_at; i < io.returned_count; i++) {
        spscItem result = io.returned[i];
        if (result.kind != RESULT_WROTE) continue;
        io.returned[i].kind = RESULT_DONE;
        wroteBack(&result);
    }
}

void ioThreadsCountWritten(void) {
    ioThreadsSettle();
    processWritten();
}

void ioThreadsBeginWrites(void) {
    hotCheck(threadIsMain());
    io.awaits = false;
    for (int i = 0; i < io.started; i++) {
        io.threads[i]->wrote = false;
        __atomic_store_n(&io.threads[i]->bulk_max, engineBulkMax(), __ATOMIC_RELAXED);
    }
    if (likely(!deliverHasWaiting())) return;
    /* Messages to receivers whose former ones have been written meanwhile precede replies. */
    takeResults();
    processWritten();
}

static void readBack(const spscItem *result) {
    client *cl = result->what;
    takeBack(cl);
    if (listHas(&cl->closing)) return;
    if (result->kind == RESULT_READ) {
        if (result->number <= 0) {
            readerFailed(cl, (ssize_t)result->number, result->code);
        } else {
            io.counted.reads++;
            readerCount(cl, (ssize_t)result->number);
            readerRecord(cl);
            if (limitsCheckInput(cl)) return;
        }
    }
    restart(cl);
}

/* Its output can be written on. */
static void writableBack(client *cl) {
    check(connOnWrite(&cl->conn, NULL) == OK);
    sessionWantWrite(&cl->session);
}

static void batchBack(inputBatch *b) {
    hotCheck(b->run_count > 0);
    for (int i = 0; i < b->run_count; i++) {
        const inputRun *run = &b->runs[i];
        client *cl = run->cl;
        takeBack(cl);
        cl->session.flags |= SESSION_IN_BATCH;
        (void)takeNotes(cl, NOTE_RESUMES); /* its own buffer is in the run */
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
        client *cl = result.what;
        switch ((enum ioResult)result.kind) {
        case RESULT_BATCH: batchBack(result.what); break;
        case RESULT_READ:
        case RESULT_UNREAD: readBack(&result); break;
        case RESULT_WROTE: wroteBack(&result); break;
        case RESULT_WRITABLE: writableBack(cl); break;
        case RESULT_RELEASED: releasedBack(cl); break;
        case RESULT_HANDSHAKE: handshakeBack(&result); break;
        case RESULT_PAUSED: /* takeResults() */
        case RESULT_DONE: break;
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
    resumeThreads();
    takeResults();
    processResults();
    /* With little to execute one wake-up at the end of the turn suffices. */
    if (io.first && io.first->next) announceJobs();
    executeBatches();
}

/* Of a thread that has ended or was not started, and has no client. */
static void threadFree(ioThread *t) {
    spscItem spare;
    while (spscPop(&t->spare, &spare)) batchFree(spare.what);
    if (t->batch) batchFree(t->batch);
    spscFree(&t->jobs);
    spscFree(&t->results);
    spscFree(&t->spare);
    spscFree(&t->resume);
    loopFree(t->loop);
    sleeperFree(&t->rest);
    memFree(t->memory);
}

/* Ends threads that are not wanted any more and have no clients. */
static void endThreads(void) {
    hotCheck(!io.parked);
    while (io.started > io.wanted) {
        ioThread *t = io.threads[io.started - 1];
        if (t->clients || t->handshakes) return;
        io.started--;
        pushJob(t, &(spscItem){.kind = JOB_STOP});
        wakeThread(t);
        threadJoin(&t->os);
        threadFree(t);
    }
}

void ioThreadsBeforeSleep(void) {
    hotCheck(threadIsMain());
    resumeThreads();
    announceJobs();
    if (unlikely(io.started > io.wanted) && !io.returned_count && !io.parked) endThreads();
    bool all = io.noted > 0 || deliverHasWaiting();
    if (io.returned_count || !announceSleep(all ? MAIN_WAITS_FOR_ALL : MAIN_WAITS_FOR_REQUESTS))
        loopLimitSleep(netLoop(), 0);
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

/* Clients of the main thread's loop get the other callback for readable connections. */
static void setCallbacks(connProc *from, connProc *to) {
    readerSetProc(to);
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (cl->conn.thread || clientIsAway(cl) || listHas(&cl->closing)) continue;
        if (cl->conn.on_read != from) continue;
        if (connOnRead(&cl->conn, to) != OK) clientCloseLater(cl);
    }
}

/* Threads that are not active any more release their clients. */
static void releaseClients(void) {
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (cl->conn.thread > io.active) release(cl);
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
    releaseClients();
}

static ioThread *threadNew(int number, reason *why) {
    char *memory = memAlloc(sizeof(ioThread) + CACHE_LINE);
    ioThread *t = (ioThread *)(memory + (CACHE_LINE - (uintptr_t)memory % CACHE_LINE));
    *t = (ioThread){.memory = memory,
                    .net = {.read_bytes_max = netMainThread()->read_bytes_max},
                    .main_loop = netLoop(),
                    .main_sleep = &io.sleep,
                    .bulk_max = engineBulkMax(),
                    .number = (uint8_t)number,
                    .signal = ioSignals[number].at};
    spscInit(&t->jobs, JOBS_MAX);
    spscInit(&t->results, RESULTS_MAX);
    spscInit(&t->spare, BATCHES_MAX);
    spscInit(&t->resume, 1);
    sleeperInit(&t->rest);
    for (int i = 0; i < BATCHES_MAX; i++) {
        inputBatch *b = batchNew(BATCH_BYTES, REQUEST_BATCH_MAX);
        b->filled_by = t;
        check(spscPush(&t->spare, &(spscItem){.what = b}));
    }
    char name[24]; /* the kernel keeps 15 bytes */
    snprintf(name, sizeof(name), "io_thd_%d", number);
    /* The thread inherits the processors of the main thread, those of server-cpulist. */
    t->loop = loopNew(NULL, why);
    if (t->loop && threadStart(&t->os, name, "", ioWorkerRun, t, why) == OK) return t;
    threadFree(t);
    return NULL;
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
    if (count != io.wanted)
        logNotice("Changing number of IO threads from %d to %d.", io.wanted + 1, count + 1);
    io.wanted = count;
    if (io.active > count) setActive(count);
    status st = startThreads(count, why);
    if (st == OK && netConf.io_threads_always_active) setActive(count);
    return st;
}

void ioThreadsStop(void) {
    hotCheck(threadIsMain());
    io.wanted = 0;
    setActive(0);
    resumeThreads();
    while (io.clients) {
        /* ioThreadsSettle() may have taken the last results: threads without jobs give no more. */
        if (!io.returned_count) awaitResults();
        processResults();
    }
    for (inputBatch *b; (b = io.first) != NULL;) {
        io.first = b->next;
        requestBatchClear(&b->requests);
        batchFree(b);
    }
    io.last = NULL;
    endThreads();
}

/* ------------------------------------------------------------------ adaptation to the load */

/* Sums the time in which the threads have worked since the last call, in us. */
static int64_t workedUs(void) {
    uint64_t ticks = 0;
    for (int i = 0; i < io.started; i++) {
        ioThread *t = io.threads[i];
        uint64_t now = __atomic_load_n(&t->busy_ticks, __ATOMIC_RELAXED);
        t->worked_us = clockTicksToNs(now - t->busy_before) / 1000;
        ticks += now - t->busy_before;
        t->busy_before = now;
    }
    return clockTicksToNs(ticks) / 1000;
}

int ioThreadsToMove(int clients, int64_t busiest_us, int64_t idlest_us, int64_t period_us) {
    hotCheck(busiest_us >= idlest_us);
    enum { BUSY_PERCENT = 80, DIFFERENCE_PERCENT = 30 };
    int64_t difference_us = busiest_us - idlest_us;
    if (clients < 2 || busiest_us * 100 < period_us * BUSY_PERCENT) return 0;
    if (difference_us * 100 < period_us * DIFFERENCE_PERCENT) return 0;
    return (int)((clients * difference_us + busiest_us) / (2 * busiest_us));
}

/* Clients of the busiest thread move to the one that has had the least to do. */
static void balance(int64_t period_us) {
    hotCheck(period_us > 0);
    if (io.active < 2) return;
    ioThread *idlest = idlestThread(), *busiest = idlest;
    for (int i = 0; i < io.active; i++) {
        io.threads[i]->moves = 0;
        if (io.threads[i]->worked_us > busiest->worked_us) busiest = io.threads[i];
    }
    busiest->moves =
        ioThreadsToMove(busiest->clients, busiest->worked_us, idlest->worked_us, period_us);
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
    if (!io.wanted) return;
    int64_t wall_us = clockMonoUs();
    uint64_t busy_us = statsBusyUs();
    int64_t passed_us = wall_us - io.load.wall_us;
    int64_t main_us = (int64_t)(busy_us - io.load.busy_us), worked_us = workedUs();
    io.load.wall_us = wall_us;
    io.load.busy_us = busy_us;
    if (passed_us <= 0) return;
    balance(passed_us);
    if (netConf.io_threads_always_active) return;
    int wanted = threadsFor(io.active, main_us * 100 / passed_us, worked_us * 100 / passed_us);
    if (wanted > io.wanted) wanted = io.wanted;
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
        {"io_threaded_reads_processed", io.counted.reads},
        {"io_threaded_writes_processed", io.counted.writes},
        {"io_threaded_freed_objects", 0}, /* the main thread frees what it has allocated */
        {"io_threaded_accept_processed", io.counted.handshakes},
        {"io_threaded_poll_processed", 0}, /* Valkey's: of the main thread's descriptors */
        {"io_threaded_total_prefetch_batches", io.counted.prefetch_batches},
        {"io_threaded_total_prefetch_entries", io.counted.prefetch_entries},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        strAppendField(out, fields[i].name, fields[i].count);
    }
}

void ioThreadsResetStats(void) { memset(&io.counted, 0, sizeof(io.counted)); }
