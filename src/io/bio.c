/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Background jobs. One queue, lock and thread per kind.
 *
 * Invariant: jobs[first .. first + waiting) (mod room) wait, in order; pending = waiting + the
 * one that runs. Submitting costs a lock and a signal. Submitted by the main thread, run by the
 * workers. */
#include "io/bio.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "io/thread.h"

typedef struct bioJob {
    bioProc *proc;
    void *arg;
} bioJob;

typedef struct bioQueue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job came, a job is done, or stop */
    bioJob *jobs;
    size_t room;
    size_t first;
    size_t waiting;
    size_t pending;
    bool stop;
    thread worker;
} bioQueue;

#define NEW_QUEUE \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }

static bioQueue queues[BIO_KINDS] = {NEW_QUEUE, NEW_QUEUE, NEW_QUEUE};
static const char *const names[BIO_KINDS] = {"bio_close_file", "bio_fsync", "bio_lazy_free"};
static char *worker_cpus;

void bioInit(const char *cpus) {
    memFree(worker_cpus);
    worker_cpus = memDup(cpus, strlen(cpus));
}

/* Runs jobs until told to stop and none is left. */
static void *workerProc(void *arg) {
    bioQueue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->waiting && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
        if (!q->waiting) break;
        bioJob job = q->jobs[q->first];
        q->first = (q->first + 1) % q->room;
        q->waiting--;
        pthread_mutex_unlock(&q->lock);
        job.proc(job.arg);
        pthread_mutex_lock(&q->lock);
        q->pending--;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Makes room for one more; the queue comes out straightened. */
static void queueGrow(bioQueue *q) {
    size_t room = q->room ? q->room * 2 : 16;
    bioJob *jobs = memNewArray(bioJob, room);
    for (size_t i = 0; i < q->waiting; i++) jobs[i] = q->jobs[(q->first + i) % q->room];
    memFree(q->jobs);
    q->jobs = jobs;
    q->room = room;
    q->first = 0;
}

void bioSubmit(bioKind kind, bioProc *proc, void *arg) {
    check(kind < BIO_KINDS);
    bioQueue *q = &queues[kind];
    if (!q->worker.running) {
        reason why = {{0}};
        if (threadStart(&q->worker, names[kind], worker_cpus, workerProc, q, &why) != OK) {
            /* Slow is better than never; nothing is pending, so the order holds. */
            logWarning("Background job runs in the foreground: %s", why.text);
            proc(arg);
            return;
        }
    }
    pthread_mutex_lock(&q->lock);
    if (q->waiting == q->room) queueGrow(q);
    q->jobs[(q->first + q->waiting) % q->room] = (bioJob){proc, arg};
    q->waiting++;
    q->pending++;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
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
        q->room = q->first = 0;
        q->stop = false;
    }
    memFree(worker_cpus);
    worker_cpus = NULL;
}
