/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: blocked clients, threads and calls that wait.
 *
 *     BLOCKED.WAIT ms             blocks; BLOCKED.RELEASE text replies, a timeout replies "late"
 *     BLOCKED.BARE ms             the same without callbacks
 *     BLOCKED.TIMER ms text       the same as BLOCKED.WAIT, ended by a timer after the same time
 *     BLOCKED.RELEASE text        ends the oldest wait; its reply is the number of waits before
 *     BLOCKED.ABORT               the same by AbortBlock()
 *     BLOCKED.KEY key ms          blocks until the key is a list, whose length is the reply
 *     BLOCKED.THREAD command ...  a thread runs a command with the lock and passes its reply on
 *     BLOCKED.STORM count         four threads increment the key storm that many times each
 *     BLOCKED.CALL command ...    a call that may wait
 *     BLOCKED.SEEN                how many handles were freed, of these without a client, and how
 *                                 many clients have disconnected */
#include <pthread.h>
#include <string.h>

#include "valkeymodule.h"

enum { WAITS_MAX = 64, THREADS = 4 };
static ValkeyModuleBlockedClient *waits[WAITS_MAX];
static int wait_count;
static long long freed, gone, disconnected;

static void freeText(ValkeyModuleCtx *ctx, void *text) {
    freed++;
    gone += ValkeyModule_BlockedClientDisconnected(ctx);
    ValkeyModule_Free(text);
}

static int replyText(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (!ValkeyModule_IsBlockedReplyRequest(ctx)) return VALKEYMODULE_ERR;
    return ValkeyModule_ReplyWithCString(ctx, ValkeyModule_GetBlockedClientPrivateData(ctx));
}

static int replyLate(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (!ValkeyModule_IsBlockedTimeoutRequest(ctx)) return VALKEYMODULE_ERR;
    return ValkeyModule_ReplyWithSimpleString(ctx, "late");
}

static void noteDisconnected(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *bc) {
    (void)ctx, (void)bc;
    disconnected++;
}

static int block(ValkeyModuleCtx *ctx, ValkeyModuleString *ms_text, ValkeyModuleCmdFunc reply,
                 ValkeyModuleCmdFunc late) {
    long long ms;
    if (ValkeyModule_StringToLongLong(ms_text, &ms) || wait_count == WAITS_MAX)
        return ValkeyModule_ReplyWithError(ctx, "ERR cannot wait");
    ValkeyModuleBlockedClient *bc = ValkeyModule_BlockClient(ctx, reply, late, freeText, ms);
    if (!bc) return ValkeyModule_ReplyWithError(ctx, "ERR no handle");
    ValkeyModule_SetDisconnectCallback(bc, noteDisconnected);
    waits[wait_count++] = bc;
    return VALKEYMODULE_OK;
}

static int waitCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    return block(ctx, argv[1], replyText, replyLate);
}

typedef struct timedText {
    ValkeyModuleBlockedClient *bc;
    ValkeyModuleString *text;
} timedText;

static void timerReplies(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx;
    timedText *t = data;
    const char *text = ValkeyModule_StringPtrLen(t->text, NULL);
    ValkeyModule_UnblockClient(t->bc, strcpy(ValkeyModule_Alloc(strlen(text) + 1), text));
    ValkeyModule_FreeString(NULL, t->text);
    ValkeyModule_Free(t);
}

static int timerCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long ms;
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    int result = block(ctx, argv[1], replyText, replyLate);
    timedText *t = ValkeyModule_Alloc(sizeof(*t));
    t->bc = waits[--wait_count];
    t->text = ValkeyModule_CreateStringFromString(NULL, argv[2]);
    ValkeyModule_StringToLongLong(argv[1], &ms);
    ValkeyModule_CreateTimer(ctx, ms, timerReplies, t);
    return result;
}

static int bareCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    return block(ctx, argv[1], NULL, NULL);
}

static ValkeyModuleBlockedClient *takeOldest(void) {
    ValkeyModuleBlockedClient *bc = waits[0];
    memmove(waits, waits + 1, sizeof(waits[0]) * (WAITS_MAX - 1));
    wait_count--;
    return bc;
}

