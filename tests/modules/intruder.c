/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: a subscriber that changes the keyspace under the command that tells it of an
 * event.
 *
 *     INTRUDER.MODE name      what it does: none, del, unlink, rename, overwrite, flush, swap, fill
 *     INTRUDER.COUNT          how often it has done so */
#include <string.h>

#include "valkeymodule.h"

static char mode[16] = "none";
static long long count;

static void run(ValkeyModuleCtx *ctx, const char *name, const char *format, const void *first,
                const char *second) {
    ValkeyModule_FreeCallReply(ValkeyModule_Call(ctx, name, format, first, second));
}

static void fill(ValkeyModuleCtx *ctx) {
    enum { KEYS = 300 };
    for (int i = 0; i < KEYS; i++) {
        ValkeyModuleString *name = ValkeyModule_CreateStringPrintf(ctx, "filled-%lld-%d", count, i);
        run(ctx, "SET", "!sc", name, "x");
        ValkeyModule_FreeString(ctx, name);
    }
}

static int onEvent(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)type, (void)event;
    if (!strcmp(mode, "none")) return VALKEYMODULE_OK;
    count++;
    if (!strcmp(mode, "del")) {
        run(ctx, "DEL", "!s", key, NULL);
    } else if (!strcmp(mode, "unlink")) {
        run(ctx, "UNLINK", "!s", key, NULL);
    } else if (!strcmp(mode, "rename")) {
        run(ctx, "RENAME", "!sc", key, "renamed");
    } else if (!strcmp(mode, "overwrite")) {
        run(ctx, "SET", "!sc", key, "overwritten");
    } else if (!strcmp(mode, "flush")) {
        run(ctx, "FLUSHALL", "!c", "SYNC", NULL);
    } else if (!strcmp(mode, "swap")) {
        run(ctx, "SWAPDB", "!cc", "0", "1");
    } else if (!strcmp(mode, "fill")) {
        fill(ctx);
    }
    return VALKEYMODULE_OK;
}

static int modeCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    strncpy(mode, ValkeyModule_StringPtrLen(argv[1], NULL), sizeof(mode) - 1);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int countCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithLongLong(ctx, count);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    const int all = VALKEYMODULE_NOTIFY_ALL | VALKEYMODULE_NOTIFY_KEY_MISS |
                    VALKEYMODULE_NOTIFY_NEW | VALKEYMODULE_NOTIFY_MODULE;
    if (ValkeyModule_Init(ctx, "intruder", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR ||
        ValkeyModule_CreateCommand(ctx, "intruder.mode", modeCommand, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "intruder.count", countCommand, "", 0, 0, 0))
        return VALKEYMODULE_ERR;
    return ValkeyModule_SubscribeToKeyspaceEvents(ctx, all, onEvent);
}
