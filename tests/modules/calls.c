/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: commands that modules run.
 *
 *     CALLS.RUN modifiers command arg...   runs the command with these modifiers of Call(), "-" for
 *                                          none, and passes the reply on; without a reply: errno
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "valkeymodule.h"

static int run(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    const char *modifiers = ValkeyModule_StringPtrLen(argv[1], NULL);
    char format[16];
    (void)snprintf(format, sizeof(format), "%sv", strcmp(modifiers, "-") ? modifiers : "");
    errno = 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[2], NULL),
                                                     format, argv + 3, (size_t)argc - 3);
    if (reply) return ValkeyModule_ReplyWithCallReply(ctx, reply);
    return ValkeyModule_ReplyWithErrorFormat(ctx, "ERRNO %d", errno);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "calls", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    return ValkeyModule_CreateCommand(ctx, "calls.run", run, "allow-stale", 0, 0, 0);
}
