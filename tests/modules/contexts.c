/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: what outlives the context that it came from, and the state of contexts.
 *
 *     CONTEXTS.PROMISE command ...   a call that may wait; the promise is the private data of the
 *                                    blocked client, and freed with it
 *     CONTEXTS.KEEP command ...      keeps the reply; CONTEXTS.KEPT returns its text, and frees it
 *     CONTEXTS.LATER arg ...         a thread replies with the arguments; CONTEXTS.GO lets it
 *     CONTEXTS.ABORT                 blocks and gives up, with private data
 *     CONTEXTS.COUNTS                calls of the callback that frees, and of that for disconnects
 *     CONTEXTS.CALL format command ...  Call(); "NULL errno" without a reply
 *     CONTEXTS.ARGV flags handled command ...  CallArgv(), with handlers or without
 *     CONTEXTS.DENIED                1 if its context cannot block
 *     CONTEXTS.DENIALS               the contexts so far that could not
 *     CONTEXTS.MEASURE what          measures a wait: for `timeout` of 40 ms, else for that key
 *     CONTEXTS.TIMER                 notes the flags in a timer, and in calls of it
 *
 * The login of the user `thread` is answered by a thread. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "valkeymodule.h"

extern int VM_CallArgv(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int flags,
                       const ValkeyModuleReplyHandlers *handlers, void *reply_ctx);

static long long frees, disconnects;

/* Overwrites the stack below, where contexts have been. */
static __attribute__((noinline)) void spoil(void) {
    volatile char bytes[16384];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = 0x11;
}

/* ------------------------------------------------------------------ replies that are kept */

static void freePromise(ValkeyModuleCtx *ctx, void *promise) {
    (void)ctx;
    frees++;
    spoil();
    ValkeyModule_FreeCallReply(promise);
}

static void arrived(ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply, void *bc) {
    (void)ctx;
    ValkeyModuleCtx *own = ValkeyModule_GetThreadSafeContext(bc);
    ValkeyModule_ReplyWithCallReply(own, reply);
    ValkeyModule_FreeThreadSafeContext(own);
    ValkeyModule_FreeCallReply(reply);
    ValkeyModule_UnblockClient(bc, ValkeyModule_BlockClientGetPrivateData(bc));
}

static void disconnected(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *bc) {
    (void)ctx;
    disconnects++;
    ValkeyModuleCallReply *promise = ValkeyModule_BlockClientGetPrivateData(bc);
    ValkeyModule_CallReplyPromiseAbort(promise, NULL);
    ValkeyModule_FreeCallReply(promise);
    ValkeyModule_AbortBlock(bc);
}

static int promiseCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[1], NULL),
                                                     "!EKv", argv + 2, (size_t)argc - 2);
    if (ValkeyModule_CallReplyType(reply) != VALKEYMODULE_REPLY_PROMISE) {
        ValkeyModule_ReplyWithCallReply(ctx, reply);
        ValkeyModule_FreeCallReply(reply);
        return VALKEYMODULE_OK;
    }
    ValkeyModuleBlockedClient *bc = ValkeyModule_BlockClient(ctx, NULL, NULL, freePromise, 0);
    ValkeyModule_SetDisconnectCallback(bc, disconnected);
    ValkeyModule_BlockClientSetPrivateData(bc, reply);
    ValkeyModule_CallReplyPromiseSetUnblockHandler(reply, arrived, bc);
    return VALKEYMODULE_OK;
}

static ValkeyModuleCallReply *kept;

static int keepCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    kept = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[1], NULL), "Ev", argv + 2,
                             (size_t)argc - 2);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int keptCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    spoil();
    ValkeyModuleString *text = ValkeyModule_CreateStringFromCallReply(kept);
    ValkeyModule_ReplyWithString(ctx, text);
    ValkeyModule_FreeString(NULL, text);
    spoil();
    ValkeyModule_FreeCallReply(kept);
    kept = NULL;
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ threads */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER;
static long long permits;

static void waitForGo(void) {
    pthread_mutex_lock(&lock);
    while (!permits) pthread_cond_wait(&go, &lock);
    permits--;
    pthread_mutex_unlock(&lock);
}

static int goCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    pthread_mutex_lock(&lock);
    permits++;
    pthread_cond_signal(&go);
    pthread_mutex_unlock(&lock);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

typedef struct job {
    ValkeyModuleBlockedClient *bc;
    ValkeyModuleString **argv;
    int argc;
} job;

