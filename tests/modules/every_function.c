/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests of `module-checks yes`: it calls each function that takes handles with wrong
 * ones. The list is generated, so no function can be forgotten.
 *
 *     EVERY.NAMES        the functions
 *     EVERY.FREED name   calls it with handles that were freed
 *     EVERY.NULL name    calls it with NULL for each handle, and 0 for all else
 *     EVERY.CONTEXT name the same with a valid context */
#include <stddef.h>
#include <string.h>

#include "valkeymodule.h"

typedef struct trial {
    const char *name;
    void (*call)(ValkeyModuleCtx *ctx, void *bad);
} trial;
#include "generated/every_function.h"

enum { TRIALS = sizeof(trials) / sizeof(trials[0]) };

static int names(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, TRIALS);
    for (size_t i = 0; i < TRIALS; i++) ValkeyModule_ReplyWithCString(ctx, trials[i].name);
    return VALKEYMODULE_OK;
}

static int callNamed(ValkeyModuleCtx *ctx, ValkeyModuleString *name, ValkeyModuleCtx *given,
                     void *bad) {
    const char *text = ValkeyModule_StringPtrLen(name, NULL);
    for (size_t i = 0; i < TRIALS; i++) {
        if (strcmp(trials[i].name, text) != 0) continue;
        trials[i].call(given, bad);
        return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    }
    return ValkeyModule_ReplyWithError(ctx, "ERR unknown function");
}

static int callFreed(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    static int no_handle[8];
    return callNamed(ctx, argv[1], (ValkeyModuleCtx *)no_handle, no_handle);
}

static int callNull(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    return callNamed(ctx, argv[1], NULL, NULL);
}

static int callWithContext(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    return callNamed(ctx, argv[1], ctx, NULL);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "every", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR ||
        ValkeyModule_CreateCommand(ctx, "every.names", names, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "every.freed", callFreed, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "every.null", callNull, "", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "every.context", callWithContext, "", 0, 0, 0))
        return VALKEYMODULE_ERR;
    return VALKEYMODULE_OK;
}
