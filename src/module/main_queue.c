/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that other threads have ordered. The stage that makes them is a feature that is added with
 * the first module, so a server without modules has none. */
#include "module/main_queue.h"

#include <pthread.h>

#include "base/base.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"

typedef struct queuedCall {
    struct queuedCall *next;
    mainQueueProc *proc;
    void *arg;
} queuedCall;

static struct {
    pthread_mutex_t lock;
    queuedCall *first, **last; /* `last` NULL: nothing was ever added */
    bool started;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

void mainQueueAdd(mainQueueProc *proc, void *arg) {
    hotCheck(proc);
    queuedCall *call = memAlloc(sizeof(*call));
    *call = (queuedCall){.proc = proc, .arg = arg};
    pthread_mutex_lock(&queue.lock);
    if (!queue.first) queue.last = &queue.first;
    *queue.last = call;
    queue.last = &call->next;
    pthread_mutex_unlock(&queue.lock);
    loopWake(engineLoop());
}

static queuedCall *takeAll(void) {
    pthread_mutex_lock(&queue.lock);
    queuedCall *first = queue.first;
    queue.first = NULL;
    pthread_mutex_unlock(&queue.lock);
    return first;
}

void mainQueueDrop(bool (*is_of)(mainQueueProc *proc, const void *arg, const void *of),
                   const void *of, void (*free_arg)(void *arg)) {
    hotCheck(threadIsMain());
    pthread_mutex_lock(&queue.lock);
    queuedCall **at = &queue.first;
    while (*at) {
        queuedCall *call = *at;
        if (!is_of(call->proc, call->arg, of)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        free_arg(call->arg);
        memFree(call);
    }
    queue.last = at;
    pthread_mutex_unlock(&queue.lock);
}

static void run(void) {
    hotCheck(threadIsMain());
    if (engineHot.current) return; /* a nested turn, within a command */
    for (queuedCall *call = takeAll(), *next; call; call = next) {
        next = call->next;
        call->proc(call->arg);
        memFree(call);
    }
}

static const stageJob stages[] = {{STAGE_AFTER_SLEEP, run}, {STAGE_WAKE, run}, {0}};
static const feature queue_feature = {.name = "module queue", .stages = stages};

void mainQueueStart(void) {
    hotCheck(threadIsMain());
    if (queue.started) return;
    queue.started = true;
    hooksAddFeature(&queue_feature);
}