static int start(void *(*proc)(void *), ValkeyModuleBlockedClient *bc, ValkeyModuleString **argv,
                 int argc) {
    job *j = ValkeyModule_Alloc(sizeof(*j));
    *j = (job){bc, argv, argc};
    pthread_t id;
    if (pthread_create(&id, NULL, proc, j)) return VALKEYMODULE_ERR;
    return pthread_detach(id);
}

static void *replyWithArgs(void *arg) {
    job *j = arg;
    waitForGo();
    ValkeyModuleCtx *ctx = ValkeyModule_GetThreadSafeContext(j->bc);
    ValkeyModule_ReplyWithArray(ctx, j->argc);
    for (int i = 0; i < j->argc; i++) ValkeyModule_ReplyWithString(ctx, j->argv[i]);
    ValkeyModule_FreeThreadSafeContext(ctx);
    ValkeyModule_UnblockClient(j->bc, NULL);
    ValkeyModule_Free(j);
    return NULL;
}

static int laterCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return start(replyWithArgs, ValkeyModule_BlockClient(ctx, NULL, NULL, NULL, 0), argv, argc);
}

static char seen_login[128];

static void *answerLogin(void *arg) {
    job *j = arg;
    waitForGo();
    snprintf(seen_login, sizeof(seen_login), "%s/%s", ValkeyModule_StringPtrLen(j->argv[0], NULL),
             ValkeyModule_StringPtrLen(j->argv[1], NULL));
    ValkeyModule_BlockedClientMeasureTimeEnd(j->bc);
    ValkeyModule_UnblockClient(j->bc, NULL);
    ValkeyModule_Free(j);
    return NULL;
}

static int acceptLogin(ValkeyModuleCtx *ctx, ValkeyModuleString *user, ValkeyModuleString *password,
                       ValkeyModuleString **error) {
    (void)user, (void)password, (void)error;
    if (strcmp(seen_login, "thread/secret") != 0) return VALKEYMODULE_AUTH_NOT_HANDLED;
    ValkeyModule_AuthenticateClientWithACLUser(ctx, "default", 7, NULL, NULL, NULL);
    return VALKEYMODULE_AUTH_HANDLED;
}

static int login(ValkeyModuleCtx *ctx, ValkeyModuleString *user, ValkeyModuleString *password,
                 ValkeyModuleString **error) {
    (void)error;
    static ValkeyModuleString *given[2];
    if (strcmp(ValkeyModule_StringPtrLen(user, NULL), "thread") != 0)
        return VALKEYMODULE_AUTH_NOT_HANDLED;
    given[0] = user;
    given[1] = password;
    ValkeyModuleBlockedClient *bc = ValkeyModule_BlockClientOnAuth(ctx, acceptLogin, NULL);
    ValkeyModule_BlockedClientMeasureTimeStart(bc);
    start(answerLogin, bc, given, 2);
    return VALKEYMODULE_AUTH_HANDLED;
}

/* ------------------------------------------------------------------ giving up */

static void countFree(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx, (void)data;
    frees++;
}

static int abortCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModuleBlockedClient *bc = ValkeyModule_BlockClient(ctx, NULL, NULL, countFree, 0);
    ValkeyModule_BlockClientSetPrivateData(bc, &frees);
    return ValkeyModule_AbortBlock(bc);
}

static int countsCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, frees);
    return ValkeyModule_ReplyWithLongLong(ctx, disconnects);
}

/* ------------------------------------------------------------------ calls */

static int callCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 3) return ValkeyModule_WrongArity(ctx);
    char format[16];
    snprintf(format, sizeof(format), "%sv", ValkeyModule_StringPtrLen(argv[1], NULL));
    errno = 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[2], NULL),
                                                     format, argv + 3, (size_t)argc - 3);
    if (!reply) {
        ValkeyModuleString *text = ValkeyModule_CreateStringPrintf(ctx, "NULL %d", errno);
        ValkeyModule_ReplyWithString(ctx, text);
        ValkeyModule_FreeString(ctx, text);
        return VALKEYMODULE_OK;
    }
    if (ValkeyModule_ReplyWithCallReply(ctx, reply) != VALKEYMODULE_OK)
        ValkeyModule_ReplyWithSimpleString(ctx, "not passed on");
    ValkeyModule_FreeCallReply(reply);
    return VALKEYMODULE_OK;
}

typedef struct noted {
    long long available, bytes, parse_errors;
} noted;

static int noteAvailable(void *arg, ValkeyModuleCtx *ctx, const char *bytes, size_t len) {
    (void)ctx, (void)bytes;
    noted *n = arg;
    n->available++;
    n->bytes += (long long)len;
    return 1;
}

static void noteParseError(void *arg) { ((noted *)arg)->parse_errors++; }

