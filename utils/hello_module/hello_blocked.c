/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kind of module: commands that wait. The client is blocked, the server goes on.
 *
 *     HELLO.FACTOR number     the smallest prime factor, which a thread computes beside the server
 *     HELLO.TAKE key ms       removes a string and returns it; waits for it, at most so long: null.
 *                             0: without limit
 *
 * Neither waits in a transaction or script: there HELLO.FACTOR is refused, HELLO.TAKE returns null
 * at once. */
#include <pthread.h>

#include "valkeymodule.h"

/* ------------------------------------------------------------------ a thread */

typedef struct task {
    ValkeyModuleBlockedClient *client;
    long long number, factor;
} task;

static void *computeFactor(void *arg) {
    task *t = arg;
    long long divisor = 2;
    while (divisor <= t->number / divisor && t->number % divisor) divisor++;
    t->factor = t->number % divisor ? t->number : divisor;
    /* From here on the server calls replyFactor(), then freeTask(), in its own thread. */
    ValkeyModule_UnblockClient(t->client, t);
    return NULL;
}

static int replyFactor(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    const task *t = ValkeyModule_GetBlockedClientPrivateData(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, t->factor);
}

/* Also called if the client has disconnected, without replyFactor(). */
static void freeTask(ValkeyModuleCtx *ctx, void *arg) {
    (void)ctx;
    ValkeyModule_Free(arg);
}

static int factor(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long number;
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_StringToLongLong(argv[1], &number) || number < 2)
        return ValkeyModule_ReplyWithError(ctx, "ERR not an integer above 1");
    if (ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING)
        return ValkeyModule_ReplyWithError(ctx, "ERR this client cannot wait");
    ValkeyModuleBlockedClient *client =
        ValkeyModule_BlockClient(ctx, replyFactor, NULL, freeTask, 0);
    task *t = ValkeyModule_Calloc(1, sizeof(*t));
    *t = (task){.client = client, .number = number};
    pthread_t thread;
    if (pthread_create(&thread, NULL, computeFactor, t) != 0) {
        ValkeyModule_AbortBlock(client); /* frees the handle, and nothing else */
        ValkeyModule_Free(t);
        return ValkeyModule_ReplyWithError(ctx, "ERR no thread could be started");
    }
    pthread_detach(thread);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ a key */

/* Replies the string and removes it. VALKEYMODULE_ERR: there is none, nothing was replied. */
static int take(ValkeyModuleCtx *ctx, ValkeyModuleString *name) {
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ | VALKEYMODULE_WRITE);
    int result = VALKEYMODULE_ERR;
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_STRING) {
        size_t len;
        const char *text = ValkeyModule_StringDMA(key, &len, VALKEYMODULE_READ);
        ValkeyModule_ReplyWithStringBuffer(ctx, text, len);
        ValkeyModule_DeleteKey(key);
        /* Not this command: on a replica it would wait. */
        ValkeyModule_Replicate(ctx, "DEL", "s", name);
        result = VALKEYMODULE_OK;
    }
    ValkeyModule_CloseKey(key);
    return result;
}

/* The key was signalled as ready. Another client may have been first: then the wait goes on. */
static int takeReady(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return take(ctx, ValkeyModule_GetBlockedClientReadyKey(ctx));
}

static int replyNull(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithNull(ctx);
}

static int takeCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long ms;
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_StringToLongLong(argv[2], &ms) || ms < 0)
        return ValkeyModule_ReplyWithError(ctx, "ERR not a time in milliseconds");
    if (take(ctx, argv[1]) == VALKEYMODULE_OK) return VALKEYMODULE_OK;
    if (ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING)
        return ValkeyModule_ReplyWithNull(ctx);
    ValkeyModule_BlockClientOnKeys(ctx, takeReady, replyNull, NULL, ms, &argv[1], 1, NULL);
    return VALKEYMODULE_OK;
}

/* Strings wake nobody in the server, so the module does it. */
static int noteString(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)type, (void)event;
    ValkeyModule_SignalKeyAsReady(ctx, key);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "helloblocked", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    if (ValkeyModule_CreateCommand(ctx, "hello.factor", factor, "", 0, 0, 0) ==
            VALKEYMODULE_ERR ||
        ValkeyModule_CreateCommand(ctx, "hello.take", takeCommand, "write", 1, 1, 1) ==
            VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    return ValkeyModule_SubscribeToKeyspaceEvents(ctx, VALKEYMODULE_NOTIFY_STRING, noteString);
}
