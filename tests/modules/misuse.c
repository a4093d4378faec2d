/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests that does what a module must not do; the server goes on.
 *
 *     MISUSE.OPEN          replies containers whose length is never said
 *     MISUSE.CLOSE         says the length of a container that was not begun
 *     MISUSE.SCRIPTMODE    a call that fails in script mode, without errors as replies
 *     MISUSE.FORMAT        a call whose format has no meaning
 *     MISUSE.NESTED depth  calls itself so often
 *     MISUSE.APPEND value  appends to a string that the server holds
 *     MISUSE.NULL          asks replies and keys that are NULL, as those of calls that have failed
 *                          and of missing keys are */
#include <errno.h>

#include "valkeymodule.h"

static int leaveOpen(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    ValkeyModule_ReplyWithLongLong(ctx, 1);
    ValkeyModule_ReplyWithMap(ctx, VALKEYMODULE_POSTPONED_LEN);
    return ValkeyModule_ReplyWithLongLong(ctx, 2);
}

static int closeNothing(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplySetArrayLength(ctx, 3);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int replyErrno(ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply) {
    if (reply) return ValkeyModule_ReplyWithCallReply(ctx, reply);
    return ValkeyModule_ReplyWithSimpleString(ctx, errno == ESPIPE  ? "ESPIPE"
                                                   : errno == EBADF ? "EBADF"
                                                   : errno == ELOOP ? "ELOOP"
                                                                    : "other");
}

static int scriptMode(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_AutoMemory(ctx);
    return replyErrno(ctx, ValkeyModule_Call(ctx, "BGSAVE", "S"));
}

static int format(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_AutoMemory(ctx);
    return replyErrno(ctx, ValkeyModule_Call(ctx, "GET", "?"));
}

static int nested(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long depth;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &depth))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    if (depth == 0) return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    return replyErrno(ctx, ValkeyModule_Call(ctx, "MISUSE.NESTED", "l", depth - 1));
}

static int append(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_RetainString(NULL, argv[1]);
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_StringAppendBuffer(ctx, argv[1], "x", 1));
    ValkeyModule_FreeString(NULL, argv[1]);
    return ValkeyModule_ReplyWithString(ctx, argv[1]);
}

static int askReply(void) {
    ValkeyModuleCallReply *key, *value;
    const char *format;
    size_t len = 1;
    void *data;
    int told = ValkeyModule_CallReplyType(NULL) != VALKEYMODULE_REPLY_UNKNOWN;
    told += ValkeyModule_CallReplyProto(NULL, &len) != NULL || len;
    told += ValkeyModule_CallReplyProto(NULL, NULL) != NULL;
    told += ValkeyModule_CallReplyLength(NULL) != 0;
    told +=
        ValkeyModule_CallReplyArrayElement(NULL, 0) || ValkeyModule_CallReplySetElement(NULL, 0);
    told += ValkeyModule_CallReplyMapElement(NULL, 0, &key, &value) == VALKEYMODULE_OK;
    told += ValkeyModule_CallReplyAttribute(NULL) != NULL;
    told += ValkeyModule_CallReplyAttributeElement(NULL, 0, &key, &value) == VALKEYMODULE_OK;
    told += ValkeyModule_CallReplyStringPtr(NULL, &len) != NULL;
    told += ValkeyModule_CallReplyBigNumber(NULL, &len) != NULL;
    told += ValkeyModule_CallReplyVerbatim(NULL, &len, &format) != NULL;
    told += ValkeyModule_CreateStringFromCallReply(NULL) != NULL;
    told += ValkeyModule_CallReplyPromiseAbort(NULL, &data) == VALKEYMODULE_OK;
    (void)ValkeyModule_CallReplyInteger(NULL);
    (void)ValkeyModule_CallReplyDouble(NULL);
    (void)ValkeyModule_CallReplyBool(NULL);
    ValkeyModule_CallReplyPromiseSetUnblockHandler(NULL, NULL, NULL);
    ValkeyModule_FreeCallReply(NULL);
    return told;
}

static int askKey(void) {
    double score;
    size_t len;
    int told = ValkeyModule_KeyType(NULL) != VALKEYMODULE_KEYTYPE_EMPTY;
    told += ValkeyModule_ValueLength(NULL) != 0;
    told += ValkeyModule_DeleteKey(NULL) == VALKEYMODULE_OK;
    told += ValkeyModule_UnlinkKey(NULL) == VALKEYMODULE_OK;
    told += ValkeyModule_GetKeyNameFromModuleKey(NULL) != NULL;
    told += ValkeyModule_StringDMA(NULL, &len, VALKEYMODULE_READ) != NULL;
    told += ValkeyModule_ListPop(NULL, VALKEYMODULE_LIST_HEAD) || ValkeyModule_ListGet(NULL, 0);
    told += ValkeyModule_ZsetRangeCurrentElement(NULL, &score) != NULL;
    told += ValkeyModule_ModuleTypeGetType(NULL) || ValkeyModule_ModuleTypeGetValue(NULL);
    ValkeyModule_ZsetRangeStop(NULL);
    ValkeyModule_CloseKey(NULL);
    return told;
}

static int askNull(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (askReply() || askKey()) return ValkeyModule_ReplyWithError(ctx, "ERR told something");
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"misuse.open", leaveOpen},        {"misuse.close", closeNothing},
                {"misuse.scriptmode", scriptMode}, {"misuse.format", format},
                {"misuse.nested", nested},         {"misuse.append", append},
                {"misuse.null", askNull}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "misuse", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    /* What is not possible any more, or was never. */
    if (ValkeyModule_CreateCommand(ctx, "misuse.open", format, "", 0, 0, 0) == VALKEYMODULE_OK ||
        ValkeyModule_CreateCommand(ctx, "get", format, "", 0, 0, 0) == VALKEYMODULE_OK ||
        ValkeyModule_CreateCommand(ctx, "two words", format, "", 0, 0, 0) == VALKEYMODULE_OK ||
        ValkeyModule_CreateCommand(ctx, "misuse.x", format, "nothing", 0, 0, 0) ==
            VALKEYMODULE_OK ||
        ValkeyModule_CreateCommand(ctx, "misuse.x", format, "write  fast", 0, 0, 0) ==
            VALKEYMODULE_OK)
        return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}
