/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: keyspace events whose callback writes, or blocks the client.
 *
 *     NOTICES.WRITE event...   these events write: INCR wrote:<event>, in a transaction
 *                              wrote:multi:<event>, propagated; no events: none, `*`: all
 *     NOTICES.BLOCK event...   these block the client of the command, until
 *     NOTICES.UNBLOCK          which replies how many were blocked; NOTICES.ABORT: by AbortBlock()
 *     NOTICES.MODE mode [ms]   how they block: `silent` (the reply callback replies nothing),
 *                              `none` (there is none), `more` (it replies more); with a timeout
 *     NOTICES.ENDS             how many have disconnected, how many handles were freed
 *     NOTICES.SEEN             what BlockClient() has returned since the last call: OK or its errno
 *     NOTICES.CALL word...     calls a command, propagated
 *     NOTICES.CALLSILENTLY word...   which is not propagated
 *
 * Keys that begin with "wrote:" or "quiet" have no effect. */
#include <string.h>

#include "replies.h"
#include "valkeymodule.h"

enum { EVENTS_MAX = 8, BLOCKED_MAX = 16, NAME_MAX_LEN = 32 };

typedef struct eventList {
    int count;
    char names[EVENTS_MAX][NAME_MAX_LEN];
} eventList;

static eventList writing, blocking;
static ValkeyModuleBlockedClient *blocked[BLOCKED_MAX];
static int blocked_count;
static int results[BLOCKED_MAX]; /* errno, -1: it was blocked */
static int result_count;

enum { SILENT, NONE, MORE };
static int mode;
static long long timeout_ms, disconnected, freed;

static int has(const eventList *l, const char *event) {
    for (int i = 0; i < l->count; i++) {
        if (!strcmp(l->names[i], event) || !strcmp(l->names[i], "*")) return 1;
    }
    return 0;
}

static int take(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, eventList *to) {
    if (argc - 1 > EVENTS_MAX) return ValkeyModule_WrongArity(ctx);
    to->count = 0;
    for (int i = 1; i < argc; i++) {
        char *name = to->names[to->count++];
        strncpy(name, ValkeyModule_StringPtrLen(argv[i], NULL), NAME_MAX_LEN - 1);
    }
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int writeCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return take(ctx, argv, argc, &writing);
}

static int blockCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return take(ctx, argv, argc, &blocking);
}

static int unblock(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    int count = blocked_count;
    while (blocked_count) ValkeyModule_UnblockClient(blocked[--blocked_count], &freed);
    return ValkeyModule_ReplyWithLongLong(ctx, count);
}

static int seen(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, result_count);
    for (int i = 0; i < result_count; i++) {
        errno = results[i];
        replyResult(ctx, results[i] < 0 ? VALKEYMODULE_OK : VALKEYMODULE_ERR);
    }
    result_count = 0;
    return VALKEYMODULE_OK;
}

static int callAs(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, const char *format) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    const char *name = ValkeyModule_StringPtrLen(argv[1], NULL);
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(ctx, name, format, argv + 2, (size_t)(argc - 2));
    ValkeyModule_ReplyWithCallReply(ctx, reply);
    ValkeyModule_FreeCallReply(reply);
    return VALKEYMODULE_OK;
}

static int call(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return callAs(ctx, argv, argc, "!Ev");
}

static int callSilently(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return callAs(ctx, argv, argc, "Ev");
}

static int modeCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    const char *name = ValkeyModule_StringPtrLen(argv[1], NULL);
    mode = !strcmp(name, "none") ? NONE : !strcmp(name, "more") ? MORE : SILENT;
    timeout_ms = 0;
    if (argc > 2) (void)ValkeyModule_StringToLongLong(argv[2], &timeout_ms);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int ends(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, disconnected);
    return ValkeyModule_ReplyWithLongLong(ctx, freed);
}

static int abortCommand(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    int count = blocked_count;
    while (blocked_count) ValkeyModule_AbortBlock(blocked[--blocked_count]);
    return ValkeyModule_ReplyWithLongLong(ctx, count);
}

static int replyEnd(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return mode == MORE ? ValkeyModule_ReplyWithSimpleString(ctx, "more") : VALKEYMODULE_OK;
}

static int replyLate(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return mode == MORE ? ValkeyModule_ReplyWithSimpleString(ctx, "late") : VALKEYMODULE_OK;
}

static void noteDisconnected(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *bc) {
    (void)ctx, (void)bc;
    disconnected++;
}

static void noteFreed(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx, (void)data;
    freed++;
}

static void block(ValkeyModuleCtx *ctx) {
    if (blocked_count == BLOCKED_MAX || result_count == BLOCKED_MAX) return;
    errno = 0;
    ValkeyModuleBlockedClient *b =
        ValkeyModule_BlockClient(ctx, mode == NONE ? NULL : replyEnd,
                                 mode == NONE ? NULL : replyLate, noteFreed, timeout_ms);
    results[result_count++] = b ? -1 : errno;
    if (b) ValkeyModule_SetDisconnectCallback(b, noteDisconnected);
    if (b) blocked[blocked_count++] = b;
}

static int onEvent(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)type;
    const char *name = ValkeyModule_StringPtrLen(key, NULL);
    if (!strncmp(name, "wrote:", 6) || !strncmp(name, "quiet", 5)) return VALKEYMODULE_OK;
    if (!strncmp(name, "reads:", 6)) { /* as the command may have done with other keys */
        ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "GET", "c", name + 6);
        if (reply) ValkeyModule_FreeCallReply(reply);
    }
    if (has(&writing, event)) {
        int in_multi = ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_MULTI;
        ValkeyModuleString *to =
            ValkeyModule_CreateStringPrintf(ctx, in_multi ? "wrote:multi:%s" : "wrote:%s", event);
        ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "INCR", "!s", to);
        if (reply) ValkeyModule_FreeCallReply(reply);
        ValkeyModule_FreeString(ctx, to);
    }
    if (has(&blocking, event)) block(ctx);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "notices", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    static const struct {
        const char *name;
        ValkeyModuleCmdFunc func;
    } commands[] = {{"notices.write", writeCommand}, {"notices.block", blockCommand},
                    {"notices.unblock", unblock},    {"notices.seen", seen},
                    {"notices.call", call},          {"notices.callsilently", callSilently},
                    {"notices.mode", modeCommand},   {"notices.abort", abortCommand},
                    {"notices.ends", ends}};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0) ==
            VALKEYMODULE_ERR)
            return VALKEYMODULE_ERR;
    }
    return ValkeyModule_SubscribeToKeyspaceEvents(
        ctx, VALKEYMODULE_NOTIFY_ALL | VALKEYMODULE_NOTIFY_NEW | VALKEYMODULE_NOTIFY_KEY_MISS,
        onEvent);
}
