/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: rights, users and authentication.
 *
 *     USERS.CALL name command arg...     runs the command as the user, errors as replies
 *     USERS.MAY name COMMAND|KEY|PREFIX|CHANNEL|PATTERN arg...   0, or errno as a word
 *     USERS.OWN line rule...             a user of the module: a line, then single rules
 *     USERS.BECOME name                  the caller is that user now
 *     USERS.CLOSE id                     logs a client out
 *     USERS.CHANGES                      how often a client with a callback got another user
 *     USERS.LOG name object reason
 *     USERS.CHANNELS flags channel...    uses channels; `flags`: publish subscribe pattern leave
 *     USERS.KEYED key channel...         publishes to channels, and has a key
 *
 * AUTH of the user `guarded`: the password `yes` is right, `no` is wrong, `text` and `code` are
 * refused with errors; other passwords are for others to decide. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "valkeymodule.h"

static long long changes;

static void changed(uint64_t client_id, void *privdata) {
    (void)client_id;
    changes += *(int *)privdata;
}

static const char *text(ValkeyModuleString *s) { return ValkeyModule_StringPtrLen(s, NULL); }

static const char *wordOf(int error) {
    switch (error) {
    case ENOENT: return "ENOENT";
    case EINVAL: return "EINVAL";
    case EACCES: return "EACCES";
    case ENOTSUP: return "ENOTSUP";
    default: return "0";
    }
}

static int call(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 3) return ValkeyModule_WrongArity(ctx);
    ValkeyModule_AutoMemory(ctx);
    ValkeyModuleUser *user = ValkeyModule_GetModuleUserFromUserName(argv[1]);
    ValkeyModule_SetContextUser(ctx, user);
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(ctx, text(argv[2]), "!CEv", argv + 3, (size_t)argc - 3);
    ValkeyModule_SetContextUser(ctx, NULL);
    if (user) ValkeyModule_FreeModuleUser(user);
    if (!reply) return ValkeyModule_ReplyWithError(ctx, "ERR no reply");
    return ValkeyModule_ReplyWithCallReply(ctx, reply);
}

static int may(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 4) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleUser *user = ValkeyModule_GetModuleUserFromUserName(argv[1]);
    const char *what = text(argv[2]);
    size_t len;
    const char *prefix = ValkeyModule_StringPtrLen(argv[3], &len);
    int result;
    errno = 0;
    if (!strcasecmp(what, "command")) {
        result = ValkeyModule_ACLCheckCommandPermissions(user, argv + 3, argc - 3);
    } else if (!strcasecmp(what, "key")) {
        result = ValkeyModule_ACLCheckKeyPermissions(user, argv[3], VALKEYMODULE_CMD_KEY_ACCESS);
    } else if (!strcasecmp(what, "write")) {
        result = ValkeyModule_ACLCheckKeyPermissions(user, argv[3], VALKEYMODULE_CMD_KEY_UPDATE);
    } else if (!strcasecmp(what, "prefix")) {
        result = ValkeyModule_ACLCheckKeyPrefixPermissions(user, prefix, len,
                                                           VALKEYMODULE_CMD_KEY_ACCESS);
    } else {
        result =
            ValkeyModule_ACLCheckChannelPermissions(user, argv[3], !strcasecmp(what, "channel"));
        if (result) errno = errno ? errno : EACCES;
    }
    const char *word = result == VALKEYMODULE_OK ? "0" : wordOf(errno);
    if (user) ValkeyModule_FreeModuleUser(user);
    return ValkeyModule_ReplyWithCString(ctx, word);
}

static int own(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleUser *user = ValkeyModule_CreateModuleUser("own");
    ValkeyModuleString *error = NULL;
    int failed = ValkeyModule_SetModuleUserACLString(ctx, user, text(argv[1]), &error);
    if (failed) {
        ValkeyModule_ReplyWithError(ctx, text(error));
        ValkeyModule_FreeString(ctx, error);
        ValkeyModule_FreeModuleUser(user);
        return VALKEYMODULE_OK;
    }
    ValkeyModule_ReplyWithArray(ctx, argc - 1);
    for (int i = 2; i < argc; i++) {
        errno = 0;
        failed = ValkeyModule_SetModuleUserACL(user, text(argv[i]));
        ValkeyModule_ReplyWithCString(ctx, failed ? wordOf(errno) : "0");
    }
    ValkeyModuleString *rules = ValkeyModule_GetModuleUserACLString(user);
    ValkeyModule_ReplyWithString(ctx, rules);
    ValkeyModule_FreeString(ctx, rules);
    ValkeyModule_FreeModuleUser(user);
    return VALKEYMODULE_OK;
}

