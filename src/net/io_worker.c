/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an I/O thread does: watches clients, reads and parses into batches, writes.
 *
 * It touches the connection and the input of a client that is its own (IN_MINE), reads its output
 * during JOB_WRITE, and nothing else: not the flags of the session, which the main thread changes
 * meanwhile. Bytes that were written are removed from the output by the main thread, so that values
 * lent to it and blocks are freed by their owner. It reads const tables of commands, and no key.
 *
 * Invariants: a client that is in a batch or in a result with which it goes to the main thread has
 * no IN_MINE until it is given back; what the loop reports meanwhile is noted (IN_READY). Results
 * are in the order in which the thread has done its jobs and read. Runs on I/O threads only. */
#include <errno.h>
#include <sched.h>

#include "base/base.h"
#include "net/io_threads_priv.h"

enum { WRITE_IOVECS = 64 };

static __thread ioThread *self;
ioSignal ioSignals[IO_THREADS_MAX];

/* Wakes the main thread if it sleeps and waits for one of the results. */
static void wakeMain(ioThread *t) {
    t->writes = 0;
    uint32_t for_these = t->urgent ? MAIN_WAITS_FOR_REQUESTS : MAIN_WAITS_FOR_ALL;
    spscPublish(&t->results);
    if (__atomic_load_n(t->main_sleep, __ATOMIC_SEQ_CST) < for_these) return;
    if (__atomic_exchange_n(t->main_sleep, MAIN_AWAKE, __ATOMIC_SEQ_CST) != MAIN_AWAKE)
        loopWake(t->main_loop);
}

static void giveResult(ioThread *t, const spscItem *result) {
    while (unlikely(!spscPush(&t->results, result))) {
        t->urgent = true;
        wakeMain(t);
        sched_yield();
    }
}

/* Passes the batch to the main thread, if it holds something. */
static void giveBatch(ioThread *t) {
    if (!t->batch || !t->batch->run_count) return;
    giveResult(t, &(spscItem){.what = t->batch, .kind = RESULT_BATCH});
    t->batch = NULL;
    t->urgent = true;
}

/* The client goes to the main thread. */
static void giveClient(ioThread *t, client *cl, const spscItem *result) {
    hotCheck(result->what == cl);
    cl->conn.in_thread &= (uint8_t)~IN_MINE;
    giveResult(t, result);
    t->urgent = true;
}

/* A batch with space for one more client; NULL if the main thread has them all. */
static inputBatch *batchWithSpace(ioThread *t) {
    if (t->batch && !batchHasSpace(t->batch, t->net.read_bytes_max)) giveBatch(t);
    if (t->batch) return t->batch;
    spscItem spare;
    if (!spscPop(&t->spare, &spare)) return NULL;
    t->batch = spare.what;
    return t->batch;
}

/* After a read: whether the next one may find bytes, although the loop will report none. */
static void noteRest(client *cl, bool more) {
    conn *c = &cl->conn;
    if (more || c->unread || c->in_thread & IN_ENDED) {
        c->in_thread |= IN_READY;
    } else {
        c->in_thread &= (uint8_t)~IN_READY;
    }
    c->unread = false;
}

