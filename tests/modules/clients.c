/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: what contexts say of clients and of the server.
 *
 *     CLIENTS.FLAGS        flags of the context, without and with one
 *     CLIENTS.ME           id, name, user, address, port, database and flags of the caller
 *     CLIENTS.NAME id name
 *     CLIENTS.SELECT db
 *     CLIENTS.PUBLISH channel message
 *     CLIENTS.REDACT arg... */
#include <errno.h>

#include "valkeymodule.h"

static int flags(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_GetContextFlags(NULL));
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_GetContextFlags(ctx));
}

static void replyOrNull(ValkeyModuleCtx *ctx, ValkeyModuleString *text) {
    if (text) {
        ValkeyModule_ReplyWithString(ctx, text);
    } else {
        ValkeyModule_ReplyWithNull(ctx);
    }
}

static int me(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_AutoMemory(ctx);
    uint64_t id = ValkeyModule_GetClientId(ctx);
    ValkeyModuleClientInfo info = VALKEYMODULE_CLIENTINFO_INITIALIZER_V1;
    if (ValkeyModule_GetClientInfoById(&info, id) == VALKEYMODULE_ERR)
        return ValkeyModule_ReplyWithError(ctx, "ERR no such client");
    ValkeyModule_ReplyWithArray(ctx, 7);
    ValkeyModule_ReplyWithLongLong(ctx, (long long)id);
    replyOrNull(ctx, ValkeyModule_GetClientNameById(ctx, id));
    replyOrNull(ctx, ValkeyModule_GetClientUserNameById(ctx, id));
    ValkeyModule_ReplyWithCString(ctx, info.addr);
    ValkeyModule_ReplyWithLongLong(ctx, info.port);
    ValkeyModule_ReplyWithLongLong(ctx, info.db);
    return ValkeyModule_ReplyWithLongLong(ctx, (long long)info.flags);
}

static int name(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long id;
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_StringToLongLong(argv[1], &id) == VALKEYMODULE_ERR)
        return ValkeyModule_ReplyWithError(ctx, "ERR not an id");
    errno = 0;
    if (ValkeyModule_SetClientNameById((uint64_t)id, argv[2]) == VALKEYMODULE_OK)
        return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    return ValkeyModule_ReplyWithSimpleString(ctx, errno == ENOENT ? "ENOENT" : "EINVAL");
}

static int selectDb(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long db;
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    if (ValkeyModule_StringToLongLong(argv[1], &db) == VALKEYMODULE_ERR) db = -1;
    ValkeyModule_ReplyWithArray(ctx, 2);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_SelectDb(ctx, (int)db));
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_GetSelectedDb(ctx));
}

static int publish(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 3) return ValkeyModule_WrongArity(ctx);
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_PublishMessage(ctx, argv[1], argv[2]));
}

static int redact(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_RedactClientCommandArgument(ctx, 0));
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_RedactClientCommandArgument(ctx, argc));
    return ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_RedactClientCommandArgument(ctx, 1));
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"clients.flags", flags},     {"clients.me", me},
                {"clients.name", name},       {"clients.select", selectDb},
                {"clients.publish", publish}, {"clients.redact", redact}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "clients", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *words = commands[i].func == me ? "no-auth" : "";
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, words, 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}
