/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: sections of INFO, and reading INFO.
 *
 *     INFOS.READ section field   the field as text, as signed and unsigned number, as double;
 *                                NULL and "error" where that fails
 *     INFOS.APART section field  the field as text, read without a context: by the command itself,
 *                                and by a thread that has not locked the server
 *     INFOS.CALLS                how often the module was asked for its sections
 *     INFOS.CRASH how            ends the server by a failed assertion; in the report the module
 *                                fails again (`assert`), faults (`fault`), or neither */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "valkeymodule.h"

static long long calls;
static char how[16];
static int *volatile nowhere;

static void addInfo(ValkeyModuleInfoCtx *ctx, int for_crash_report) {
    calls++;
    if (for_crash_report) {
        ValkeyModule_InfoAddSection(ctx, "crash");
        ValkeyModule_InfoAddFieldCString(ctx, "how", how);
        ValkeyModule_Assert(strcmp(how, "assert") != 0);
        if (!strcmp(how, "fault")) *nowhere = 1;
    }
    ValkeyModule_InfoAddFieldLongLong(ctx, "too_early", 1); /* there is no section: an error */
    if (ValkeyModule_InfoAddSection(ctx, "") == VALKEYMODULE_OK) {
        ValkeyModule_InfoAddFieldLongLong(ctx, "signed", -5);
        ValkeyModule_InfoAddFieldULongLong(ctx, "unsigned", 18446744073709551615ULL);
        ValkeyModule_InfoAddFieldDouble(ctx, "double", 0.5);
    }
    ValkeyModule_InfoAddSection(ctx, "Texts"); /* fields of one that nobody wants are dropped */
    ValkeyModule_InfoAddFieldCString(ctx, "text", "some words");
    ValkeyModule_InfoBeginDictField(ctx, "a:b");
    ValkeyModule_InfoAddFieldLongLong(ctx, "one", 1);
    ValkeyModule_InfoAddFieldCString(ctx, "two", "2");
    /* It is left open. */
}

static int readCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx); /* the data, too */
    ValkeyModuleServerInfoData *data =
        ValkeyModule_GetServerInfo(ctx, ValkeyModule_StringPtrLen(argv[1], NULL));
    const char *field = ValkeyModule_StringPtrLen(argv[2], NULL);
    ValkeyModuleString *text = ValkeyModule_ServerInfoGetField(ctx, data, field);
    int error;
    ValkeyModule_ReplyWithArray(ctx, 4);
    if (text) {
        ValkeyModule_ReplyWithString(ctx, text);
    } else {
        ValkeyModule_ReplyWithNull(ctx);
    }
    long long number = ValkeyModule_ServerInfoGetFieldSigned(data, field, &error);
    ValkeyModule_ReplyWithString(ctx, error ? ValkeyModule_CreateString(ctx, "error", 5)
                                            : ValkeyModule_CreateStringFromLongLong(ctx, number));
    unsigned long long positive = ValkeyModule_ServerInfoGetFieldUnsigned(data, field, &error);
    ValkeyModule_ReplyWithString(ctx, error
                                          ? ValkeyModule_CreateString(ctx, "error", 5)
                                          : ValkeyModule_CreateStringPrintf(ctx, "%llu", positive));
    double real = ValkeyModule_ServerInfoGetFieldDouble(data, field, &error);
    return ValkeyModule_ReplyWithString(ctx,
                                        error ? ValkeyModule_CreateString(ctx, "error", 5)
                                              : ValkeyModule_CreateStringPrintf(ctx, "%g", real));
}

typedef struct apart {
    ValkeyModuleBlockedClient *client;
    pthread_t thread;
    char section[100], field[100];
    char texts[2][100];
} apart;

static void readApart(const apart *a, char *text, size_t size) {
    ValkeyModuleServerInfoData *data = ValkeyModule_GetServerInfo(NULL, a->section);
    const char *found = ValkeyModule_ServerInfoGetFieldC(data, a->field);
    snprintf(text, size, "%s", found ? found : "nothing");
    ValkeyModule_FreeServerInfo(NULL, data);
}

static void *runApart(void *arg) {
    apart *a = arg;
    readApart(a, a->texts[1], sizeof(a->texts[1]));
    ValkeyModule_UnblockClient(a->client, a);
    return NULL;
}

static int replyApart(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    const apart *a = ValkeyModule_GetBlockedClientPrivateData(ctx);
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithCString(ctx, a->texts[0]);
    return ValkeyModule_ReplyWithCString(ctx, a->texts[1]);
}

static void freeApart(ValkeyModuleCtx *ctx, void *arg) {
    (void)ctx;
    pthread_join(((apart *)arg)->thread, NULL); /* the module may be unloaded next */
    ValkeyModule_Free(arg);
}

static int apartCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    apart *a = ValkeyModule_Calloc(1, sizeof(*a));
    snprintf(a->section, sizeof(a->section), "%s", ValkeyModule_StringPtrLen(argv[1], NULL));
    snprintf(a->field, sizeof(a->field), "%s", ValkeyModule_StringPtrLen(argv[2], NULL));
    readApart(a, a->texts[0], sizeof(a->texts[0]));
    a->client = ValkeyModule_BlockClient(ctx, replyApart, NULL, freeApart, 0);
    if (pthread_create(&a->thread, NULL, runApart, a) != 0) {
        ValkeyModule_AbortBlock(a->client);
        ValkeyModule_Free(a);
        return ValkeyModule_ReplyWithError(ctx, "ERR no thread");
    }
    return VALKEYMODULE_OK;
}

static int callsCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithLongLong(ctx, calls);
}

static int crashCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    snprintf(how, sizeof(how), "%s", ValkeyModule_StringPtrLen(argv[1], NULL));
    ValkeyModule_Assert(argc == 1);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "infos", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (ValkeyModule_RegisterInfoFunc(ctx, addInfo) == VALKEYMODULE_ERR) return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "infos.calls", callsCommand, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "infos.crash", crashCommand, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "infos.apart", apartCommand, "", 0, 0, 0))
        return VALKEYMODULE_ERR;
    return ValkeyModule_CreateCommand(ctx, "infos.read", readCommand, "", 0, 0, 0);
}