static void serveRead(ioThread *t, client *cl) {
    hotCheck(netThreadIsCurrent(cl->owner));
    inputBatch *b = batchWithSpace(t);
    if (!b) {
        cl->conn.in_thread |= IN_READY;
        giveClient(t, cl, &(spscItem){.what = cl, .kind = RESULT_UNREAD});
        return;
    }
    receivedInput in = {.more = false};
    ssize_t n = batchReceive(b, cl, t->net.read_bytes_max, false, &in);
    int error = n < 0 ? errno : 0;
    noteRest(cl, in.more);
    if (error == EAGAIN && !(cl->conn.in_thread & IN_READY)) return;
    if (n <= 0 || !in.len) {
        giveClient(t, cl, &(spscItem){.what = cl, .number = n, .code = error, .kind = RESULT_READ});
        return;
    }
    requestLimits limits = {.bulk_max = __atomic_load_n(&t->bulk_max, __ATOMIC_RELAXED),
                            .multibulk_max = INT32_MAX,
                            .authenticated = cl->conn.in_thread & IN_TRUSTED};
    inputRun *run = batchAddRun(b, cl, in.buf, in.len);
    run->received = (size_t)n;
    batchParse(b, run, &limits);
    cl->conn.in_thread &= (uint8_t)~IN_MINE;
    bool next_fits = b->requests.count + run->count <= b->request_max;
    if (b->run_count < BATCH_RUNS && next_fits) return;
    giveBatch(t);
    wakeMain(t);
}

/* Called by the loop. */
static void readable(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd;
    client *cl = arg;
    cl->conn.in_thread |= (uint8_t)(mask & LOOP_HANGUP ? IN_READY | IN_ENDED : IN_READY);
    if (cl->conn.in_thread & IN_MINE) serveRead(self, cl);
}

/* Called by the loop. The main thread, which has the output, continues. */
static void writable(loop *l, int fd, void *arg, int mask) {
    (void)mask;
    loopUnwatch(l, fd, LOOP_WRITE);
    giveResult(self, &(spscItem){.what = arg, .kind = RESULT_WRITABLE});
    self->urgent = true;
}

static status waitWritable(ioThread *t, client *cl) {
    return loopWatch(t->loop, cl->conn.fd, LOOP_WRITE, writable, cl);
}

static void serveWrite(ioThread *t, client *cl, size_t most) {
    hotCheck(most > 0);
    hotCheck(netThreadIsCurrent(cl->owner));
    struct iovec iov[WRITE_IOVECS];
    int count = outbufIovecs(&cl->session.out, iov, WRITE_IOVECS);
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += iov[i].iov_len;
    if (unlikely(sum > most)) {
        count = writerLimitIovecs(iov, count, most);
        sum = most;
    }
    ssize_t n = connWritev(&cl->conn, iov, count);
    int32_t code = n < 0 ? errno : (size_t)n < sum ? EAGAIN : 0;
    if (code == EAGAIN && waitWritable(t, cl) != OK) code = EIO;
    /* The main thread continues with what is left. */
    if (n < 0 || (size_t)n < outbufPending(&cl->session.out)) t->urgent = true;
    giveResult(t, &(spscItem){.what = cl, .number = n, .code = code, .kind = RESULT_WROTE});
    if (++t->writes == WRITES_TOGETHER) wakeMain(t);
}

/* False with errno: the loop cannot watch it. */
static bool takeClient(ioThread *t, client *cl, int given) {
    conn *c = &cl->conn;
    status st = OK;
    if (given & GIVEN_NEW) {
        c->in_thread = 0;
        st = loopWatch(t->loop, c->fd, LOOP_READ, readable, cl);
        if (st == OK) st = loopSetEdge(t->loop, c->fd, true);
    }
    if (st == OK && given & GIVEN_WRITABLE) st = waitWritable(t, cl);
    c->in_thread &= (uint8_t)~IN_TRUSTED;
    c->in_thread |= (uint8_t)(given & GIVEN_TRUSTED ? IN_MINE | IN_TRUSTED : IN_MINE);
    if (c->unread) noteRest(cl, false);
    return st == OK;
}

/* JOB_WATCH and JOB_WRITE. */
static void serveClient(ioThread *t, const spscItem *job) {
    client *cl = job->what;
    int error = 0;
    if (job->code & GIVEN) {
        if (!takeClient(t, cl, job->code)) error = errno;
    } else if (!(cl->conn.in_thread & IN_MINE)) {
        return; /* the main thread knows when it takes the client */
    }
    if (job->kind == JOB_WRITE) serveWrite(t, cl, (size_t)job->number);
    if (unlikely(error)) {
        giveClient(t, cl,
                   &(spscItem){.what = cl, .number = -1, .code = error, .kind = RESULT_READ});
    } else if (cl->conn.in_thread & IN_READY) {
        serveRead(t, cl);
    }
}

