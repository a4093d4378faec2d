/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: four threads that use all that is permitted to threads, at once.
 *
 *     THREADS.RUN ms      they run for so long; the reply: how often key `counted` was incremented,
 *                         and how many jobs were done
 *     THREADS.JOB text    blocks until a thread has appended the text to the list `jobs`: its
 *                         length; an error unless threads run
 *     THREADS.SEEN        how many callbacks of timers and of the event loop were run, that threads
 *                         have ordered */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "valkeymodule.h"

enum { THREADS = 4, JOBS_MAX = 64 };

typedef struct job {
    ValkeyModuleBlockedClient *client;
    ValkeyModuleString *text;
} job;

static struct {
    pthread_mutex_t lock;
    job list[JOBS_MAX];
    int count;
    int are_taken; /* threads run */
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct run {
    ValkeyModuleBlockedClient *client;
    long long end_ms;
    atomic_llong counted, done;
} run;

static atomic_llong timers_run, turns_run;
static ValkeyModuleCtx *log_context; /* of the module, for threads */

/* ------------------------------------------------------------------ what a thread does */

static void onTimer(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx, (void)data;
    timers_run++;
}

static void onTurn(void *data) {
    (void)data;
    turns_run++;
}

/* Without the lock. */
static void useNothing(int number) {
    ValkeyModuleString *text = ValkeyModule_CreateStringPrintf(NULL, "text %d", number);
    ValkeyModuleString *copy = ValkeyModule_CreateStringFromString(NULL, text);
    char *bytes = ValkeyModule_Strdup(ValkeyModule_StringPtrLen(copy, NULL));
    ValkeyModule_RetainString(NULL, text);
    ValkeyModule_FreeString(NULL, text);
    if (ValkeyModule_StringCompare(text, copy) != 0) ValkeyModule_FreeString(NULL, text);
    ValkeyModule_Free(bytes);
    ValkeyModule_FreeString(NULL, copy);
    ValkeyModule_FreeString(NULL, text);
    ValkeyModule_EventLoopAddOneShot(onTurn, NULL);
    if (number % 100 == 0) ValkeyModule_Log(log_context, "debug", "round %d", number);
}

static void useKeys(ValkeyModuleCtx *ctx) {
    ValkeyModuleString *name = ValkeyModule_CreateString(ctx, "counted", 7);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ);
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_STRING) {
        size_t len;
        if (!ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ)) timers_run = -1000000;
    }
    ValkeyModule_CloseKey(key);
    ValkeyModule_FreeString(ctx, name);
}

/* With the lock of `ctx`, which is a context without client. */
static void useServer(ValkeyModuleCtx *ctx, run *r, int number) {
    ValkeyModule_ThreadSafeContextLock(ctx);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "INCR", "!c", "counted");
    if (ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_INTEGER) r->counted++;
    ValkeyModule_FreeCallReply(reply);
    useKeys(ctx);
    if (number % 10 == 0) ValkeyModule_CreateTimer(ctx, 1, onTimer, NULL);
    if (number % 50 == 0) ValkeyModule_Yield(ctx, VALKEYMODULE_YIELD_FLAG_CLIENTS, "busy");
    ValkeyModule_ThreadSafeContextUnlock(ctx);
}

static void tryServer(ValkeyModuleCtx *ctx) {
    if (ValkeyModule_ThreadSafeContextTryLock(ctx) == VALKEYMODULE_ERR) return;
    (void)ValkeyModule_GetContextFlags(ctx);
    ValkeyModule_ThreadSafeContextUnlock(ctx);
}

static int takeJob(job *j) {
    pthread_mutex_lock(&jobs.lock);
    int found = jobs.count > 0;
    if (found) *j = jobs.list[--jobs.count];
    pthread_mutex_unlock(&jobs.lock);
    return found;
}