static int releaseCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_ReplyWithLongLong(ctx, wait_count);
    if (!wait_count) return VALKEYMODULE_OK;
    char *text = ValkeyModule_Strdup(ValkeyModule_StringPtrLen(argv[1], NULL));
    return ValkeyModule_UnblockClient(takeOldest(), text);
}

static int abortCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithLongLong(ctx, wait_count);
    return wait_count ? ValkeyModule_AbortBlock(takeOldest()) : VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ keys */

static int replyLength(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModuleString *name = ValkeyModule_GetBlockedClientReadyKey(ctx);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ);
    int is_list = ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_LIST;
    if (is_list) ValkeyModule_ReplyWithLongLong(ctx, (long long)ValkeyModule_ValueLength(key));
    ValkeyModule_CloseKey(key);
    return is_list ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

static int keyCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long ms;
    if (argc != 3 || ValkeyModule_StringToLongLong(argv[2], &ms))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_BlockClientOnKeys(ctx, replyLength, replyLate, NULL, ms, &argv[1], 1, NULL);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ threads */

typedef struct job {
    ValkeyModuleBlockedClient *bc;
    ValkeyModuleString **argv;
    int argc;
    long long count;
    pthread_t threads[THREADS];
} job;

static void freeJob(job *j) {
    for (int i = 0; i < j->argc; i++) ValkeyModule_FreeString(NULL, j->argv[i]);
    ValkeyModule_Free(j->argv);
    ValkeyModule_Free(j);
}

static void *runJob(void *arg) {
    job *j = arg;
    ValkeyModuleCtx *ctx = ValkeyModule_GetThreadSafeContext(j->bc);
    ValkeyModule_BlockedClientMeasureTimeStart(j->bc);
    ValkeyModule_ThreadSafeContextLock(ctx);
    const char *name = ValkeyModule_StringPtrLen(j->argv[0], NULL);
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(ctx, name, "!Ev", j->argv + 1, (size_t)j->argc - 1);
    ValkeyModule_ReplyWithCallReply(ctx, reply);
    ValkeyModule_FreeCallReply(reply);
    ValkeyModule_ThreadSafeContextUnlock(ctx);
    ValkeyModule_BlockedClientMeasureTimeEnd(j->bc);
    ValkeyModule_FreeThreadSafeContext(ctx);
    ValkeyModule_UnblockClient(j->bc, NULL);
    freeJob(j);
    return NULL;
}

static job *newJob(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    job *j = ValkeyModule_Calloc(1, sizeof(*j));
    j->argv = ValkeyModule_Calloc((size_t)argc + 1, sizeof(*j->argv));
    j->argc = argc;
    for (int i = 0; i < argc; i++) j->argv[i] = ValkeyModule_CreateStringFromString(NULL, argv[i]);
    j->bc = ValkeyModule_BlockClient(ctx, NULL, NULL, NULL, 0);
    return j;
}

static int threadCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    job *j = newJob(ctx, argv + 1, argc - 1);
    pthread_t id;
    if (pthread_create(&id, NULL, runJob, j)) return VALKEYMODULE_ERR;
    return pthread_detach(id);
}

static void *increment(void *arg) {
    job *j = arg;
    ValkeyModuleCtx *ctx = ValkeyModule_GetDetachedThreadSafeContext(NULL);
    for (long long i = 0; i < j->count; i++) {
        ValkeyModule_ThreadSafeContextLock(ctx);
        ValkeyModule_FreeCallReply(ValkeyModule_Call(ctx, "INCR", "!c", "storm"));
        ValkeyModule_ThreadSafeContextUnlock(ctx);
    }
    ValkeyModule_FreeThreadSafeContext(ctx);
    return NULL;
}

static void *runStorm(void *arg) {
    job *j = arg;
    for (int i = 0; i < THREADS; i++) pthread_create(&j->threads[i], NULL, increment, j);
    for (int i = 0; i < THREADS; i++) pthread_join(j->threads[i], NULL);
    ValkeyModuleCtx *ctx = ValkeyModule_GetThreadSafeContext(j->bc);
    ValkeyModule_ReplyWithLongLong(ctx, j->count * THREADS);
    ValkeyModule_FreeThreadSafeContext(ctx);
    ValkeyModule_UnblockClient(j->bc, NULL);
    freeJob(j);
    return NULL;
}

