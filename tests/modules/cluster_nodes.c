/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module for tests: nodes of a cluster, messages between them, calls on keys of other nodes.
 *
 *     NODES.LIST                    id, address, port, flags and primary of each node
 *     NODES.SEND id|ALL type text   0: sent
 *     NODES.GOT                     sender, type and text of each message received
 *     NODES.SLOT key                its slot, and a name of that slot
 *     NODES.CALL command arg...     with errors as replies
 *     NODES.DRY command arg...      the same without running it; OK
 *     NODES.FORBID flags */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "valkeymodule.h"

static struct {
    char sender[41];
    uint8_t type;
    char text[64];
} got[64];
static long got_count;

static void receive(ValkeyModuleCtx *ctx, const char *sender_id, uint8_t type,
                    const unsigned char *payload, uint32_t len) {
    (void)ctx;
    if (got_count == 64 || len >= sizeof(got[0].text)) return;
    snprintf(got[got_count].sender, sizeof(got[0].sender), "%s", sender_id);
    got[got_count].type = type;
    memcpy(got[got_count].text, payload, len);
    got[got_count++].text[len] = '\0';
}

static int list(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    size_t count;
    char **ids = ValkeyModule_GetClusterNodesList(ctx, &count);
    if (!ids) return ValkeyModule_ReplyWithNullArray(ctx);
    ValkeyModule_ReplyWithArray(ctx, (long)count);
    for (size_t i = 0; i < count; i++) {
        char id[41] = "", ip[46], primary[41] = "";
        int port, flags;
        memcpy(id, ids[i], 40);
        if (ValkeyModule_GetClusterNodeInfo(ctx, id, ip, primary, &port, &flags)) {
            ValkeyModule_ReplyWithNull(ctx);
            continue;
        }
        ValkeyModule_ReplyWithArray(ctx, 5);
        ValkeyModule_ReplyWithCString(ctx, id);
        ValkeyModule_ReplyWithCString(ctx, ip);
        ValkeyModule_ReplyWithLongLong(ctx, port);
        ValkeyModule_ReplyWithLongLong(ctx, flags);
        ValkeyModule_ReplyWithCString(ctx, primary);
    }
    ValkeyModule_FreeClusterNodesList(ids);
    return VALKEYMODULE_OK;
}

static int send(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long type;
    if (argc != 4 || ValkeyModule_StringToLongLong(argv[2], &type))
        return ValkeyModule_WrongArity(ctx);
    const char *id = ValkeyModule_StringPtrLen(argv[1], NULL);
    size_t len;
    const char *text = ValkeyModule_StringPtrLen(argv[3], &len);
    int result = ValkeyModule_SendClusterMessage(ctx, strcasecmp(id, "all") ? id : NULL,
                                                 (uint8_t)type, text, (uint32_t)len);
    return ValkeyModule_ReplyWithLongLong(ctx, result);
}

static int gotAll(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    ValkeyModule_ReplyWithArray(ctx, got_count * 3);
    for (long i = 0; i < got_count; i++) {
        ValkeyModule_ReplyWithCString(ctx, got[i].sender);
        ValkeyModule_ReplyWithLongLong(ctx, got[i].type);
        ValkeyModule_ReplyWithCString(ctx, got[i].text);
    }
    return VALKEYMODULE_OK;
}

static int slot(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc != 2) return ValkeyModule_WrongArity(ctx);
    unsigned number = ValkeyModule_ClusterKeySlot(argv[1]);
    const char *name = ValkeyModule_ClusterCanonicalKeyNameInSlot(number);
    ValkeyModule_ReplyWithArray(ctx, 3);
    ValkeyModule_ReplyWithLongLong(ctx, number);
    ValkeyModule_ReplyWithLongLong(ctx, ValkeyModule_ClusterKeySlotC(name, strlen(name)));
    return ValkeyModule_ReplyWithBool(ctx,
                                      ValkeyModule_ClusterCanonicalKeyNameInSlot(16384) == NULL);
}

static int dry(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, ValkeyModule_StringPtrLen(argv[1], NULL),
                                                     "DEv", argv + 2, (size_t)argc - 2);
    if (ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ERROR) {
        ValkeyModule_ReplyWithCallReply(ctx, reply);
    } else {
        ValkeyModule_ReplyWithSimpleString(ctx, "OK");
    }
    ValkeyModule_FreeCallReply(reply);
    return VALKEYMODULE_OK;
}

static int call(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc < 2) return ValkeyModule_WrongArity(ctx);
    const char *name = ValkeyModule_StringPtrLen(argv[1], NULL);
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(ctx, name, "v", argv + 2, (size_t)argc - 2); /* errors are NULL */
    if (!reply && errno == EPERM) {
        reply = ValkeyModule_Call(ctx, name, "Ev", argv + 2, (size_t)argc - 2);
    }
    if (!reply) return ValkeyModule_ReplyWithError(ctx, "ERR no reply");
    ValkeyModule_ReplyWithCallReply(ctx, reply);
    ValkeyModule_FreeCallReply(reply);
    return VALKEYMODULE_OK;
}

static int forbid(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    long long flags;
    if (argc != 2 || ValkeyModule_StringToLongLong(argv[1], &flags))
        return ValkeyModule_WrongArity(ctx);
    ValkeyModule_SetClusterFlags(ctx, (uint64_t)flags);
    return ValkeyModule_ReplyWithSimpleString(ctx, "OK");
}

static const struct {
    const char *name;
    ValkeyModuleCmdFunc func;
} commands[] = {{"nodes.list", list},    {"nodes.send", send}, {"nodes.got", gotAll},
                {"nodes.slot", slot},    {"nodes.call", call}, {"nodes.dry", dry},
                {"nodes.forbid", forbid}};

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    if (ValkeyModule_Init(ctx, "cluster_nodes", 1, VALKEYMODULE_APIVER_1) == VALKEYMODULE_ERR)
        return VALKEYMODULE_ERR;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (ValkeyModule_CreateCommand(ctx, commands[i].name, commands[i].func, "", 0, 0, 0))
            return VALKEYMODULE_ERR;
    }
    ValkeyModule_RegisterClusterMessageReceiver(ctx, 1, receive);
    ValkeyModule_RegisterClusterMessageReceiver(ctx, 2, receive);
    ValkeyModule_RegisterClusterMessageReceiver(ctx, 3, receive);
    ValkeyModule_RegisterClusterMessageReceiver(ctx, 3, NULL);
    return VALKEYMODULE_OK;
}