/* Replies in the context of the blocked client, whose connection may have ended. */
static void doJob(const job *j) {
    ValkeyModuleCtx *ctx = ValkeyModule_GetThreadSafeContext(j->client);
    ValkeyModule_BlockedClientMeasureTimeStart(j->client);
    ValkeyModule_ThreadSafeContextLock(ctx);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "RPUSH", "!cs", "jobs", j->text);
    ValkeyModule_ThreadSafeContextUnlock(ctx);
    ValkeyModule_ReplyWithCallReply(ctx, reply); /* permitted without the lock */
    ValkeyModule_FreeCallReply(reply);
    ValkeyModule_BlockedClientMeasureTimeEnd(j->client);
    ValkeyModule_FreeThreadSafeContext(ctx);
    ValkeyModule_UnblockClient(j->client, NULL);
    ValkeyModule_FreeString(NULL, j->text);
}

static void *work(void *arg) {
    run *r = arg;
    ValkeyModuleCtx *ctx = ValkeyModule_GetDetachedThreadSafeContext(log_context);
    for (int i = 1; ValkeyModule_Milliseconds() < r->end_ms; i++) {
        job j;
        useNothing(i);
        useServer(ctx, r, i);
        tryServer(ctx);
        if (i % 200 == 0) {
            ValkeyModuleServerInfoData *data = ValkeyModule_GetServerInfo(NULL, "clients");
            ValkeyModule_FreeServerInfo(NULL, data);
        }
        if (takeJob(&j)) {
            doJob(&j);
            r->done++;
        }
    }
    ValkeyModule_FreeThreadSafeContext(ctx);
    return NULL;
}

/* ------------------------------------------------------------------ commands */

static void *workAll(void *arg) {
    run *r = arg;
    pthread_t threads[THREADS];
    job j;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, r);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_mutex_lock(&jobs.lock);
    jobs.are_taken = 0; /* none is added from here on */
    pthread_mutex_unlock(&jobs.lock);
    while (takeJob(&j)) {
        doJob(&j);
        r->done++;
    }
    ValkeyModule_UnblockClient(r->client, r);
    return NULL;
}

static int replyRun(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    run *r = ValkeyModule_GetBlockedClientPrivateData(ctx);
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, r->counted);
    return ValkeyModule_ReplyWithLongLong(ctx, r->done);
}

static void freeRun(ValkeyModuleCtx *ctx, void *arg) {
    (void)ctx;
    ValkeyModule_Free(arg);
}

static int runCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long ms;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &ms))
        return ValkeyModule_WrongArity(ctx);
    run *r = ValkeyModule_Calloc(1, sizeof(*r));
    r->end_ms = ValkeyModule_Milliseconds() + ms;
    r->client = ValkeyModule_BlockClient(ctx, replyRun, NULL, freeRun, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, workAll, r) != 0) {
        ValkeyModule_AbortBlock(r->client);
        ValkeyModule_Free(r);
        return ValkeyModule_ReplyWithError(ctx, "ERR no thread");
    }
    pthread_detach(thread);
    pthread_mutex_lock(&jobs.lock);
    jobs.are_taken = 1;
    pthread_mutex_unlock(&jobs.lock);
    return VALKEYMODULE_OK;
}

static int jobCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    pthread_mutex_lock(&jobs.lock);
    int is_refused = !jobs.are_taken || jobs.count == JOBS_MAX;
    if (!is_refused)
        jobs.list[jobs.count++] = (job){ValkeyModule_BlockClient(ctx, NULL, NULL, NULL, 0),
                                        ValkeyModule_CreateStringFromString(NULL, argv[1])};
    pthread_mutex_unlock(&jobs.lock);
    return is_refused ? ValkeyModule_ReplyWithError(ctx, "ERR no thread") : VALKEYMODULE_OK;
}

static int seenCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, timers_run);
    return ValkeyModule_ReplyWithLongLong(ctx, turns_run);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "threads", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "threads.run", runCommand, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "threads.job", jobCommand, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "threads.seen", seenCommand, "", 0, 0, 0))
        return VALKEYMODULE_ERR;
    log_context = ValkeyModule_GetDetachedThreadSafeContext(ctx);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    ValkeyModule_FreeThreadSafeContext(log_context);
    return VALKEYMODULE_OK;
}