static int stormCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long count;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &count))
        return ValkeyModule_WrongArity(ctx);
    job *j = newJob(ctx, NULL, 0);
    j->count = count;
    pthread_t id;
    if (pthread_create(&id, NULL, runStorm, j)) return VALKEYMODULE_ERR;
    return pthread_detach(id);
}

/* ------------------------------------------------------------------ calls that wait */

static void pass(ValkeyModuleBlockedClient *bc, ValkeyModuleCallReply *reply) {
    ValkeyModuleCtx *ctx = ValkeyModule_GetThreadSafeContext(bc);
    ValkeyModule_ReplyWithCallReply(ctx, reply);
    ValkeyModule_FreeThreadSafeContext(ctx);
    ValkeyModule_FreeCallReply(reply);
    ValkeyModule_UnblockClient(bc, NULL);
}

static void arrived(ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply, void *bc) {
    ValkeyModule_FreeCallReply(ValkeyModule_Call(ctx, "INCR", "!c", "arrived"));
    pass(bc, reply);
}

static int callCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleBlockedClient *bc = ValkeyModule_BlockClient(ctx, NULL, NULL, NULL, 0);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[1], NULL),
                                                     "!EKv", argv + 2, (size_t)argc - 2);
    if (ValkeyModule_CallReplyType(reply) != VALKEYMODULE_REPLY_PROMISE) {
        pass(bc, reply);
        return VALKEYMODULE_OK;
    }
    ValkeyModule_CallReplyPromiseSetUnblockHandler(reply, arrived, bc);
    ValkeyModule_FreeCallReply(reply);
    return VALKEYMODULE_OK;
}

static int seenCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, freed);
    ValkeyModule_ReplyWithLongLong(ctx, gone);
    return ValkeyModule_ReplyWithLongLong(ctx, disconnected);
}

/* The user `later` is asked for its password when the client is unblocked, which is at once. */
static int authReply(ValkeyModuleCtx *ctx, ValkeyModuleString *user, ValkeyModuleString *password,
                     ValkeyModuleString **error) {
    (void)user, (void)error;
    size_t len;
    const char *text = ValkeyModule_StringPtrLen(password, &len);
    if (len != 3 || memcmp(text, "yes", len) != 0) return VALKEYMODULE_AUTH_NOT_HANDLED;
    ValkeyModule_AuthenticateClientWithACLUser(ctx, "default", 7, NULL, NULL, NULL);
    return VALKEYMODULE_AUTH_HANDLED;
}

static int authBlocking(ValkeyModuleCtx *ctx, ValkeyModuleString *user,
                        ValkeyModuleString *password, ValkeyModuleString **error) {
    (void)password, (void)error;
    size_t len;
    const char *name = ValkeyModule_StringPtrLen(user, &len);
    if (len != 5 || memcmp(name, "later", len) != 0) return VALKEYMODULE_AUTH_NOT_HANDLED;
    ValkeyModuleBlockedClient *bc = ValkeyModule_BlockClientOnAuth(ctx, authReply, NULL);
    ValkeyModule_UnblockClient(bc, NULL);
    return VALKEYMODULE_AUTH_HANDLED;
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"blocked.wait", waitCommand},     {"blocked.bare", bareCommand},
                {"blocked.timer", timerCommand},   {"blocked.release", releaseCommand},
                {"blocked.abort", abortCommand},   {"blocked.key", keyCommand},
                {"blocked.thread", threadCommand}, {"blocked.storm", stormCommand},
                {"blocked.call", callCommand},     {"blocked.seen", seenCommand}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "blocked", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    ValkeyModule_RegisterAuthCallback(ctx, authBlocking); /* two in a row */
    ValkeyModule_RegisterAuthCallback(ctx, authBlocking);
    return VALKEYMODULE_OK;
}
