/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of scripts to run (scripts.h). A script that fails is tried again after a growing
 * delay.
 *
 * Invariant: at most SCRIPTS_RUNNING_MAX jobs run. A job is not started while an earlier one of the
 * same path runs; a job that is tried again may run beside a later one. */
#include "monitor/scripts.h"

#include "base/base.h"

void scriptsInit(scriptQueue *q) {
    *q = (scriptQueue){0};
    listInit(&q->jobs);
}

static void freeJob(scriptQueue *q, scriptJob *job) {
    check(!job->running);
    listRemove(&q->jobs, &job->node);
    for (int i = 0; i < job->count; i++) strFree(&job->args[i]);
    memFree(job);
}

void scriptsClear(scriptQueue *q) {
    for (listNode *at; (at = listFirst(&q->jobs)) != NULL;) {
        scriptJob *job = CONTAINER_OF(at, scriptJob, node);
        job->running = false;
        freeJob(q, job);
    }
    q->running = 0;
}

static void dropOldest(scriptQueue *q) {
    hotCheck(q->jobs.count > 0);
    for (listNode *at = listFirst(&q->jobs); at; at = listNext(&q->jobs, at)) {
        scriptJob *job = CONTAINER_OF(at, scriptJob, node);
        if (job->running) continue;
        freeJob(q, job);
        return;
    }
}

void scriptsAdd(scriptQueue *q, slice path, int count, const slice *args) {
    check(count < SCRIPTS_ARGS_MAX);
    if (q->jobs.count >= SCRIPTS_QUEUED_MAX) dropOldest(q);
    scriptJob *job = memNew(scriptJob);
    job->args[job->count++] = strNew(path);
    for (int i = 0; i < count; i++) job->args[job->count++] = strNew(args[i]);
    listAppend(&q->jobs, &job->node);
}

/* An earlier job of the same script is running. One that has failed and waits for its next try does
 * not keep the others waiting. */
static bool hasEarlier(const scriptQueue *q, const scriptJob *job) {
    for (listNode *at = listFirst(&q->jobs); at && at != &job->node; at = listNext(&q->jobs, at)) {
        const scriptJob *other = CONTAINER_OF(at, scriptJob, node);
        if (!other->running) continue;
        if (sliceEqual(strSlice(&other->args[0]), strSlice(&job->args[0]))) return true;
    }
    return false;
}

scriptJob *scriptsNext(scriptQueue *q, int64_t now_ms) {
    hotCheck(q->running >= 0);
    if (q->running >= SCRIPTS_RUNNING_MAX) return NULL;
    for (listNode *at = listFirst(&q->jobs); at; at = listNext(&q->jobs, at)) {
        scriptJob *job = CONTAINER_OF(at, scriptJob, node);
        if (job->running || job->start_ms > now_ms || hasEarlier(q, job)) continue;
        job->running = true;
        job->start_ms = now_ms;
        job->tries++;
        q->running++;
        return job;
    }
    return NULL;
}

bool scriptsEnded(scriptQueue *q, scriptJob *job, int exit_code, int signal, int64_t retry_ms,
                  int64_t now_ms) {
    check(job->running);
    check(q->running > 0);
    job->running = false;
    q->running--;
    job->process = NULL;
    if ((signal || exit_code == 1) && job->tries < SCRIPTS_TRIES_MAX) {
        job->start_ms = now_ms + (retry_ms << (job->tries - 1));
        return true;
    }
    freeJob(q, job);
    return false;
}
