/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a workload: starts the workers, shows the progress, collects the figures. */
#include "tools/benchmark/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/random.h"
#include "tools/benchmark/run_priv.h"

enum { NS_PER_MS = 1000000 };

static void failSystem(const char *what) {
    fprintf(stderr, "Error: %s\n", what);
    exit(1);
}

/* ------------------------------------------------------------------ progress */

static void sumWorkers(const run *r, int64_t *finished, int64_t *latency_us) {
    *finished = *latency_us = 0;
    for (int i = 0; i < r->worker_count; i++) {
        *finished += atomic_load_explicit(&r->workers[i].finished, memory_order_relaxed);
        *latency_us += atomic_load_explicit(&r->workers[i].latency_us, memory_order_relaxed);
    }
}

static void clearLine(run *r) {
    if (r->silent) return;
    printf("%*s\r", r->shown > 0 ? r->shown : 1, " ");
    fflush(stdout);
}

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static void showProgress(run *r, int64_t now_ns) {
    int64_t finished, latency_us;
    sumWorkers(r, &finished, &latency_us);
    double total_s = (double)(now_ns - r->start_ns) / 1e9,
           part_s = (double)(now_ns - r->shown_ns) / 1e9;
    double rate = ratio((double)(finished - r->shown_finished), part_s);
    if (part_s > 0.1 && r->result->rate_count < RATE_SAMPLES_MAX)
        r->result->rates[r->result->rate_count++] = rate;
    if (!r->silent) {
        bool warming = atomic_load(&r->phase) == 0;
        clearLine(r);
        r->shown = printf("%s%s: rps=%.1f (overall: %.1f) avg_msec=%.3f (overall: %.3f) ",
                          warming ? "Warming up " : "", r->load->title, rate,
                          ratio((double)finished, total_s),
                          ratio((double)(latency_us - r->shown_latency_us),
                                (double)(finished - r->shown_finished)) /
                              1000,
                          ratio((double)latency_us, (double)finished) / 1000);
        if (warming || r->options->duration_s > 0) {
            r->shown += printf("%.1f seconds\r", total_s);
        } else {
            r->shown += printf("%lld requests\r", (long long)finished);
        }
        fflush(stdout);
    }
    r->shown_ns = now_ns;
    r->shown_finished = finished;
    r->shown_latency_us = latency_us;
}

/* ------------------------------------------------------------------ phases */

static void beginMeasuring(run *r, int64_t now_ns) {
    for (int i = 0; i < r->worker_count; i++) {
        atomic_store(&r->workers[i].finished, 0);
        atomic_store(&r->workers[i].latency_us, 0);
    }
    r->start_ns = r->shown_ns = now_ns;
    r->shown_finished = r->shown_latency_us = 0;
    r->result->rate_count = 0;
    if (r->options->duration_s > 0)
        atomic_store(&r->end_ns, now_ns + (int64_t)r->options->duration_s * 1000 * NS_PER_MS);
    atomic_store(&r->phase, 1);
}

/* The nodes' slots have changed: reads them anew. Old maps are not freed, as threads may be reading
 * them. */
static void refreshSlots(run *r) {
    if (!atomic_exchange(&r->slots_changed, false)) return;
    target *fresh = memNew(target);
    if (targetRefreshSlots(r->target, fresh)) {
        atomic_store_explicit(&r->slots, fresh, memory_order_release);
    } else {
        memFree(fresh);
    }
}

/* Called every PROGRESS_MS. Returns ms until the next call. */
static int64_t tick(run *r) {
    int64_t now = clockMonoNs();
    int64_t warm_ns = (int64_t)r->options->warmup_s * 1000 * NS_PER_MS;
    if (atomic_load(&r->phase) == 0 && now - r->start_ns >= warm_ns) {
        showProgress(r, now);
        beginMeasuring(r, now);
    } else if (now - r->shown_ns >= PROGRESS_MS * NS_PER_MS / 2) {
        showProgress(r, now);
    }
    int64_t end_ns = atomic_load(&r->end_ns);
    if (end_ns > 0 && now >= end_ns) atomic_store(&r->stop, true);
    refreshSlots(r);
    int64_t next = PROGRESS_MS;
    int64_t border = atomic_load(&r->phase) == 0 ? r->start_ns + warm_ns : end_ns;
    if (border > 0 && (border - now) / NS_PER_MS < next) next = (border - now) / NS_PER_MS + 1;
    return next > 0 ? next : 1;
}

/* ------------------------------------------------------------------ workers */

static void closeWaiting(worker *w) {
    client *c;
    while ((c = paceRelease(w)) != NULL) clientClose(c);
}

/* Closes the clients that wait for their time when the run has ended. */
static int64_t workerTick(loop *l, uint64_t id, void *arg) {
    (void)l;
    (void)id;
    worker *w = arg;
    if (w->run->worker_count == 1 && !w->run->options->threads) {
        int64_t next = tick(w->run);
        if (atomic_load(&w->run->stop)) closeWaiting(w);
        return next;
    }
    if (atomic_load(&w->run->stop)) closeWaiting(w);
    return 10;
}

static void *workerMain(void *arg) {
    worker *w = arg;
    run *r = w->run;
    randomSeed(r->options->seed + (uint64_t)w->index);
    uint64_t timer = loopAddTimer(w->loop, 1, workerTick, w);
    w->active = w->client_count;
    for (int i = 0; i < w->client_count; i++) clientOpen(&w->clients[i]);
    if (w->client_count > 0) loopRun(w->loop);
    loopRemoveTimer(w->loop, timer);
    atomic_fetch_sub(&r->running, 1);
    return NULL;
}