static int argvCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    static const ValkeyModuleReplyHandlers handlers = {.version =
                                                           VALKEYMODULE_REPLY_HANDLERS_VERSION,
                                                       .onRespAvailable = noteAvailable,
                                                       .replyParsingError = noteParseError};
    long long flags, handled;
    if (argc < 4 || ValkeyModule_StringToLongLong(argv[1], &flags) ||
        ValkeyModule_StringToLongLong(argv[2], &handled))
        return ValkeyModule_WrongArity(ctx);
    noted n = {0, 0, 0};
    int result = VM_CallArgv(ctx, argv + 3, argc - 3, (int)flags, handled ? &handlers : NULL, &n);
    ValkeyModule_ReplyWithArray(ctx, 4);
    ValkeyModule_ReplyWithLongLong(ctx, result);
    ValkeyModule_ReplyWithLongLong(ctx, n.available);
    ValkeyModule_ReplyWithLongLong(ctx, n.bytes);
    return ValkeyModule_ReplyWithLongLong(ctx, n.parse_errors);
}

/* ------------------------------------------------------------------ flags of contexts */

static char denials[512];

static int isDenied(ValkeyModuleCtx *ctx) {
    return (ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING) != 0;
}

static void note(ValkeyModuleCtx *ctx, const char *where) {
    if (isDenied(ctx) && strlen(denials) + strlen(where) + 2 < sizeof(denials))
        strcat(strcat(denials, where), " ");
}

static int deniedCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithLongLong(ctx, isDenied(ctx));
}

static int denialsCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithCString(ctx, denials);
    denials[0] = '\0';
    return VALKEYMODULE_OK;
}

static int endMeasure(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModuleBlockedClient *bc = ValkeyModule_GetBlockedClientHandle(ctx);
    ValkeyModule_BlockedClientMeasureTimeEnd(bc);
    /* The handle of a client whose time is over remains the module's. */
    if (ValkeyModule_IsBlockedTimeoutRequest(ctx)) ValkeyModule_UnblockClient(bc, NULL);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int measureCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    bool is_timeout = !strcmp(ValkeyModule_StringPtrLen(argv[1], NULL), "timeout");
    ValkeyModuleBlockedClient *bc =
        is_timeout ? ValkeyModule_BlockClient(ctx, NULL, endMeasure, NULL, 40)
                   : ValkeyModule_BlockClientOnKeys(ctx, endMeasure, endMeasure, NULL, 0, argv + 1,
                                                    1, NULL);
    return ValkeyModule_BlockedClientMeasureTimeStart(bc);
}

static void inTimer(ValkeyModuleCtx *ctx, void *bc) {
    note(ctx, "timer");
    ValkeyModuleCtx *own = ValkeyModule_GetThreadSafeContext(bc);
    note(own, "thread");
    static const char *formats[] = {"", "K"};
    ValkeyModule_ReplyWithArray(own, 2);
    for (int i = 0; i < 2; i++) {
        ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "contexts.denied", formats[i]);
        ValkeyModule_ReplyWithCallReply(own, reply);
        ValkeyModule_FreeCallReply(reply);
    }
    ValkeyModule_FreeThreadSafeContext(own);
    ValkeyModule_UnblockClient(bc, NULL);
}

static int timerCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_CreateTimer(ctx, 1, inTimer, ValkeyModule_BlockClient(ctx, NULL, NULL, NULL, 0));
    return VALKEYMODULE_OK;
}

static void inJob(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    note(ctx, "job");
}

static int inKeyEvent(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)type, (void)event, (void)key;
    note(ctx, "key-event");
    return ValkeyModule_AddPostNotificationJob(ctx, inJob, NULL, NULL);
}

static void inFlush(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    (void)event, (void)sub, (void)data;
    note(ctx, "flush");
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"contexts.promise", promiseCommand}, {"contexts.keep", keepCommand},
                {"contexts.kept", keptCommand},       {"contexts.later", laterCommand},
                {"contexts.go", goCommand},           {"contexts.abort", abortCommand},
                {"contexts.counts", countsCommand},   {"contexts.call", callCommand},
                {"contexts.argv", argvCommand},       {"contexts.denied", deniedCommand},
                {"contexts.denials", denialsCommand}, {"contexts.timer", timerCommand},
                {"contexts.measure", measureCommand}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "contexts", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    note(ctx, "load");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    ValkeyModule_RegisterAuthCallback(ctx, login);
    ValkeyModule_SubscribeToKeyspaceEvents(ctx, VALKEYMODULE_NOTIFY_STRING, inKeyEvent);
    return ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_FlushDB, inFlush);
}
