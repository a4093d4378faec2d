/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: commands that modules run.
 *
 *     CALLS.RUN modifiers command arg...   runs the command with these modifiers of Call(), "-" for
 *                                          none, and passes the reply on; without a reply: errno
 *     CALLS.JOBS 0|1                       jobs for removed keys, which append to `jobs`
 */
#include <errno.h>
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
    if (ValkeyModule_AddPostNotificationJob(ctx, runJob, text, freeJob)) freeJob(text);
}

static void onRemoval(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    (void)event, (void)sub;
    ValkeyModuleKeyInfo *info = data;
    addJob(ctx, "removed", ValkeyModule_GetKeyNameFromModuleKey(info->key));
}

static int onEvent(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)type;
    addJob(ctx, event, key);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "calls", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_Key, onRemoval);
    ValkeyModule_SubscribeToKeyspaceEvents(
        ctx, VALKEYMODULE_NOTIFY_EXPIRED | VALKEYMODULE_NOTIFY_EVICTED, onEvent);
    return ValkeyModule_CreateCommand(ctx, "calls.run", run, "allow-stale", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls.jobs", jobs, "", 0, 0, 0) ||
           ValkeyModule_CreateCommand(ctx, "calls:odd#name", jobs, "", 0, 0, 0);
}
