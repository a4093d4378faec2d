/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests of `module-checks yes`: it uses handles that were freed, never were any, or
 * are of another kind, and forgets to free some.
 *
 *     HANDLES.FREED kind    uses a string, dictionary, iterator, cursor, user, reply or part of one
 *                           after it was freed, an argument after its call, or the context of a
 *                           filter after its end
 *     HANDLES.KIND          gives a string where a key is expected
 *     HANDLES.NULL          gives NULL where a string is expected
 *     HANDLES.INVARIADIC    gives freed strings to functions with variadic arguments
 *     HANDLES.TWICE         closes a key twice
 *     HANDLES.OPEN          leaves a key open
 *     HANDLES.LEAK          leaves two strings and a dictionary
 *     HANDLES.THREAD        calls from a thread that has not locked the server
 *     HANDLES.GOOD          what a module may do
 *
 * The reply is what the wrong call returned: `refused`, or a text. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "valkeymodule.h"

static ValkeyModuleString *old_argument;
static ValkeyModuleCommandFilterCtx *old_filtered;

static void filter(ValkeyModuleCommandFilterCtx *fctx) { old_filtered = fctx; }

static int refused(ValkeyModuleCtx *ctx, int is_refused) {
    return ValkeyModule_ReplyWithSimpleString(ctx, is_refused ? "refused" : "done");
}

static int endedFilter(ValkeyModuleCtx *ctx) {
    return refused(ctx, ValkeyModule_CommandFilterArgGet(old_filtered, 0) == NULL);
}

static int freedString(ValkeyModuleCtx *ctx) {
    ValkeyModuleString *s = ValkeyModule_CreateString(ctx, "12", 2);
    ValkeyModule_FreeString(ctx, s);
    long long number;
    return refused(ctx, ValkeyModule_StringToLongLong(s, &number) == VALKEYMODULE_ERR);
}

static int freedDict(ValkeyModuleCtx *ctx) {
    ValkeyModuleDict *d = ValkeyModule_CreateDict(ctx);
    ValkeyModule_FreeDict(ctx, d);
    return refused(ctx, ValkeyModule_DictSetC(d, "a", 1, NULL) == VALKEYMODULE_ERR);
}

static int freedIterator(ValkeyModuleCtx *ctx) {
    ValkeyModuleDict *d = ValkeyModule_CreateDict(ctx);
    ValkeyModule_DictSetC(d, "a", 1, d);
    ValkeyModuleDictIter *di = ValkeyModule_DictIteratorStartC(d, "^", NULL, 0);
    ValkeyModule_DictIteratorStop(di);
    size_t len;
    int is_refused = ValkeyModule_DictNextC(di, &len, NULL) == NULL;
    ValkeyModule_FreeDict(ctx, d);
    return refused(ctx, is_refused);
}

static int freedCursor(ValkeyModuleCtx *ctx) {
    ValkeyModuleScanCursor *cursor = ValkeyModule_ScanCursorCreate();
    ValkeyModule_ScanCursorDestroy(cursor);
    return refused(ctx, ValkeyModule_Scan(ctx, cursor, NULL, NULL) == 0);
}

static int freedUser(ValkeyModuleCtx *ctx) {
    ValkeyModuleUser *user = ValkeyModule_CreateModuleUser("someone");
    ValkeyModule_FreeModuleUser(user);
    return refused(ctx, ValkeyModule_SetModuleUserACL(user, "on") == VALKEYMODULE_ERR);
}

static int freedReply(ValkeyModuleCtx *ctx) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "ECHO", "c", "text");
    ValkeyModule_FreeCallReply(reply);
    return refused(ctx, ValkeyModule_CallReplyStringPtr(reply, NULL) == NULL);
}

static int freedPart(ValkeyModuleCtx *ctx) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "TIME", "");
    ValkeyModuleCallReply *part = ValkeyModule_CallReplyArrayElement(reply, 0);
    if (!ValkeyModule_CallReplyStringPtr(part, NULL)) return refused(ctx, 0);
    ValkeyModule_FreeCallReply(reply);
    return refused(ctx, ValkeyModule_CallReplyStringPtr(part, NULL) == NULL);
}

