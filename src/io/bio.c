/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Background jobs, with one queue, lock and thread per kind.
 *
 * Invariant: jobs[first .. first + waiting) (modulo cap) are the waiting jobs in order; pending = waiting +
 * the running one. Submitting costs a lock and a signal. Jobs are submitted by the main thread and run by the
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

static bioQueue queues[BIO_KINDS] = {NEW_QUEUE, NEW_QUEUE, NEW_QUEUE};
static const char *const names[BIO_KINDS] = {"bio_close_file", "bio_fsync", "bio_lazy_free"};
static char *worker_cpus;

void bioInit(const char *cpus) {
    memFree(worker_cpus);
    worker_cpus = memDup(cpus, strlen(cpus));
}

/* Runs jobs until `stop` is set and no job is left. */
static void *workerProc(void *arg) {
    bioQueue *q = arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->waiting && !q->stop) pthread_cond_wait(&q->changed, &q->lock);
        if (!q->waiting) break;
        bioJob job = q->jobs[q->first];
        q->first = (q->first + 1) % q->cap;
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

/* Makes space for one more job; afterwards the first job is at index 0. */
static void queueGrow(bioQueue *q) {
    size_t cap = q->cap ? q->cap * 2 : 16;
    bioJob *jobs = memNewArray(bioJob, cap);
    for (size_t i = 0; i < q->waiting; i++) jobs[i] = q->jobs[(q->first + i) % q->cap];
    memFree(q->jobs);
    q->jobs = jobs;
    q->cap = cap;
    q->first = 0;
}

void bioSubmit(bioKind kind, bioProc *proc, void *arg) {
    check(kind < BIO_KINDS);
    bioQueue *q = &queues[kind];
    if (!q->worker.running) {
        reason why = {{0}};
        if (threadStart(&q->worker, names[kind], worker_cpus, workerProc, q, &why) != OK) {
            /* Without a worker the job runs here. Nothing is pending, so the order is kept. */
            logWarning("Background job runs in the foreground: %s", why.text);
            proc(arg);
            return;
        }
    }
    pthread_mutex_lock(&q->lock);
    if (q->waiting == q->cap) queueGrow(q);
    q->jobs[(q->first + q->waiting) % q->cap] = (bioJob){proc, arg};
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
        q->cap = q->first = 0;
        q->stop = false;
    }
    memFree(worker_cpus);
    worker_cpus = NULL;
}