static void workerInit(run *r, int index) {
    worker *w = &r->workers[index];
    const benchOptions *o = r->options;
    reason why;
    w->run = r;
    w->index = index;
    w->loop = loopNew(NULL, &why);
    if (!w->loop) failSystem(why.text);
    w->buffer = memAlloc(READ_SIZE);
    latencyInit(&w->latencies, r->result->latencies.unit_bits);
    w->client_count = o->clients / r->worker_count + (index < o->clients % r->worker_count);
    w->clients = memNewArray(client, (size_t)w->client_count);
    for (int i = 0; i < w->client_count; i++) {
        w->clients[i].owner = w;
        w->clients[i].node = &r->target->nodes[(index + i * r->worker_count) % r->target->count];
    }
    if (!paceInit(w, o->rate, clientSend)) failSystem("cannot create a timer");
}

static void workerClear(worker *w) {
    for (int i = 0; i < w->client_count; i++) {
        client *c = &w->clients[i];
        clientClose(c);
        memFree(c->request);
        memFree(c->rest);
        if (w->run->load && w->run->load->count > 1) memFree(c->classes);
    }
    paceClear(w);
    memFree(w->clients);
    memFree(w->buffer);
    loopFree(w->loop);
}

/* ------------------------------------------------------------------ runs */

static void runInit(run *r, const benchOptions *o, const target *t, const workload *w) {
    int threads = o->threads;
    /* A cluster is driven by a thread per node unless told otherwise. */
    if (o->cluster && threads == 0) threads = t->count;
    r->options = o;
    r->target = t;
    r->load = w;
    r->worker_count = threads > 0 ? threads : 1;
    r->batch = w ? o->pipeline * w->operations[0].commands : 1;
    r->result = memNew(runResult);
    latencyInit(&r->result->latencies,
                o->percentiles || o->open_loop ? LATENCY_UNIT_FINE : LATENCY_UNIT_VALKEY);
    keySourceInit(&r->keys, o);
    atomic_store(&r->slots, t);
    atomic_store(&r->phase, o->warmup_s > 0 ? 0 : 1);
    atomic_store(&r->running, r->worker_count);
    r->prefixes = memNewArray(char *, (size_t)t->count);
    r->prefix_lens = memNewArray(size_t, (size_t)t->count);
    r->prefix_commands = memNewArray(int, (size_t)t->count);
    for (int i = 0; i < t->count; i++)
        r->prefixes[i] = targetPrefix(o, &t->nodes[i], &r->prefix_lens[i], &r->prefix_commands[i]);
    int64_t now_ns = clockMonoNs();
    r->start_ns = r->shown_ns = now_ns;
    if (o->duration_s > 0 && o->warmup_s == 0)
        r->end_ns = now_ns + (int64_t)o->duration_s * 1000 * NS_PER_MS;
    r->workers = memNewArray(worker, (size_t)r->worker_count);
    for (int i = 0; i < r->worker_count; i++) workerInit(r, i);
}

static void runClear(run *r) {
    for (int i = 0; i < r->worker_count; i++) workerClear(&r->workers[i]);
    for (int i = 0; i < r->target->count; i++) memFree(r->prefixes[i]);
    memFree(r->workers);
    memFree(r->prefixes);
    memFree(r->prefix_lens);
    memFree(r->prefix_commands);
}

static void runThreads(run *r) {
    for (int i = 0; i < r->worker_count; i++) {
        if (pthread_create(&r->workers[i].thread, NULL, workerMain, &r->workers[i]) != 0)
            failSystem("cannot create a thread");
    }
    int64_t next = tick(r);
    while (atomic_load(&r->running) > 0) {
        /* Short steps, so that the end of a run is seen soon. */
        int64_t step = next < 5 ? next : 5;
        clockSleepUs(step * 1000);
        next -= step;
        if (next <= 0) next = tick(r);
    }
    for (int i = 0; i < r->worker_count; i++) pthread_join(r->workers[i].thread, NULL);
}

runResult *runWorkload(const benchOptions *o, const target *t, const workload *w, bool silent) {
    run *r = memNew(run);
    r->silent = silent || o->csv || !isatty(STDOUT_FILENO);
    runInit(r, o, t, w);
    showProgress(r, r->start_ns);
    if (o->threads > 0 || r->worker_count > 1) {
        runThreads(r);
    } else {
        workerMain(&r->workers[0]);
    }
    int64_t end = clockMonoNs(), latency_us;
    clearLine(r);
    runResult *result = r->result;
    sumWorkers(r, &result->requests, &latency_us);
    for (int i = 0; i < r->worker_count; i++)
        latencyAdd(&result->latencies, &r->workers[i].latencies);
    result->elapsed_ms = (end - r->start_ns) / NS_PER_MS;
    result->seconds = (double)(end - r->start_ns) / 1e9;
    runClear(r);
    memFree(r);
    return result;
}

/* ------------------------------------------------------------------ idle mode */

static int64_t showIdle(loop *l, uint64_t id, void *arg) {
    (void)l;
    (void)id;
    run *r = arg;
    int64_t open, unused;
    sumWorkers(r, &open, &unused);
    printf("%*s\rclients: %lld\r", r->shown > 0 ? r->shown : 1, " ", (long long)open);
    r->shown = 20;
    fflush(stdout);
    return PROGRESS_MS;
}

void runIdle(const benchOptions *o, const target *t) {
    benchOptions single = *o;
    single.threads = 0;
    single.cluster = false;
    single.rate = 0;
    printf("Creating %d idle connections and waiting forever (Ctrl+C when done)\n", o->clients);
    run *r = memNew(run);
    runInit(r, &single, t, NULL);
    worker *w = &r->workers[0];
    loopAddTimer(w->loop, 1, showIdle, r);
    w->active = w->client_count;
    for (int i = 0; i < w->client_count; i++) clientOpen(&w->clients[i]);
    loopRun(w->loop);
}
