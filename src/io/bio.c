/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Background jobs, with one queue, lock and thread per kind.
 *
 * Invariant: jobs[first .. first + waiting) (modulo cap) are the waiting jobs in order; pending =
 * waiting + the running one. Submitting costs a lock and a signal. Jobs are submitted by the main
 * thread and run by the workers. */
#include "io/bio.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "io/message_pipe.h"
#include "io/thread.h"

typedef struct bioJob {
    bioProc *proc;     /* or: */
    bioTaskProc *task; /* `done` is called with the result */
    bioDoneProc *done;
    void *arg;
} bioJob;

/* A task that has ended. */
typedef struct bioEnd {
    struct bioEnd *next;
    bioDoneProc *done;
    void *arg;
    int error;
} bioEnd;

static struct {
    pthread_mutex_t lock;
    bioEnd *first, **last; /* in order of completion */
    messagePipe wake;      /* wakes the loop; one message per batch of ends */
    loop *loop;
} ended = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &ended.first, .wake = {-1, -1, {0}, 0}};

typedef struct bioQueue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job was added or is done, or stop was set */
    bioJob *jobs;
    size_t cap;
    size_t first;
    size_t waiting;
    size_t pending;
    bool stop;
    thread worker;
} bioQueue;

#define NEW_QUEUE \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }

static bioQueue queues[BIO_KINDS] = {NEW_QUEUE, NEW_QUEUE, NEW_QUEUE, NEW_QUEUE,
                                     NEW_QUEUE, NEW_QUEUE, NEW_QUEUE};
static const char *const names[BIO_KINDS] = {"bio_close_file", "bio_fsync",   "bio_lazy_free",
                                             "bio_read",       "bio_resolve", "bio_append",
                                             "bio_replace"};
static char *worker_cpus;

void bioInit(const char *cpus) {
    memFree(worker_cpus);
    worker_cpus = memDup(cpus, strlen(cpus));
}

/* Runs a job: on the worker, or in the foreground. */
static void runJob(const bioJob *job) {
    if (!job->task) {
        job->proc(job->arg);
        return;
    }
    bioEnd *end = memNew(bioEnd);
    end->done = job->done;
    end->arg = job->arg;
    end->error = job->task(job->arg);
    pthread_mutex_lock(&ended.lock);
    bool first = !ended.first;
    hotCheck(first == (ended.last == &ended.first));
    *ended.last = end;
    ended.last = &end->next;
    /* One message per batch, so the pipe cannot fill up. */
    if (first && ended.wake.write_fd >= 0) check(messagePipeSend(&ended.wake, 0, SLICE("")) == OK);
    pthread_mutex_unlock(&ended.lock);
}

void bioComplete(void) {
    pthread_mutex_lock(&ended.lock);
    bioEnd *end = ended.first;
    hotCheck(!end == (ended.last == &ended.first));
    ended.first = NULL;
    ended.last = &ended.first;
    pthread_mutex_unlock(&ended.lock);
    while (end) {
        bioEnd *next = end->next;
        end->done(end->arg, end->error);
        memFree(end);
        end = next;
    }
}

static void endsReadable(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)fd, (void)arg, (void)mask;
    uint32_t kind;
    slice nothing;
    while (messagePipeReceive(&ended.wake, &kind, &nothing)) {}
    bioComplete();
}

void bioAttach(loop *l) {
    if (ended.wake.read_fd >= 0) {
        loopUnwatch(ended.loop, ended.wake.read_fd, LOOP_READ);
        pthread_mutex_lock(&ended.lock);
        messagePipeClose(&ended.wake);
        pthread_mutex_unlock(&ended.lock);
    }
    ended.loop = l;
}

/* Opens, for the first task, the pipe that wakes the loop. */
static bool openWake(void) {
    reason why;
    if (!ended.loop || ended.wake.read_fd >= 0) return true;
    messagePipe wake;
    status st = messagePipeOpen(&wake, &why);
    if (st == OK) {
        messagePipeSetNonblocking(&wake);
        st = loopWatch(ended.loop, wake.read_fd, LOOP_READ, endsReadable, NULL);
        if (st != OK) (void)reasonSet(&why, st, "the loop cannot watch it");
    }
    if (st != OK) {
        logWarning("Background jobs run in the foreground: %s", why.text);
        messagePipeClose(&wake);
        return false;
    }
    pthread_mutex_lock(&ended.lock);
    ended.wake = wake;
    pthread_mutex_unlock(&ended.lock);
    return true;
}