static int freedArgument(ValkeyModuleCtx *ctx) {
    return refused(ctx, ValkeyModule_StringCompare(old_argument, old_argument) == 0 &&
                            ValkeyModule_ReplyWithString(ctx, old_argument) == VALKEYMODULE_ERR);
}

static const struct {
    const char *kind;
    int (*use)(ValkeyModuleCtx *ctx);
} freed[] = {{"string", freedString}, {"dictionary", freedDict},   {"iterator", freedIterator},
             {"cursor", freedCursor}, {"user", freedUser},         {"reply", freedReply},
             {"part", freedPart},     {"argument", freedArgument}, {"filter", endedFilter}};

static int useFreed(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    const char *kind = ValkeyModule_StringPtrLen(argv[1], NULL);
    for (size_t i = 0; i < sizeof(freed) / sizeof(freed[0]); i++) {
        if (!strcmp(kind, freed[i].kind)) return freed[i].use(ctx);
    }
    return ValkeyModule_ReplyWithError(ctx, "ERR unknown kind");
}

static int wrongKind(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argc;
    return refused(ctx, ValkeyModule_KeyType((ValkeyModuleKey *)argv[0]) == 0);
}

static int null(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return refused(ctx, ValkeyModule_StringAppendBuffer(ctx, NULL, "a", 1) == VALKEYMODULE_ERR);
}

static int variadic(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleString *s = ValkeyModule_CreateString(ctx, "x", 1);
    ValkeyModule_FreeString(ctx, s);
    ValkeyModule_ReplyWithArray(ctx, 3);
    refused(ctx, ValkeyModule_Call(ctx, "ECHO", "s", s) == NULL && errno == EBADF);
    refused(ctx, ValkeyModule_Replicate(ctx, "ECHO", "v", &s, (size_t)1) == VALKEYMODULE_ERR);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    refused(ctx, ValkeyModule_HashSet(key, VALKEYMODULE_HASH_CFIELDS, "f", s, NULL) == 0);
    ValkeyModule_CloseKey(key);
    return VALKEYMODULE_OK;
}

static int closeTwice(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    ValkeyModule_CloseKey(key);
    ValkeyModule_CloseKey(key);
    return refused(ctx, 1);
}

static int leaveOpen(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_KeyType(key));
}

static void *volatile left[3];

static __attribute__((noinline)) void leakString(int i) {
    left[i] = ValkeyModule_CreateStringPrintf(NULL, "%d", i);
}

static int leak(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    for (int i = 0; i < 2; i++) leakString(i);
    left[2] = ValkeyModule_CreateDict(NULL);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static void *callsFromThread(void *arg) {
    ValkeyModuleCtx *ctx = arg;
    return ValkeyModule_DbSize(ctx) ? arg : NULL;
}

static int thread(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    pthread_t other;
    void *result = ctx;
    if (ValkeyModule_DbSize(ctx) == 0 || pthread_create(&other, NULL, callsFromThread, ctx))
        return ValkeyModule_ReplyWithError(ctx, "ERR no key, or no thread");
    pthread_join(other, &result);
    return refused(ctx, result == NULL);
}

static int good(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    old_argument = argv[0];
    ValkeyModule_RetainString(ctx, argv[1]);
    ValkeyModuleString *mine = ValkeyModule_CreateString(NULL, "v", 1);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_WRITE);
    ValkeyModule_StringSet(key, mine);
    ValkeyModule_CloseKey(key);
    ValkeyModule_FreeString(NULL, mine);
    ValkeyModule_FreeString(ctx, argv[1]);
    ValkeyModule_AutoMemory(ctx);
    key = ValkeyModule_OpenKey(ctx, argv[1], VALKEYMODULE_READ);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "GET", "s", argv[1]);
    ValkeyModule_CreateString(ctx, "auto", 4);
    ValkeyModule_CreateDict(ctx);
    return ValkeyModule_ReplyWithCallReply(ctx, reply);
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {
    {"handles.freed", useFreed},      {"handles.kind", wrongKind},   {"handles.null", null},
    {"handles.invariadic", variadic}, {"handles.twice", closeTwice}, {"handles.open", leaveOpen},
    {"handles.leak", leak},           {"handles.thread", thread},    {"handles.good", good}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "handles", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "write", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    if (!ValkeyModule_RegisterCommandFilter(ctx, filter, 0)) return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    (void)ctx;
    return VALKEYMODULE_OK;
}
