/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests that uses a function of another one, settings.c.
 *
 *     SHARING.TWICE number    null: the other module is not loaded */
#include "valkeymodule.h"

static int twice(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long number;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &number))
        return ValkeyModule_WrongArity(ctx);
    long long (*func)(long long) =
        (long long (*)(long long))ValkeyModule_GetSharedAPI(ctx, "settings.twice");
    if (!func) return ValkeyModule_ReplyWithNull(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, func(number));
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "sharing", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    return ValkeyModule_CreateCommand(ctx, "sharing.twice", twice, "", 0, 0, 0);
}