static void serveRelease(ioThread *t, client *cl) {
    hotCheck(!threadIsMain());
    if (!(cl->conn.in_thread & IN_MINE)) giveBatch(t); /* which may hold it */
    loopUnwatch(t->loop, cl->conn.fd, LOOP_READ | LOOP_WRITE);
    giveClient(t, cl, &(spscItem){.what = cl, .kind = RESULT_RELEASED});
}

static void serveHandshake(ioThread *t, client *cl) {
    hotCheck(netThreadIsCurrent(cl->owner));
    int wants = 0;
    status st = connStepHandshake(&cl->conn, &wants);
    giveResult(t, &(spscItem){.what = cl, .number = st, .code = wants, .kind = RESULT_HANDSHAKE});
    t->urgent = true;
    wakeMain(t); /* it took long enough for a wake-up of its own */
}

static void servePause(ioThread *t) {
    hotCheck(!threadIsMain());
    giveBatch(t);
    giveResult(t, &(spscItem){.kind = RESULT_PAUSED});
    t->urgent = true;
    wakeMain(t);
    spscItem item;
    while (!spscPop(&t->resume, &item)) sleeperWait(&t->rest, &t->resume);
}

/* Writes of other threads come first. Each of them was given its job before this one, and waits for
 * no later one, so the wait ends. */
static void serveAwait(ioThread *t, const spscItem *job) {
    const uint64_t *at = &ioSignals[job->code].at;
    if (__atomic_load_n(at, __ATOMIC_ACQUIRE) >= (uint64_t)job->number) return;
    giveBatch(t);
    wakeMain(t);
    while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < (uint64_t)job->number) sched_yield();
}

/* False: the thread ends. */
static bool serveJobs(ioThread *t) {
    for (spscItem job; spscPop(&t->jobs, &job);) {
        switch ((enum ioJob)job.kind) {
        case JOB_WATCH:
        case JOB_WRITE: serveClient(t, &job); break;
        case JOB_RELEASE: serveRelease(t, job.what); break;
        case JOB_HANDSHAKE: serveHandshake(t, job.what); break;
        case JOB_PAUSE: servePause(t); break;
        case JOB_STOP: return false;
        case JOB_SIGNAL:
            __atomic_store_n(&ioSignals[t->number].at, (uint64_t)job.number, __ATOMIC_RELEASE);
            break;
        case JOB_AWAIT: serveAwait(t, &job); break;
        }
    }
    return true;
}

/* Called by the loop before it waits. */
static void beforeSleep(loop *l, void *arg) {
    ioThread *t = arg;
    giveBatch(t);
    wakeMain(t);
    t->urgent = false;
    uint64_t now = clockTicks();
    __atomic_store_n(&t->busy_ticks, t->busy_ticks + (now - t->since), __ATOMIC_RELAXED);
    __atomic_store_n(&t->asleep, 1, __ATOMIC_SEQ_CST);
    if (spscHasItems(&t->jobs)) loopLimitSleep(l, 0);
}

static void afterSleep(loop *l, void *arg) {
    (void)l;
    ioThread *t = arg;
    __atomic_store_n(&t->asleep, 0, __ATOMIC_RELAXED);
    t->since = clockTicks();
}

void *ioWorkerRun(void *arg) {
    ioThread *t = arg;
    self = t;
    netThreadEnter(&t->net);
    t->since = clockTicks();
    loopSetBeforeSleep(t->loop, beforeSleep, t);
    loopSetAfterSleep(t->loop, afterSleep, t);
    while (serveJobs(t)) loopTurn(t->loop, true);
    return NULL;
}
