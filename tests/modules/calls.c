/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: commands that modules run.
 *
 *     CALLS.RUN modifiers command arg...   runs the command with these modifiers of Call(), "-" for
 *                                          none, and passes the reply on; without a reply: errno
 *     CALLS.JOBS 0|1|2                     jobs for removed keys, which append to `jobs`; 2: the
 *                                          callbacks replicate that instead
 *     CALLS.DELETES 0|1                    jobs for expired keys and fields, which delete all keys
 *     CALLS.LATER key                      INCR in a timer, in a thread with the lock and in a cron
 *     CALLS.SEEN                           and what these calls have returned
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "valkeymodule.h"

static int run(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    const char *modifiers = ValkeyModule_StringPtrLen(argv[1], NULL);
    char format[16];
    (void)snprintf(format, sizeof(format), "%sv", strcmp(modifiers, "-") ? modifiers : "");
    errno = 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[2], NULL),
                                                     format, argv + 3, (size_t)argc - 3);
    if (reply) return ValkeyModule_ReplyWithCallReply(ctx, reply);
    return ValkeyModule_ReplyWithErrorFormat(ctx, "ERRNO %d", errno);
}

static long long wants_jobs;

static int jobs(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    (void)ValkeyModule_StringToLongLong(argv[1], &wants_jobs);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static void runJob(ValkeyModuleCtx *ctx, void *text) {
    ValkeyModule_FreeCallReply(ValkeyModule_Call(ctx, "RPUSH", "!cs", "jobs", text));
}

static void freeJob(void *text) { ValkeyModule_FreeString(NULL, text); }

static void addJob(ValkeyModuleCtx *ctx, const char *what, const ValkeyModuleString *key) {
    const char *name = ValkeyModule_StringPtrLen(key, NULL);
    if (!wants_jobs || !strcmp(name, "jobs")) return;
    ValkeyModuleString *text = ValkeyModule_CreateStringPrintf(NULL, "%s:%s", what, name);
    if (wants_jobs == 2) {
        ValkeyModule_Replicate(ctx, "RPUSH", "cs", "direct", text);
        freeJob(text);
        return;
    }
    if (ValkeyModule_AddPostNotificationJob(ctx, runJob, text, freeJob)) freeJob(text);
}

static long long deletes;

static int deletesCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    (void)ValkeyModule_StringToLongLong(argv[1], &deletes);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static void deleteAll(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    ValkeyModule_FreeCallReply(ValkeyModule_Call(ctx, "FLUSHALL", "!c", "SYNC"));
}

static void onRemoval(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    (void)event, (void)sub;
    ValkeyModuleKeyInfo *info = data;
    addJob(ctx, "removed", ValkeyModule_GetKeyNameFromModuleKey(info->key));
}

static int onEvent(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)type;
    addJob(ctx, event, key);
    if (deletes && ValkeyModule_AddPostNotificationJob(ctx, deleteAll, NULL, NULL))
        return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}

static int onGeneric(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    static const char *const told[] = {"del", "srem", "zrem", "hdel", "zremrangebyrank"};
    if (!strcmp(event, "sexpired")) return onEvent(ctx, type, event, key);
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        if (!strcmp(event, told[i])) addJob(ctx, event, key);
    }
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ calls outside of commands */

static char later_key[64], seen[512];
static bool cron_waits;

static void callOnce(ValkeyModuleCtx *ctx, const char *where) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "INCR", "!c", later_key);
    size_t len = strlen(seen);
    snprintf(seen + len, sizeof(seen) - len, "%s %s %d ", where, reply ? "reply" : "none",
             reply ? 0 : errno);
    ValkeyModule_FreeCallReply(reply);
}

static void inTimer(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    callOnce(ctx, "timer");
}

static void *inThread(void *arg) {
    ValkeyModuleCtx *ctx = ValkeyModule_GetThreadSafeContext(NULL);
    ValkeyModule_ThreadSafeContextLock(ctx);
    callOnce(ctx, "thread");
    ValkeyModule_ThreadSafeContextUnlock(ctx);
    ValkeyModule_FreeThreadSafeContext(ctx);
    return arg;
}

static void onCron(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    (void)event, (void)sub, (void)data;
    if (cron_waits) callOnce(ctx, "cron");
    cron_waits = false;
}

static int later(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    pthread_t thread;
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    snprintf(later_key, sizeof(later_key), "%s", ValkeyModule_StringPtrLen(argv[1], NULL));
    seen[0] = 0;
    cron_waits = true;
    ValkeyModule_CreateTimer(ctx, 1, inTimer, NULL);
    if (pthread_create(&thread, NULL, inThread, NULL))
        return ValkeyModule_ReplyWithError(ctx, "ERR no thread");
    pthread_detach(thread);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int seenCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithCString(ctx, seen);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "calls", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_Key, onRemoval);
    ValkeyModule_SubscribeToKeyspaceEvents(
        ctx, VALKEYMODULE_NOTIFY_EXPIRED | VALKEYMODULE_NOTIFY_EVICTED, onEvent);
    ValkeyModule_SubscribeToKeyspaceEvents(ctx,
                                           VALKEYMODULE_NOTIFY_GENERIC | VALKEYMODULE_NOTIFY_SET |
                                               VALKEYMODULE_NOTIFY_ZSET | VALKEYMODULE_NOTIFY_HASH,
                                           onGeneric);
    ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_CronLoop, onCron);
    return ValkeyModule_CreateCommand(ctx, "calls.run", run, "allow-stale", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls.jobs", jobs, "", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls.deletes", deletesCommand, "", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls.later", later, "", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls.seen", seenCommand, "", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls:odd#name", jobs, "", 0, 0, 0);
}
