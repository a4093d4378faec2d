/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The smallest kind of module: commands.
 *
 *     HELLO.GREET name     how often the name was greeted, counted in the key hello:<name>
 *     HELLO.ECHO value...  the arguments, as an array of a length that is known at its end */
#include "valkeymodule.h"

static int greet(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx); /* what is made below ends with the call */
    ValkeyModuleString *key = ValkeyModule_CreateStringPrintf(
        ctx, "hello:%s", ValkeyModule_StringPtrLen(argv[1], NULL));
    /* '!' propagates the command that is called; this one itself is not. */
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "INCR", "!s", key);
    if (!reply) return ValkeyModule_ReplyWithError(ctx, "ERR the name cannot be counted");
    return ValkeyModule_ReplyWithCallReply(ctx, reply);
}

static int echo(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    ValkeyModule_ReplyWithArray(ctx, VALKEYMODULE_POSTPONED_LEN);
    long count = 0;
    for (int i = 1; i < argc; i++) {
        long long number;
        if (ValkeyModule_StringToLongLong(argv[i], &number) == VALKEYMODULE_OK) {
            ValkeyModule_ReplyWithLongLong(ctx, number);
        } else {
            ValkeyModule_ReplyWithString(ctx, argv[i]);
        }
        count++;
    }
    ValkeyModule_ReplySetArrayLength(ctx, count);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_Init(ctx, "hellocommand", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (int i = 0; i < argc; i++) {
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_NOTICE, "argument %d: %s", i,
                         ValkeyModule_StringPtrLen(argv[i], NULL));
    }
    if (ValkeyModule_CreateCommand(ctx, "hello.greet", greet, "write deny-oom", 0, 0, 0) ==
            VALKEYMODULE_ERR ||
        ValkeyModule_CreateCommand(ctx, "hello.echo", echo, "readonly fast", 0, 0, 0) ==
            VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}
