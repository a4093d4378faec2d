/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kind of module: one that is told what happens to keys.
 *
 *     HELLO.LOG [CLEAR]        the events that were seen: "<event> <db> <key>", the oldest first
 *     HELLO.PUBLISH event key  publishes an event of the module's own class
 *
 * It counts the strings that are set in the key changes:<key>, in a job after the command: a
 * callback should not write, for it is in the middle of the command that caused the event. Counters
 * themselves are not counted. */
#include <string.h>
#include <strings.h>

#include "valkeymodule.h"

enum { LOG_MAX = 100 };
static ValkeyModuleString *seen[LOG_MAX];
static int count;

static void clearLog(void) {
    for (int i = 0; i < count; i++) ValkeyModule_FreeString(NULL, seen[i]);
    count = 0;
}

static void countChange(ValkeyModuleCtx *ctx, void *key) {
    ValkeyModuleString *counter = ValkeyModule_CreateStringPrintf(
        ctx, "changes:%s", ValkeyModule_StringPtrLen(key, NULL));
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "INCR", "!s", counter);
    if (reply) ValkeyModule_FreeCallReply(reply);
    ValkeyModule_FreeString(ctx, counter);
}

static void freeKey(void *key) { ValkeyModule_FreeString(NULL, key); }

static int onKeyEvent(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    const char *name = ValkeyModule_StringPtrLen(key, NULL);
    if (count < LOG_MAX) {
        seen[count++] = ValkeyModule_CreateStringPrintf(NULL, "%s %d %s", event,
                                                        ValkeyModule_GetSelectedDb(ctx), name);
    }
    if (type == VALKEYMODULE_NOTIFY_STRING && strncmp(name, "changes:", 8)) {
        ValkeyModuleString *kept = ValkeyModule_CreateStringFromString(NULL, key);
        if (ValkeyModule_AddPostNotificationJob(ctx, countChange, kept, freeKey) ==
            VALKEYMODULE_ERR)
            freeKey(kept); /* a load, or a replica: the primary sends what its jobs change */
    }
    return VALKEYMODULE_OK;
}

static int logCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc > 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_ReplyWithArray(ctx, count);
    for (int i = 0; i < count; i++) ValkeyModule_ReplyWithString(ctx, seen[i]);
    if (argc == 2 && !strcasecmp(ValkeyModule_StringPtrLen(argv[1], NULL), "clear")) clearLog();
    return VALKEYMODULE_OK;
}

static int publish(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_NotifyKeyspaceEvent(ctx, VALKEYMODULE_NOTIFY_MODULE,
                                     ValkeyModule_StringPtrLen(argv[1], NULL), argv[2]);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "helloevents", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (ValkeyModule_SubscribeToKeyspaceEvents(
            ctx, VALKEYMODULE_NOTIFY_ALL | VALKEYMODULE_NOTIFY_NEW | VALKEYMODULE_NOTIFY_LOADED,
            onKeyEvent) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "hello.log", logCommand, "readonly", 0, 0, 0) ==
        VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    return ValkeyModule_CreateCommand(ctx, "hello.publish", publish, "", 2, 2, 1);
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    clearLog();
    return VALKEYMODULE_OK;
}