static int become(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    static int one = 1;
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    size_t len;
    const char *name = ValkeyModule_StringPtrLen(argv[1], &len);
    uint64_t id;
    if (ValkeyModule_AuthenticateClientWithACLUser(ctx, name, len, changed, &one, &id))
        return ValkeyModule_ReplyWithError(ctx, "ERR refused");
    return ValkeyModule_ReplyWithLongLong(ctx, (long long)id);
}

static int closeClient(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long id;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &id))
        return ValkeyModule_WrongArity(ctx);
    int result = ValkeyModule_DeauthenticateAndCloseClient(ctx, (uint64_t)id);
    return ValkeyModule_ReplyWithLongLong(ctx, result);
}

static int countChanges(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    return ValkeyModule_ReplyWithLongLong(ctx, changes);
}

static int addLog(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long reason;
    if (argc != 4 || ValkeyModule_StringToLongLong(argv[3], &reason))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_ACLAddLogEntryByUserName(ctx, argv[1], argv[2],
                                          (ValkeyModuleACLLogEntryReason)reason);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static int authenticate(ValkeyModuleCtx *ctx, ValkeyModuleString *username,
                        ValkeyModuleString *password, ValkeyModuleString **err) {
    if (strcmp(text(username), "guarded")) return VALKEYMODULE_AUTH_NOT_HANDLED;
    const char *word = text(password);
    if (!strcmp(word, "yes")) {
        ValkeyModule_AuthenticateClientWithACLUser(ctx, "guarded", 7, NULL, NULL, NULL);
    } else if (!strcmp(word, "text")) {
        *err = ValkeyModule_CreateString(ctx, "not today", 9);
    } else if (!strcmp(word, "code")) {
        *err = ValkeyModule_CreateString(ctx, "-CLOSED not today", 17);
    } else if (strcmp(word, "no")) {
        return VALKEYMODULE_AUTH_NOT_HANDLED;
    }
    return VALKEYMODULE_AUTH_HANDLED;
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"users.call", call},         {"users.may", may},
                {"users.own", own},           {"users.become", become},
                {"users.close", closeClient}, {"users.changes", countChanges},
                {"users.log", addLog}};

static int flagsIn(const char *words) {
    int flags = 0;
    if (strstr(words, "publish")) flags |= VALKEYMODULE_CMD_CHANNEL_PUBLISH;
    if (strstr(words, "subscribe")) flags |= VALKEYMODULE_CMD_CHANNEL_SUBSCRIBE;
    if (strstr(words, "pattern")) flags |= VALKEYMODULE_CMD_CHANNEL_PATTERN;
    if (strstr(words, "leave")) flags |= VALKEYMODULE_CMD_CHANNEL_UNSUBSCRIBE;
    return flags;
}

static int channels(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (!ValkeyModule_IsChannelsPositionRequest(ctx))
        return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    for (int i = 2; i < argc; i++)
        ValkeyModule_ChannelAtPosWithFlags(ctx, i, flagsIn(text(argv[1])));
    ValkeyModule_ChannelAtPosWithFlags(ctx, argc, VALKEYMODULE_CMD_CHANNEL_PUBLISH); /* is none */
    return VALKEYMODULE_OK;
}

static int keyed(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    if (ValkeyModule_IsKeysPositionRequest(ctx)) {
        ValkeyModule_KeyAtPos(ctx, 1);
        ValkeyModule_KeyAtPos(ctx, argc); /* is none */
        return VALKEYMODULE_OK;
    }
    if (!ValkeyModule_IsChannelsPositionRequest(ctx))
        return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    for (int i = 2; i < argc; i++)
        ValkeyModule_ChannelAtPosWithFlags(ctx, i, VALKEYMODULE_CMD_CHANNEL_PUBLISH);
    return VALKEYMODULE_OK;
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "users", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    if (ValkeyModule_CreateCommand(ctx, "users.channels", channels, "getchannels-api", 0, 0, 0) ||
        ValkeyModule_CreateCommand(ctx, "users.keyed", keyed, "getkeys-api getchannels-api", 0, 0,
                                   0))
        return VALKEYMODULE_ERR;
    ValkeyModule_RegisterAuthCallback(ctx, authenticate);
    return VALKEYMODULE_OK;
}