static int64_t completeSoon(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id, (void)arg;
    bioComplete();
    return LOOP_TIMER_END;
}

/* Runs jobs until `stop` is set and no job is left. */
static void *workerProc(void *arg) {
    bioQueue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->waiting && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
        if (!q->waiting) break;
        hotCheck(q->first < q->cap);
        bioJob job = q->jobs[q->first];
        q->first = (q->first + 1) % q->cap;
        q->waiting--;
        hotCheck(q->pending == q->waiting + 1);
        pthread_mutex_unlock(&q->lock);
        runJob(&job);
        pthread_mutex_lock(&q->lock);
        q->pending--;
        hotCheck(q->pending == q->waiting);
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Makes space for one more job; afterwards the first job is at index 0. */
static void queueGrow(bioQueue *q) {
    hotCheck(q->waiting == q->cap);
    size_t cap = q->cap ? q->cap * 2 : 16;
    bioJob *jobs = memNewArray(bioJob, cap);
    for (size_t i = 0; i < q->waiting; i++) jobs[i] = q->jobs[(q->first + i) % q->cap];
    memFree(q->jobs);
    q->jobs = jobs;
    q->cap = cap;
    q->first = 0;
}

static void submit(bioKind kind, const bioJob *job) {
    check(kind < BIO_KINDS);
    bioQueue *q = &queues[kind];
    if (!q->worker.running) {
        reason why = {{0}};
        if (threadStart(&q->worker, names[kind], worker_cpus, workerProc, q, &why) != OK) {
            /* Without a worker the job runs here. No job is pending, so the order is kept. */
            logWarning("Background job runs in the foreground: %s", why.text);
            runJob(job);
            return;
        }
    }
    pthread_mutex_lock(&q->lock);
    if (q->waiting == q->cap) queueGrow(q);
    q->jobs[(q->first + q->waiting) % q->cap] = *job;
    q->waiting++;
    q->pending++;
    hotCheck(q->waiting <= q->cap);
    hotCheck(q->pending - q->waiting <= 1);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void bioSubmit(bioKind kind, bioProc *proc, void *arg) {
    submit(kind, &(bioJob){.proc = proc, .arg = arg});
}

void bioSubmitTask(bioKind kind, bioTaskProc *task, bioDoneProc *done, void *arg) {
    bioJob job = {.task = task, .done = done, .arg = arg};
    if (openWake()) {
        submit(kind, &job);
    } else {
        bioDrain(kind); /* the order of the kind holds */
        runJob(&job);
        (void)loopAddTimer(ended.loop, 0, completeSoon, NULL); /* runs once */
    }
}

size_t bioPending(bioKind kind) {
    check(kind < BIO_KINDS);
    bioQueue *q = &queues[kind];
    pthread_mutex_lock(&q->lock);
    size_t pending = q->pending;
    pthread_mutex_unlock(&q->lock);
    return pending;
}

void bioDrain(bioKind kind) {
    check(kind < BIO_KINDS);
    bioQueue *q = &queues[kind];
    pthread_mutex_lock(&q->lock);
    while (q->pending) pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void bioShutdown(void) {
    for (int kind = 0; kind < BIO_KINDS; kind++) {
        bioQueue *q = &queues[kind];
        pthread_mutex_lock(&q->lock);
        q->stop = true;
        pthread_cond_broadcast(&q->changed);
        pthread_mutex_unlock(&q->lock);
        threadJoin(&q->worker);
        check(q->pending == 0);
        memFree(q->jobs);
        q->jobs = NULL;
        q->cap = q->first = 0;
        q->stop = false;
    }
    bioComplete();
    bioAttach(NULL);
    memFree(worker_cpus);
    worker_cpus = NULL;
}
