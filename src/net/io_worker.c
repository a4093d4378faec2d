/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an I/O thread does with the clients that it is lent: reads and parses into a batch, or
 * writes.
 *
 * It touches the connection and the input of a client, reads its output, and nothing else: not the
 * flags of the session, which the main thread changes meanwhile. Bytes that were written are
 * removed from the output by the main thread, so that values lent to it and blocks are freed by
 * their owner. It reads const tables of commands, and no key. Runs on I/O threads only. */
#include <errno.h>

#include "base/base.h"
#include "net/io_threads_priv.h"

enum { WRITE_IOVECS = 64 };

static void giveResult(ioThread *t, const spscItem *result) {
    check(spscPush(&t->results, result)); /* there is space for all that was lent */
}

/* Wakes the main thread if it sleeps and waits for one of the results. */
static void wakeMain(ioThread *t) {
    t->writes = 0;
    uint32_t for_these = t->urgent ? MAIN_WAITS_FOR_REQUESTS : MAIN_WAITS_FOR_ALL;
    spscPublish(&t->results);
    if (__atomic_load_n(t->main_sleep, __ATOMIC_SEQ_CST) < for_these) return;
    if (__atomic_exchange_n(t->main_sleep, MAIN_AWAKE, __ATOMIC_SEQ_CST) != MAIN_AWAKE)
        loopWake(t->main_loop);
}

/* Passes the batch to the main thread, if it holds something. */
static void giveBatch(ioThread *t) {
    if (!t->batch || !t->batch->run_count) return;
    giveResult(t, &(spscItem){.what = t->batch, .kind = RESULT_BATCH});
    t->batch = NULL;
    t->urgent = true;
    hotCheck(!t->batch || t->batch->run_count == 0);
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

static void serveRead(ioThread *t, const spscItem *job) {
    client *cl = job->what;
    hotCheck(netThreadIsCurrent(cl->owner));
    inputBatch *b = batchWithSpace(t);
    if (!b) {
        giveResult(t, &(spscItem){.what = cl, .kind = RESULT_UNREAD});
        t->urgent = true;
        return;
    }
    receivedInput in;
    bool keep = job->code & READ_KEEP;
    ssize_t n = batchReceive(b, cl, t->net.read_bytes_max, keep, &in);
    if (n <= 0 || keep || !in.len) {
        int32_t code = n < 0 ? errno : n > 0 ? in.more : 0;
        giveResult(t, &(spscItem){.what = cl, .number = n, .code = code, .kind = RESULT_READ});
        t->urgent = true;
        return;
    }
    requestLimits limits = {.bulk_max = job->number,
                            .multibulk_max = INT32_MAX,
                            .authenticated = job->code & READ_AUTHENTICATED};
    inputRun *run = batchAddRun(b, cl, in.buf, in.len);
    run->received = (size_t)n;
    run->more = in.more;
    batchParse(b, run, &limits);
    bool next_fits = b->requests.count + run->count <= b->request_max;
    if (b->run_count < BATCH_RUNS && next_fits) return;
    giveBatch(t);
    wakeMain(t);
}

static void serveWrite(ioThread *t, const spscItem *job) {
    client *cl = job->what;
    hotCheck(netThreadIsCurrent(cl->owner));
    struct iovec iov[WRITE_IOVECS];
    int count = outbufIovecs(&cl->session.out, iov, WRITE_IOVECS);
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += iov[i].iov_len;
    ssize_t n = connWritev(&cl->conn, iov, count);
    if (n < 0 || (size_t)n < outbufPending(&cl->session.out)) t->urgent = true;
    /* EAGAIN after some bytes: the connection took no more. */
    int32_t code = n < 0 ? errno : (size_t)n < sum ? EAGAIN : 0;
    giveResult(t, &(spscItem){.what = cl, .number = n, .code = code, .kind = RESULT_WROTE});
    if (++t->writes == WRITES_TOGETHER) wakeMain(t);
}

static void serveHandshake(ioThread *t, const spscItem *job) {
    client *cl = job->what;
    hotCheck(netThreadIsCurrent(cl->owner));
    int wants = 0;
    status st = connStepHandshake(&cl->conn, &wants);
    giveResult(t, &(spscItem){.what = cl, .number = st, .code = wants, .kind = RESULT_HANDSHAKE});
    t->urgent = true;
    wakeMain(t); /* it took long enough for a wake-up of its own */
}

static void rest(ioThread *t, uint64_t *since) {
    giveBatch(t);
    wakeMain(t);
    t->urgent = false;
    uint64_t now = clockTicks();
    __atomic_store_n(&t->busy_ticks, t->busy_ticks + (now - *since), __ATOMIC_RELAXED);
    sleeperWait(&t->rest, &t->jobs);
    *since = clockTicks();
}

void *ioWorkerRun(void *arg) {
    ioThread *t = arg;
    netThreadEnter(&t->net);
    uint64_t since = clockTicks();
    for (;;) {
        spscItem job;
        if (!spscPop(&t->jobs, &job)) {
            rest(t, &since);
        } else if (job.kind == JOB_READ) {
            serveRead(t, &job);
        } else if (job.kind == JOB_WRITE) {
            serveWrite(t, &job);
        } else if (job.kind == JOB_HANDSHAKE) {
            serveHandshake(t, &job);
        } else {
            return NULL;
        }
    }
}
